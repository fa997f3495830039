//! What of a frame on the wire the modelled world needs to know.

use crate::device::WireFrame;

fn at(frame: &WireFrame, index: usize) -> u8 {
    frame.bytes.get(index).copied().unwrap_or(0)
}

/// Where TCP begins in an IPv4 frame.
pub fn tcp_at(frame: &WireFrame) -> usize {
    14 + usize::from(at(frame, 14) & 15) * 4
}

/// Payload of an IPv4 frame with TCP.
pub fn payload(frame: &WireFrame) -> u64 {
    let tcp_at = tcp_at(frame);
    let header = usize::from(at(frame, tcp_at + 12) >> 4) * 4;
    frame.bytes.len().saturating_sub(tcp_at + header) as u64
}

pub fn flags(frame: &WireFrame) -> u8 {
    at(frame, tcp_at(frame) + 13)
}

pub fn source_port(frame: &WireFrame) -> u16 {
    let tcp_at = tcp_at(frame);
    u16::from_be_bytes([at(frame, tcp_at), at(frame, tcp_at + 1)])
}
