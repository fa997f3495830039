//! Words of pf.conf that stand for numbers.

use crate::rule::Flags;
use core::net::IpAddr;
use eft_base::Cidr;
use eft_base::wire::PROTOCOL_ICMPV6;

/// `10.0.0.1`, `10.0.0.0/8` or the same in IPv6.
pub(crate) fn read_network(word: &str) -> Option<Cidr> {
    if word.contains('/') {
        return word.parse().ok();
    }
    let address: IpAddr = word.parse().ok()?;
    let prefix_len = if address.is_ipv4() { 32 } else { 128 };
    Some(Cidr { address, prefix_len })
}

pub(crate) const PROTOCOLS: [(&str, u8); 11] = [
    ("icmp", 1),
    ("igmp", 2),
    ("tcp", 6),
    ("udp", 17),
    ("ipv6", 41),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmp6", 58),
    ("ipv6-icmp", 58),
    ("sctp", 132),
];

pub(crate) fn read_protocol(word: &str) -> Option<u8> {
    let named = PROTOCOLS.iter().find(|(name, _)| *name == word);
    named.map(|(_, n)| *n).or_else(|| word.parse().ok())
}

const SERVICES: [(&str, u16); 28] = [
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("http", 80),
    ("www", 80),
    ("kerberos", 88),
    ("pop3", 110),
    ("sunrpc", 111),
    ("auth", 113),
    ("ntp", 123),
    ("imap", 143),
    ("snmp", 161),
    ("bgp", 179),
    ("ldap", 389),
    ("https", 443),
    ("syslog", 514),
    ("submission", 587),
    ("ldaps", 636),
    ("imaps", 993),
    ("pop3s", 995),
    ("mysql", 3306),
    ("postgresql", 5432),
];

pub(crate) fn read_port(word: &str) -> Option<u16> {
    let named = SERVICES.iter().find(|(name, _)| *name == word);
    named.map(|(_, n)| *n).or_else(|| word.parse().ok())
}

/// The TCP header's flags, from the lowest bit on.
pub(crate) const FLAG_LETTERS: [char; 8] = ['F', 'S', 'R', 'P', 'A', 'U', 'E', 'W'];

pub(crate) fn read_flags(word: &str) -> Option<Flags> {
    let bits = |letters: &str| {
        letters.chars().try_fold(0u8, |bits, c| {
            let bit = FLAG_LETTERS.iter().position(|l| *l == c)?;
            Some(bits | 1 << bit)
        })
    };
    let (set, mask) = word.split_once('/')?;
    let (set, mask) = (bits(set)?, if mask.is_empty() { 0xff } else { bits(mask)? });
    (set & !mask == 0).then_some(Flags { set, mask })
}

pub(crate) const ICMP_TYPES: [(&str, u8); 10] = [
    ("echorep", 0),
    ("unreach", 3),
    ("squench", 4),
    ("redir", 5),
    ("echoreq", 8),
    ("routeradv", 9),
    ("routersol", 10),
    ("timex", 11),
    ("paramprob", 12),
    ("timereq", 13),
];

pub(crate) const ICMP6_TYPES: [(&str, u8); 6] =
    [("unreach", 1), ("toobig", 2), ("timex", 3), ("paramprob", 4), ("echoreq", 128), ("echorep", 129)];

/// The keyword before ICMP types in a rule, and the names of the types.
pub(crate) fn icmp_types(protocol: u8) -> (&'static str, &'static [(&'static str, u8)]) {
    match protocol {
        PROTOCOL_ICMPV6 => ("icmp6-type", &ICMP6_TYPES),
        _ => ("icmp-type", &ICMP_TYPES),
    }
}

pub(crate) fn read_icmp(protocol: u8, word: &str) -> Option<u8> {
    let named = icmp_types(protocol).1.iter().find(|(name, _)| *name == word);
    named.map(|(_, n)| *n).or_else(|| word.parse().ok())
}
