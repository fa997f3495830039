//! Cutting a datagram that is longer than the link's MTU (RFC 791 §3.2).
//!
//! Fragments are references to pieces of the same payload; nothing is copied but headers.

use super::header::HEADER_LEN;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::pending::{Datagram, ETHERNET_LEN, Origin, Transmission};
use eft_base::checksum::Checksum;
use eft_base::errno::ENOBUFS;
use eft_base::wire::{IPV4_MORE_FRAGMENTS, Ipv4Header};
use eft_base::{PacketRef, RequestId};
use eft_component::Context;
use eft_messages::nic::FrameDescriptor;
use zerocopy::FromBytes;

const TRANSPORT_AT: usize = ETHERNET_LEN + HEADER_LEN;

/// A piece of a datagram's body (transport header and payload).
struct Piece {
    offset: usize,
    len: usize,
    last: bool,
}

impl Ip {
    /// Replaces a transmission by one per fragment. The checksum is complete.
    pub(crate) fn fragment_ipv4(
        &mut self,
        cx: &mut Context,
        id: RequestId,
        whole: &FrameDescriptor,
        mtu: u16,
        out: &mut Out,
    ) {
        let Some(&transmission) = self.transmissions.get(id) else {
            return;
        };
        // Offsets are counted in units of eight bytes.
        let room = (mtu as usize - HEADER_LEN) & !7;
        let body = transmission.len as usize - HEADER_LEN;
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
            // Cannot be: there are as many entries as frame slots.
            return self.settle(transmission.origin, transmission.packet, ENOBUFS, out);
        };
        for i in 0..count {
            let offset = i * room;
            let piece = Piece { offset, len: room.min(body - offset), last: i + 1 == count };
            self.launch_fragment(cx, &transmission, datagram, whole, piece, out);
        }
    }

    fn launch_fragment(
        &mut self,
        cx: &mut Context,
        whole: &Transmission,
        datagram: RequestId,
        descriptor: &FrameDescriptor,
        piece: Piece,
        out: &mut Out,
    ) {
        let Some(frame) = self.frames.allocate() else {
            return self.settle_fragment(datagram, ENOBUFS, out);
        };
        let transmission = Transmission {
            origin: Origin::Fragment(datagram),
            frame,
            packet: None,
            len: (HEADER_LEN + piece.len) as u32,
            ..*whole
        };
        let Ok(id) = self.transmissions.insert(transmission) else {
            self.frames.free(frame);
            return self.settle_fragment(datagram, ENOBUFS, out);
        };
        cx.count(Counter::FragmentsOut);
        let mut d = cut(descriptor, &piece);
        self.address(cx, id, &mut d, out);
    }
}

/// The frame of one fragment. The first carries the transport header, whose 64 bytes at most are
/// shorter than any fragment.
fn cut(whole: &FrameDescriptor, piece: &Piece) -> FrameDescriptor {
    let mut d = *whole;
    let transport_len = whole.header_len as usize - TRANSPORT_AT;
    let (mut skip, mut rest) = if piece.offset == 0 {
        (0, piece.len - transport_len)
    } else {
        d.header_len = TRANSPORT_AT as u16;
        (piece.offset - transport_len, piece.len)
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
    if let Ok((h, _)) = Ipv4Header::mut_from_prefix(&mut d.header[ETHERNET_LEN..]) {
        h.total_len = ((HEADER_LEN + piece.len) as u16).into();
        let more = if piece.last { 0 } else { IPV4_MORE_FRAGMENTS };
        h.flags_fragment = (more | (piece.offset / 8) as u16).into();
        h.checksum = 0.into();
        let sum = Checksum::new().add_bytes(&d.header[ETHERNET_LEN..TRANSPORT_AT]);
        let at = ETHERNET_LEN + core::mem::offset_of!(Ipv4Header, checksum);
        d.header[at..at + 2].copy_from_slice(&sum.finish().to_be_bytes());
    }
    d
}
