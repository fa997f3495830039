//! Duplicate address detection (RFC 4862 §5.4) for addresses that are in use already (RFC 4429): a stack whose ip is reborn
//! must not be silent for a second. If another host has an address, it is given up.

use super::address::{is_link_local, link_group, solicited_node};
use super::discovery::{NeighbourMessage, message};
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::note;
use alloc::format;
use core::net::{IpAddr, Ipv6Addr};
use core::time::Duration;
use eft_base::address::{without_zone, zone_of_nic};
use eft_base::wire::ICMPV6_NEIGHBOUR_SOLICITATION;
use eft_component::Context;

/// How long another host has to object: RetransTimer, once (RFC 4861 §10, RFC 4862 §5.1).
const TRIAL: Duration = Duration::from_secs(1);

impl Ip {
    /// Asks the link whether another host has an address of ours.
    pub(crate) fn try_out(&mut self, cx: &mut Context, interface: u8, address: Ipv6Addr, out: &mut Out) {
        self.tentatives.put(interface, address, cx.now + TRIAL);
        let ends = (Ipv6Addr::UNSPECIFIED, solicited_node(address, zone_of_nic(interface)));
        let question = NeighbourMessage { target: address, flags: 0, mac: None };
        let bytes = message(ICMPV6_NEIGHBOUR_SOLICITATION, question, ends);
        if let Some(group) = link_group(ends.1) {
            self.send_discovery(cx, interface, group, ends, &bytes, out);
        }
    }

    /// No host has objected: announces the address, so that old entries are refreshed (RFC 4861 §7.2.6).
    pub(crate) fn expire_tentatives(&mut self, cx: &mut Context, out: &mut Out) {
        for t in self.tentatives.take_due(cx.now) {
            // If that has killed two predecessors, nobody is told.
            if !self.enter(cx, note::address(t.interface, t.address.into())) {
                continue;
            }
            if self.routes.addresses_of(t.interface).any(|a| a == IpAddr::V6(t.address)) {
                if is_link_local(t.address) {
                    self.groups.has_spokesman(cx.now, t.interface);
                    self.start_client6(cx, t.interface);
                }
                self.advertise(cx, t.interface, t.address, None, out);
            }
        }
    }

    /// Another host has this address, or probes for it as we do (RFC 4862 §5.4.5).
    pub(super) fn give_up_address(
        &mut self,
        cx: &mut Context,
        interface: u8,
        address: Ipv6Addr,
        out: &mut Out,
    ) {
        cx.count(Counter::AddressesGivenUp);
        self.tentatives.remove(interface, address);
        self.routes.remove_address(interface, address.into());
        self.join_own_groups(cx.now, interface);
        let shown = without_zone(address.into());
        self.autoconf_conflict(cx, interface, address.into(), out);
        self.complain(format!("address {shown}: another host on the link has it"));
    }
}
