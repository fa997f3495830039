//! Cutting a datagram that is longer than the link's MTU (RFC 791 §3.2).

use super::header::HEADER_LEN;
use crate::datagram::{Piece, pieces};
use crate::engine::{Ip, Out};
use crate::pending::ETHERNET_LEN;
use eft_base::RequestId;
use eft_base::checksum::Checksum;
use eft_base::wire::{IPV4_MORE_FRAGMENTS, Ipv4Header};
use eft_component::Context;
use eft_messages::nic::FrameDescriptor;
use zerocopy::FromBytes;

const TRANSPORT_AT: usize = ETHERNET_LEN + HEADER_LEN;

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
        self.cut_up(cx, id, (HEADER_LEN, HEADER_LEN), mtu, out, |piece| cut(whole, piece));
    }
}

/// The frame of one fragment.
fn cut(whole: &FrameDescriptor, piece: &Piece) -> FrameDescriptor {
    let mut d = *whole;
    pieces(whole, whole.header_len as usize - TRANSPORT_AT, piece, &mut d);
    if piece.offset != 0 {
        d.header_len = TRANSPORT_AT as u16;
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
