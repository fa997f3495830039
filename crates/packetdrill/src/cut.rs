//! What a device does with a segment that is larger than the wire takes: it cuts it, and completes checksums; one that
//! arrives it has put together.

use crate::neighbour::checksum;

const TCP: u8 = 6;
const FIN_AND_PUSH: u8 = 0x09;
const CONGESTION_WINDOW_REDUCED: u8 = 0x80;

/// Where in an IP packet its TCP header and its payload begin; `None` if it is not TCP without extension headers.
fn layout(packet: &[u8]) -> Option<(usize, usize)> {
    let tcp = match packet.first()? >> 4 {
        4 if *packet.get(9)? == TCP => usize::from(packet[0] & 15) * 4,
        6 if *packet.get(6)? == TCP => 40,
        _ => return None,
    };
    let payload = tcp + usize::from(packet.get(tcp + 12)? >> 4) * 4;
    (payload >= tcp + 20 && payload <= packet.len()).then_some((tcp, payload))
}

/// What a frame says with a segment that is to arrive as several put together: `virtio_net_hdr`.
pub const VNET_LEN: usize = 10;
/// Bytes of each of them: what most scripts agree on.
const MERGED: u16 = 1000;

/// The header of a frame with this IP packet, and the packet as it is to be then: one that is larger than the wire takes says
/// how it was put together, and its checksum is left to others.
pub fn merged(mut packet: Vec<u8>, ethernet: usize, mtu: usize) -> ([u8; VNET_LEN], Vec<u8>) {
    let mut header = [0; VNET_LEN];
    if packet.len() <= mtu {
        return (header, packet);
    }
    let Some((tcp, payload)) = layout(&packet) else {
        return (header, packet);
    };
    let (needs_checksum, kind) = (1, if packet[0] >> 4 == 4 { 1 } else { 4 });
    (header[0], header[1]) = (needs_checksum, kind);
    for (at, value) in [(2, (ethernet + payload) as u16), (4, MERGED), (6, (ethernet + tcp) as u16), (8, 16)]
    {
        header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    }
    let pseudo = pseudo_header(&packet, tcp);
    let sum = checksum(&[&pseudo]).map(|byte| !byte);
    packet[tcp + 16..tcp + 18].copy_from_slice(&sum);
    (header, packet)
}

/// What TCP's checksum covers beside the segment (RFC 9293 §3.1, RFC 8200 §8.1).
fn pseudo_header(packet: &[u8], tcp: usize) -> Vec<u8> {
    let addresses = if packet[0] >> 4 == 4 { 12..20 } else { 8..40 };
    [&packet[addresses], &[0, 0], &((packet.len() - tcp) as u16).to_be_bytes(), &[0, TCP]].concat()
}

/// The packets that an IP packet is on the wire, each with at most `size` bytes of payload; 0: it goes as it is.
pub fn cut(packet: Vec<u8>, size: usize) -> Vec<Vec<u8>> {
    let Some((tcp, payload)) = layout(&packet) else {
        return vec![packet];
    };
    let (headers, data) = packet.split_at(payload);
    if size == 0 || data.len() <= size {
        return vec![completed(packet, tcp)];
    }
    let sequence = u32::from_be_bytes(headers[tcp + 4..tcp + 8].try_into().expect("4 bytes"));
    let last = data.len().div_ceil(size) - 1;
    let piece = |(i, data): (usize, &[u8])| {
        let mut piece = [headers, data].concat();
        let sequence = sequence.wrapping_add((i * size) as u32);
        piece[tcp + 4..tcp + 8].copy_from_slice(&sequence.to_be_bytes());
        // The first alone says that the window was reduced, the last alone that here is an end.
        if i != 0 {
            piece[tcp + 13] &= !CONGESTION_WINDOW_REDUCED;
        }
        if i != last {
            piece[tcp + 13] &= !FIN_AND_PUSH;
        }
        if headers[0] >> 4 == 4 {
            let id = u16::from_be_bytes([headers[4], headers[5]]).wrapping_add(i as u16);
            piece[4..6].copy_from_slice(&id.to_be_bytes());
        }
        completed(piece, tcp)
    };
    data.chunks(size).enumerate().map(piece).collect()
}

/// Lengths and checksums as the packet's bytes are.
fn completed(mut packet: Vec<u8>, tcp: usize) -> Vec<u8> {
    let len = packet.len();
    if packet[0] >> 4 == 4 {
        packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        packet[10..12].fill(0);
        let sum = checksum(&[&packet[..tcp]]);
        packet[10..12].copy_from_slice(&sum);
    } else {
        packet[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
    }
    packet[tcp + 16..tcp + 18].fill(0);
    let sum = checksum(&[&pseudo_header(&packet, tcp), &packet[tcp..]]);
    packet[tcp + 16..tcp + 18].copy_from_slice(&sum);
    packet
}

#[cfg(test)]
mod tests;
