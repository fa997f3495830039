//! What lies between the engine and ip: requests under way, and what ip says of an ICMP error.

use eft_base::{PacketRef, WireAddress};

/// What we asked of ip.
pub(super) enum Request {
    Datagram { block: u32, generation: u32, epoch: u8, descriptor: PacketRef },
    Route { block: u32, generation: u32, source: WireAddress, destination: WireAddress },
}

/// What ip says of an ICMP error.
pub(super) struct IcmpError {
    pub kind: u8,
    pub code: u8,
    pub info: u16,
    pub offender: WireAddress,
    pub ttl: u8,
    pub tos: u8,
}
