//! Toward the applications: a frame is checked from the outside in (RFC 1122 §3.2.1).
//!
//! Headers are copied out of the NIC's pool once, then looked at. Lengths are believed only as far
//! as the frame reaches.

use crate::config::is_unicast;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::pending::{Arrival, Question};
use crate::send::{ETHERNET_LEN, IPV4_LEN};
use core::net::Ipv4Addr;
use eft_base::PacketRef;
use eft_base::checksum::Checksum;
use eft_base::wire::{
    ETHERTYPE_ARP, ETHERTYPE_IPV4, ETHERTYPE_IPV6, EthernetHeader, IPV4_MORE_FRAGMENTS, IPV4_OFFSET_MASK,
    Ipv4Header,
};
use eft_component::Context;
use zerocopy::FromBytes;

/// IPv4 header with all its options, and a transport header without.
const HEAD_LEN: usize = 60 + 20;

const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_LOOSE_ROUTE: u8 = 131;
const OPTION_STRICT_ROUTE: u8 = 137;

/// A checked IPv4 header. `packet` covers the IP packet and no padding.
pub(crate) struct Ipv4<'a> {
    pub header: &'a Ipv4Header,
    pub header_len: usize,
    /// The packet's first bytes, from its header on.
    pub head: &'a [u8],
    pub packet: PacketRef,
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
}

impl Ip {
    pub(crate) fn receive_frame(
        &mut self,
        cx: &mut Context,
        nic: u8,
        packet: PacketRef,
        checksum_ok: bool,
        segment_size: u16,
        out: &mut Out,
    ) {
        if !self.given.admit(cx.memory, nic, packet) {
            return cx.count(Counter::DropMalformed);
        }
        let mut head = [0u8; ETHERNET_LEN + HEAD_LEN];
        let Some(head) = self.read_head(cx.memory, packet, &mut head) else {
            return self.drop_packet(cx, packet, Counter::DropMalformed, out);
        };
        let Ok((ethernet, body)) = EthernetHeader::ref_from_prefix(head) else {
            return self.drop_packet(cx, packet, Counter::DropMalformed, out);
        };
        let ours = self.link(nic).map(|l| l.mac);
        if ethernet.source.is_multicast()
            || !(ethernet.destination.is_multicast() || Some(ethernet.destination) == ours)
        {
            return self.drop_packet(cx, packet, Counter::DropNotOurs, out);
        }
        match ethernet.ethertype.get() {
            ETHERTYPE_IPV4 => {
                let group = ethernet.destination.is_multicast();
                let ip_packet = packet.skip(ETHERNET_LEN as u32);
                self.receive_ipv4(cx, nic, ip_packet, body, group, checksum_ok, segment_size, out);
            }
            ETHERTYPE_ARP => {
                self.receive_arp(cx, nic, ethernet, body, out);
                self.release(packet, out);
            }
            ETHERTYPE_IPV6 => self.drop_packet(cx, packet, Counter::DropIpv6, out),
            _ => self.drop_packet(cx, packet, Counter::DropEthertype, out),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn receive_ipv4(
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
        let group = match self.check_addresses(&p, link_group) {
            Ok(group) => group,
            Err(why) => return self.drop_packet(cx, packet, why, out),
        };
        let fragment = p.header.flags_fragment.get();
        if fragment & (IPV4_MORE_FRAGMENTS | IPV4_OFFSET_MASK) != 0 {
            return self.receive_fragment(cx, nic, &p, group, out);
        }
        let transport = &p.head[p.header_len..];
        let question = Question::new(p.source, p.destination, p.header.protocol, transport);
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

    /// Whether the packet is for us, and from somebody who can be. True: it was sent to many.
    fn check_addresses(&self, p: &Ipv4, link_group: bool) -> Result<bool, Counter> {
        // RFC 1122 §3.2.1.3: what can never be a source. Our own address comes from nobody else.
        let source = p.source;
        if !is_unicast(source)
            || source.is_loopback()
            || self.routes.is_broadcast(source)
            || self.routes.is_ours(source)
        {
            return Err(Counter::DropMartian);
        }
        if self.routes.is_broadcast(p.destination) {
            return Ok(true);
        }
        if !self.routes.is_ours(p.destination) {
            return Err(Counter::DropNotOurs);
        }
        // RFC 1122 §3.3.6: a packet to one host in a frame to many is nobody's.
        if link_group {
            return Err(Counter::DropNotOurs);
        }
        Ok(false)
    }
}

/// Checks a header against the bytes that are there. `merged`: the device made one packet of
/// several, whose length field may be 0 because it does not fit.
fn parse(head: &[u8], packet: PacketRef, merged: bool) -> Result<Ipv4<'_>, Counter> {
    let (header, _) = Ipv4Header::ref_from_prefix(head).map_err(|_| Counter::DropMalformed)?;
    let header_len = header.header_len();
    let total_len = match header.total_len.get() {
        0 if merged => packet.len,
        n => n as u32,
    };
    if header.version_ihl >> 4 != 4
        || header_len < IPV4_LEN
        || header_len > head.len()
        || total_len < header_len as u32
        || total_len > packet.len
    {
        return Err(Counter::DropMalformed);
    }
    if Checksum::new().add_bytes(&head[..header_len]).finish() != 0 {
        return Err(Counter::DropHeaderChecksum);
    }
    check_options(&head[IPV4_LEN..header_len])?;
    Ok(Ipv4 {
        header,
        header_len,
        head: &head[..head.len().min(total_len as usize)],
        packet: PacketRef { len: total_len, ..packet },
        source: header.source.into(),
        destination: header.destination.into(),
    })
}

/// Options are ignored but for source routes, which nobody needs but an attacker (RFC 7126 §4.3).
fn check_options(mut options: &[u8]) -> Result<(), Counter> {
    while let Some(&kind) = options.first() {
        let len = match kind {
            OPTION_END => return Ok(()),
            OPTION_NOP => 1,
            OPTION_LOOSE_ROUTE | OPTION_STRICT_ROUTE => return Err(Counter::DropSourceRouted),
            _ => match options.get(1) {
                Some(&n) if n >= 2 => n as usize,
                _ => return Err(Counter::DropMalformed),
            },
        };
        options = options.get(len..).ok_or(Counter::DropMalformed)?;
    }
    Ok(())
}
