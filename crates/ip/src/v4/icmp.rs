//! ICMP (RFC 792): echo replies, errors about what could not be delivered, and errors about what we
//! sent, which go to the transport that sent it.
//!
//! Errors are never sent about errors, about fragments but the first, about what was sent to many
//! (RFC 1122 §3.2.2), nor faster than [`crate::limit`] allows.

use super::address::is_unicast;
use super::error;
use super::header::HEADER_LEN;
use crate::bytes::PieceSum;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::pending::{Arrival, Origin, Outgoing, Quoted, Report};
use core::net::{IpAddr, Ipv4Addr};
use eft_base::PacketRef;
use eft_base::wire::{
    ICMP_ECHO_REPLY, ICMP_ECHO_REQUEST, ICMP_PARAMETER_PROBLEM, ICMP_TIME_EXCEEDED, ICMP_UNREACHABLE,
    IPV4_OFFSET_MASK, IcmpHeader, Ipv4Header, PROTOCOL_ICMP, PROTOCOL_TCP, PROTOCOL_UDP,
};
use eft_component::Context;
use eft_messages::ComponentId;
use eft_messages::transport::IpToTransport;
use zerocopy::{FromBytes, IntoBytes};

const ICMP_LEN: usize = size_of::<IcmpHeader>();
/// As much of the packet as fits an error of 576 bytes (RFC 1812 §4.3.2.3).
const QUOTE_MAX: usize = 576 - HEADER_LEN - ICMP_LEN;
/// What every quotation must have of the transport header.
const QUOTE_MIN: usize = 8;
const CODE_FRAGMENTATION_NEEDED: u8 = 4;
/// Smaller MTUs do not exist (RFC 791 §3.2).
const MTU_MIN: u16 = 68;
/// Queries, about which errors may be sent: echo, timestamp, information, address mask.
const QUERIES: [u8; 10] = [0, 8, 9, 10, 13, 14, 15, 16, 17, 18];

impl Ip {
    pub(crate) fn receive_icmp(&mut self, cx: &mut Context, a: Arrival, out: &mut Out) {
        cx.count(Counter::IcmpIn);
        let message = a.packet.skip(a.header_len as u32);
        let mut header = [0; ICMP_LEN];
        let mut sum = PieceSum::default();
        let whole = self.read(cx.memory, message, &mut header).is_some()
            && self.sum(cx.memory, message, &mut sum).is_some();
        let Ok(header) = IcmpHeader::read_from_bytes(&header) else {
            return self.drop_packet(cx, a.packet, Counter::DropIcmp, out);
        };
        if !whole || sum.finish() != 0 {
            return self.drop_packet(cx, a.packet, Counter::DropIcmp, out);
        }
        match header.kind {
            // RFC 1122 §3.2.2.6 lets a host be silent about echo requests to many.
            ICMP_ECHO_REQUEST if !a.group => {
                self.reply_to_echo(cx, &a, header, message, out);
                self.release(a.packet, out);
            }
            ICMP_UNREACHABLE | ICMP_TIME_EXCEEDED | ICMP_PARAMETER_PROBLEM => {
                self.receive_error(cx, &a, header, message, out)
            }
            ICMP_ECHO_REPLY => self.release(a.packet, out),
            _ => self.drop_packet(cx, a.packet, Counter::DropIcmp, out),
        }
    }

    fn reply_to_echo(
        &mut self,
        cx: &mut Context,
        a: &Arrival,
        request: IcmpHeader,
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
        let mut header = IcmpHeader { kind: ICMP_ECHO_REPLY, checksum: 0.into(), ..request };
        let mut sum = PieceSum::default();
        sum.add(header.as_bytes());
        if copied.is_none() || self.sum(cx.memory, payload, &mut sum).is_none() {
            self.packets.free(slot);
            return cx.count(Counter::DropIcmp);
        }
        header.checksum = sum.finish().into();
        let q = a.question;
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
                    protocol: PROTOCOL_ICMP,
                    ttl: 0,
                    tos: 0,
                    dont_fragment: false,
                    header: header.as_bytes(),
                    payload: &[payload],
                    segment_size: 0,
                    checksum_offset: None,
                    ordered,
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

    /// Tells the sender of `packet` (which covers it from its IP header on) what is wrong, if that
    /// is allowed. The packet's buffer stays the caller's.
    pub(crate) fn send_error(&mut self, cx: &mut Context, report: Report, packet: PacketRef, out: &mut Out) {
        let mut quote = [0; QUOTE_MAX];
        let Some(quote) = self.read_head(cx.memory, packet, &mut quote) else {
            return;
        };
        let Ok((ip, _)) = Ipv4Header::ref_from_prefix(quote) else {
            return;
        };
        let (source, destination) = (Ipv4Addr::from(ip.source), IpAddr::from(ip.destination));
        let is_error = ip.protocol == PROTOCOL_ICMP
            && quote.get(ip.header_len()).is_none_or(|kind| !QUERIES.contains(kind));
        if is_error
            || ip.flags_fragment.get() & IPV4_OFFSET_MASK != 0
            || !is_unicast(source)
            || !self.routes.is_ours(destination)
        {
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
        let (header, ordered) = (error::header(report, quote), report == Report::Blocked);
        if self.send_icmp(cx, destination, source.into(), header, payload, ordered, out) {
            cx.count(Counter::IcmpErrorsOut);
        }
    }

    /// An error about a packet that we sent: its transport hears of it, if it quotes one of ours.
    fn receive_error(
        &mut self,
        cx: &mut Context,
        a: &Arrival,
        header: IcmpHeader,
        message: PacketRef,
        out: &mut Out,
    ) {
        cx.count(Counter::IcmpErrorsIn);
        let quote = message.skip(ICMP_LEN as u32);
        let transport = self.quoted(cx, quote).and_then(|q| Some((q, self.sender_of(&q)?)));
        let Some((quoted, peer)) = transport else {
            return self.drop_packet(cx, a.packet, Counter::DropIcmp, out);
        };
        let needed = header.kind == ICMP_UNREACHABLE && header.code == CODE_FRAGMENTATION_NEEDED;
        let mtu = u16::from_be_bytes([header.rest[2], header.rest[3]]);
        if needed && mtu != 0 && mtu < MTU_MIN {
            return self.drop_packet(cx, a.packet, Counter::DropIcmp, out);
        }
        let mut outer = [0; HEADER_LEN];
        let Some(outer) =
            self.read(cx.memory, a.packet, &mut outer).and_then(|_| Ipv4Header::read_from_bytes(&outer).ok())
        else {
            return self.drop_packet(cx, a.packet, Counter::DropIcmp, out);
        };
        let message = IpToTransport::Error {
            packet: quote,
            header_len: quoted.header_len,
            kind: header.kind,
            code: header.code,
            info: match header.kind {
                _ if needed => mtu,
                ICMP_PARAMETER_PROBLEM => header.rest[0] as u16,
                _ => 0,
            },
            offender: a.question.source.into(),
            ttl: outer.ttl,
            tos: outer.tos,
        };
        self.give(cx, peer, a.packet, message, false, out);
    }

    /// The transport that sent a quoted packet.
    fn sender_of(&self, quoted: &Quoted) -> Option<ComponentId> {
        self.lanes.transport_of(quoted.protocol).filter(|_| self.routes.is_ours(quoted.source))
    }

    /// What an ICMP error is about. `None`: it quotes too little, or a fragment without ports.
    pub(crate) fn quoted(&self, cx: &Context, quote: PacketRef) -> Option<Quoted> {
        let mut head = [0; HEADER_LEN];
        self.read(cx.memory, quote, &mut head)?;
        let ip = Ipv4Header::read_from_bytes(&head).ok()?;
        let header_len = ip.header_len();
        let first = ip.flags_fragment.get() & IPV4_OFFSET_MASK == 0;
        if ip.version_ihl >> 4 != 4 || header_len < HEADER_LEN || !first {
            return None;
        }
        let mut transport = [0; QUOTE_MIN];
        self.read(cx.memory, quote.skip(header_len as u32), &mut transport)?;
        let pair = |at: usize| u16::from_be_bytes([transport[at], transport[at + 1]]);
        let (source_port, destination_port) = match ip.protocol {
            PROTOCOL_TCP | PROTOCOL_UDP => (pair(0), pair(2)),
            PROTOCOL_ICMP => (transport[0] as u16, transport[1] as u16),
            _ => (0, 0),
        };
        Some(Quoted {
            header_len: header_len as u16,
            source: ip.source.into(),
            destination: ip.destination.into(),
            protocol: ip.protocol,
            source_port,
            destination_port,
        })
    }
}
