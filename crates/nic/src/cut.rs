//! Frames of several datagrams (UDP_SEGMENT), cut for devices that do not cut them.
//!
//! Each datagram gets the headers that a device would give it (Linux's `__udp_gso_segment`): its own lengths, in IPv4 an
//! identification that counts up, and the sum of its pseudo-header.

use eft_base::PacketRef;
use eft_base::checksum::Checksum;
use eft_base::wire::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, EthernetHeader, Ipv4Header, Ipv6Header};
use eft_base::wire::{PROTOCOL_UDP, UdpHeader};
use eft_messages::nic::{FRAME_CHECKSUM, FRAME_PAYLOAD_MAX, FrameDescriptor};
use zerocopy::FromBytes;

const ETHERNET_LEN: usize = size_of::<EthernetHeader>();

/// Whether a checked descriptor is one of datagrams: its headers are Ethernet's, those of IP without options, and UDP's.
pub(crate) fn has_datagrams(d: &FrameDescriptor) -> bool {
    if d.segment_size == 0 || d.flags & FRAME_CHECKSUM == 0 {
        return false;
    }
    let Some((ip_len, protocol)) = network(&d.header) else { return false };
    let transport_at = ETHERNET_LEN + ip_len;
    protocol == PROTOCOL_UDP
        && d.checksum_start as usize == transport_at
        && d.header_len as usize == transport_at + size_of::<UdpHeader>()
}

/// Bytes of the IP header, and the protocol of what follows.
fn network(header: &[u8]) -> Option<(usize, u8)> {
    let (ethernet, ip) = EthernetHeader::ref_from_prefix(header).ok()?;
    match ethernet.ethertype.get() {
        ETHERTYPE_IPV4 => {
            let (ip, _) = Ipv4Header::ref_from_prefix(ip).ok()?;
            (ip.header_len() == size_of::<Ipv4Header>()).then_some((size_of::<Ipv4Header>(), ip.protocol))
        }
        ETHERTYPE_IPV6 => {
            let (ip, _) = Ipv6Header::ref_from_prefix(ip).ok()?;
            Some((size_of::<Ipv6Header>(), ip.next_header))
        }
        _ => None,
    }
}

/// Takes the first datagram out of a frame [of datagrams](has_datagrams), of which there is none left if `None` is returned.
pub(crate) fn take_first(d: &mut FrameDescriptor) -> Option<FrameDescriptor> {
    let whole = payload_len(d);
    let size = u32::from(d.segment_size);
    if whole == 0 {
        return None;
    }
    let mut first = FrameDescriptor { segment_size: 0, ..*d };
    let (taken, rest) = divide(&d.payload[..d.payload_count as usize], size);
    (first.payload, first.payload_count) = taken;
    (d.payload, d.payload_count) = rest;
    set_len(&mut first, whole.min(size));
    set_len(d, whole - whole.min(size));
    if let Some(ip) = ipv4(d) {
        ip.id = ip.id.get().wrapping_add(1).into();
        sum_ipv4(d);
    }
    Some(first)
}

fn payload_len(d: &FrameDescriptor) -> u32 {
    d.payload[..d.payload_count as usize].iter().fold(0, |sum: u32, r| sum.saturating_add(r.len))
}

type Refs = ([PacketRef; FRAME_PAYLOAD_MAX], u16);

/// The first `len` bytes, and the others.
fn divide(refs: &[PacketRef], len: u32) -> (Refs, Refs) {
    let (mut first, mut rest): (Refs, Refs) = Default::default();
    let put = |(to, count): &mut Refs, r: PacketRef| {
        if r.len > 0 {
            to[*count as usize] = r;
            *count += 1;
        }
    };
    let mut left = len;
    for r in refs {
        let n = r.len.min(left);
        left -= n;
        put(&mut first, PacketRef { len: n, ..*r });
        put(&mut rest, r.skip(n));
    }
    (first, rest)
}

/// Makes the headers those of a datagram with so many bytes of payload.
fn set_len(d: &mut FrameDescriptor, payload: u32) {
    let udp_at = d.checksum_start as usize;
    // A checked frame fits its length fields; what a mad ip writes there is its own matter.
    let len = (payload as u16).wrapping_add(size_of::<UdpHeader>() as u16);
    if let Ok((udp, _)) = UdpHeader::mut_from_prefix(&mut d.header[udp_at..]) {
        // RFC 1624 §3: the pseudo-header's sum, with another length.
        let sum = u32::from(udp.checksum.get()) + u32::from(!udp.length.get()) + u32::from(len);
        udp.checksum = fold(sum).into();
        udp.length = len.into();
    }
    if let Some(ip) = ipv4(d) {
        ip.total_len = len.wrapping_add(size_of::<Ipv4Header>() as u16).into();
        sum_ipv4(d);
    } else if let Ok((ip, _)) = Ipv6Header::mut_from_prefix(&mut d.header[ETHERNET_LEN..]) {
        ip.payload_len = len.into();
    }
}

fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

fn ipv4(d: &mut FrameDescriptor) -> Option<&mut Ipv4Header> {
    if network(&d.header)?.0 != size_of::<Ipv4Header>() {
        return None;
    }
    Ipv4Header::mut_from_prefix(&mut d.header[ETHERNET_LEN..]).ok().map(|(ip, _)| ip)
}

fn sum_ipv4(d: &mut FrameDescriptor) {
    if let Some(ip) = ipv4(d) {
        ip.checksum = 0.into();
        let header = &mut d.header[ETHERNET_LEN..ETHERNET_LEN + size_of::<Ipv4Header>()];
        let sum = Checksum::new().add_bytes(header).finish();
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
