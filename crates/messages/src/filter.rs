//! ip ↔ filter: the T-junction.
//!
//! ip keeps the packet and asks; the answer alone lets it pass. No buffers cross. The filter decides whether and how the sender
//! of a blocked packet is informed; ip makes that packet.
//!
//! **Full.** Questions about packets going out wait; arriving packets are dropped by ip.
//!
//! **Grants.** The filter grants a connection when it would give the same verdict for all its ordinary packets
//! ([`is_ordinary`]): they pass without a question in both directions, until ip ends the grant or the filter recalls it. There
//! are two kinds. A grant *by state* is for a connection of which both ends are known. When it is over ip says so by
//! [`IpToFilter::Used`], before it asks about the connection again, so that time-outs stay right. A grant *by rules* is for a
//! connection without a state that the rules let pass on this interface: it lasts until the rules change, and the filter keeps
//! no state for it. A filter without rules and states grants everything ([`FilterToIp::PassAll`]) until it gets rules.
//!
//! **Lost.** ip asks again about a packet without a verdict after a second or two.
//!
//! **Restart.** filter reborn: ip forgets the grants and asks again about every packet without a verdict; meanwhile only
//! packets with a grant pass. ip reborn: the filter forgets what it was asked and what it granted (its states live on).

use crate::codec::{Field, Reader, Writer};
use core::hash::{Hash, Hasher};
use eft_base::wire::{PROTOCOL_TCP, PROTOCOL_UDP, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};
use eft_base::{RequestId, WireAddress};

/// The two ends of a connection (address, port), in a fixed order, so that packets of both directions name the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    pub low: ([u8; 16], u16),
    pub high: ([u8; 16], u16),
    pub protocol: u8,
}

impl Flow {
    /// The flow of a packet from `source` to `destination`, and whether `source` is the low end.
    pub fn between(
        source: (WireAddress, u16),
        destination: (WireAddress, u16),
        protocol: u8,
    ) -> (Flow, bool) {
        let (source, destination) = ((source.0.0, source.1), (destination.0.0, destination.1));
        let source_is_low = source <= destination;
        let (low, high) = if source_is_low { (source, destination) } else { (destination, source) };
        (Flow { low, high, protocol }, source_is_low)
    }
}

/// All at once: field by field takes twice the instructions, and ip does it for each packet.
impl Hash for Flow {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut bytes = [0; 40];
        bytes[..16].copy_from_slice(&self.low.0);
        bytes[16..32].copy_from_slice(&self.high.0);
        bytes[32..34].copy_from_slice(&self.low.1.to_le_bytes());
        bytes[34..36].copy_from_slice(&self.high.1.to_le_bytes());
        bytes[36] = self.protocol;
        state.write(&bytes);
    }
}

impl Field for Flow {
    fn put(&self, w: &mut Writer) {
        for (address, port) in [&self.low, &self.high] {
            w.put(address);
            port.put(w);
        }
        self.protocol.put(w);
    }

    fn get(r: &mut Reader) -> Option<Self> {
        let (low, high) = ((r.get()?, Field::get(r)?), (r.get()?, Field::get(r)?));
        Some(Flow { low, high, protocol: Field::get(r)? })
    }
}

/// Whether a packet changes nothing in the filter's state but the time of last use: any UDP packet, and a TCP packet with ACK
/// that neither begins nor ends a connection.
pub fn is_ordinary(protocol: u8, tcp_flags: u8) -> bool {
    match protocol {
        PROTOCOL_TCP => tcp_flags & (TCP_SYN | TCP_FIN | TCP_RST | TCP_ACK) == TCP_ACK,
        PROTOCOL_UDP => true,
        _ => false,
    }
}

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
        /// Comes right before the `Ask` with the same `request`, if it is about an ICMP error that quotes enough of a packet:
        /// addresses, protocol and ports of the quoted one, as in `Ask`. An error without a `Quote` quotes too little to be
        /// trusted.
        2 => Quote {
            request: RequestId,
            source: WireAddress, destination: WireAddress,
            source_port: u16, destination_port: u16,
            protocol: u8,
        },
        /// The grant by state of this connection is over, or there was none. `at` is when the last packet passed by it, in
        /// nanoseconds of the monotonic clock; 0: none did.
        3 => Used { flow: Flow, at: u64 },
        /// How many packets have passed by grants since the last such message, and how many of these by states.
        4 => Passed { packets: u64, by_state: u64 },
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Judgement {
    Drop = 0,
    Pass = 1,
    /// It is dropped, and its sender gets a TCP reset.
    Reset = 2,
    /// It is dropped, and its sender gets an ICMP "port unreachable".
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
        /// The packet passes, and its connection has a grant from now on.
        2 => Grant { request: RequestId, by_rules: bool },
        /// A grant by state is over; [`IpToFilter::Used`] answers.
        3 => Recall { flow: Flow },
        /// All grants by rules are over, and that of everything.
        4 => RecallByRules {},
        /// There are neither rules nor states: every packet passes without a question from now on.
        5 => PassAll {},
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eft_base::hash::Key;

    #[test]
    fn each_field_of_a_flow_counts_in_its_hash() {
        let plain = Flow { low: ([1; 16], 2), high: ([3; 16], 4), protocol: PROTOCOL_TCP };
        let mut all = vec![plain];
        for i in 0..16 {
            let (mut low, mut high) = (plain, plain);
            low.low.0[i] ^= 0x80;
            high.high.0[i] ^= 0x80;
            all.extend([low, high]);
        }
        for bit in [0, 15] {
            all.push(Flow { low: (plain.low.0, plain.low.1 ^ 1 << bit), ..plain });
            all.push(Flow { high: (plain.high.0, plain.high.1 ^ 1 << bit), ..plain });
        }
        all.push(Flow { protocol: PROTOCOL_UDP, ..plain });
        all.push(Flow { low: plain.high, high: plain.low, ..plain });
        let key = Key([5, 6]);
        for (i, flow) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|other| key.hash(0, other) != key.hash(0, flow)), "{flow:?}");
        }
    }
}
