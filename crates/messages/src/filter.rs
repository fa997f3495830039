//! ip ↔ filter: the T-junction.
//!
//! ip keeps the packet and asks; the answer alone lets it pass. No buffers cross.
//!
//! **Full.** Questions about packets going out wait; arriving packets are dropped by ip.
//!
//! **Restart.** filter reborn: ip asks again about every packet without a verdict; meanwhile
//! nothing passes. ip reborn: the filter forgets what it was asked (its states live on).

use eft_base::{RequestId, WireAddress};

crate::messages! {
    /// From ip to the filter.
    pub enum IpToFilter {
        /// May this packet pass? Ports are 0 where the protocol has none; for ICMP, `source_port`
        /// is the type and `destination_port` the code. `inbound`: arriving on NIC `interface`,
        /// else leaving by it; 255 is local delivery. `tcp_flags` as on the wire.
        1 => Ask {
            request: RequestId,
            source: WireAddress, destination: WireAddress,
            source_port: u16, destination_port: u16,
            protocol: u8, tcp_flags: u8, interface: u8, inbound: bool,
            len: u16,
        },
    }
}

crate::messages! {
    /// From the filter to ip.
    pub enum FilterToIp {
        1 => Verdict { request: RequestId, pass: bool },
    }
}
