//! Toward the wire: a transport's request becomes a frame.
//!
//! The request is copied out of shared memory, checked, routed and built into a frame slot; then
//! the filter is asked; then it departs: looped back locally, or cut into fragments, given a
//! checksum if the device does not make one, addressed, and handed to the NIC.

use crate::bytes::PieceSum;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::family;
use crate::lane::speaks;
use crate::pending::{
    ETHERNET_LEN, Hop, Next, Origin, Outgoing, Question, Reach, Stage, ToPeer, Transmission,
};
use core::net::IpAddr;
use eft_base::errno::{EADDRNOTAVAIL, EINVAL, EMSGSIZE, ENETUNREACH, ENOBUFS};
use eft_base::wire::{EthernetHeader, PROTOCOL_UDP};
use eft_base::{MacAddress, PacketRef, RequestId};
use eft_component::Context;
use eft_messages::ComponentId;
use eft_messages::nic::{FRAME_CHECKSUM, FRAME_PAYLOAD_MAX, FrameDescriptor};
use eft_messages::transport::{
    IpToTransport, PAYLOAD_REFS_MAX, SEND_DONT_FRAGMENT, SEND_HOST_ONLY, SEND_NO_LOOP, SendDescriptor,
    TRANSPORT_HEADER_MAX, Wish,
};
use zerocopy::{FromZeros, IntoBytes};

const IPV4_LEN_MAX: usize = 65535;
/// RFC 8200 §3: the length field does not count the header.
const IPV6_LEN_MAX: usize = 40 + 65535;
/// Requests that wait for a frame slot, per transport.
const LANE_MAX: usize = 8192;

/// What to count, and what to tell the sender.
pub(crate) type Refusal = (Counter, i32);

impl Ip {
    /// Frame slots that the transports leave for ARP and ICMP: without ARP no packet would ever
    /// leave its slot.
    fn reserve(&self) -> usize {
        (self.frames.slots() / 4).min(32)
    }

    pub(crate) fn receive_send(
        &mut self,
        cx: &mut Context,
        peer: ComponentId,
        request: RequestId,
        at: PacketRef,
        out: &mut Out,
    ) {
        let Some(lane) = self.lanes.get_mut(peer) else {
            return;
        };
        // The first of the two messages has its answer, or will get it; an answer that was lost is given again.
        if lane.seen.is_repeated(cx.memory, at) {
            cx.count(Counter::DropRepeated);
            if !self.has_request(peer, request) {
                out.push(ToPeer::Transport(peer, IpToTransport::Sent { request, errno: 0 }));
            }
            return;
        }
        if lane.waiting.is_empty() && self.frames.available() > self.reserve() {
            return self.send_now(cx, peer, request, at, out);
        }
        let Some(lane) = self.lanes.get_mut(peer) else {
            return;
        };
        if lane.waiting.len() < LANE_MAX {
            lane.waiting.push_back((request, at));
        } else {
            self.refuse(cx, peer, request, (Counter::RefusedFull, ENOBUFS), out);
        }
    }

    /// Handles requests that waited for frame slots, the transports in turn.
    pub(crate) fn flush_lanes(&mut self, cx: &mut Context, out: &mut Out) {
        let mut turn = 0;
        while self.lanes.any_waits() && self.frames.available() > self.reserve() {
            let (peer, lane) = &mut self.lanes.all[turn];
            let peer = *peer;
            if let Some((request, at)) = lane.waiting.pop_front() {
                self.send_now(cx, peer, request, at, out);
            }
            turn = (turn + 1) % self.lanes.all.len();
        }
    }

    fn send_now(
        &mut self,
        cx: &mut Context,
        peer: ComponentId,
        request: RequestId,
        at: PacketRef,
        out: &mut Out,
    ) {
        let sent = self.try_send(cx, peer, request, at, out);
        if let Err(refusal) = sent {
            self.refuse(cx, peer, request, refusal, out);
        }
    }

    fn refuse(
        &mut self,
        cx: &mut Context,
        peer: ComponentId,
        request: RequestId,
        (why, errno): Refusal,
        out: &mut Out,
    ) {
        cx.count(why);
        let sent = IpToTransport::Sent { request, errno };
        out.push(ToPeer::Transport(peer, sent));
    }

    fn try_send(
        &mut self,
        cx: &mut Context,
        peer: ComponentId,
        request: RequestId,
        at: PacketRef,
        out: &mut Out,
    ) -> Result<(), Refusal> {
        let bad = (Counter::RefusedSend, EINVAL);
        let d: SendDescriptor = cx.memory.read_value(at).ok_or(bad)?;
        let header_len = d.header_len as usize;
        let count = d.payload_count as usize;
        if header_len > TRANSPORT_HEADER_MAX
            || count > PAYLOAD_REFS_MAX.min(FRAME_PAYLOAD_MAX)
            || d.checksum_offset as usize + 2 > header_len
            || !speaks(peer, d.protocol)
        {
            return Err(bad);
        }
        for r in &d.payload[..count] {
            cx.memory.resolve(*r).ok_or(bad)?;
        }
        if !self.enter_send(&d) {
            // It counts as lost on its way.
            return Err((Counter::DropFatal, 0));
        }
        let unreachable = (Counter::NoRoute, ENETUNREACH);
        let (source, destination) = (d.source.into(), d.destination.into());
        if !family::is_pair(source, destination) {
            return Err(unreachable);
        }
        if !self.routes.is_ours(source) {
            return Err((Counter::RefusedSource, EADDRNOTAVAIL));
        }
        let wish = Wish::of_word(d.wish);
        let hop = self.routes.hop(source, destination).ok_or(unreachable)?.within(source, wish.largest);
        let outgoing = Outgoing {
            source,
            destination,
            protocol: d.protocol,
            ttl: d.ttl,
            tos: d.tos,
            dont_fragment: d.flags & SEND_DONT_FRAGMENT != 0,
            header: &d.header[..header_len],
            payload: &d.payload[..count],
            segment_size: d.segment_size,
            checksum_offset: Some(d.checksum_offset),
            seal: d.seal,
            ordered: false,
            reach: reach(&d, destination),
            label: wish.label,
        };
        self.launch(cx, Origin::Transport { peer, request }, hop, outgoing, None, out)
    }

    /// Whether a packet of this size can take this hop. Returns the payload per segment if it must
    /// be segmented.
    fn check_size(&self, hop: Hop, o: &Outgoing) -> Result<u16, Refusal> {
        let too_long = (Counter::RefusedTooLong, EMSGSIZE);
        let len = family::len(o);
        let most = if o.source.is_ipv4() { IPV4_LEN_MAX } else { IPV6_LEN_MAX };
        if len > most {
            return Err(too_long);
        }
        if hop.next == Next::Local {
            return Ok(o.segment_size);
        }
        let link = self.link(hop.interface).filter(|l| l.up).ok_or((Counter::LinkDown, ENETUNREACH))?;
        let mtu = link.mtu.min(hop.mtu) as usize;
        let headers = family::header_len(o.source) + o.header.len();
        let segment_size = o.segment_size as usize;
        if segment_size > 0 && len - headers > segment_size {
            if headers + segment_size > mtu || len - headers > link.segment_max as usize {
                return Err(too_long);
            }
            return Ok(o.segment_size);
        }
        // As on Linux, a limit of fragments holds for what must not be cut, too.
        if len > mtu.min(hop.fragment as usize) && o.dont_fragment {
            return Err(too_long);
        }
        Ok(0)
    }

    /// Builds a packet, asks the filter about it, and sends it. `packet` is freed with it; if this
    /// fails, the caller keeps it.
    pub(crate) fn launch(
        &mut self,
        cx: &mut Context,
        origin: Origin,
        hop: Hop,
        o: Outgoing,
        packet: Option<PacketRef>,
        out: &mut Out,
    ) -> Result<(), Refusal> {
        let segment_size = self.check_size(hop, &o)?;
        let mut question = Question::new(o.source, o.destination, o.protocol, o.header, o.body_len())
            .ok_or((Counter::RefusedSend, EINVAL))?;
        if question.is_error() {
            question.quoted = o.payload.first().and_then(|quote| self.quoted(cx, *quote, question.zone()));
        }
        let len = family::len(&o);
        let mut descriptor = self.build(hop, &o, len, segment_size);
        let full = (Counter::RefusedFull, ENOBUFS);
        let frame = self.frames.allocate().ok_or(full)?;
        let transmission = Transmission {
            origin,
            stage: Stage::Verdict,
            hop,
            frame,
            packet,
            question,
            len: len as u32,
            segment_size,
            reach: o.reach,
        };
        let Ok(id) = self.transmissions.insert(transmission) else {
            self.frames.free(frame);
            return Err(full);
        };
        if self.with_filter && !o.ordered {
            self.judge_transmission(cx, id, &transmission, &mut descriptor, out);
        } else {
            self.depart(cx, id, &mut descriptor, out);
        }
        Ok(())
    }

    fn build(&mut self, hop: Hop, o: &Outgoing, len: usize, segment_size: u16) -> FrameDescriptor {
        let mut d = FrameDescriptor::new_zeroed();
        let ethernet = EthernetHeader {
            // Filled in when the neighbour is known.
            destination: MacAddress::default(),
            source: self.link(hop.interface).map_or(MacAddress::default(), |l| l.mac),
            ethertype: family::ethertype(o.source).into(),
        };
        let transport_at = family::transport_at(o.source);
        d.header[..ETHERNET_LEN].copy_from_slice(ethernet.as_bytes());
        let marks = (self.identification, self.flows.of(o));
        family::write_header(o, len, marks, &mut d.header[ETHERNET_LEN..transport_at]);
        // A device that segments counts up from this identification (RFC 6864 §4.1 only requires
        // that identifications differ while fragments may exist).
        let segments = match segment_size {
            0 => 1,
            s => (len / s as usize + 1) as u16,
        };
        self.identification = self.identification.wrapping_add(segments);
        let header_len = transport_at + o.header.len();
        d.header[transport_at..header_len].copy_from_slice(o.header);
        d.header_len = header_len as u16;
        d.payload[..o.payload.len()].copy_from_slice(o.payload);
        d.payload_count = o.payload.len() as u16;
        d.segment_size = segment_size;
        if let Some(offset) = o.checksum_offset {
            d.flags = FRAME_CHECKSUM;
            d.checksum_start = transport_at as u16;
            d.checksum_offset = offset;
            d.seal = o.seal;
        }
        d
    }

    /// The descriptor in one of our frame slots.
    pub(crate) fn descriptor(&self, frame: PacketRef) -> FrameDescriptor {
        let mut d = FrameDescriptor::new_zeroed();
        let view = self.frames.view();
        if let Some(offset) = view.locate(frame) {
            // Our own slot: it is longer than a descriptor.
            let _ = view.segment.read(offset, d.as_mut_bytes());
        }
        d
    }

    /// A packet that may pass leaves.
    pub(crate) fn depart(&mut self, cx: &mut Context, id: RequestId, d: &mut FrameDescriptor, out: &mut Out) {
        let Some(&transmission) = self.transmissions.get(id) else {
            return;
        };
        if transmission.hop.next == Next::Local {
            return self.depart_local(cx, id, d, out);
        }
        if matches!(transmission.hop.next, Next::Group(_))
            && self.depart_to_group(cx, id, &transmission, d, out)
        {
            return;
        }
        // The link may have changed while the packet waited.
        let Some(&link) = self.link(transmission.hop.interface) else {
            return self.finish(id, ENETUNREACH, out);
        };
        let mtu = link.mtu.min(transmission.hop.mtu);
        let mtu = match transmission.question.destination {
            IpAddr::V6(to) if transmission.question.protocol == PROTOCOL_UDP => {
                self.paths.get(cx.now, to).map_or(mtu, |path| path.min(mtu))
            }
            _ => mtu,
        };
        let must_cut = transmission.segment_size == 0 && transmission.len > mtu as u32;
        // As on Linux, datagrams that go together each fit the way. (tcp learns of a smaller MTU and cuts again.)
        let headers = d.header_len as usize - ETHERNET_LEN;
        if transmission.segment_size > 0
            && transmission.question.protocol == PROTOCOL_UDP
            && headers + transmission.segment_size as usize > mtu as usize
        {
            return self.finish(id, EMSGSIZE, out);
        }
        if d.flags & FRAME_CHECKSUM != 0 && (must_cut || !link.checksum) {
            if transmission.segment_size > 0 {
                return self.finish(id, EMSGSIZE, out);
            }
            if self.complete_checksum(cx, &transmission.question, d).is_none() {
                return self.finish(id, EINVAL, out);
            }
        }
        if must_cut {
            if !d.is_as_sealed() {
                return self.drop_damaged(cx, id, out);
            }
            return self.fragment(cx, id, d, mtu.min(transmission.hop.fragment), out);
        }
        self.address(cx, id, d, out);
    }

    /// Completes the checksum for a device without checksum offload.
    fn complete_checksum(&self, cx: &Context, q: &Question, d: &mut FrameDescriptor) -> Option<()> {
        let mut sum = PieceSum::default();
        let transport_at = family::transport_at(q.source);
        sum.add(&d.header[transport_at..d.header_len as usize]);
        for r in &d.payload[..d.payload_count as usize] {
            self.sum(cx.memory, *r, &mut sum)?;
        }
        let sum = match sum.finish() {
            // RFC 768: zero would mean "no checksum".
            0 if q.protocol == PROTOCOL_UDP => 0xffff,
            sum => sum,
        };
        let field = transport_at + d.checksum_offset as usize;
        d.header[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        d.flags &= !FRAME_CHECKSUM;
        Some(())
    }

    /// Hands a transmission whose link address is known to its NIC.
    pub(crate) fn submit(&mut self, cx: &mut Context, id: RequestId, out: &mut Out) {
        let Some(transmission) = self.transmissions.get_mut(id) else {
            return;
        };
        transmission.stage = Stage::Nic;
        cx.count(Counter::PacketsOut);
        cx.add(Counter::BytesOut, transmission.len as u64);
        out.push(transmission.to_nic(id));
    }

    /// A transmission is over: frees what it held and reports to its sender.
    pub(crate) fn finish(&mut self, id: RequestId, errno: i32, out: &mut Out) {
        if let Some(f) = self.transmissions.remove(id) {
            self.resolved(&f);
            self.frames.free(f.frame);
            self.settle(f.origin, f.packet, errno, out);
        }
    }

    pub(crate) fn settle(&mut self, origin: Origin, packet: Option<PacketRef>, errno: i32, out: &mut Out) {
        if let Some(packet) = packet {
            self.packets.free(packet);
        }
        match origin {
            Origin::Transport { peer, request } => {
                let sent = IpToTransport::Sent { request, errno };
                out.push(ToPeer::Transport(peer, sent));
            }
            Origin::Fragment(datagram) => self.settle_fragment(datagram, errno, out),
            Origin::Nobody => {}
        }
    }
}

/// Who gets a transport's packet if it goes to a group. A broadcast is for everybody.
fn reach(d: &SendDescriptor, destination: IpAddr) -> Reach {
    match d.flags {
        flags if destination.is_multicast() && flags & SEND_HOST_ONLY != 0 => Reach::Host,
        flags if destination.is_multicast() && flags & SEND_NO_LOOP != 0 => Reach::Link,
        _ => Reach::LinkAndHost,
    }
}
