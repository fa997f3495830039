//! Requests to ip under way, resets that wait for room, and ip's answers about a path.

use super::block::Tuple;
use super::signature::Signer;
use eft_base::{PacketRef, WireAddress};

/// No path has less (RFC 791: 68; below this a segment would carry almost nothing).
pub(super) const MTU_MIN: u16 = 128;

/// ip's answer about a path.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub source: WireAddress,
    pub mtu: u16,
    pub segment_max: u32,
    pub local: bool,
    /// The MSS that we announce; 0: what the MTU leaves room for.
    pub mss: u16,
    /// Segments of the initial window; 0: those of RFC 6928.
    pub initial_segments: u16,
}

/// A request to ip.
pub(super) enum Request {
    /// A segment with payload of a connection.
    Data {
        block: u32,
        generation: u32,
        group: u8,
        /// Offset after its last byte.
        end: u64,
        descriptor: PacketRef,
    },
    /// A segment without payload. Nothing waits for its answer.
    Bare { block: u32, generation: u32, descriptor: PacketRef },
    /// The route to a connection's peer.
    Route { block: u32, generation: u32 },
}

/// A reset that waits for room in the queue to ip.
pub(super) struct PendingReset {
    pub tuple: Tuple,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    /// Offset of our clock, and the peer's last timestamp, on a connection that uses timestamps.
    pub clocks: Option<(u32, u32)>,
    /// Of a signed connection.
    pub signer: Option<Signer>,
}

/// An ICMP error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    pub kind: u8,
    pub code: u8,
    pub info: u16,
    /// Who sent it.
    pub offender: WireAddress,
}
