//! Sends a segment to ip, and takes the answer.
//!
//! The payload stays where the application put it; the header goes into a slot of our pool. Every
//! `Send` is kept until it is answered.

use super::asked::Request;
use super::block::{NONE, State, Tuple};
use super::connection::{Connection, View};
use super::counters::Counter;
use super::covered::Covered;
use super::engine::Tcp;
use super::signature::Signed;
use crate::edge::Out;
use eft_base::checksum::Checksum;
use eft_base::wire::{ECN_FIELD, PROTOCOL_TCP, TCP_URG, TcpHeader};
use eft_base::{PacketRef, RequestId};
use eft_channel::rounds::REPEATED;
use eft_channel::socket::{Opt, flow, fragment};
use eft_component::{Context, Outbox};
use eft_messages::ComponentId;
use eft_messages::transport::{
    PAYLOAD_REFS_MAX, SEND_DONT_FRAGMENT, SendDescriptor, TRANSPORT_HEADER_MAX, TransportToIp, Wish,
};
use zerocopy::IntoBytes;

/// Where the checksum lies in a TCP header.
const CHECKSUM_OFFSET: u16 = 16;

/// A segment to be sent.
pub(super) struct Outgoing<'a> {
    pub tuple: Tuple,
    pub seq: u32,
    pub ack: u32,
    /// With AE (RFC 9768 §2) above the eight.
    pub flags: u16,
    pub window: u16,
    /// The urgent pointer; 0: nothing is urgent.
    pub urgent: u16,
    pub options: &'a [u8],
    pub payload: [PacketRef; 2],
    /// Payload per wire segment if the device is to segment, else 0.
    pub segment_size: u16,
    pub hop: Hop,
    pub signed: Option<Signed>,
}

/// What the application says about the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hop {
    pub ttl: u8,
    pub tos: u8,
    /// Routers may cut the packet (IP_PMTUDISC_DONT).
    pub may_fragment: bool,
    /// Of a [`SendDescriptor`].
    pub wish: u32,
}

impl<'a> Outgoing<'a> {
    pub fn bare(
        tuple: Tuple,
        seq: u32,
        ack: u32,
        flags: impl Into<u16>,
        window: u16,
        options: &'a [u8],
    ) -> Self {
        Outgoing {
            tuple,
            seq,
            ack,
            flags: flags.into(),
            window,
            urgent: 0,
            options,
            payload: [PacketRef::default(); 2],
            segment_size: 0,
            hop: Hop::default(),
            signed: None,
        }
    }
}

impl Outgoing<'_> {
    fn describe(&self) -> SendDescriptor {
        let signature_len = self.signed.as_ref().map_or(0, Signed::len);
        let header_len = size_of::<TcpHeader>() + signature_len + self.options.len();
        let payload_len: u32 = self.payload.iter().map(|r| r.len).sum();
        let sum = Checksum::new().add_pseudo_header(
            self.tuple.local.into(),
            self.tuple.remote.into(),
            PROTOCOL_TCP,
            header_len as u32 + payload_len,
        );
        let mut header = TcpHeader {
            source_port: self.tuple.local_port.into(),
            destination_port: self.tuple.remote_port.into(),
            sequence: self.seq.into(),
            acknowledgment: self.ack.into(),
            data_offset: (header_len as u8 / 4) << 4 | (self.flags >> 8) as u8 & 1,
            flags: self.flags as u8 | if self.urgent > 0 { TCP_URG } else { 0 },
            window: self.window.into(),
            checksum: 0.into(),
            urgent: self.urgent.into(),
        };
        let mut bytes = [0; TRANSPORT_HEADER_MAX];
        let (fixed, options) = bytes[..header_len].split_at_mut(size_of::<TcpHeader>());
        options[signature_len..].copy_from_slice(self.options);
        if let Some(signed) = &self.signed {
            let covered = Covered {
                addresses: (self.tuple.local, self.tuple.remote),
                header: &zerocopy::transmute!(header),
                len: header_len as u32 + payload_len,
                data: &signed.data,
            };
            signed.sign(&covered, options);
        }
        header.checksum = sum.partial().into();
        fixed.copy_from_slice(header.as_bytes());
        let mut payload = [PacketRef::default(); PAYLOAD_REFS_MAX];
        let mut count = 0;
        for r in self.payload.iter().filter(|r| r.len > 0) {
            payload[count] = *r;
            count += 1;
        }
        SendDescriptor {
            source: self.tuple.local,
            destination: self.tuple.remote,
            protocol: PROTOCOL_TCP,
            ttl: self.hop.ttl,
            tos: self.hop.tos,
            flags: if self.hop.may_fragment { 0 } else { SEND_DONT_FRAGMENT },
            header_len: header_len as u16,
            checksum_offset: CHECKSUM_OFFSET,
            segment_size: self.segment_size,
            payload_count: count as u16,
            wish: self.hop.wish,
            payload,
            header: bytes,
            seal: 0,
        }
        .sealed()
    }
}

impl View<'_> {
    /// Whether a segment that ends at `end` is still needed: the connection is alive, and the segment is not wholly
    /// acknowledged.
    fn still_sends(&self, end: u64) -> bool {
        // A SYN may carry data.
        let state = self.block.state();
        (state.may_send() || state == State::SynSent) && end > self.block.bytes_acknowledged()
    }
}

impl Connection<'_> {
    /// What the application wants of the IP header; the ECN field of the TOS is ours.
    pub(super) fn hop_options(&self) -> Hop {
        let option = |o| self.live.page.as_ref().map_or(0, |page| page.option(o));
        Hop {
            ttl: option(Opt::Ttl).min(255) as u8,
            tos: option(Opt::Tos) as u8 & !ECN_FIELD,
            may_fragment: option(Opt::DontFragment) & fragment::MAY != 0,
            wish: Wish { label: flow::label(option(Opt::FlowLabel)), largest: 0 }.to_word(),
        }
    }
}

impl Tcp {
    /// Whether a segment can be sent now.
    pub(super) fn has_room(&self, out: &Outbox<Out>) -> bool {
        out.room(ComponentId::IP) > 0 && self.headers.available() > 0 && self.requests.room() > 0
    }

    /// Sends a segment. `request` makes the entry of the database from the header's slot. False, and
    /// nothing happens, without room.
    pub(super) fn transmit(
        &mut self,
        cx: &Context,
        out: &mut Outbox<Out>,
        segment: &Outgoing,
        request: impl FnOnce(PacketRef) -> Request,
    ) -> bool {
        if !self.has_room(out) {
            return false;
        }
        let Some(slot) = self.headers.allocate() else {
            return false;
        };
        let descriptor = PacketRef { len: size_of::<SendDescriptor>() as u32, ..slot };
        self.headers.write(descriptor, 0, segment.describe().as_bytes());
        let Ok(request) = self.requests.insert(request(descriptor)) else {
            self.headers.free(descriptor);
            return false;
        };
        out.push(Out::Ip(TransportToIp::Send { request, descriptor }));
        let payload: u32 = segment.payload.iter().map(|r| r.len).sum();
        let wire = match segment.segment_size {
            0 => 1,
            size => payload.div_ceil(size as u32).max(1),
        };
        cx.add(Counter::SentSegments, wire as u64);
        true
    }

    /// Sends a segment without payload, for a connection or for none ([`NONE`]).
    pub(super) fn transmit_bare(
        &mut self,
        cx: &Context,
        out: &mut Outbox<Out>,
        block: u32,
        mut segment: Outgoing,
    ) -> bool {
        let generation = if block == NONE {
            0
        } else {
            segment.hop = self.connection(block).hop_options();
            segment.signed = self.signer(block, segment.seq, segment.flags).map(Signed::bare);
            self.block(block).generation
        };
        let sent =
            self.transmit(cx, out, &segment, |descriptor| Request::Bare { block, generation, descriptor });
        if sent && block != NONE {
            self.connection(block).live.statistics.on_sent_bare();
        }
        sent
    }

    /// ip is done with a segment.
    pub(super) fn receive_sent(&mut self, cx: &Context, id: RequestId, errno: i32) {
        let known = matches!(self.requests.get(id), Some(Request::Data { .. } | Request::Bare { .. }));
        if !known {
            cx.count(Counter::StaleReplies);
            return;
        }
        let (block, generation) = match self.requests.remove(id) {
            Some(Request::Data { block, generation, group, descriptor, end }) => {
                self.headers.free(descriptor);
                let mut c = self.connection(block);
                if c.view().is_use(generation) {
                    if errno == 0 {
                        c.stamp_sent(cx.now, end);
                    }
                    c.live.in_flight.remove(group);
                    c.release_ring();
                    self.finish_draining(cx, block);
                }
                (block, generation)
            }
            Some(Request::Bare { block, generation, descriptor }) => {
                self.headers.free(descriptor);
                (block, generation)
            }
            _ => return,
        };
        if errno != 0 {
            cx.count(Counter::SendErrors);
            if block != NONE && self.view(block).is_use(generation) {
                self.receive_send_error(cx, block, errno);
            }
        }
    }

    /// ip was reborn: sends everything unanswered again, in order. Segments of connections that are gone, and bytes that
    /// are acknowledged by now, are given up.
    pub(super) fn resubmit(&mut self, cx: &Context, out: &mut Outbox<Out>) {
        if !core::mem::replace(&mut self.ip_seen, true) && self.requests.is_empty() {
            return;
        }
        self.routes.clear();
        self.requests.renew();
        for id in self.requests.ids() {
            match self.requests.get(id) {
                Some(&Request::Data { block, generation, end, descriptor, .. }) => {
                    let wanted = self.view(block).is_use(generation) && self.view(block).still_sends(end);
                    self.resubmit_segment(cx, id, descriptor, wanted, out);
                }
                Some(&Request::Bare { descriptor, .. }) => {
                    self.resubmit_segment(cx, id, descriptor, true, out)
                }
                Some(&Request::Route { block, generation }) => self.ask_again(id, block, generation),
                None => {}
            }
        }
    }

    /// The answer to this `Route` was lost: asks again.
    fn ask_again(&mut self, id: RequestId, block: u32, generation: u32) {
        self.requests.remove(id);
        let mut c = self.connection(block);
        if c.view().is_use(generation) {
            c.live.route_request = None;
            c.mark(super::live::due::ROUTE);
        }
    }

    /// Repeats what ip has not answered for long: a lost answer would hold slots, blocks and rings for ever. Ring space that
    /// the peer has acknowledged may be reused even if a copy is still under way.
    pub(super) fn repeat_requests(&mut self, cx: &Context, out: &mut Outbox<Out>) {
        for id in self.requests.next_round(REPEATED.min(out.room(ComponentId::IP))) {
            match self.requests.get(id) {
                Some(&Request::Data { block, generation, end, descriptor, .. }) => {
                    let c = self.view(block);
                    let arrived = c.is_use(generation) && end <= c.block.bytes_acknowledged();
                    match arrived {
                        true => self.receive_sent(cx, id, 0),
                        false => out.push(Out::Ip(TransportToIp::Send { request: id, descriptor })),
                    }
                }
                Some(&Request::Bare { descriptor, .. }) => {
                    out.push(Out::Ip(TransportToIp::Send { request: id, descriptor }));
                }
                Some(&Request::Route { block, generation }) => self.ask_again(id, block, generation),
                None => continue,
            }
            cx.count(Counter::Repeated);
        }
    }

    fn resubmit_segment(
        &mut self,
        cx: &Context,
        request: RequestId,
        descriptor: PacketRef,
        wanted: bool,
        out: &mut Outbox<Out>,
    ) {
        if wanted {
            cx.count(Counter::Resubmitted);
            out.push(Out::Ip(TransportToIp::Send { request, descriptor }));
        } else {
            self.receive_sent(cx, request, 0);
        }
    }
}
