//! Packets of the scripted peer: made and read.

use crate::program::{ACK, Complaint, Offer};
use eft_base::checksum::Checksum;
use std::net::IpAddr;

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;

/// The two ends, as a packet has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub source_port: u16,
    pub destination_port: u16,
}

/// A TCP segment as it is sent or as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    pub sequence: u32,
    pub acknowledgment: u32,
    pub flags: u8,
    pub window: u16,
    pub options: Vec<u8>,
    pub data: Vec<u8>,
}

/// A packet that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    Tcp(Ends, Tcp),
    Udp(Ends, Vec<u8>),
    /// An ICMP error: type, code, and the ports of the quoted packet.
    Icmp(u8, u8),
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    }
}

/// An IP packet with this payload.
fn ip(source: IpAddr, destination: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = if source.is_ipv4() {
        let len = ((20 + payload.len()) as u16).to_be_bytes();
        vec![0x45, 0, len[0], len[1], 0, 0, 0x40, 0, 64, protocol, 0, 0]
    } else {
        let len = (payload.len() as u16).to_be_bytes();
        vec![0x60, 0, 0, 0, len[0], len[1], protocol, 64]
    };
    packet.extend(octets(source));
    packet.extend(octets(destination));
    if source.is_ipv4() {
        let sum = Checksum::new().add_bytes(&packet).finish();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    packet.extend_from_slice(payload);
    packet
}

fn sealed(ends: Ends, protocol: u8, mut payload: Vec<u8>, at: usize, corrupt: bool) -> Vec<u8> {
    let sum = Checksum::new()
        .add_pseudo_header(ends.source, ends.destination, protocol, payload.len() as u32)
        .add_bytes(&payload)
        .finish();
    let sum = if corrupt { sum ^ 0x1111 } else { sum };
    payload[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    ip(ends.source, ends.destination, protocol, &payload)
}

pub fn tcp(ends: Ends, segment: &Tcp, corrupt: bool) -> Vec<u8> {
    let mut payload = Vec::new();
    payload.extend(ends.source_port.to_be_bytes());
    payload.extend(ends.destination_port.to_be_bytes());
    payload.extend(segment.sequence.to_be_bytes());
    payload.extend(segment.acknowledgment.to_be_bytes());
    payload.extend([((20 + segment.options.len()) / 4 * 16) as u8, segment.flags]);
    payload.extend(segment.window.to_be_bytes());
    payload.extend([0; 4]);
    payload.extend(&segment.options);
    payload.extend(&segment.data);
    sealed(ends, TCP, payload, 16, corrupt)
}

pub fn udp(ends: Ends, data: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    payload.extend(ends.source_port.to_be_bytes());
    payload.extend(ends.destination_port.to_be_bytes());
    payload.extend(((8 + data.len()) as u16).to_be_bytes());
    payload.extend([0; 2]);
    payload.extend(data);
    sealed(ends, UDP, payload, 6, false)
}

/// An ICMP error about a packet, from the packet's destination.
pub fn complaint(what: Complaint, about: &[u8], source: IpAddr, destination: IpAddr) -> Vec<u8> {
    let v6 = source.is_ipv6();
    let (kind, code, mtu) = match (what, v6) {
        (Complaint::NetworkUnreachable, false) => (3, 0, 0),
        (Complaint::HostUnreachable, false) => (3, 1, 0),
        (Complaint::ProtocolUnreachable, false) => (3, 2, 0),
        (Complaint::PortUnreachable, false) => (3, 3, 0),
        (Complaint::Prohibited, false) => (3, 13, 0),
        (Complaint::TimeExceeded, false) => (11, 0, 0),
        (Complaint::TooBig { mtu }, false) => (3, 4, mtu),
        (Complaint::NetworkUnreachable, true) => (1, 0, 0),
        (Complaint::HostUnreachable, true) => (1, 3, 0),
        (Complaint::ProtocolUnreachable, true) => (4, 1, 0),
        (Complaint::PortUnreachable, true) => (1, 4, 0),
        (Complaint::Prohibited, true) => (1, 1, 0),
        (Complaint::TimeExceeded, true) => (3, 0, 0),
        (Complaint::TooBig { mtu }, true) => (2, 0, mtu),
    };
    let mtu = mtu.to_be_bytes();
    let mut message = vec![kind, code, 0, 0, 0, 0, mtu[0], mtu[1]];
    message.extend(&about[..about.len().min(if v6 { 1200 } else { 548 })]);
    let sum = if v6 {
        Checksum::new().add_pseudo_header(source, destination, 58, message.len() as u32)
    } else {
        Checksum::new()
    };
    let sum = sum.add_bytes(&message).finish();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    ip(source, destination, if v6 { 58 } else { 1 }, &message)
}

/// The options of a SYN, padded to whole words.
pub fn options(offer: &Offer, time: Option<(u32, u32)>) -> Vec<u8> {
    let mut options = vec![2, 4];
    options.extend(offer.mss.to_be_bytes());
    if offer.sack {
        options.extend([4, 2, 1, 1]);
    }
    if let Some(scale) = offer.scale {
        options.extend([3, 3, scale, 1]);
    }
    if let Some(time) = time {
        options.extend(timestamp(time));
    }
    options
}

/// The option of timestamps (RFC 7323 §3.2) with its two words, after two of padding.
pub fn timestamp((own, echo): (u32, u32)) -> Vec<u8> {
    [&[1, 1, 8, 10][..], &own.to_be_bytes(), &echo.to_be_bytes()].concat()
}

/// The options that came, by kind.
pub fn each_option(mut options: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut found = Vec::new();
    while let Some(&kind) = options.first() {
        match kind {
            0 => break,
            1 => options = &options[1..],
            _ => {
                let len = options.get(1).map_or(0, |len| usize::from(*len));
                let Some(body) = options.get(2..len) else { break };
                found.push((kind, body.to_vec()));
                options = &options[len..];
            }
        }
    }
    found
}

/// Reads a packet; `None` if it is none of those kinds.
pub fn parse(packet: &[u8]) -> Option<Packet> {
    let (source, destination, protocol, payload): (IpAddr, IpAddr, u8, &[u8]) = match packet.first()? >> 4 {
        4 => {
            let addresses: [u8; 8] = packet.get(12..20)?.try_into().ok()?;
            let [source, destination] =
                [0, 4].map(|at| IpAddr::from(<[u8; 4]>::try_from(&addresses[at..at + 4]).expect("4 bytes")));
            (source, destination, packet[9], packet.get(usize::from(packet[0] & 15) * 4..)?)
        }
        6 => {
            let addresses: [u8; 32] = packet.get(8..40)?.try_into().ok()?;
            let [source, destination] = [0, 16]
                .map(|at| IpAddr::from(<[u8; 16]>::try_from(&addresses[at..at + 16]).expect("16 bytes")));
            (source, destination, packet[6], packet.get(40..)?)
        }
        _ => return None,
    };
    let word = |at: usize| Some(u16::from_be_bytes(payload.get(at..at + 2)?.try_into().ok()?));
    let long = |at: usize| Some(u32::from_be_bytes(payload.get(at..at + 4)?.try_into().ok()?));
    if matches!(protocol, 1 | 58) {
        return Some(Packet::Icmp(*payload.first()?, *payload.get(1)?));
    }
    let ends = Ends { source, destination, source_port: word(0)?, destination_port: word(2)? };
    match protocol {
        TCP => {
            let header = usize::from(payload.get(12)? >> 4) * 4;
            let segment = Tcp {
                sequence: long(4)?,
                acknowledgment: long(8)?,
                flags: payload[13],
                window: word(14)?,
                options: payload.get(20..header)?.to_vec(),
                data: payload.get(header..)?.to_vec(),
            };
            Some(Packet::Tcp(ends, segment))
        }
        UDP => Some(Packet::Udp(ends, payload.get(8..)?.to_vec())),
        _ => None,
    }
}

impl Tcp {
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The acknowledgment number, if it is one.
    pub fn acknowledged(&self) -> Option<u32> {
        self.has(ACK).then_some(self.acknowledgment)
    }
}

#[cfg(test)]
mod tests;
