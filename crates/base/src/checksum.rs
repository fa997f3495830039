//! The Internet checksum (RFC 1071).

use crate::address::with_zone;
use core::net::IpAddr;

/// A running ones'-complement sum. Pieces may be added in any order as long as each but the last
/// has an even length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum(u64);

impl Checksum {
    pub fn new() -> Self {
        Checksum(0)
    }

    pub fn add_u16(mut self, v: u16) -> Self {
        self.0 += v as u64;
        self
    }

    pub fn add_u32(self, v: u32) -> Self {
        self.add_u16((v >> 16) as u16).add_u16(v as u16)
    }

    /// Adds bytes; an odd last byte counts as the high half of a word.
    pub fn add_bytes(mut self, bytes: &[u8]) -> Self {
        // Eight bytes at a time in native order, folded and swapped once (RFC 1071 §2, (B)).
        let mut sum: u64 = 0;
        let mut chunks = bytes.chunks_exact(8);
        for c in &mut chunks {
            let v = u64::from_ne_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]);
            let (s, carry) = sum.overflowing_add(v);
            sum = s + carry as u64;
        }
        let mut last = [0u8; 8];
        let rest = chunks.remainder();
        last[..rest.len()].copy_from_slice(rest);
        let (s, carry) = sum.overflowing_add(u64::from_ne_bytes(last));
        sum = s + carry as u64;
        let folded = fold(sum);
        self.0 += u16::from_be_bytes(folded.to_ne_bytes()) as u64;
        self
    }

    /// Adds the pseudo-header of RFC 793 §3.1 or RFC 8200 §8.1. Zones are not on the wire, so they do not count.
    pub fn add_pseudo_header(self, source: IpAddr, destination: IpAddr, protocol: u8, length: u32) -> Self {
        let sum = match (source, destination) {
            (IpAddr::V4(s), IpAddr::V4(d)) => self.add_bytes(&s.octets()).add_bytes(&d.octets()),
            (IpAddr::V6(s), IpAddr::V6(d)) => {
                self.add_bytes(&with_zone(s, 0).octets()).add_bytes(&with_zone(d, 0).octets())
            }
            _ => self,
        };
        sum.add_u16(protocol as u16).add_u32(length)
    }

    /// The sum folded to 16 bits, not complemented: what checksum offload wants in the field.
    pub fn partial(self) -> u16 {
        fold(self.0)
    }

    /// The checksum to write into a header; 0 when verifying a correct packet.
    pub fn finish(self) -> u16 {
        !fold(self.0)
    }
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests;
