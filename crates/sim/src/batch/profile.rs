//! The costs of a stack and its load, for each message and byte.

use super::polling::Polling;
use crate::hardware::{Costs, Work};

/// One server's costs for each kind of message: cycles with their waits for memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    pub segment: Work,
    pub acknowledgement: Work,
    pub sent: Work,
}

/// The costs of a question to the filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The filter's.
    pub question: Work,
    /// ip's, when the answer comes.
    pub verdict: Work,
    /// It grants connections, so ip asks once about each; else ip asks about each packet.
    pub grants: bool,
}

impl Profile {
    /// The filter, if ip asks it about each packet.
    pub fn questions(&self) -> Option<Filter> {
        self.filter.filter(|filter| !filter.grants)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    pub costs: Costs,
    /// The synchronous server between programs and tcp, if there is one: its cost of a call, and of an answer, each.
    pub call: Option<Work>,
    pub write: Work,
    /// tcp's copy of 1024 bytes.
    pub copy_kib: Work,
    pub tcp: Messages,
    pub ip: Messages,
    pub driver: Messages,
    pub filter: Option<Filter>,
    pub polling: Polling,
    /// Messages that a batch takes at most.
    pub batch_max: usize,
    pub streams: usize,
    pub write_bytes: u64,
    /// The peer's window, and how much of a stream tcp keeps, sent or not.
    pub window_bytes: u64,
    /// What a connection may have in flight when it begins.
    pub initial_window_bytes: u64,
    pub buffer_bytes: u64,
    pub segment_bytes: u64,
    pub maximum_segment: u64,
    /// tcp sends once at the end of a batch, not after each message of it.
    pub flushes: bool,
    /// Segments have timestamps (RFC 7323), and tcp what else came after LwIP 1.x; only tier 1 differs by it.
    pub modern_tcp: bool,
    /// A small segment waits for the acknowledgement of the last one (RFC 896).
    pub nagle: bool,
    /// What a program does between two writes, on a core of its own.
    pub program_ps: u64,
    pub network: Network,
}

/// The wire and the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    pub mbps: u64,
    /// Bytes on the wire of a full segment that are no payload.
    pub overhead_bytes: u64,
    /// How long the peer gathers what arrives before it acknowledges; the acknowledgement arrives later still.
    pub gather_ps: u64,
    pub turnaround_ps: u64,
}
