//! Bytes that references point to: in other components' pools, or in ip's own.

use crate::engine::Ip;
use core::net::IpAddr;
use eft_base::PacketRef;
use eft_base::checksum::Checksum;
use eft_channel::{Memory, Segment};

/// A checksum over pieces of any length. RFC 1071 §2: a piece that starts at an odd offset counts
/// with its bytes swapped.
#[derive(Default)]
pub(crate) struct PieceSum {
    sum: Checksum,
    odd: bool,
}

impl PieceSum {
    /// Before anything else is added.
    pub fn add_pseudo_header(&mut self, source: IpAddr, destination: IpAddr, protocol: u8, len: u32) {
        self.sum = self.sum.add_pseudo_header(source, destination, protocol, len);
    }

    pub fn add(&mut self, bytes: &[u8]) {
        let piece = Checksum::new().add_bytes(bytes).partial();
        let piece = if self.odd { piece.swap_bytes() } else { piece };
        self.sum = self.sum.add_u16(piece);
        self.odd ^= bytes.len() % 2 == 1;
    }

    pub fn finish(self) -> u16 {
        self.sum.finish()
    }
}

impl Ip {
    /// Segment and offset of the referenced bytes, wherever they lie.
    pub(crate) fn resolve<'a>(&'a self, memory: &'a Memory, r: PacketRef) -> Option<(&'a Segment, usize)> {
        if r.pool == self.packets.id() {
            let view = self.packets.view();
            return Some((&view.segment, view.locate(r)?));
        }
        memory.resolve(r)
    }

    /// Copies the first `to.len()` referenced bytes out.
    pub(crate) fn read(&self, memory: &Memory, r: PacketRef, to: &mut [u8]) -> Option<()> {
        if (r.len as usize) < to.len() {
            return None;
        }
        let (segment, offset) = self.resolve(memory, r)?;
        segment.read(offset, to).ok()
    }

    /// Copies as many of the referenced bytes out as fit into `to`.
    pub(crate) fn read_head<'b>(&self, memory: &Memory, r: PacketRef, to: &'b mut [u8]) -> Option<&'b [u8]> {
        let n = to.len().min(r.len as usize);
        self.read(memory, r, &mut to[..n])?;
        Some(&to[..n])
    }

    /// Adds the referenced bytes to a checksum.
    pub(crate) fn sum(&self, memory: &Memory, r: PacketRef, sum: &mut PieceSum) -> Option<()> {
        let (segment, offset) = self.resolve(memory, r)?;
        let mut chunk = [0u8; 2048];
        let mut done = 0;
        while done < r.len as usize {
            let n = chunk.len().min(r.len as usize - done);
            segment.read(offset + done, &mut chunk[..n]).ok()?;
            sum.add(&chunk[..n]);
            done += n;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
