//! Reads what `eft capture` writes: pcapng of one section with one Ethernet interface; of each frame what a trace needs.

use std::net::IpAddr;

use eft_base::wire::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, EthernetHeader, IPV4_MORE_FRAGMENTS, IPV4_OFFSET_MASK, Ipv4Header,
    Ipv6Header, PROTOCOL_TCP, TcpHeader,
};
use zerocopy::FromBytes;

/// An end of a connection.
pub type End = (IpAddr, u16);

/// What a segment of TCP says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub at_ns: u64,
    pub from: End,
    pub to: End,
    pub sequence: u32,
    pub flags: u8,
    pub payload: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    #[error("it is no capture as `eft capture -w FILE` writes them (pcapng, little-endian)")]
    NoCapture,
    #[error("at byte {0} it is damaged or cut short")]
    Damaged(usize),
    #[error(
        "its frames are not of an Ethernet device with times in nanoseconds, as `eft capture` writes them"
    )]
    OtherDevice,
    #[error("no client asks anything in it: a capture must begin before its connections do")]
    Nothing,
    #[error("its clients do what no trace can say: {0}")]
    Untold(super::TraceError),
}

const SECTION: u32 = 0x0a0d_0d0a;
const SECTION_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
/// Of an interface's options: 10 to the minus so many seconds is a unit of time.
const RESOLUTION: u16 = 9;
const NANOSECONDS: u8 = 9;
const ETHERNET: u16 = 1;

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// All segments of TCP, in the order of the file.
pub fn segments(bytes: &[u8]) -> Result<Vec<Segment>, CaptureError> {
    if u32_at(bytes, 0) != Some(SECTION) || u32_at(bytes, 8) != Some(SECTION_ORDER) {
        return Err(CaptureError::NoCapture);
    }
    let (mut segments, mut at, mut is_described) = (Vec::new(), 0, false);
    while at < bytes.len() {
        let (kind, body) = block(bytes, at).ok_or(CaptureError::Damaged(at))?;
        match kind {
            INTERFACE if is_described || !is_ours(body) => return Err(CaptureError::OtherDevice),
            INTERFACE => is_described = true,
            PACKET if !is_described => return Err(CaptureError::Damaged(at)),
            PACKET => {
                let (at_ns, frame) = packet(body).ok_or(CaptureError::Damaged(at))?;
                segments.extend(segment(at_ns, frame));
            }
            // A second section has other interfaces.
            SECTION if at > 0 => return Err(CaptureError::OtherDevice),
            _ => {}
        }
        at += body.len() + 12;
    }
    Ok(segments)
}

/// A block's kind and body; its length stands before and behind the body.
fn block(bytes: &[u8], at: usize) -> Option<(u32, &[u8])> {
    let (kind, length) = (u32_at(bytes, at)?, u32_at(bytes, at + 4)? as usize);
    let end = at.checked_add(length)?;
    let body = bytes.get(at + 8..end.checked_sub(4)?)?;
    (length % 4 == 0 && u32_at(bytes, end - 4)? as usize == length).then_some((kind, body))
}

fn is_ours(body: &[u8]) -> bool {
    let resolution = || {
        let mut at = 8;
        loop {
            let (code, length) = (u16_at(body, at)?, usize::from(u16_at(body, at + 2)?));
            match code {
                0 => return None,
                RESOLUTION => return body.get(at + 4),
                _ => at += 4 + length.next_multiple_of(4),
            }
        }
    };
    u16_at(body, 0) == Some(ETHERNET) && resolution() == Some(&NANOSECONDS)
}

fn packet(body: &[u8]) -> Option<(u64, &[u8])> {
    if u32_at(body, 0)? != 0 {
        return None;
    }
    let at_ns = u64::from(u32_at(body, 4)?) << 32 | u64::from(u32_at(body, 8)?);
    let length = u32_at(body, 12)? as usize;
    Some((at_ns, body.get(20..20usize.checked_add(length)?)?))
}

/// `None`: it is none of TCP, or a fragment.
fn segment(at_ns: u64, frame: &[u8]) -> Option<Segment> {
    let (ethernet, packet) = EthernetHeader::ref_from_prefix(frame).ok()?;
    match ethernet.ethertype.get() {
        ETHERTYPE_IPV4 => {
            let (header, _) = Ipv4Header::ref_from_prefix(packet).ok()?;
            let is_fragment = header.flags_fragment.get() & (IPV4_MORE_FRAGMENTS | IPV4_OFFSET_MASK) != 0;
            if header.protocol != PROTOCOL_TCP || is_fragment {
                return None;
            }
            let length = usize::from(header.total_len.get()).checked_sub(header.header_len())?;
            let ends = [header.source, header.destination].map(IpAddr::from);
            of_tcp(at_ns, ends, packet.get(header.header_len()..)?, length)
        }
        ETHERTYPE_IPV6 => {
            let (header, tcp) = Ipv6Header::ref_from_prefix(packet).ok()?;
            if header.next_header != PROTOCOL_TCP {
                return None;
            }
            let ends = [header.source, header.destination].map(IpAddr::from);
            of_tcp(at_ns, ends, tcp, header.payload_len.get().into())
        }
        _ => None,
    }
}

fn of_tcp(at_ns: u64, [from, to]: [IpAddr; 2], tcp: &[u8], length: usize) -> Option<Segment> {
    let (header, _) = TcpHeader::ref_from_prefix(tcp).ok()?;
    Some(Segment {
        at_ns,
        from: (from, header.source_port.get()),
        to: (to, header.destination_port.get()),
        sequence: header.sequence.get(),
        flags: header.flags,
        payload: length.checked_sub(header.header_len())? as u32,
    })
}
