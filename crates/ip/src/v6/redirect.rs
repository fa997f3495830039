//! Redirects (RFC 4861 §8): the router that we send to says that a destination has a better first hop on its link.
//!
//! They come from the link alone, as the hop limit proves, and count only from the router by which the destination is reached now, by
//! IP and by link address. Redirects of IPv4 (RFC 792) are not believed: nothing proves that one comes from the link, so anybody who
//! can send us packets could draw those to others to himself.

use super::address::is_link_local;
use super::discovery::{OPTION_TARGET, link_address};
use super::header::Packet;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::neighbour::Learned;
use crate::pending::Next;
use core::net::{IpAddr, Ipv6Addr};
use eft_base::MacAddress;
use eft_base::address::{with_zone, zone, zone_of_nic};
use eft_component::Context;

/// The fields before the options (RFC 4861 §4.5).
const FIXED_LEN: usize = 40;

/// What a redirect says.
#[derive(Debug, PartialEq, Eq)]
struct Message {
    target: Ipv6Addr,
    destination: Ipv6Addr,
    mac: Option<MacAddress>,
}

/// Reads a redirect from its ICMPv6 header on, whose checksum is right (RFC 4861 §8.1).
fn parse(message: &[u8], link: u16) -> Option<Message> {
    let (fixed, options) = message.split_at_checked(FIXED_LEN)?;
    let address = |at: usize| Some(Ipv6Addr::from(<[u8; 16]>::try_from(&fixed[at..at + 16]).ok()?));
    let (target, destination) = (address(8)?, address(24)?);
    let mac = link_address(options, OPTION_TARGET)?;
    let sound = fixed[1] == 0 && zone(target) == 0 && zone(destination) == 0 && !destination.is_multicast();
    let target = with_zone(target, link);
    // A router is named by its link-local address; else the destination itself is a neighbour.
    let names_one = is_link_local(target) || target == destination;
    (sound && names_one).then_some(Message { target, destination, mac })
}

impl Ip {
    pub(super) fn receive_redirect(
        &mut self,
        cx: &mut Context,
        nic: u8,
        p: &Packet,
        from: MacAddress,
        message: &[u8],
        out: &mut Out,
    ) {
        let Some(m) = parse(message, zone_of_nic(nic)).filter(|_| is_link_local(p.source)) else {
            return cx.count(Counter::DropDiscovery);
        };
        let (target, destination) = (IpAddr::V6(m.target), IpAddr::V6(m.destination));
        let now_by = self.routes.hop(p.destination.into(), destination);
        let from_router = now_by
            .is_some_and(|hop| hop.interface == nic && hop.next == Next::Neighbour(p.source.into()))
            && self.neighbours.mac(nic, p.source.into()) == Some(from);
        if !from_router || self.routes.is_ours(target) {
            return cx.count(Counter::DropDiscoverySpoofed);
        }
        cx.count(Counter::Redirected);
        self.routes.redirects.put(nic, destination, target);
        if let Some(mac) = m.mac {
            let waiting = self.neighbours.learn(cx.now, nic, target, Learned { mac, confirmed: false });
            self.release_waiting(cx, waiting, mac, out);
        }
    }
}

#[cfg(test)]
mod tests;
