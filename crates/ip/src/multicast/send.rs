//! Reports, as packets.

use super::table::{Place, Said};
use super::wire;
use super::{REPORTS4, REPORTS6, ROUTERS4, ROUTERS6};
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::family::{self, link_group};
use crate::note;
use crate::pending::{Hop, Next, Origin, Outgoing, Reach};
use crate::v4::header::ROUTER_ALERT;
use crate::v6::address::is_link_local;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use eft_base::PacketRef;
use eft_base::wire::{IPV6_HOP_BY_HOP, PROTOCOL_ICMPV6, PROTOCOL_IGMP};
use eft_component::Context;

/// Internetwork control (RFC 9776 §4).
const CONTROL: u8 = 0xc0;
/// A header of options hop by hop with a router alert (RFC 2711) and padding, before ICMPv6.
const HOP_BY_HOP: [u8; 8] = [PROTOCOL_ICMPV6, 0, 5, 2, 0, 0, 1, 0];

impl Ip {
    /// Says what is due about groups.
    pub(crate) fn expire_groups(&mut self, cx: &mut Context, out: &mut Out) {
        let (docket, mut refused) = (&self.docket, 0);
        let may_speak = |interface, group| {
            let may = docket.enter(note::group(interface, group));
            refused += !may as u64;
            may
        };
        let due = self.groups.take_due(cx.now, cx.random, may_speak);
        cx.add(Counter::DropFatal, refused);
        for (place, said) in due {
            let everyone = |v4: Ipv4Addr, v6: Ipv6Addr| if place.1 { IpAddr::V6(v6) } else { v4.into() };
            match said {
                Said::Records(records) => {
                    let Some(link) = self.link(place.0) else { continue };
                    let head = if place.1 { HOP_BY_HOP.len() + 40 } else { ROUTER_ALERT.len() + 20 };
                    let len_max = usize::from(link.mtu) - head;
                    for message in wire::reports(place.1, &records, len_max) {
                        self.send_membership(cx, place, everyone(REPORTS4, REPORTS6), message, out);
                    }
                }
                Said::Older(version, group, leaves) => {
                    let to = if leaves { everyone(ROUTERS4, ROUTERS6) } else { group };
                    self.send_membership(cx, place, to, wire::older(version, group, leaves), out);
                }
            }
        }
    }

    /// Our address for what is said on a link: of MLD a link-local one, if no other host may have it (RFC 9777 §5.2.13).
    fn spokesman(&self, (interface, ipv6): Place) -> IpAddr {
        let fits = |a: &IpAddr| match a {
            IpAddr::V4(_) => !ipv6,
            IpAddr::V6(a) => ipv6 && is_link_local(*a) && !self.tentatives.contains(interface, *a),
        };
        let nobody = if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        self.routes.addresses_of(interface).find(fits).unwrap_or(nobody)
    }

    fn send_membership(
        &mut self,
        cx: &mut Context,
        place: Place,
        destination: IpAddr,
        mut message: Vec<u8>,
        out: &mut Out,
    ) {
        let source = self.spokesman(place);
        wire::sum(&mut message, source, destination);
        if !self.enter(cx, note::report(place.0, &message)) {
            return;
        }
        let (protocol, header): (u8, &[u8]) = match source {
            IpAddr::V4(_) => (PROTOCOL_IGMP, &ROUTER_ALERT),
            IpAddr::V6(_) => (IPV6_HOP_BY_HOP, &HOP_BY_HOP),
        };
        let (Some(mac), Some(slot)) = (link_group(destination), self.packets.allocate()) else {
            return cx.count(Counter::DropNoSlot);
        };
        self.packets.write(slot, 0, &message);
        let payload = PacketRef { len: message.len() as u32, ..slot };
        let outgoing = Outgoing {
            source,
            destination: family::in_zone(destination, place.0),
            protocol,
            ttl: 1,
            tos: CONTROL,
            dont_fragment: true,
            header,
            payload: &[payload],
            segment_size: 0,
            checksum_offset: None,
            seal: 0,
            ordered: true,
            reach: Reach::Link,
            label: None,
        };
        let hop = Hop::to(place.0, Next::Group(mac));
        match self.launch(cx, Origin::Nobody, hop, outgoing, Some(payload), out) {
            Ok(()) => cx.count(Counter::MembershipOut),
            Err((why, _)) => {
                cx.count(why);
                self.packets.free(payload);
            }
        }
    }
}
