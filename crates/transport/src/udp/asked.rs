//! Requests to ip under way, and ICMP errors from ip.

use eft_base::{PacketRef, RequestId, WireAddress};
use eft_messages::transport::TransportToIp;

/// A request to ip.
pub(super) enum Request {
    Datagram {
        block: u32,
        generation: u32,
        group: u8,
        descriptor: PacketRef,
        /// The number of a datagram for which the application wants to know when a device has it.
        stamp: Option<u16>,
    },
    Route {
        block: u32,
        generation: u32,
        source: WireAddress,
        destination: WireAddress,
    },
}

impl Request {
    /// What ip is asked, for the first time or again.
    pub fn message(&self, request: RequestId) -> TransportToIp {
        match *self {
            Request::Datagram { descriptor, .. } => TransportToIp::Send { request, descriptor },
            Request::Route { source, destination, .. } => {
                TransportToIp::Route { request, source, destination }
            }
        }
    }
}

/// An ICMP error from ip.
pub(super) struct IcmpError {
    pub kind: u8,
    pub code: u8,
    pub info: u16,
    pub offender: WireAddress,
    pub ttl: u8,
    pub tos: u8,
}
