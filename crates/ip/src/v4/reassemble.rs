//! Fragments of IPv4 (RFC 791 §3.2), used by [`crate::reassemble`].

use super::header::Packet;
use crate::counters::Counter;
use crate::pending::Question;
use crate::reassembly::{Fragment, Key, Place};
use eft_base::checksum::Checksum;
use eft_base::wire::{IPV4_MORE_FRAGMENTS, IPV4_OFFSET_MASK, Ipv4Header};
use zerocopy::FromBytes;

const IP_LEN_MAX: usize = 65535;

/// Checks a fragment on its own.
pub(crate) fn fragment<'a>(p: &Packet<'a>) -> Result<Fragment<'a>, Counter> {
    let key = Key {
        source: p.source.into(),
        destination: p.destination.into(),
        id: p.header.id.get() as u32,
        protocol: p.header.protocol,
    };
    let body = p.packet.skip(p.header_len as u32);
    Ok(Fragment { key, place: place(p)?, header: &p.head[..p.header_len], body })
}

fn place(p: &Packet) -> Result<Place, Counter> {
    let field = p.header.flags_fragment.get();
    let start = (field & IPV4_OFFSET_MASK) as usize * 8;
    let len = p.packet.len as usize - p.header_len;
    let end = start + len;
    let last = field & IPV4_MORE_FRAGMENTS == 0;
    if len == 0 || (!last && !len.is_multiple_of(8)) || p.header_len + end > IP_LEN_MAX {
        return Err(Counter::DropFragment);
    }
    let transport = p.head.get(p.header_len..).unwrap_or(&[]);
    let whole_header =
        Question::new(p.source.into(), p.destination.into(), p.header.protocol, transport, len);
    if start == 0 && whole_header.is_none() {
        return Err(Counter::DropFragment);
    }
    // RFC 1858 §4: no honest fragment begins right after eight bytes, and it could rewrite TCP's
    // flags.
    if start == 8 && p.header.protocol == eft_base::wire::PROTOCOL_TCP {
        return Err(Counter::DropFragment);
    }
    Ok(Place { start, end, last })
}

/// Makes a fragment's header that of the whole packet, `len` bytes long.
pub(crate) fn make_whole(header: &mut [u8], len: usize) -> Option<()> {
    let total_len = u16::try_from(len).ok()?;
    let (h, _) = Ipv4Header::mut_from_prefix(header).ok()?;
    h.total_len = total_len.into();
    h.flags_fragment = 0.into();
    h.checksum = 0.into();
    let sum = Checksum::new().add_bytes(header).finish();
    let (h, _) = Ipv4Header::mut_from_prefix(header).ok()?;
    h.checksum = sum.into();
    Some(())
}
