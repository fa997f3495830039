//! Asking routers to advertise themselves (RFC 4861 §6.3.7). What they advertise is for [`crate::autoconf`].

use super::address::{all_routers, is_link_local, link_group};
use super::discovery::bare_message;
use crate::engine::{Ip, Out};
use core::net::{IpAddr, Ipv6Addr};
use eft_base::address::zone_of_nic;
use eft_base::wire::ICMPV6_ROUTER_SOLICITATION;
use eft_component::Context;

impl Ip {
    /// The link-local address of an interface, if no other host can have it.
    pub(crate) fn sure_link_local(&self, interface: u8) -> Option<Ipv6Addr> {
        let own = self.routes.addresses_of(interface).filter_map(|a| match a {
            IpAddr::V6(a) => Some(a),
            IpAddr::V4(_) => None,
        });
        own.into_iter().find(|a| is_link_local(*a) && !self.tentatives.contains(interface, *a))
    }

    pub(crate) fn solicit_routers(&mut self, cx: &mut Context, interface: u8, out: &mut Out) {
        let Some(link) = self.link(interface).copied().filter(|link| link.up) else { return };
        let to = all_routers(zone_of_nic(interface));
        let Some(group) = link_group(to) else { return };
        // §4.1: without an address, or with one that another host may have (RFC 4429 §3.2), no link address is given.
        let from = self.sure_link_local(interface);
        let ends = (from.unwrap_or(Ipv6Addr::UNSPECIFIED), to);
        let bytes = bare_message(ICMPV6_ROUTER_SOLICITATION, from.map(|_| link.mac), ends);
        self.send_discovery(cx, interface, group, ends, &bytes, out);
    }
}
