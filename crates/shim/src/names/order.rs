//! Which of a name's addresses to try first (RFC 6724 §6).

use crate::interfaces;
use core::cmp::Ordering;
use core::net::{IpAddr, Ipv6Addr};
use eft_base::address::needs_zone;

/// Networks with their precedence and label (RFC 6724 §2.1), IPv4 as mapped addresses.
const POLICY: [(u128, u32, u8, u8); 9] = [
    (1, 128, 50, 0),
    (0, 0, 40, 1),
    (0xffff << 32, 96, 35, 4),
    (0x2002 << 112, 16, 30, 2),
    (0x2001 << 112, 32, 5, 5),
    (0xfc << 120, 7, 3, 13),
    (0, 96, 1, 3),
    (0xfec0 << 112, 10, 1, 11),
    (0x3ffe << 112, 16, 1, 12),
];

/// Sorts addresses; equal ones keep their order.
pub fn sort(addresses: &mut [IpAddr]) {
    let own: Vec<IpAddr> = interfaces::all().iter().map(|i| i.address).collect();
    sort_for(addresses, &own);
}

fn sort_for(addresses: &mut [IpAddr], own: &[IpAddr]) {
    addresses.sort_by(|a, b| compare(Pair::new(*a, own), Pair::new(*b, own)));
}

fn as_ipv6(a: IpAddr) -> Ipv6Addr {
    match a {
        IpAddr::V4(a) => a.to_ipv6_mapped(),
        IpAddr::V6(a) => a,
    }
}

fn common_prefix(a: Ipv6Addr, b: Ipv6Addr) -> u32 {
    (a.to_bits() ^ b.to_bits()).leading_zeros()
}

/// Precedence and label: of the longest prefix.
fn policy(a: Ipv6Addr) -> (u8, u8) {
    let fits = |(network, len, ..): &&(u128, u32, u8, u8)| {
        (a.to_bits() ^ network).checked_shr(128 - len).unwrap_or(0) == 0
    };
    let found = POLICY.iter().filter(fits).max_by_key(|(_, len, ..)| *len);
    found.map_or((0, 0), |(_, _, precedence, label)| (*precedence, *label))
}

/// §3.1, §3.2.
fn scope(a: IpAddr) -> u8 {
    let link_local = match a {
        IpAddr::V4(a) => a.is_loopback() || a.is_link_local(),
        IpAddr::V6(a) => a.is_loopback() || needs_zone(a),
    };
    if link_local { 2 } else { 14 }
}

/// A destination and the address that packets to it come from, if there is one.
struct Pair {
    to: IpAddr,
    from: Option<IpAddr>,
}

impl Pair {
    /// The source approximates ip's choice: of the right scope, then with the longest prefix.
    fn new(to: IpAddr, own: &[IpAddr]) -> Pair {
        let usable =
            own.iter().filter(|a| a.is_ipv4() == to.is_ipv4() && a.is_loopback() == to.is_loopback());
        let fitness = |a: &&IpAddr| (scope(**a) == scope(to), common_prefix(as_ipv6(**a), as_ipv6(to)));
        Pair { to, from: usable.max_by_key(fitness).copied() }
    }

    fn says(&self, claim: impl Fn(IpAddr) -> bool) -> bool {
        self.from.is_some_and(claim)
    }
}

/// Rules 1, 2, 5, 6, 8 and 9; the others are about addresses that eft does not have. Less is better.
fn compare(a: Pair, b: Pair) -> Ordering {
    let same_scope = |p: &Pair| p.says(|from| scope(from) == scope(p.to));
    let same_label = |p: &Pair| p.says(|from| policy(as_ipv6(from)).1 == policy(as_ipv6(p.to)).1);
    let precedence = |p: &Pair| policy(as_ipv6(p.to)).0;
    // For IPv4 the prefix is not compared: its networks are too small.
    let prefix = |p: &Pair| match (p.from, p.to) {
        (Some(IpAddr::V6(from)), IpAddr::V6(to)) => common_prefix(from, to).min(64),
        _ => 0,
    };
    (b.from.is_some().cmp(&a.from.is_some()))
        .then(same_scope(&b).cmp(&same_scope(&a)))
        .then(same_label(&b).cmp(&same_label(&a)))
        .then(precedence(&b).cmp(&precedence(&a)))
        .then(scope(a.to).cmp(&scope(b.to)))
        .then(match a.to.is_ipv6() && b.to.is_ipv6() {
            true => prefix(&b).cmp(&prefix(&a)),
            false => Ordering::Equal,
        })
}

#[cfg(test)]
mod tests;
