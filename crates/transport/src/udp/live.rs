//! State of a socket that is derived from its block and its page, and rebuilt after a crash.

use super::merge::OpenRecord;
use super::stamps::Stamps;
use crate::in_flight::InFlight;
use crate::page::Page;
use eft_base::{PoolId, RequestId, WireAddress};

/// Bits of [`Live::due`].
pub(super) mod due {
    pub const READABLE: u32 = 2;
    pub const WRITABLE: u32 = 4;
    pub const SEND: u32 = 8;
    pub const HANG_UP: u32 = 16;
    pub const END_OF_STREAM: u32 = 32;
}

/// What ip says about the route to a destination.
#[derive(Clone, Copy)]
pub(super) struct Path {
    pub source: WireAddress,
    /// Payload of the most datagrams that go as one packet; 0: each goes by itself.
    pub segment_max: u32,
}

/// Derived state of one socket.
#[derive(Default)]
pub(super) struct Live {
    pub page: Option<Page>,
    pub pool: PoolId,
    pub due: u32,
    pub in_flight: InFlight,
    /// Payload bytes of the send ring's first record that are sent, if it is several datagrams. A successor sends it from
    /// its begin.
    pub segmented: u32,
    /// The newest record of the receive ring, if more may go into it.
    pub open_record: Option<OpenRecord>,
    /// Times of sends that the page has no room for yet.
    pub stamps: Stamps,
    /// `Opt::ZeroCopySends` when the application was last woken for it.
    pub completions: u32,
    /// The route to the first datagram's destination, or to the peer, is asked for.
    pub route_request: Option<RequestId>,
    /// `Connect` to be answered when the route is known.
    pub connect_request: Option<RequestId>,
}
