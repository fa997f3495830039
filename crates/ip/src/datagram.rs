//! A datagram that is longer than the path's MTU leaves in fragments; its sender is answered when all of them are.
//!
//! Fragments are references to pieces of the same payload; nothing is copied but headers.

use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::pending::{Datagram, Origin, Transmission};
use core::net::IpAddr;
use eft_base::errno::ENOBUFS;
use eft_base::{PacketRef, RequestId};
use eft_component::Context;
use eft_messages::nic::FrameDescriptor;

/// A piece of a datagram's body (transport header and payload).
pub(crate) struct Piece {
    pub offset: usize,
    pub len: usize,
    pub last: bool,
}

impl Ip {
    /// A packet is not what its transport has sealed: it is lost, as on its way.
    pub(crate) fn drop_damaged(&mut self, cx: &Context, id: RequestId, out: &mut Out) {
        cx.count(Counter::DropDamaged);
        self.finish(id, 0, out);
    }

    /// Cuts a transmission that is longer than the path's MTU. Its checksum is complete.
    pub(crate) fn fragment(
        &mut self,
        cx: &mut Context,
        id: RequestId,
        whole: &FrameDescriptor,
        mtu: u16,
        out: &mut Out,
    ) {
        match self.transmissions.get(id).map(|t| t.question.source) {
            Some(IpAddr::V4(_)) => self.fragment_ipv4(cx, id, whole, mtu, out),
            Some(IpAddr::V6(_)) => self.fragment_ipv6(cx, id, whole, mtu, out),
            None => {}
        }
    }

    /// Replaces a transmission with a header of `header_len` bytes by one per piece, as `cut` makes them, each with
    /// `fragment_header_len` bytes before its part of the body.
    pub(crate) fn cut_up(
        &mut self,
        cx: &mut Context,
        id: RequestId,
        (header_len, fragment_header_len): (usize, usize),
        mtu: u16,
        out: &mut Out,
        cut: impl Fn(&Piece) -> FrameDescriptor,
    ) {
        let Some(&transmission) = self.transmissions.get(id) else {
            return;
        };
        // Offsets are counted in units of eight bytes.
        let room = (mtu as usize - fragment_header_len) & !7;
        let body = transmission.len as usize - header_len;
        let count = body.div_ceil(room);
        if self.frames.available() + 1 < count {
            cx.count(Counter::RefusedFull);
            return self.finish(id, ENOBUFS, out);
        }
        self.transmissions.remove(id);
        self.frames.free(transmission.frame);
        let datagram =
            Datagram { origin: transmission.origin, packet: transmission.packet, remaining: count, errno: 0 };
        let Ok(datagram) = self.datagrams.insert(datagram) else {
            // Cannot happen: there are as many entries as frame slots.
            return self.settle(transmission.origin, transmission.packet, ENOBUFS, out);
        };
        for i in 0..count {
            let offset = i * room;
            let piece = Piece { offset, len: room.min(body - offset), last: i + 1 == count };
            let len = fragment_header_len + piece.len;
            let fragment = FrameDescriptor { seal: 0, ..cut(&piece) };
            self.launch_fragment(cx, &transmission, datagram, fragment, len, out);
        }
    }

    fn launch_fragment(
        &mut self,
        cx: &mut Context,
        whole: &Transmission,
        datagram: RequestId,
        mut descriptor: FrameDescriptor,
        len: usize,
        out: &mut Out,
    ) {
        let Some(frame) = self.frames.allocate() else {
            return self.settle_fragment(datagram, ENOBUFS, out);
        };
        let transmission = Transmission {
            origin: Origin::Fragment(datagram),
            frame,
            packet: None,
            len: len as u32,
            ..*whole
        };
        let Ok(id) = self.transmissions.insert(transmission) else {
            self.frames.free(frame);
            return self.settle_fragment(datagram, ENOBUFS, out);
        };
        cx.count(Counter::FragmentsOut);
        self.address(cx, id, &mut descriptor, out);
    }

    /// One fragment less; after the last the datagram is answered.
    pub(crate) fn settle_fragment(&mut self, datagram: RequestId, errno: i32, out: &mut Out) {
        let Some(d) = self.datagrams.get_mut(datagram) else {
            return;
        };
        d.remaining -= 1;
        if d.errno == 0 {
            d.errno = errno;
        }
        if d.remaining == 0
            && let Some(d) = self.datagrams.remove(datagram)
        {
            self.settle(d.origin, d.packet, d.errno, out);
        }
    }
}

/// Makes `d` refer to the part of the payload that belongs to a piece. The first one carries the transport header, which
/// at 64 bytes or less is shorter than any fragment.
pub(crate) fn pieces(whole: &FrameDescriptor, transport_len: usize, piece: &Piece, d: &mut FrameDescriptor) {
    let (mut skip, mut rest) = match piece.offset {
        0 => (0, piece.len - transport_len),
        offset => (offset - transport_len, piece.len),
    };
    d.payload_count = 0;
    for r in &whole.payload[..whole.payload_count as usize] {
        let passed = skip.min(r.len as usize);
        skip -= passed;
        let r = r.skip(passed as u32);
        let len = rest.min(r.len as usize);
        rest -= len;
        if len > 0 {
            d.payload[d.payload_count as usize] = PacketRef { len: len as u32, ..r };
            d.payload_count += 1;
        }
    }
}
