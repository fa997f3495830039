//! Answers to senders of blocked packets, if the filter wants them (pf's `block return`).
//!
//! A packet that came in is answered over the wire; a packet of a program on this host is answered to
//! its transport, as if the answer had come in. The filter ordered these answers and is not asked
//! about them. They are limited in rate, never sent about multicast or broadcast packets, and a reset
//! is never answered with a reset (RFC 9293 §3.10.7.1).

use crate::LOCAL_INTERFACE;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::family;
use crate::pending::{Arrival, ETHERNET_LEN, Origin, Outgoing, Question, Reach, Report, Transmission};
use alloc::vec;
use core::net::IpAddr;
use eft_base::PacketRef;
use eft_base::checksum::Checksum;
use eft_base::wire::{PROTOCOL_TCP, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN, TcpHeader};
use eft_component::Context;
use eft_messages::filter::Judgement;
use eft_messages::nic::FrameDescriptor;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

const TCP_LEN: usize = size_of::<TcpHeader>();

impl Ip {
    /// Answers the sender of a packet that came in. The caller keeps the packet.
    pub(crate) fn reject_arrival(&mut self, cx: &mut Context, a: &Arrival, how: Judgement, out: &mut Out) {
        if a.group {
            return;
        }
        match how {
            Judgement::Pass | Judgement::Drop => {}
            Judgement::Unreachable => {
                cx.count(Counter::FilterReturned);
                self.send_error(cx, Report::Blocked, a.packet, a.question.zone(), out)
            }
            Judgement::Reset => {
                let segment = a.packet.skip(a.header_len as u32);
                let mut header = [0; TCP_LEN];
                let read = self.read(cx.memory, segment, &mut header);
                let reset = read.and_then(|()| reset(&a.question, &header, segment.len));
                if let Some(reset) = reset.filter(|_| self.may_return(cx)) {
                    self.send_reset(cx, a.question.destination, a.question.source, &reset, out);
                }
            }
        }
    }

    fn may_return(&mut self, cx: &Context) -> bool {
        let may = self.reset_limiter.take(cx.now);
        cx.count(if may { Counter::FilterReturned } else { Counter::FilterReturnsLimited });
        may
    }

    fn send_reset(
        &mut self,
        cx: &mut Context,
        source: IpAddr,
        destination: IpAddr,
        header: &TcpHeader,
        out: &mut Out,
    ) {
        let Some(hop) = self.routes.hop(source, destination) else {
            return cx.count(Counter::NoRoute);
        };
        let outgoing = answer(source, destination, PROTOCOL_TCP, header.as_bytes());
        if let Err((why, _)) = self.launch(cx, Origin::Nobody, hop, outgoing, None, out) {
            cx.count(why);
        }
    }

    /// Tells a transport of this host that its packet `d` may not leave. False if no answer was
    /// delivered.
    pub(crate) fn reject_transmission(
        &mut self,
        cx: &mut Context,
        transmission: &Transmission,
        d: &FrameDescriptor,
        how: Judgement,
        out: &mut Out,
    ) -> bool {
        let q = transmission.question;
        // For ip's own packets there is no sender to answer.
        if !matches!(transmission.origin, Origin::Transport { .. }) {
            return false;
        }
        let answer = match how {
            Judgement::Pass | Judgement::Drop => None,
            Judgement::Reset => {
                let at = family::transport_at(q.source);
                let header = d.header.get(at..at + TCP_LEN);
                let len = transmission.len.saturating_sub(family::header_len(q.source) as u32);
                let reset = header.and_then(|header| reset(&q, header, len));
                reset.map(|reset| (q.destination, PROTOCOL_TCP, reset.as_bytes().to_vec()))
            }
            // Only the headers are quoted: enough to identify the socket.
            Judgement::Unreachable => d.header.get(ETHERNET_LEN..d.header_len as usize).map(|quote| {
                let (protocol, message) = family::error_message(q.source, Report::Blocked, quote);
                (q.source, protocol, message)
            }),
        };
        match answer {
            Some((source, protocol, body)) if self.may_return(cx) => {
                self.hand_back(cx, (source, q.source), protocol, &body, out)
            }
            _ => false,
        }
    }

    /// Delivers a packet to this host as if it had come in. False if there is no room.
    fn hand_back(
        &mut self,
        cx: &mut Context,
        (source, destination): (IpAddr, IpAddr),
        protocol: u8,
        body: &[u8],
        out: &mut Out,
    ) -> bool {
        let Some(question) = Question::new(source, destination, protocol, body, body.len()) else {
            return false;
        };
        let Some(slot) = self.packets.allocate() else {
            cx.count(Counter::DropNoSlot);
            return false;
        };
        let header_len = family::header_len(source);
        let len = header_len + body.len();
        let mut bytes = vec![0; len];
        let (header, rest) = bytes.split_at_mut(header_len);
        family::write_header(&answer(source, destination, protocol, body), len, (0, 0), header);
        rest.copy_from_slice(body);
        self.packets.write(slot, 0, &bytes);
        let arrival = Arrival {
            packet: PacketRef { len: len as u32, ..slot },
            interface: LOCAL_INTERFACE,
            header_len: header_len as u16,
            checksum_ok: true,
            segment_size: 0,
            group: false,
            question,
        };
        self.accept(cx, arrival, out);
        true
    }
}

/// An answer without payload whose checksum is complete.
fn answer(source: IpAddr, destination: IpAddr, protocol: u8, header: &[u8]) -> Outgoing<'_> {
    Outgoing {
        source,
        destination,
        protocol,
        ttl: 0,
        tos: 0,
        dont_fragment: false,
        header,
        payload: &[],
        segment_size: 0,
        checksum_offset: None,
        seal: 0,
        ordered: true,
        reach: Reach::Link,
        label: None,
    }
}

/// The reset that answers a segment of `len` bytes, header included. `None`: it is a reset, or not a
/// valid segment.
fn reset(q: &Question, header: &[u8], len: u32) -> Option<TcpHeader> {
    let (segment, _) = TcpHeader::ref_from_prefix(header).ok()?;
    let payload = len.checked_sub(segment.header_len() as u32)?;
    if segment.flags & TCP_RST != 0 || segment.header_len() < TCP_LEN {
        return None;
    }
    let mut reset = TcpHeader::new_zeroed();
    reset.source_port = segment.destination_port;
    reset.destination_port = segment.source_port;
    reset.data_offset = (TCP_LEN as u8 / 4) << 4;
    if segment.flags & TCP_ACK != 0 {
        reset.flags = TCP_RST;
        reset.sequence = segment.acknowledgment;
    } else {
        let ends = (segment.flags & TCP_SYN != 0) as u32 + (segment.flags & TCP_FIN != 0) as u32;
        reset.flags = TCP_RST | TCP_ACK;
        reset.acknowledgment = segment.sequence.get().wrapping_add(payload).wrapping_add(ends).into();
    }
    let sum = Checksum::new()
        .add_pseudo_header(q.destination, q.source, PROTOCOL_TCP, TCP_LEN as u32)
        .add_bytes(reset.as_bytes());
    reset.checksum = sum.finish().into();
    Some(reset)
}
