//! ip ↔ filter: the T-junction.
//!
//! ip keeps the packet and asks; the answer alone lets it pass. No buffers cross. What the sender of
//! a blocked packet is told, if anything, the filter decides and ip makes.
//!
//! **Full.** Questions about packets going out wait; arriving packets are dropped by ip.
//!
//! **Restart.** filter reborn: ip asks again about every packet without a verdict; meanwhile
//! nothing passes. ip reborn: the filter forgets what it was asked (its states live on).

use crate::codec::{Field, Reader, Writer};
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
        /// Comes right before the `Ask` with the same `request`, if that is about an ICMP error that
        /// quotes enough of a packet: addresses, protocol and ports of the quoted one, as in `Ask`.
        /// An error without it quotes nothing that can be believed.
        2 => Quote {
            request: RequestId,
            source: WireAddress, destination: WireAddress,
            source_port: u16, destination_port: u16,
            protocol: u8,
        },
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Judgement {
    Drop = 0,
    Pass = 1,
    /// It goes no further, and its sender gets a TCP reset.
    Reset = 2,
    /// It goes no further, and its sender is told that the port is unreachable (ICMP).
    Unreachable = 3,
}

impl Field for Judgement {
    fn put(&self, w: &mut Writer) {
        w.put(&[*self as u8])
    }

    fn get(r: &mut Reader) -> Option<Self> {
        use Judgement::*;
        let [number] = r.get()?;
        [Drop, Pass, Reset, Unreachable].into_iter().find(|j| *j as u8 == number)
    }
}

crate::messages! {
    /// From the filter to ip.
    pub enum FilterToIp {
        1 => Verdict { request: RequestId, judgement: Judgement },
    }
}
