//! The host side of group membership: IGMPv3 (RFC 9776) with IGMPv2 and v1 (RFC 2236, RFC 1112), MLDv2 (RFC 9777) with MLDv1
//! (RFC 2710).
//!
//! udp says which packets its sockets want ([`eft_messages::transport::membership`]): a [`filter::Filter`] for each group of each
//! interface. [`table`] keeps them, [`member`] is one of them, with what routers were told about it, [`querier`] what is known
//! of the routers of a link, [`wire`] the messages, which both protocols lay out alike, [`own`] the groups that the
//! host itself is in, and [`receive`] and [`send`] the engine's part. Packets to groups that nobody wants are dropped when they arrive.
//!
//! Like ARP and neighbour discovery, these messages are no traffic between hosts: the filter is not asked about them.
//! Groups and sources have no zones here: a group belongs to an interface.

pub(crate) mod filter;
mod member;
mod own;
mod querier;
pub(crate) mod receive;
mod send;
pub(crate) mod table;
mod wire;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where IGMPv3 reports go (RFC 9776 §4.2.14).
const REPORTS4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 22);
/// All routers, who get IGMPv2's Leave (RFC 2236 §3).
const ROUTERS4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);
/// Where MLDv2 reports go (RFC 9777 §5.2.14).
const REPORTS6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);
/// All routers, who get MLDv1's Done (RFC 2710 §3).
const ROUTERS6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// The group of all hosts (RFC 1112 §4).
const HOSTS4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
const NODES6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Whether every host is a member of this group without saying so.
pub(crate) fn is_everybodys(group: IpAddr) -> bool {
    group == HOSTS4 || group == NODES6
}

/// Whether routers are told about members of this group: not of that of all hosts, nor of those that no router forwards because
/// they end at the interface (RFC 9776 §5, RFC 9777 §6).
fn is_reported(group: IpAddr) -> bool {
    let no_further = matches!(group, IpAddr::V6(a) if a.octets()[1] & 0x0f <= 1);
    !is_everybodys(group) && !no_further
}
