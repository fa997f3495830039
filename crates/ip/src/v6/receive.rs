//! An IPv6 packet that came in (RFC 8200).

use super::address::is_unicast;
use super::discovery::is_discovery;
use super::header::{HEAD_LEN, HEADERS_MAX, Packet, Refused, is_extension, parse};
use super::reassemble::fragment;
use crate::clients::is_to_client6;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::multicast::receive::{Heard, is_listener_discovery};
use crate::pending::{Arrival, Question};
use eft_base::address::zone_of_nic;
use eft_base::wire::{EthernetHeader, Ipv6Header, PROTOCOL_ICMPV6};
use eft_base::{MacAddress, PacketRef};
use eft_component::Context;
use zerocopy::FromBytes;

impl Ip {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn receive_ipv6(
        &mut self,
        cx: &mut Context,
        nic: u8,
        packet: PacketRef,
        ethernet: &EthernetHeader,
        head: &[u8],
        checksum_ok: bool,
        segment_size: u16,
        out: &mut Out,
    ) {
        if !self.routes.speaks_ipv6(nic) {
            return self.drop_packet(cx, packet, Counter::DropIpv6, out);
        }
        // Few packets have extension headers, so no more is copied for the others.
        let mut longer = [0; HEAD_LEN];
        let extended = Ipv6Header::ref_from_prefix(head).is_ok_and(|(h, _)| is_extension(h.next_header));
        let head = match extended {
            true => self.read_head(cx.memory, packet, &mut longer).unwrap_or(&[]),
            false => head,
        };
        let group = ethernet.destination.is_multicast();
        let p = match parse(head, packet, segment_size > 0, zone_of_nic(nic)) {
            Ok(p) => p,
            Err(why) => return self.refuse_ipv6(cx, nic, packet, why, group, out),
        };
        cx.count(Counter::PacketsIn);
        cx.add(Counter::BytesIn, p.packet.len as u64);
        let group = match self.check_ipv6_addresses(nic, &p, group) {
            Ok(group) => group,
            Err(why) => return self.drop_packet(cx, packet, why, out),
        };
        if let Some(at) = p.chain.fragment_at {
            let mut header = [0; HEADERS_MAX];
            return self.receive_fragment(cx, nic, p.packet, fragment(&p, at, &mut header), group, out);
        }
        let transport = &p.head[p.chain.len..];
        if speaks_of_neighbours(&p) {
            self.receive_discovery(cx, nic, &p, ethernet.source, out);
            return self.release(packet, out);
        }
        if speaks_of_groups(&p) {
            let (source, destination) = (p.source.into(), p.destination.into());
            let packet = p.packet.skip(p.chain.len as u32);
            let heard = Heard { interface: nic, packet, source, destination, hops: p.header.hop_limit };
            self.receive_membership(cx, heard);
            return self.release(packet, out);
        }
        if is_to_client6(p.chain.protocol, transport) && self.awaits_server6(nic) {
            let datagram = p.packet.skip(p.chain.len as u32);
            let ends = (p.source.into(), p.destination.into());
            match self.read_for_client(cx, ends, datagram, checksum_ok) {
                Some(message) => self.receive_server6(cx, nic, &message, out),
                None => cx.count(Counter::DropMalformed),
            }
            return self.release(packet, out);
        }
        let len = p.packet.len as usize - p.chain.len;
        let question = Question::new(p.source.into(), p.destination.into(), p.chain.protocol, transport, len);
        let Some(question) = question else {
            return self.drop_packet(cx, packet, Counter::DropMalformed, out);
        };
        let arrival = Arrival {
            packet: p.packet,
            interface: nic,
            header_len: p.chain.len as u16,
            checksum_ok,
            segment_size,
            group,
            question,
        };
        self.judge(cx, arrival, out);
    }

    /// Drops a packet with headers that cannot be followed. Sends an error, unless the packet was multicast.
    fn refuse_ipv6(
        &mut self,
        cx: &mut Context,
        nic: u8,
        packet: PacketRef,
        Refused(why, report): Refused,
        group: bool,
        out: &mut Out,
    ) {
        if let (Some(report), false) = (report, group) {
            self.send_error(cx, report, packet, zone_of_nic(nic), out);
        }
        self.drop_packet(cx, packet, why, out)
    }

    /// Checks that the packet is for us and from a valid source. True: it is a multicast packet.
    fn check_ipv6_addresses(&self, nic: u8, p: &Packet, link_group: bool) -> Result<bool, Counter> {
        let (source, destination) = (p.source, p.destination);
        // On the wire no address has a zone, and none stands for IPv4 (RFC 4291 §2.5.6, draft-itojun-v6ops-v4mapped).
        let on_wire = [p.header.source, p.header.destination];
        if on_wire.iter().any(|a| eft_base::address::zone((*a).into()) != 0)
            || on_wire.iter().any(|a| core::net::Ipv6Addr::from(*a).to_ipv4_mapped().is_some())
        {
            return Err(Counter::DropMartian);
        }
        // A host without an address sends neighbour discovery only (RFC 4862 §5.4.2, RFC 4861 §4.1).
        let nobody = source.is_unspecified() && p.chain.protocol == PROTOCOL_ICMPV6;
        // Another host that claims our address uses it as the source.
        let ours = self.routes.is_ours(source.into()) && !speaks_of_neighbours(p);
        if !(is_unicast(source) || nobody) || source.is_loopback() || ours {
            return Err(Counter::DropMartian);
        }
        if destination.is_multicast() {
            let member = self.routes.is_member(nic, destination)
                || speaks_of_groups(p)
                || self.groups.admit(nic, destination.into(), source.into());
            return if member { Ok(true) } else { Err(Counter::DropNotOurs) };
        }
        // As in IPv4, a packet to one host in a frame to a group is dropped.
        if link_group || !self.routes.is_ours(destination.into()) {
            return Err(Counter::DropNotOurs);
        }
        Ok(false)
    }

    /// Whether a link address may be some neighbour's.
    pub(super) fn is_neighbours_mac(&self, interface: u8, mac: MacAddress) -> bool {
        !mac.is_multicast() && self.link(interface).is_some_and(|link| link.mac != mac)
    }
}

fn speaks_of_neighbours(p: &Packet) -> bool {
    p.chain.protocol == PROTOCOL_ICMPV6 && p.head.get(p.chain.len).is_some_and(|kind| is_discovery(*kind))
}

fn speaks_of_groups(p: &Packet) -> bool {
    let kind = p.head.get(p.chain.len);
    p.chain.protocol == PROTOCOL_ICMPV6
        && p.chain.fragment_at.is_none()
        && kind.is_some_and(|kind| is_listener_discovery(*kind))
}
