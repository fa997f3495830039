//! Cutting a datagram that is longer than the path's MTU (RFC 8200 §4.5): only the sender may.
//!
//! Fragments are references to pieces of the same payload; nothing is copied but headers.

use super::header::HEADER_LEN;
use crate::datagram::{Piece, pieces};
use crate::engine::{Ip, Out};
use crate::pending::ETHERNET_LEN;
use eft_base::RequestId;
use eft_base::wire::{IPV6_FRAGMENT, Ipv6Fragment, Ipv6Header};
use eft_component::Context;
use eft_messages::nic::FrameDescriptor;
use zerocopy::{FromBytes, IntoBytes};

const FRAGMENT_LEN: usize = size_of::<Ipv6Fragment>();
const TRANSPORT_AT: usize = ETHERNET_LEN + HEADER_LEN;

impl Ip {
    /// Replaces a transmission by one per fragment. The checksum is complete.
    pub(crate) fn fragment_ipv6(
        &mut self,
        cx: &mut Context,
        id: RequestId,
        whole: &FrameDescriptor,
        mtu: u16,
        out: &mut Out,
    ) {
        // RFC 7739: others must not be able to predict the next one.
        let number = cx.random.next_u64() as u32;
        let headers = HEADER_LEN + FRAGMENT_LEN;
        self.cut_up(cx, id, (HEADER_LEN, headers), mtu, out, |piece| cut(whole, piece, number));
    }
}

/// The frame of one fragment: a fragment header stands before its piece of the body.
fn cut(whole: &FrameDescriptor, piece: &Piece, number: u32) -> FrameDescriptor {
    let mut d = *whole;
    let transport = &whole.header[TRANSPORT_AT..whole.header_len as usize];
    pieces(whole, transport.len(), piece, &mut d);
    let Ok((ip, _)) = Ipv6Header::mut_from_prefix(&mut d.header[ETHERNET_LEN..]) else {
        return d;
    };
    let fields = Ipv6Fragment {
        next_header: ip.next_header,
        reserved: 0,
        offset_more: (piece.offset as u16 | !piece.last as u16).into(),
        id: number.into(),
    };
    ip.next_header = IPV6_FRAGMENT;
    ip.payload_len = ((FRAGMENT_LEN + piece.len) as u16).into();
    let body_at = TRANSPORT_AT + FRAGMENT_LEN;
    d.header[TRANSPORT_AT..body_at].copy_from_slice(fields.as_bytes());
    d.header_len = body_at as u16;
    if piece.offset == 0 {
        d.header[body_at..body_at + transport.len()].copy_from_slice(transport);
        d.header_len += transport.len() as u16;
    }
    d
}
