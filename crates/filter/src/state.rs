//! Connection states: which packets belong to a connection that a rule has admitted.
//!
//! A state is found by its packets' addresses, protocol and ports, in either direction. Its lifetime depends on which
//! packets have been seen; the times are pf's defaults.

use crate::rule::{Packet, Quoted, is_icmp};
use core::net::IpAddr;
use core::time::Duration;
use eft_base::wire::{
    ICMP_PARAMETER_PROBLEM, ICMP_TIME_EXCEEDED, ICMP_UNREACHABLE, ICMPV6_PARAMETER_PROBLEM,
    ICMPV6_TIME_EXCEEDED, ICMPV6_TOO_BIG, ICMPV6_UNREACHABLE, PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP,
    PROTOCOL_UDP, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN,
};
use eft_base::{Instant, WireAddress};
use eft_messages::filter::{Flow, is_ordinary};

/// ICMP queries and their replies, by type; echo alone of ICMPv6 (RFC 4443 §4).
const ICMP_QUERIES: [(u16, u16); 4] = [(8, 0), (13, 14), (15, 16), (17, 18)];
const ICMPV6_QUERIES: [(u16, u16); 1] = [(128, 129)];

/// The ICMP errors that are matched with the states of the packets that they quote: unreachable (fragmentation
/// needed among them), time exceeded, parameter problem; of ICMPv6 packet too big as well.
const ICMP_ERRORS: [u8; 3] = [ICMP_UNREACHABLE, ICMP_TIME_EXCEEDED, ICMP_PARAMETER_PROBLEM];
const ICMPV6_ERRORS: [u8; 4] =
    [ICMPV6_UNREACHABLE, ICMPV6_TOO_BIG, ICMPV6_TIME_EXCEEDED, ICMPV6_PARAMETER_PROBLEM];

/// Whether a packet is an ICMP error.
pub fn is_error(p: &Packet) -> bool {
    let errors = match p.protocol {
        PROTOCOL_ICMP => &ICMP_ERRORS[..],
        PROTOCOL_ICMPV6 => &ICMPV6_ERRORS,
        _ => &[],
    };
    errors.iter().any(|kind| *kind as u16 == p.source_port)
}

/// Queries of an ICMP.
fn queries(protocol: u8) -> &'static [(u16, u16)] {
    if protocol == PROTOCOL_ICMP { &ICMP_QUERIES } else { &ICMPV6_QUERIES }
}

/// The packet that an ICMP error is about. `None` if it is invalid: an error goes to the sender of the quoted packet, so
/// its destination must be the quoted packet's source.
pub fn quoted_packet(error: &Packet) -> Option<Packet> {
    let Quoted { source, destination, source_port, destination_port, protocol } = error.quoted?;
    (source == error.destination).then_some(Packet {
        source,
        destination,
        source_port,
        destination_port,
        protocol,
        tcp_flags: 0,
        interface: error.interface,
        inbound: !error.inbound,
        quoted: None,
    })
}

/// The flow of a packet, and whether its source is the low end. `None`: it can have no state.
pub fn flow(p: &Packet) -> Option<(Flow, bool)> {
    let (from, to) = match p.protocol {
        PROTOCOL_TCP | PROTOCOL_UDP => (p.source_port, p.destination_port),
        PROTOCOL_ICMP | PROTOCOL_ICMPV6 => {
            let (query, _) =
                queries(p.protocol).iter().find(|(q, r)| p.source_port == *q || p.source_port == *r)?;
            (*query, *query)
        }
        _ => (0, 0),
    };
    Some(Flow::between((p.source.into(), from), (p.destination.into(), to), p.protocol))
}

/// The packets seen from one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Seen {
    Nothing = 0,
    /// TCP: SYN. Else: one packet.
    First = 1,
    /// TCP: SYN acknowledged. Else: several packets.
    Established = 2,
    /// TCP: FIN.
    Closing = 3,
    /// TCP: FIN acknowledged.
    Closed = 4,
    /// TCP: RST, from either end.
    Reset = 5,
}

impl Seen {
    pub fn from_u8(v: u8) -> Option<Seen> {
        use Seen::*;
        let all = [Nothing, First, Established, Closing, Closed, Reset];
        all.get(v as usize).copied()
    }

    /// pfctl's name for it.
    pub fn name(self, protocol: u8) -> &'static str {
        match (protocol, self) {
            (PROTOCOL_TCP, Seen::Nothing) => "CLOSED",
            (PROTOCOL_TCP, Seen::First) => "SYN_SENT",
            (PROTOCOL_TCP, Seen::Established) => "ESTABLISHED",
            (PROTOCOL_TCP, Seen::Closing) => "CLOSING",
            (PROTOCOL_TCP, Seen::Closed) => "FIN_WAIT_2",
            (_, Seen::Nothing) => "NO_TRAFFIC",
            (_, Seen::First) => "SINGLE",
            (_, Seen::Established) => "MULTIPLE",
            _ => "CLOSED",
        }
    }
}

/// A connection. `opener` began it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    pub flow: Flow,
    pub opener_is_low: bool,
    /// The first packet was an arriving one.
    pub inbound: bool,
    pub opener: Seen,
    pub other: Seen,
    pub created: Instant,
    pub expires: Instant,
    /// ip lets its ordinary packets pass by a grant: the state lives, even beyond `expires`, until ip has reported its last
    /// use.
    pub granted: bool,
}

impl State {
    /// The state that this packet begins.
    pub fn new(now: Instant, p: &Packet) -> Option<State> {
        let (flow, opener_is_low) = flow(p)?;
        let mut state = State {
            flow,
            opener_is_low,
            inbound: p.inbound,
            opener: Seen::Nothing,
            other: Seen::Nothing,
            created: now,
            expires: now,
            granted: false,
        };
        state.observe(now, opener_is_low, p.tcp_flags);
        Some(state)
    }

    /// Whether a packet of this connection, from its low end or not, may pass. A new SYN on a finished connection must be
    /// judged by the rules, and only the queried host may reply to an ICMP query.
    pub fn admits(&self, source_is_low: bool, p: &Packet) -> bool {
        match self.flow.protocol {
            PROTOCOL_TCP => {
                let begins = p.tcp_flags & (TCP_SYN | TCP_ACK) == TCP_SYN;
                !(begins && self.is_finished())
            }
            PROTOCOL_ICMP | PROTOCOL_ICMPV6 => {
                let is_query = queries(p.protocol).iter().any(|(q, _)| p.source_port == *q);
                is_query == (source_is_low == self.opener_is_low)
            }
            _ => true,
        }
    }

    /// Whether an ICMP error may be about a packet `p` of this connection that its low end sent, or
    /// its high end: that end must have sent something.
    pub fn may_quote(&self, source_is_low: bool, p: &Packet) -> bool {
        let from_opener = source_is_low == self.opener_is_low;
        let sender = if from_opener { self.opener } else { self.other };
        sender != Seen::Nothing && (!is_icmp(self.flow.protocol) || self.admits(source_is_low, p))
    }

    fn is_finished(&self) -> bool {
        self.opener >= Seen::Closed && self.other >= Seen::Closed
    }

    /// Whether it may be evicted for a new one when the table is full.
    pub fn is_expendable(&self) -> bool {
        self.flow.protocol != PROTOCOL_TCP
            || self.opener != Seen::Established
            || self.other != Seen::Established
    }

    /// Updates the state by a packet of this connection.
    pub fn observe(&mut self, now: Instant, source_is_low: bool, tcp_flags: u8) {
        let from_opener = source_is_low == self.opener_is_low;
        let (me, peer) = if from_opener {
            (&mut self.opener, &mut self.other)
        } else {
            (&mut self.other, &mut self.opener)
        };
        if self.flow.protocol == PROTOCOL_TCP {
            observe_tcp(me, peer, tcp_flags);
        } else {
            *me = if *me == Seen::Nothing { Seen::First } else { Seen::Established };
        }
        self.expires = now + self.lifetime();
    }

    /// Whether all ordinary packets after `p`, which has been observed, change nothing but the state's expiry.
    pub fn may_grant(&self, p: &Packet) -> bool {
        let both_known = self.opener == Seen::Established && self.other == Seen::Established;
        both_known && is_ordinary(p.protocol, p.tcp_flags)
    }

    /// Its grant is over; the last packet passed by it `at` this time.
    pub fn used(&mut self, at: Instant) {
        self.granted = false;
        self.expires = self.expires.max(at + self.lifetime());
    }

    fn lifetime(&self) -> Duration {
        let (least, most) = (self.opener.min(self.other), self.opener.max(self.other));
        let seconds = match self.flow.protocol {
            PROTOCOL_TCP => match (least, most) {
                (_, Seen::Reset) => 90,
                (Seen::Closed, _) => 90,
                (Seen::Closing, _) => 45,
                (_, Seen::Closing | Seen::Closed) => 900,
                (Seen::Established, _) => 86_400,
                (Seen::Nothing, Seen::First) => 120,
                _ => 30,
            },
            PROTOCOL_ICMP | PROTOCOL_ICMPV6 => 20,
            _ => match least {
                Seen::Nothing if most == Seen::First => 60,
                Seen::Nothing => 30,
                _ => 60,
            },
        };
        Duration::from_secs(seconds)
    }

    /// The opener's end, then the other.
    pub fn ends(&self) -> [(IpAddr, u16); 2] {
        let end = |(a, port): ([u8; 16], u16)| (IpAddr::from(WireAddress(a)), port);
        let (low, high) = (end(self.flow.low), end(self.flow.high));
        if self.opener_is_low { [low, high] } else { [high, low] }
    }
}

/// Without sequence numbers: an acknowledgment is taken to be of the peer's last SYN or FIN.
fn observe_tcp(me: &mut Seen, peer: &mut Seen, flags: u8) {
    if flags & TCP_RST != 0 {
        (*me, *peer) = (Seen::Reset, Seen::Reset);
        return;
    }
    if flags & TCP_ACK != 0 {
        match *peer {
            Seen::First => *peer = Seen::Established,
            Seen::Closing => *peer = Seen::Closed,
            _ => {}
        }
    }
    if flags & TCP_SYN != 0 {
        *me = (*me).max(Seen::First);
    } else if *me == Seen::Nothing {
        // Picked up in the middle, by a rule with `flags any`.
        *me = Seen::Established;
    }
    if flags & TCP_FIN != 0 {
        *me = (*me).max(Seen::Closing);
    }
}
