//! An IPv4 packet that came in (RFC 1122 §3.2.1).

use super::address::is_unicast;
use super::header::{Packet, parse};
use super::reassemble::fragment;
use crate::clients::is_to_client4;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::multicast::receive::Heard;
use crate::pending::{Arrival, Question};
use eft_base::PacketRef;
use eft_base::wire::{IPV4_MORE_FRAGMENTS, IPV4_OFFSET_MASK, PROTOCOL_IGMP};
use eft_component::Context;

impl Ip {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn receive_ipv4(
        &mut self,
        cx: &mut Context,
        nic: u8,
        packet: PacketRef,
        head: &[u8],
        link_group: bool,
        checksum_ok: bool,
        segment_size: u16,
        out: &mut Out,
    ) {
        let p = match parse(head, packet, segment_size > 0) {
            Ok(p) => p,
            Err(why) => return self.drop_packet(cx, packet, why, out),
        };
        cx.count(Counter::PacketsIn);
        cx.add(Counter::BytesIn, p.packet.len as u64);
        if self.receive_for_client4(cx, nic, &p, checksum_ok, out) {
            return self.release(packet, out);
        }
        let group = match self.check_addresses(nic, &p, link_group) {
            Ok(group) => group,
            Err(why) => return self.drop_packet(cx, packet, why, out),
        };
        let flags = p.header.flags_fragment.get();
        if flags & (IPV4_MORE_FRAGMENTS | IPV4_OFFSET_MASK) != 0 {
            return self.receive_fragment(cx, nic, p.packet, fragment(&p), group, out);
        }
        if p.header.protocol == PROTOCOL_IGMP {
            let (source, destination) = (p.source.into(), p.destination.into());
            let packet = p.packet.skip(p.header_len as u32);
            let heard = Heard { interface: nic, packet, source, destination, hops: p.header.ttl };
            self.receive_membership(cx, heard);
            return self.release(packet, out);
        }
        let transport = &p.head[p.header_len..];
        let len = p.packet.len as usize - p.header_len;
        let question =
            Question::new(p.source.into(), p.destination.into(), p.header.protocol, transport, len);
        let Some(question) = question else {
            return self.drop_packet(cx, packet, Counter::DropMalformed, out);
        };
        let arrival = Arrival {
            packet: p.packet,
            interface: nic,
            header_len: p.header_len as u16,
            checksum_ok,
            segment_size,
            group,
            question,
        };
        self.judge(cx, arrival, out);
    }

    /// A message for this interface's DHCP client, which need not have an address yet. The caller keeps the packet's buffer.
    fn receive_for_client4(
        &mut self,
        cx: &mut Context,
        nic: u8,
        p: &Packet,
        checksum_ok: bool,
        out: &mut Out,
    ) -> bool {
        let is_whole = p.header.flags_fragment.get() & (IPV4_MORE_FRAGMENTS | IPV4_OFFSET_MASK) == 0;
        let transport = &p.head[p.header_len..];
        if !is_whole || !is_to_client4(p.header.protocol, transport) || !self.awaits_server4(nic) {
            return false;
        }
        let datagram = p.packet.skip(p.header_len as u32);
        let ends = (p.source.into(), p.destination.into());
        match self.read_for_client(cx, ends, datagram, checksum_ok) {
            Some(message) => self.receive_server4(cx, nic, &message, out),
            None => cx.count(Counter::DropMalformed),
        }
        true
    }

    /// Checks that the packet is for us and from a valid source. True: it is a broadcast or
    /// multicast packet.
    fn check_addresses(&self, nic: u8, p: &Packet, link_group: bool) -> Result<bool, Counter> {
        // RFC 1122 §3.2.1.3: invalid sources. No other host may use our own address.
        let source = p.source;
        let membership = p.header.protocol == PROTOCOL_IGMP && p.destination.is_multicast();
        // RFC 9776 §4.2.13.
        let nobody = source.is_unspecified() && membership;
        if !(is_unicast(source) || nobody)
            || source.is_loopback()
            || self.routes.is_broadcast(source.into())
            || self.routes.is_ours(source.into())
        {
            return Err(Counter::DropMartian);
        }
        if self.routes.is_broadcast(p.destination.into()) {
            return Ok(true);
        }
        if p.destination.is_multicast() {
            let wanted = membership || self.groups.admit(nic, p.destination.into(), source.into());
            return if wanted { Ok(true) } else { Err(Counter::DropNotOurs) };
        }
        if !self.routes.is_ours(p.destination.into()) {
            return Err(Counter::DropNotOurs);
        }
        // RFC 1122 §3.3.6: a packet to one host in a frame to a group is dropped.
        if link_group {
            return Err(Counter::DropNotOurs);
        }
        Ok(false)
    }
}
