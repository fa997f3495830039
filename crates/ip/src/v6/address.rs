//! What an IPv6 address may stand for (RFC 4291), and which of ours is best for a destination (RFC 6724).

use crate::config_error::AddressError;
use core::cmp::Ordering;
use core::net::{IpAddr, Ipv6Addr};
use eft_base::address::{needs_zone, with_zone, zone};
use eft_base::{Cidr, MacAddress};

/// A link-local network must not be wider than this, or it would reach into the zone.
const LINK_LOCAL_PREFIX_MIN: u8 = 64;

/// Whether it may be one host's address.
pub(crate) fn is_unicast(a: Ipv6Addr) -> bool {
    !a.is_multicast() && !a.is_unspecified() && a.to_ipv4_mapped().is_none()
}

pub(crate) fn is_link_local(a: Ipv6Addr) -> bool {
    needs_zone(a) && !a.is_multicast()
}

/// Whether an interface may have this address; why not.
pub(crate) fn check_host(cidr: &Cidr, a: Ipv6Addr) -> Result<(), AddressError> {
    if !is_unicast(a) || a.is_loopback() {
        return Err(AddressError::NoHost);
    }
    if zone(a) != 0 {
        return Err(AddressError::Zone);
    }
    if cidr.prefix_len == 0 {
        return Err(AddressError::NoPrefix);
    }
    if is_link_local(a) && cidr.prefix_len < LINK_LOCAL_PREFIX_MIN {
        return Err(AddressError::LinkLocalPrefix);
    }
    Ok(())
}

/// The link's group for a multicast address (RFC 2464 §7).
pub(crate) fn link_group(a: Ipv6Addr) -> Option<MacAddress> {
    let [.., w, x, y, z] = a.octets();
    a.is_multicast().then_some(MacAddress([0x33, 0x33, w, x, y, z]))
}

/// The group in which the owner of an address is asked about it (RFC 4291 §2.7.1), in the zone of a link.
pub(crate) fn solicited_node(a: Ipv6Addr, zone: u16) -> Ipv6Addr {
    let [.., high, low] = a.segments();
    with_zone(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | high & 0xff, low), zone)
}

/// All nodes on a link (RFC 4291 §2.7.1).
pub(crate) fn all_nodes(zone: u16) -> Ipv6Addr {
    with_zone(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1), zone)
}

/// All routers on a link (RFC 4291 §2.7.1).
pub(crate) fn all_routers(zone: u16) -> Ipv6Addr {
    with_zone(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2), zone)
}

/// All DHCPv6 servers and relays on a link (RFC 8415 §7.1).
pub(crate) fn all_servers(zone: u16) -> Ipv6Addr {
    with_zone(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2), zone)
}

/// The scope of an address (RFC 6724 §3.1): a multicast address contains it, a link-local one has 2, all others are
/// global.
fn scope(a: Ipv6Addr) -> u8 {
    match a.octets() {
        [0xff, flags_scope, ..] => flags_scope & 0x0f,
        _ if is_link_local(a) => 2,
        _ => 14,
    }
}

/// Which of two of our addresses is the better source for `destination`: rules 1, 2, 3 and 8 of RFC 6724 §5. Each says whether it
/// is deprecated. We have no home addresses, candidates are those of one interface, and there is no table of labels.
pub(crate) fn better_source(
    destination: Ipv6Addr,
    (a, a_deprecated): (Ipv6Addr, bool),
    (b, b_deprecated): (Ipv6Addr, bool),
) -> Ordering {
    let same = |x: Ipv6Addr| x == destination;
    let prefix = |x: Ipv6Addr| (x.to_bits() ^ destination.to_bits()).leading_zeros().min(64);
    let wanted = scope(destination);
    // The smallest scope that is large enough, else the largest.
    let by_scope = match (scope(a), scope(b)) {
        (x, y) if x < y => {
            if x < wanted {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (x, y) if x > y => {
            if y < wanted {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        _ => Ordering::Equal,
    };
    let by_age = b_deprecated.cmp(&a_deprecated);
    same(a).cmp(&same(b)).then(by_scope).then(by_age).then(prefix(a).cmp(&prefix(b)))
}

/// The best of our addresses on an interface, each with whether it is deprecated; the first of equals.
pub(crate) fn choose_source(
    destination: Ipv6Addr,
    ours: impl Iterator<Item = (IpAddr, bool)>,
) -> Option<IpAddr> {
    let ours = ours.filter_map(|(a, deprecated)| match a {
        IpAddr::V6(a) => Some((a, deprecated)),
        IpAddr::V4(_) => None,
    });
    let best = ours.reduce(|best, a| match better_source(destination, best, a) {
        Ordering::Less => a,
        _ => best,
    });
    best.map(|(a, _)| IpAddr::V6(a))
}

#[cfg(test)]
mod tests;
