//! The groups that the host itself is a member of: those by which its IPv6 addresses are asked for (RFC 4291 §2.7.1, RFC 4861
//! §7.2.1). Routers are told of them, too, since a switch may send packets to a group only where somebody has reported it.

use crate::engine::Ip;
use crate::v6::address::solicited_node;
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_base::Instant;

impl Ip {
    /// Joins the groups of an interface's addresses, and leaves those of addresses that it has no longer.
    pub(crate) fn join_own_groups(&mut self, now: Instant, interface: u8) {
        let groups: Vec<IpAddr> = self.routes.addresses_of(interface).filter_map(own_group).collect();
        self.groups.set_own(now, interface, &groups);
    }
}

/// The solicited-node group of an address, without a zone.
fn own_group(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V6(address) => Some(solicited_node(address, 0).into()),
        IpAddr::V4(_) => None,
    }
}
