//! Rules, and which packets they match.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_base::Cidr;
use eft_base::address::without_zone;
use eft_base::wire::{
    PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP, PROTOCOL_UDP, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN,
};
use eft_messages::filter::Judgement;

/// The fields of a packet that rules match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// For ICMP the type.
    pub source_port: u16,
    /// For ICMP the code.
    pub destination_port: u16,
    pub protocol: u8,
    pub tcp_flags: u8,
    pub interface: u8,
    pub inbound: bool,
    /// For an ICMP error: the packet that it is about.
    pub quoted: Option<Quoted>,
}

/// A packet as an ICMP error quotes it. Ports as in [`Packet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: u8,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ruleset {
    pub rules: Vec<Rule>,
    pub tables: BTreeMap<String, Table>,
}

/// A rule. An empty list or `None` matches everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub action: Action,
    pub direction: Option<Direction>,
    pub quick: bool,
    pub interfaces: Vec<Not<String>>,
    pub family: Option<Family>,
    pub protocols: Vec<u8>,
    pub from: Peers,
    pub to: Peers,
    pub flags: Option<Flags>,
    pub icmp: Vec<IcmpMatch>,
    pub keep_state: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Pass,
    Block(Return),
}

/// Whether a protocol is ICMP of either version.
pub fn is_icmp(protocol: u8) -> bool {
    matches!(protocol, PROTOCOL_ICMP | PROTOCOL_ICMPV6)
}

/// The answer to the sender of a blocked packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// `block`, `block drop`: nothing.
    Nothing,
    /// `block return`: a reset for TCP, an ICMP error for everything but ICMP.
    Fitting,
    /// `block return-rst`: a reset for TCP, nothing else.
    Reset,
    /// `block return-icmp`: an ICMP error for everything but ICMP.
    Icmp,
}

impl Action {
    /// The verdict for a packet of this protocol.
    pub fn judgement(self, protocol: u8) -> Judgement {
        match (self, protocol) {
            (Action::Pass, _) => Judgement::Pass,
            (Action::Block(Return::Fitting | Return::Reset), PROTOCOL_TCP) => Judgement::Reset,
            // No error is sent about ICMP errors (RFC 1122 §3.2.2), and pf sends none about queries.
            (Action::Block(Return::Fitting | Return::Icmp), p) if !is_icmp(p) => Judgement::Unreachable,
            (Action::Block(_), _) => Judgement::Drop,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    In,
    Out,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Inet,
    Inet6,
}

/// A criterion, possibly negated.
#[derive(Clone, Debug, PartialEq)]
pub struct Not<T> {
    pub negated: bool,
    pub value: T,
}

/// One side of `from … to …`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Peers {
    pub hosts: Vec<Not<Host>>,
    pub ports: Vec<PortMatch>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Host {
    Any,
    Network(Cidr),
    Table(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortMatch {
    Equal(u16),
    Unequal(u16),
    Less(u16),
    LessOrEqual(u16),
    Greater(u16),
    GreaterOrEqual(u16),
    /// `a:b`, with both ends.
    Range(u16, u16),
    /// `a >< b`, without the ends.
    Between(u16, u16),
    /// `a <> b`
    Outside(u16, u16),
}

/// `flags SET/MASK`: of the flags in `mask`, exactly those in `set` are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    pub set: u8,
    pub mask: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpMatch {
    pub kind: u8,
    pub code: Option<u8>,
}

/// A table of networks: the longest prefix that contains an address decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Longest prefix first.
    entries: Vec<Not<Cidr>>,
}

impl Table {
    pub fn new(mut entries: Vec<Not<Cidr>>) -> Table {
        entries.sort_by_key(|e| core::cmp::Reverse(e.value.prefix_len));
        Table { entries }
    }

    pub fn entries(&self) -> &[Not<Cidr>] {
        &self.entries
    }

    pub fn contains(&self, a: IpAddr) -> bool {
        let found = self.entries.iter().find(|e| e.value.contains(a));
        found.is_some_and(|e| !e.negated)
    }
}

impl PortMatch {
    pub fn matches(self, port: u16) -> bool {
        match self {
            PortMatch::Equal(a) => port == a,
            PortMatch::Unequal(a) => port != a,
            PortMatch::Less(a) => port < a,
            PortMatch::LessOrEqual(a) => port <= a,
            PortMatch::Greater(a) => port > a,
            PortMatch::GreaterOrEqual(a) => port >= a,
            PortMatch::Range(a, b) => (a..=b).contains(&port),
            PortMatch::Between(a, b) => port > a && port < b,
            PortMatch::Outside(a, b) => port < a || port > b,
        }
    }
}

impl Host {
    fn matches(&self, a: IpAddr, tables: &BTreeMap<String, Table>) -> bool {
        match self {
            Host::Any => true,
            Host::Network(c) => c.contains(a),
            Host::Table(name) => tables.get(name).is_some_and(|t| t.contains(a)),
        }
    }
}

impl Peers {
    fn matches(&self, a: IpAddr, port: u16, tables: &BTreeMap<String, Table>) -> bool {
        let host = |h: &Not<Host>| h.value.matches(a, tables) != h.negated;
        (self.hosts.is_empty() || self.hosts.iter().any(host))
            && (self.ports.is_empty() || self.ports.iter().any(|p| p.matches(port)))
    }
}

impl Rule {
    fn matches(&self, p: &Packet, interface: Option<&str>, tables: &BTreeMap<String, Table>) -> bool {
        let direction = if p.inbound { Direction::In } else { Direction::Out };
        let on = |n: &Not<String>| (interface == Some(n.value.as_str())) != n.negated;
        let family = match self.family {
            None => true,
            Some(Family::Inet) => p.source.is_ipv4(),
            Some(Family::Inet6) => p.source.is_ipv6(),
        };
        let icmp = |m: &IcmpMatch| {
            p.source_port == m.kind as u16 && m.code.is_none_or(|c| p.destination_port == c as u16)
        };
        let has_ports = matches!(p.protocol, PROTOCOL_TCP | PROTOCOL_UDP);
        self.direction.is_none_or(|d| d == direction)
            && (self.interfaces.is_empty() || self.interfaces.iter().any(on))
            && family
            && (self.protocols.is_empty() || self.protocols.contains(&p.protocol))
            && (has_ports || (self.from.ports.is_empty() && self.to.ports.is_empty()))
            // Rules name addresses as people write them.
            && self.from.matches(without_zone(p.source), p.source_port, tables)
            && self.to.matches(without_zone(p.destination), p.destination_port, tables)
            && (p.protocol != PROTOCOL_TCP || self.flags.is_none_or(|f| p.tcp_flags & f.mask == f.set))
            && (self.icmp.is_empty() || (is_icmp(p.protocol) && self.icmp.iter().any(icmp)))
    }
}

/// The rules' decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub judgement: Judgement,
    pub keep_state: bool,
}

impl Decision {
    /// It passes without a state.
    pub const PASS: Decision = Decision { judgement: Judgement::Pass, keep_state: false };
}

impl Ruleset {
    /// Whether the rules may decide differently about two TCP packets of one connection and direction that differ only
    /// in flags without a meaning for states.
    pub fn tell_ordinary_packets_apart(&self) -> bool {
        let told_apart = !(TCP_SYN | TCP_FIN | TCP_RST | TCP_ACK);
        self.rules.iter().any(|r| r.flags.is_some_and(|f| f.mask & told_apart != 0))
    }

    /// The last matching rule, or the first that is `quick`, decides; no rule: pass.
    /// `interface` is the name of the packet's interface, if it is known.
    pub fn decide(&self, p: &Packet, interface: Option<&str>) -> Decision {
        let mut decision = Decision::PASS;
        for rule in &self.rules {
            if rule.matches(p, interface, &self.tables) {
                decision.judgement = rule.action.judgement(p.protocol);
                decision.keep_state = rule.keep_state;
                if rule.quick {
                    break;
                }
            }
        }
        decision
    }
}
