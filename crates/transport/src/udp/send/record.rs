//! Records of a send ring, and the datagrams that each is.

use crate::page::Page;
use eft_channel::socket::{DatagramHeader, datagram_record_len};
use zerocopy::{FromZeros, IntoBytes};

pub(super) const RECORD_HEADER: u64 = size_of::<DatagramHeader>() as u64;

/// The first record of a send ring that is not sent yet.
pub(super) enum Next {
    Nothing,
    /// The page holds impossible words.
    Hostile,
    Datagram(DatagramHeader),
}

/// Which bytes of a record's payload go as one packet.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub at: u32,
    pub len: u32,
    /// Bytes of each datagram but the last; 0: it is one datagram.
    pub segment: u16,
}

impl Piece {
    pub fn datagrams(self) -> u32 {
        match self.segment {
            0 => 1,
            segment => self.len.div_ceil(segment.into()),
        }
    }
}

/// The datagrams of a record that begin at `at` of its payload and go as one packet: one, or as many as have no more than
/// `segment_max` bytes.
pub(super) fn next_piece(header: &DatagramHeader, at: u32, segment_max: u32) -> Piece {
    let left = header.len.saturating_sub(at);
    let size = u32::from(header.segment);
    if size == 0 || left <= size {
        return Piece { at, len: left, segment: 0 };
    }
    match segment_max / size {
        0 | 1 => Piece { at, len: size, segment: 0 },
        most => Piece { at, len: left.min(most * size), segment: header.segment },
    }
}

/// Copies the record header at `at` out and checks that the record lies in what was published.
pub(super) fn next_record(page: &Page, at: u64) -> Next {
    let end = page.send_end();
    if end == at {
        return Next::Nothing;
    }
    let ring = page.send_len() as u64;
    if end < at || end - at > ring || end - at < RECORD_HEADER || !at.is_multiple_of(8) {
        return Next::Hostile;
    }
    let mut header = DatagramHeader::new_zeroed();
    page.read_send(at, header.as_mut_bytes());
    if header.len as u64 > ring || datagram_record_len(header.len as usize) as u64 > end - at {
        return Next::Hostile;
    }
    Next::Datagram(header)
}
