//! The wire: packets as descriptors describe them, delayed, lost, repeated and damaged as the conditions say.

use super::{Happening, World};
use eft_base::checksum::Checksum;
use eft_base::{PacketRef, WireAddress};
use eft_harness::Arrival;
use std::time::Duration;

pub(super) const IP_HEADER: usize = 20;
const TCP_HEADER: usize = 20;

/// What the IP headers of a `Send` say.
struct Ends {
    source: WireAddress,
    destination: WireAddress,
    tos: u8,
}

/// A packet on the wire.
#[derive(Clone, Debug)]
pub struct Packet {
    pub bytes: Vec<u8>,
    pub segment_size: u16,
}

impl Packet {
    pub fn flags(&self) -> u8 {
        self.bytes[IP_HEADER + 13]
    }
    pub fn seq(&self) -> u32 {
        be32(&self.bytes[IP_HEADER + 4..])
    }
    pub fn ack(&self) -> u32 {
        be32(&self.bytes[IP_HEADER + 8..])
    }
    pub fn ecn(&self) -> u8 {
        self.bytes[1] & 3
    }
    pub fn window(&self) -> u16 {
        u16::from_be_bytes([self.bytes[IP_HEADER + 14], self.bytes[IP_HEADER + 15]])
    }
    pub fn header_len(&self) -> usize {
        (self.bytes[IP_HEADER + 12] >> 4) as usize * 4
    }
    pub fn payload(&self) -> &[u8] {
        &self.bytes[IP_HEADER + self.header_len()..]
    }
}

fn be32(b: &[u8]) -> u32 {
    u32::from_be_bytes([b[0], b[1], b[2], b[3]])
}

impl World {
    /// Builds the packet that a descriptor describes and puts it on the wire.
    pub(super) fn transmit(&mut self, side: usize, descriptor: PacketRef) {
        let s = &mut self.sides[side];
        let (d, payload) = s.described(descriptor);
        let header = &d.header[..d.header_len as usize];
        s.largest = s.largest.max(payload.len());
        s.sends += 1;
        let size = d.segment_size as usize;
        let wire_len = IP_HEADER + header.len() + if size == 0 { payload.len() } else { size };
        if self.lenient && wire_len > self.conditions.mtu as usize {
            return;
        }
        if size == 0 {
            assert!(
                IP_HEADER + header.len() + payload.len() <= self.conditions.mtu as usize,
                "seed {}: packet larger than the MTU",
                self.seed
            );
        } else {
            assert!(IP_HEADER + header.len() + size <= self.conditions.mtu as usize);
            assert!(payload.len() <= self.conditions.segment_max as usize);
        }
        let mut header = header.to_vec();
        if self.conditions.strip_sack {
            strip(&mut header, 4);
        }
        if self.conditions.strip_timestamps {
            strip(&mut header, 8);
        }
        let ends = Ends { source: d.source, destination: d.destination, tos: d.tos };
        if size != 0 && self.conditions.split {
            for (n, piece) in payload.chunks(size).enumerate() {
                let last = (n + 1) * size >= payload.len();
                let mut h = header.clone();
                let seq = be32(&h[4..]).wrapping_add((n * size) as u32);
                h[4..8].copy_from_slice(&seq.to_be_bytes());
                if !last {
                    h[13] &= !(1 | 8);
                }
                self.wire(side, &ends, &h, piece, 0);
            }
        } else {
            self.wire(side, &ends, &header, &payload, d.segment_size);
        }
    }

    fn wire(
        &mut self,
        side: usize,
        &Ends { source, destination, tos }: &Ends,
        header: &[u8],
        payload: &[u8],
        segment_size: u16,
    ) {
        let mut bytes = vec![0u8; IP_HEADER];
        bytes[0] = 0x45;
        bytes[1] = tos;
        let total = IP_HEADER + header.len() + payload.len();
        bytes[2..4].copy_from_slice(&(total as u16).to_be_bytes());
        bytes[9] = 6;
        bytes[12..16].copy_from_slice(&source.0[12..]);
        bytes[16..20].copy_from_slice(&destination.0[12..]);
        bytes.extend_from_slice(header);
        bytes.extend_from_slice(payload);
        let at = IP_HEADER + 16;
        bytes[at..at + 2].fill(0);
        let sum = Checksum::new()
            .add_pseudo_header(source.into(), destination.into(), 6, (header.len() + payload.len()) as u32)
            .add_bytes(&bytes[IP_HEADER..])
            .finish();
        bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        let packet = Packet { bytes, segment_size };
        if let Some(capture) = &mut self.capture {
            capture.push((self.now, side, packet.clone()));
        }
        self.forward(side, packet);
    }

    fn forward(&mut self, side: usize, packet: Packet) {
        let c = self.conditions;
        if self.blackhole[1 - side] {
            return;
        }
        let copies = 1 + self.random.chance(c.duplicate) as usize;
        for _ in 0..copies {
            if self.random.chance(c.loss) {
                continue;
            }
            let mut packet = packet.clone();
            if packet.ecn() != 0 && self.random.chance(c.mark) {
                packet.bytes[1] |= 3;
            }
            if self.random.chance(c.corrupt) {
                let at = IP_HEADER + self.random.below((packet.bytes.len() - IP_HEADER) as u64) as usize;
                packet.bytes[at] ^= 1 << self.random.below(8);
            }
            let mut delay = Duration::from_micros(c.delay_us + self.random.below(c.jitter_us + 1));
            if c.rate > 0 {
                let s = &mut self.sides[side];
                let start = s.link_free_at.max(self.now);
                let backlog = start.saturating_since(self.now).as_micros() as u64 * c.rate;
                if backlog > c.queue {
                    continue;
                }
                let time = Duration::from_nanos(packet.bytes.len() as u64 * 1000 / c.rate);
                s.link_free_at = start + time;
                delay += s.link_free_at.saturating_since(self.now);
            }
            self.schedule(delay, Happening::Packet(1 - side, packet));
        }
    }

    /// Hands a packet to an engine as ip would.
    pub fn deliver(&mut self, side: usize, packet: &Packet) {
        let arrival = Arrival {
            header_len: IP_HEADER as u16,
            checksum_ok: !self.conditions.checksum,
            segment_size: packet.segment_size,
        };
        self.at(side).deliver(&packet.bytes, arrival);
    }
}

/// Turns an option into NOPs.
fn strip(header: &mut [u8], kind: u8) {
    let mut at = TCP_HEADER;
    while at < header.len() {
        match header[at] {
            0 => break,
            1 => at += 1,
            k => {
                let len = header[at + 1] as usize;
                if k == kind {
                    header[at..at + len].fill(1);
                }
                at += len;
            }
        }
    }
}
