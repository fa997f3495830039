//! Where datagrams to groups go: by the interface that IP_MULTICAST_IF or IPV6_MULTICAST_IF has chosen. The options themselves
//! are in `options::multicast`.

use crate::interfaces::{self, Interface};
use crate::socket::{Socket, bit};
use core::net::{IpAddr, Ipv4Addr};
use eft_base::Endpoint;
use eft_base::address::{needs_zone, with_zone, zone};
use eft_channel::socket::Opt;

/// The source of a datagram to a group that leaves by the chosen interface; unspecified: as the stack chooses. A socket that is
/// bound to an address sends from that.
pub fn source(socket: &Socket, group: IpAddr) -> IpAddr {
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let index = socket.page.option(Opt::MulticastInterface);
    if index == 0 || !group.is_multicast() || socket.has(bit::BOUND) && !is_free(socket) {
        return any;
    }
    let named = Ipv4Addr::from_bits(socket.page.option(Opt::MulticastSource));
    if group.is_ipv4() && !named.is_unspecified() {
        return named.into();
    }
    let list = interfaces::all();
    let alike = |i: &&Interface| i.index == index && i.address.is_ipv4() == group.is_ipv4();
    list.iter().find(alike).map_or(any, |i| i.address)
}

/// A destination with its link: a group lies in the zone of the chosen interface, unless it names another. Whatever else names
/// none lies on the first link, as by Linux's routes.
pub fn toward(socket: &Socket, to: Endpoint) -> Endpoint {
    let index = socket.page.option(Opt::MulticastInterface);
    match to.address {
        IpAddr::V6(a) if index > 1 && a.is_multicast() && zone(a) == 0 => {
            Endpoint::new(with_zone(a, index as u16).into(), to.port)
        }
        IpAddr::V6(a) if needs_zone(a) && zone(a) == 0 => {
            let list = interfaces::all();
            let first = list.iter().find(|i| !i.is_loopback()).map_or(0, |i| i.index);
            Endpoint::new(with_zone(a, first as u16).into(), to.port)
        }
        _ => to,
    }
}

/// The hops of a datagram to a group as they are set now: udp may read the page after the program has set others. 0: udp takes
/// what the page says, which may be that it does not leave the host.
pub fn hops(socket: &Socket, to: IpAddr) -> u8 {
    let set = socket.page.option(Opt::MulticastHops);
    if to.is_multicast() { set.saturating_sub(1).min(255) as u8 } else { 0 }
}

/// Whether a bound socket's datagrams may have any source: it is bound to the wildcard, or to a group.
fn is_free(socket: &Socket) -> bool {
    socket.has(bit::WILDCARD) || socket.page.local().address.is_multicast()
}
