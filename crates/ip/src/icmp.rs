//! ICMP of both versions (RFC 792, RFC 4443), as far as they are alike: echo replies, errors about what could not be
//! delivered, and errors about what we sent, which go to the transport that sent it.
//!
//! Errors are never sent about errors, about fragments other than the first, about multicast or broadcast packets (RFC
//! 1122 §3.2.2, RFC 4443 §2.4), nor faster than [`crate::limit`] allows.

use crate::bytes::PieceSum;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::family;
use crate::pending::{Arrival, Origin, Outgoing, Quoted, Reach, Report};
use crate::{v4, v6};
use core::net::IpAddr;
use eft_base::PacketRef;
use eft_base::wire::{IcmpHeader, PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP, PROTOCOL_UDP};
use eft_component::Context;
use eft_messages::transport::IpToTransport;
use eft_messages::{ComponentId, Role};
use zerocopy::{FromBytes, IntoBytes};

const ICMP_LEN: usize = size_of::<IcmpHeader>();
/// Bytes of the transport header that every quotation must have.
const QUOTE_MIN: usize = 8;
/// The longest quotation of both versions.
const QUOTE_MAX: usize = v6::error::QUOTE_MAX;

/// What an error says besides type and code, and the packet that it came in.
pub(crate) struct ErrorDetails {
    /// The path's MTU, or where in the packet the problem is; else 0.
    pub info: u16,
    pub ttl: u8,
    pub tos: u8,
}

impl Ip {
    pub(crate) fn receive_icmp(&mut self, cx: &mut Context, a: Arrival, out: &mut Out) {
        cx.count(Counter::IcmpIn);
        let message = a.packet.skip(a.header_len as u32);
        let mut header = [0; ICMP_LEN];
        let mut sum = begin_sum(a.question.source, a.question.destination, message.len);
        let whole = self.read(cx.memory, message, &mut header).is_some()
            && self.sum(cx.memory, message, &mut sum).is_some();
        let Ok(header) = IcmpHeader::read_from_bytes(&header) else {
            return self.drop_packet(cx, a.packet, Counter::DropIcmp, out);
        };
        if !whole || sum.finish() != 0 {
            return self.drop_packet(cx, a.packet, Counter::DropIcmp, out);
        }
        match a.question.source {
            IpAddr::V4(_) => self.receive_icmpv4(cx, a, header, message, out),
            IpAddr::V6(_) => self.receive_icmpv6(cx, a, header, message, out),
        }
    }

    /// Answers an echo request by a message of type `kind`.
    pub(crate) fn reply_to_echo(
        &mut self,
        cx: &mut Context,
        a: &Arrival,
        request: IcmpHeader,
        kind: u8,
        message: PacketRef,
        out: &mut Out,
    ) {
        let Some(slot) = self.packets.allocate() else {
            return cx.count(Counter::DropNoSlot);
        };
        let data = message.skip(ICMP_LEN as u32);
        let payload = PacketRef { len: data.len, ..slot };
        let copied = self.resolve(cx.memory, data).and_then(|(segment, offset)| {
            let view = self.packets.view();
            let to = view.locate(payload)?;
            segment.copy_to(offset, &view.segment, to, data.len as usize).ok()
        });
        let q = a.question;
        let mut header = IcmpHeader { kind, checksum: 0.into(), ..request };
        let mut sum = begin_sum(q.destination, q.source, message.len);
        sum.add(header.as_bytes());
        if copied.is_none() || self.sum(cx.memory, payload, &mut sum).is_none() {
            self.packets.free(slot);
            return cx.count(Counter::DropIcmp);
        }
        header.checksum = sum.finish().into();
        if self.send_icmp(cx, q.destination, q.source, header, payload, false, out) {
            cx.count(Counter::EchoReplies);
        }
    }

    /// Sends an ICMP message whose payload lies in a slot of ours, which is freed in any case.
    #[allow(clippy::too_many_arguments)]
    fn send_icmp(
        &mut self,
        cx: &mut Context,
        source: IpAddr,
        destination: IpAddr,
        header: IcmpHeader,
        payload: PacketRef,
        ordered: bool,
        out: &mut Out,
    ) -> bool {
        let sent = match self.routes.hop(source, destination) {
            Some(hop) => {
                let outgoing = Outgoing {
                    source,
                    destination,
                    protocol: family::icmp_protocol(source),
                    ttl: 0,
                    tos: 0,
                    dont_fragment: false,
                    header: header.as_bytes(),
                    payload: &[payload],
                    segment_size: 0,
                    checksum_offset: None,
                    seal: 0,
                    ordered,
                    reach: Reach::Link,
                    label: None,
                };
                self.launch(cx, Origin::Nobody, hop, outgoing, Some(payload), out)
            }
            None => Err((Counter::NoRoute, 0)),
        };
        match sent {
            Ok(()) => cx.count(Counter::IcmpOut),
            Err((why, _)) => {
                cx.count(why);
                self.packets.free(payload);
            }
        }
        sent.is_ok()
    }

    /// Tells the sender of `packet` (which covers it from its IP header on, and came from this zone) what is wrong, if
    /// that is allowed. The packet's buffer stays the caller's.
    pub(crate) fn send_error(
        &mut self,
        cx: &mut Context,
        report: Report,
        packet: PacketRef,
        zone: u16,
        out: &mut Out,
    ) {
        let mut quote = [0; QUOTE_MAX];
        let Some(quote) = self.read_head(cx.memory, packet, &mut quote) else {
            return;
        };
        let quote = &quote[..quote.len().min(family::quote_max(quote))];
        let Some((source, destination)) = family::reportable(quote, zone) else {
            return;
        };
        if !self.routes.is_ours(destination) {
            return;
        }
        if !self.limiter.take(cx.now) {
            return cx.count(Counter::IcmpRateLimited);
        }
        let Some(slot) = self.packets.allocate() else {
            return cx.count(Counter::DropNoSlot);
        };
        self.packets.write(slot, 0, quote);
        let payload = PacketRef { len: quote.len() as u32, ..slot };
        let header = family::error_header(report, quote, destination, source);
        let ordered = report == Report::Blocked;
        if self.send_icmp(cx, destination, source, header, payload, ordered, out) {
            cx.count(Counter::IcmpErrorsOut);
        }
    }

    /// An error about a packet that we sent: its transport gets it, if it quotes a packet of ours. `None`: the error is
    /// malformed.
    pub(crate) fn receive_error(
        &mut self,
        cx: &mut Context,
        a: &Arrival,
        header: IcmpHeader,
        message: PacketRef,
        details: Option<ErrorDetails>,
        out: &mut Out,
    ) {
        cx.count(Counter::IcmpErrorsIn);
        let quote = message.skip(ICMP_LEN as u32);
        let zone = a.question.zone();
        let transport = self.quoted(cx, quote, zone).and_then(|q| Some((q, self.sender_of(&q)?)));
        let (Some((quoted, peer)), Some(details)) = (transport, details) else {
            return self.drop_packet(cx, a.packet, Counter::DropIcmp, out);
        };
        // udp's datagrams are fragmented here, so the path's MTU must be known here.
        if let (IpAddr::V6(to), Role::Udp) = (quoted.destination, peer.role)
            && header.kind == eft_base::wire::ICMPV6_TOO_BIG
        {
            self.paths.put(cx.now, to, details.info);
        }
        let message = IpToTransport::Error {
            packet: quote,
            header_len: quoted.header_len,
            kind: header.kind,
            code: header.code,
            info: details.info,
            offender: a.question.source.into(),
            ttl: details.ttl,
            tos: details.tos,
            zone,
        };
        self.give(cx, peer, a.packet, message, false, out);
    }

    /// The transport that sent a quoted packet.
    fn sender_of(&self, quoted: &Quoted) -> Option<ComponentId> {
        let peer = (quoted.destination, quoted.destination_port);
        let sender = self.lanes.transport_of(quoted.protocol, quoted.source_port, peer);
        sender.filter(|_| self.routes.is_ours(quoted.source))
    }

    /// What an ICMP error is about. `None`: it quotes too little, or a fragment without ports.
    pub(crate) fn quoted(&self, cx: &Context, quote: PacketRef, zone: u16) -> Option<Quoted> {
        let mut head = [0; v6::header::HEAD_LEN];
        let head = self.read_head(cx.memory, quote, &mut head)?;
        let ip = match head.first()? >> 4 {
            4 => v4::error::quoted_header(head),
            _ => v6::error::quoted_header(head, zone),
        }?;
        let transport = head.get(ip.len..ip.len + QUOTE_MIN)?;
        let pair = |at: usize| u16::from_be_bytes([transport[at], transport[at + 1]]);
        let (source_port, destination_port) = match ip.protocol {
            PROTOCOL_TCP | PROTOCOL_UDP => (pair(0), pair(2)),
            PROTOCOL_ICMP | PROTOCOL_ICMPV6 => (transport[0] as u16, transport[1] as u16),
            _ => (0, 0),
        };
        Some(Quoted {
            header_len: ip.len as u16,
            source: ip.source,
            destination: ip.destination,
            protocol: ip.protocol,
            source_port,
            destination_port,
        })
    }
}

/// Begins the checksum of an ICMP message of `len` bytes: with ICMPv6's pseudo-header (RFC 4443 §2.3), or with nothing.
fn begin_sum(source: IpAddr, destination: IpAddr, len: u32) -> PieceSum {
    let mut sum = PieceSum::default();
    if source.is_ipv6() {
        sum.add_pseudo_header(source, destination, PROTOCOL_ICMPV6, len);
    }
    sum
}
