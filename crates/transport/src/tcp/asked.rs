//! What lies between the engine and ip: requests under way, resets that wait for room, and what ip says of a path.

use super::block::Tuple;
use eft_base::{PacketRef, WireAddress};

/// No path has less (RFC 791: 68; below this a segment would carry next to nothing).
pub(super) const MTU_MIN: u16 = 128;

/// What ip says of a path.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub source: WireAddress,
    pub mtu: u16,
    pub segment_max: u32,
    pub local: bool,
}

/// What we asked of ip.
pub(super) enum Request {
    /// A segment with payload of a connection.
    Data {
        block: u32,
        generation: u32,
        epoch: u8,
        /// Offset after its last byte.
        end: u64,
        descriptor: PacketRef,
    },
    /// A segment without payload. Nobody waits for it.
    Bare { block: u32, generation: u32, descriptor: PacketRef },
    /// The way to a connection's peer.
    Route { block: u32, generation: u32 },
}

/// A reset that waits for room in the queue to ip.
pub(super) struct PendingReset {
    pub tuple: Tuple,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    /// Offset of our clock, and what the peer's was last, on a connection that uses timestamps.
    pub clocks: Option<(u32, u32)>,
}
