//! Fragments of IPv6 (RFC 8200 §4.5), used by [`crate::reassemble`].

use super::header::{HEADER_LEN, HEADERS_MAX, Packet, walk};
use crate::counters::Counter;
use crate::pending::Question;
use crate::reassembly::{Fragment, Key, Place};
use eft_base::wire::{Ipv6Fragment, Ipv6Header};
use zerocopy::FromBytes;

const PAYLOAD_MAX: usize = 65535;
const FRAGMENT_LEN: usize = size_of::<Ipv6Fragment>();

/// Checks a fragment on its own. `header` takes the headers that the whole packet will have before the fragments' data.
pub(crate) fn fragment<'a>(
    p: &Packet,
    at: usize,
    header: &'a mut [u8; HEADERS_MAX],
) -> Result<Fragment<'a>, Counter> {
    let (fields, _) = p
        .head
        .get(at..)
        .and_then(|bytes| Ipv6Fragment::ref_from_prefix(bytes).ok())
        .ok_or(Counter::DropMalformed)?;
    let header = header.get_mut(..at).ok_or(Counter::DropMalformed)?;
    header.copy_from_slice(&p.head[..at]);
    // The header before the fragment's names what comes after it.
    *header.get_mut(previous_named_at(p.head, at)).ok_or(Counter::DropMalformed)? = fields.next_header;
    let body = p.packet.skip((at + FRAGMENT_LEN) as u32);
    let place = place(p, fields, at, body.len as usize)?;
    // §4.5: addresses and identification are the key; the first fragment names the protocol.
    let key =
        Key { source: p.source.into(), destination: p.destination.into(), id: fields.id.get(), protocol: 0 };
    Ok(Fragment { key, place, header, body })
}

/// Where the field lies that names the header at `at`.
fn previous_named_at(head: &[u8], at: usize) -> usize {
    let (mut named_at, mut next_at) = (core::mem::offset_of!(Ipv6Header, next_header), HEADER_LEN);
    while next_at < at {
        named_at = next_at;
        next_at += (head.get(next_at + 1).copied().unwrap_or(0) as usize + 1) * 8;
    }
    named_at
}

fn place(p: &Packet, fields: &Ipv6Fragment, at: usize, len: usize) -> Result<Place, Counter> {
    let offset_more = fields.offset_more.get();
    let start = (offset_more & !7) as usize;
    let (end, last) = (start + len, offset_more & 1 == 0);
    if len == 0 || (!last && !len.is_multiple_of(8)) || at - HEADER_LEN + end > PAYLOAD_MAX {
        return Err(Counter::DropFragment);
    }
    // RFC 7112 §4: the first one has all headers.
    if start == 0 {
        let transport = p.head.get(p.chain.len..).unwrap_or(&[]);
        let rest = (p.packet.len as usize).saturating_sub(p.chain.len);
        Question::new(p.source.into(), p.destination.into(), p.chain.protocol, transport, rest)
            .ok_or(Counter::DropFragment)?;
    }
    Ok(Place { start, end, last })
}

/// Makes a first fragment's headers those of the whole packet, `len` bytes long.
pub(crate) fn make_whole(header: &mut [u8], len: usize) -> Option<()> {
    let (h, _) = Ipv6Header::mut_from_prefix(header).ok()?;
    h.payload_len = u16::try_from(len.checked_sub(HEADER_LEN)?).ok()?.into();
    Some(())
}

/// The protocol of a whole packet that begins like this, and where its header begins.
pub(crate) fn transport(head: &[u8]) -> Option<(u8, usize)> {
    let chain = walk(head).ok()?;
    chain.fragment_at.is_none().then_some((chain.protocol, chain.len))
}
