//! What of a frame's headers matters when segments are merged.

use super::Arrived;
use core::net::IpAddr;
use eft_base::checksum::Checksum;
use eft_base::wire::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, EthernetHeader, Ipv4Header, Ipv6Header, TcpHeader};
use eft_base::wire::{IPV4_DONT_FRAGMENT, IPV4_MORE_FRAGMENTS, IPV4_OFFSET_MASK, PROTOCOL_TCP};
use eft_base::wire::{TCP_ACK, TCP_FIN, TCP_PSH, TCP_RST, TCP_SYN, TCP_URG};
use eft_channel::Pool;
use zerocopy::{FromBytes, IntoBytes};

const ETHERNET_LEN: usize = size_of::<EthernetHeader>();
const IPV4_LEN: usize = size_of::<Ipv4Header>();
const IPV6_LEN: usize = size_of::<Ipv6Header>();
const TCP_LEN: usize = size_of::<TcpHeader>();
/// Ethernet, IPv6 without extensions, TCP with all its options.
pub(super) const LEN_MAX: usize = ETHERNET_LEN + IPV6_LEN + 60;
/// Nothing longer fits a length field of IP.
pub(super) const FRAME_LEN_MAX: usize = ETHERNET_LEN + 65535;

/// A frame, as far as merging goes.
pub(super) enum Kind {
    /// It has payload, and nothing that only a segment by itself may have.
    Segment(Headers),
    /// It belongs to a connection, and must not overtake what came before.
    OfConnection(Headers),
    /// No TCP segment, or one that was not sent as any today is (fragments, options of IP).
    Other,
}

/// The headers of a TCP segment.
pub(super) struct Headers {
    /// As they are, but without what differs between segments of a aggregate.
    alike: [u8; LEN_MAX],
    /// Of all headers.
    pub len: usize,
    ip_len: usize,
    pub payload: usize,
    sequence: u32,
    /// IPv4's, if it counts (RFC 6864 §4.1: not with DF).
    id: Option<u16>,
    pub pushed: bool,
}

impl Headers {
    /// Addresses and ports.
    fn connection(&self) -> (&[u8], &[u8]) {
        let tcp = ETHERNET_LEN + self.ip_len;
        let addresses = if self.ip_len == IPV4_LEN { 8 } else { 32 };
        (&self.alike[tcp - addresses..tcp], &self.alike[tcp..tcp + 4])
    }

    pub fn is_of_connection(&self, other: &Headers) -> bool {
        self.ip_len == other.ip_len && self.connection() == other.connection()
    }

    /// Whether `next` is what follows `payload` bytes in so many segments that begin with this one.
    pub fn is_continued_by(&self, next: &Headers, payload: usize, segments: usize) -> bool {
        self.alike[..self.len] == next.alike[..next.len]
            && next.sequence == self.sequence.wrapping_add(payload as u32)
            && self.id.map(|id| id.wrapping_add(segments as u16)) == next.id
    }
}

/// Reads the headers of a frame.
pub(super) fn read(pool: &Pool, arrived: &Arrived) -> Kind {
    let packet = arrived.packet();
    let mut bytes = [0; LEN_MAX];
    let there = &mut bytes[..LEN_MAX.min(packet.len as usize)];
    let view = pool.view();
    let is_read = view.locate(packet).is_some_and(|at| view.segment.read(at, there).is_ok());
    let there = there.len();
    match is_read.then(|| ip(&mut bytes[..there], packet.len as usize)).flatten() {
        Some(found) => tcp(bytes, there, packet.len as usize, found),
        None => Kind::Other,
    }
}

/// Of an IP header: its length, and the identification if it counts.
type Ip = (usize, Option<u16>);

/// Checks the IP header of a frame of `len` bytes, and blots out what differs between segments.
fn ip(bytes: &mut [u8], len: usize) -> Option<Ip> {
    let (ethernet, ip) = EthernetHeader::mut_from_prefix(bytes).ok()?;
    let len = len.checked_sub(ETHERNET_LEN)?;
    match ethernet.ethertype.get() {
        ETHERTYPE_IPV4 => {
            let (ip, _) = Ipv4Header::mut_from_prefix(ip).ok()?;
            let flags = ip.flags_fragment.get();
            let is_plain = ip.version_ihl == 0x45
                && ip.protocol == PROTOCOL_TCP
                && flags & (IPV4_MORE_FRAGMENTS | IPV4_OFFSET_MASK) == 0
                && usize::from(ip.total_len.get()) == len
                && Checksum::new().add_bytes(ip.as_bytes()).finish() == 0;
            let id = (flags & IPV4_DONT_FRAGMENT == 0).then_some(ip.id.get());
            (ip.total_len, ip.id, ip.checksum) = Default::default();
            is_plain.then_some((IPV4_LEN, id))
        }
        ETHERTYPE_IPV6 => {
            let (ip, _) = Ipv6Header::mut_from_prefix(ip).ok()?;
            let is_plain = ip.version() == 6
                && ip.next_header == PROTOCOL_TCP
                && usize::from(ip.payload_len.get()) + IPV6_LEN == len;
            ip.payload_len = 0.into();
            is_plain.then_some((IPV6_LEN, None))
        }
        _ => None,
    }
}

fn tcp(mut bytes: [u8; LEN_MAX], there: usize, frame: usize, (ip_len, id): Ip) -> Kind {
    let at = ETHERNET_LEN + ip_len;
    let Ok((tcp, _)) = TcpHeader::mut_from_prefix(&mut bytes[at..there]) else { return Kind::Other };
    let (sequence, flags, len) = (tcp.sequence.get(), tcp.flags, at + tcp.header_len());
    let urgent = tcp.urgent.get();
    (tcp.sequence, tcp.checksum) = Default::default();
    tcp.flags &= !TCP_PSH;
    if tcp.header_len() < TCP_LEN || len > there {
        return Kind::Other;
    }
    let headers = Headers {
        alike: bytes,
        len,
        ip_len,
        payload: frame - len,
        sequence,
        id,
        pushed: flags & TCP_PSH != 0,
    };
    let alone = TCP_SYN | TCP_FIN | TCP_RST | TCP_URG;
    match headers.payload > 0 && flags & TCP_ACK != 0 && flags & alone == 0 && urgent == 0 {
        true => Kind::Segment(headers),
        false => Kind::OfConnection(headers),
    }
}

/// Whether the checksum of a segment is right.
pub(super) fn sums_up(pool: &Pool, arrived: &Arrived, headers: &Headers, scratch: &mut [u8]) -> bool {
    let segment = arrived.packet().skip((ETHERNET_LEN + headers.ip_len) as u32);
    let Some(scratch) = scratch.get_mut(..segment.len as usize) else { return false };
    let view = pool.view();
    if !view.locate(segment).is_some_and(|at| view.segment.read(at, scratch).is_ok()) {
        return false;
    }
    let (addresses, _) = headers.connection();
    let (source, destination) = addresses.split_at(addresses.len() / 2);
    let (Some(source), Some(destination)) = (address(source), address(destination)) else { return false };
    let sum = Checksum::new().add_pseudo_header(source, destination, PROTOCOL_TCP, segment.len);
    sum.add_bytes(scratch).finish() == 0
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = || <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    <[u8; 16]>::try_from(bytes).map(IpAddr::from).or_else(|_| v4()).ok()
}

/// Makes the headers of a frame those of a segment of its length. Its TCP checksum stays what it was. May be done again, also where it
/// was not done to the end.
pub(crate) fn finish(pool: &Pool, whole: Arrived, pushed: bool) {
    let mut bytes = [0; LEN_MAX];
    let packet = whole.packet();
    let bytes = &mut bytes[..LEN_MAX.min(packet.len as usize)];
    let view = pool.view();
    let Some(at) = view.locate(packet).filter(|at| view.segment.read(*at, bytes).is_ok()) else { return };
    write_length(bytes, packet.len as usize, pushed);
    // The slot is this server's own: what could be read can be written.
    let _ = view.segment.write(at, bytes);
}

fn write_length(bytes: &mut [u8], len: usize, pushed: bool) -> Option<()> {
    let (ethernet, rest) = EthernetHeader::mut_from_prefix(bytes).ok()?;
    let behind_ethernet = len.checked_sub(ETHERNET_LEN)?;
    let rest = if ethernet.ethertype.get() == ETHERTYPE_IPV4 {
        let (ip, rest) = Ipv4Header::mut_from_prefix(rest).ok()?;
        ip.total_len = (behind_ethernet as u16).into();
        ip.checksum = 0.into();
        ip.checksum = Checksum::new().add_bytes(ip.as_bytes()).finish().into();
        rest
    } else {
        let (ip, rest) = Ipv6Header::mut_from_prefix(rest).ok()?;
        ip.payload_len = (behind_ethernet.checked_sub(IPV6_LEN)? as u16).into();
        rest
    };
    let (tcp, _) = TcpHeader::mut_from_prefix(rest).ok()?;
    tcp.flags |= if pushed { TCP_PSH } else { 0 };
    Some(())
}
