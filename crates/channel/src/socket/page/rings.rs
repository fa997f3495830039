//! Bytes in the rings beside a page.

use super::SocketPage;
use crate::segment::{Copied, Margins, Segment};
use crate::socket::SOCKET_HEADER_LEN;
use core::ops::Range;
use eft_base::{PacketRef, PoolId, protection};

/// Where bytes of a ring lie in the arena, and how many.
type Piece = (usize, usize);

/// Where `len` bytes lie that begin at `offset` of a stream, whose ring begins at `start`.
fn pieces(start: usize, ring_len: usize, offset: u64, len: usize) -> [Piece; 2] {
    let pieces = cut(start, ring_len, offset, len);
    assert!(
        !protection::is_on() || are_right(pieces, start, ring_len, offset, len),
        "bytes of a ring were looked for elsewhere"
    );
    pieces
}

/// Not inlined, so that nothing of it is shared with what looks whether it is right.
#[inline(never)]
fn cut(start: usize, ring_len: usize, offset: u64, len: usize) -> [Piece; 2] {
    let at = (offset % ring_len as u64) as usize;
    let first = len.min(ring_len - at);
    [(start + at, first), (start, len - first)]
}

/// Whether the pieces are those bytes: by other instructions than those that cut them, of which a damaged one would have wrong bytes
/// sent, under a checksum that is made of them.
fn are_right([(a, n), (b, m)]: [Piece; 2], start: usize, ring_len: usize, offset: u64, len: usize) -> bool {
    let at = a.wrapping_sub(start);
    if at >= ring_len || !offset.wrapping_sub(at as u64).is_multiple_of(ring_len as u64) {
        return false;
    }
    let behind = ring_len - at;
    n <= behind && n.checked_add(m) == Some(len) && b == start && (m == 0 || n == behind)
}

impl SocketPage {
    pub(super) fn send_pieces(&self, offset: u64, len: usize) -> [Piece; 2] {
        self.check_place();
        let ring = self.send_len();
        assert!(len <= ring);
        pieces(SOCKET_HEADER_LEN, ring, offset, len)
    }

    fn receive_pieces(&self, offset: u64, len: usize) -> [Piece; 2] {
        self.check_place();
        assert!(len <= self.receive_len);
        pieces(SOCKET_HEADER_LEN + self.send_len, self.receive_len, offset, len)
    }

    /// Application: puts bytes into the send ring at `offset`, unpublished. The caller keeps within
    /// the free space.
    pub fn write_send(&self, offset: u64, bytes: &[u8]) {
        let [(a, n), (b, m)] = self.send_pieces(offset, bytes.len());
        self.write_bytes(a, &bytes[..n]);
        self.write_bytes(b, &bytes[n..n + m]);
    }

    /// Transport: copies bytes out of the send ring.
    pub fn read_send(&self, offset: u64, to: &mut [u8]) {
        let [(a, n), (b, m)] = self.send_pieces(offset, to.len());
        self.read_bytes(a, &mut to[..n]);
        self.read_bytes(b, &mut to[n..n + m]);
    }

    /// Transport: references to bytes in the send ring (two if they wrap; the second may be empty).
    pub fn send_refs(&self, pool: PoolId, slot: u32, offset: u64, len: usize) -> [PacketRef; 2] {
        self.send_pieces(offset, len).map(|(at, n)| PacketRef {
            pool,
            generation: 0,
            slot,
            offset: at as u32,
            len: n as u32,
        })
    }

    /// Transport: copies `len` bytes at `from_offset` of `from` into the receive ring at `offset`,
    /// unpublished. False if the source range is bad, or the bytes do not get there as they are.
    pub fn fill_receive(&self, offset: u64, from: &Segment, from_offset: usize, len: usize) -> bool {
        self.fill_receive_faithfully(offset, from, from_offset, len) != Copied::Wrongly
    }

    /// The same, and says whether something had to be copied again.
    pub fn fill_receive_faithfully(
        &self,
        offset: u64,
        from: &Segment,
        from_offset: usize,
        len: usize,
    ) -> Copied {
        let [(a, n), (b, m)] = self.receive_pieces(offset, len);
        let first = SOCKET_HEADER_LEN + self.send_len;
        let copy = |from_offset, to: usize, len| {
            // Nobody else writes into this ring.
            let margins = Margins { before: to - first, behind: first + self.receive_len - to - len };
            from.copy_faithfully_to(from_offset, &self.segment, self.base + to, len, margins)
                .unwrap_or(Copied::Wrongly)
        };
        let copied = match (copy(from_offset, a, n), copy(from_offset + n, b, m)) {
            (Copied::Wrongly, _) | (_, Copied::Wrongly) => return Copied::Wrongly,
            (Copied::Well, Copied::Well) => Copied::Well,
            _ => Copied::Again,
        };
        if self.observer.is_some() {
            self.tell_copied(from, from_offset, a, n);
            self.tell_copied(from, from_offset + n, b, m);
        }
        copied
    }

    /// As [`SocketPage::tell_wrote`], but reads the bytes at their source: the application may have changed them in the
    /// ring by now.
    #[cold]
    fn tell_copied(&self, from: &Segment, from_offset: usize, offset: usize, len: usize) {
        if let Some(bytes) = bytes_for_observer(from, from_offset, len) {
            self.tell_wrote(offset, &bytes);
        }
    }

    /// Transport: as [`SocketPage::fill_receive`], from plain bytes.
    pub fn write_receive(&self, offset: u64, bytes: &[u8]) {
        let [(a, n), (b, m)] = self.receive_pieces(offset, bytes.len());
        self.write_bytes(a, &bytes[..n]);
        self.write_bytes(b, &bytes[n..n + m]);
    }

    /// Application: copies bytes out of the receive ring.
    pub fn read_receive(&self, offset: u64, to: &mut [u8]) {
        let [(a, n), (b, m)] = self.receive_pieces(offset, to.len());
        self.read_bytes(a, &mut to[..n]);
        self.read_bytes(b, &mut to[n..n + m]);
    }

    /// Where in the arena bytes wait in its rings, by the published positions: what the program has put in and the transport has not
    /// released, and what the transport has put in and the program has not taken.
    pub fn waiting(&self) -> impl Iterator<Item = Range<usize>> {
        // Read once: the program may write another length meanwhile.
        let (ring, from) = (self.send_len(), self.send_released());
        let sent = (self.send_end().saturating_sub(from) as usize).min(ring);
        let send = pieces(SOCKET_HEADER_LEN, ring, from, sent);
        let receive = self.receive_pieces(self.receive_taken(), self.receivable());
        let base = self.base;
        let all = send.into_iter().chain(receive);
        all.filter(|(_, len)| *len > 0).map(move |(at, len)| base + at..base + at + len)
    }

    /// Application: bytes (or records) ready to be taken, by the published positions. Never more
    /// than the ring.
    pub fn receivable(&self) -> usize {
        (self.receive_end().saturating_sub(self.receive_taken()) as usize).min(self.receive_len)
    }
}

/// A function of its own, by whose name a profiler leaves it out: without an observer nobody reads these bytes.
#[inline(never)]
fn bytes_for_observer(from: &Segment, at: usize, len: usize) -> Option<alloc::vec::Vec<u8>> {
    let mut bytes = alloc::vec![0; len];
    from.read(at, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: usize = 1 << 18;

    #[test]
    fn pieces_are_right_wherever_they_begin() {
        for start in [0, 4096] {
            for offset in [0, 1, RING as u64 - 1, RING as u64, 7 * RING as u64 + 99, u64::MAX - RING as u64] {
                for len in [0, 1, 1448, RING - 1, RING] {
                    let [(a, n), (b, m)] = pieces(start, RING, offset, len);
                    assert_eq!((n + m, b), (len, start));
                    assert_eq!(((a - start) as u64, n), (offset % RING as u64, len.min(start + RING - a)));
                }
            }
        }
    }

    #[test]
    fn every_changed_bit_of_a_piece_is_found() {
        let (start, offset, len) = (4096, 5 * RING as u64 - 1000, 1448);
        let right = cut(start, RING, offset, len);
        assert_eq!(right[1].1, 448, "both are there");
        for bit in 0..usize::BITS {
            let flip = 1 << bit;
            let [(a, n), (b, m)] = right;
            for wrong in [
                [(a ^ flip, n), (b, m)],
                [(a, n ^ flip), (b, m)],
                [(a, n), (b ^ flip, m)],
                [(a, n), (b, m ^ flip)],
            ] {
                assert!(!are_right(wrong, start, RING, offset, len), "{wrong:?}");
            }
        }
    }
}
