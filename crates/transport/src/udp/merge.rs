//! UDP_GRO: datagrams of one sender that arrive in one turn lie in one record.
//!
//! Only within a turn, because until its commit nobody reads the record. As on Linux: equal lengths, but that the last may be
//! shorter, and equal ends, hop limit and class, so that what the record says is true of each. Each keeps its own bounds,
//! which the record tells by `segment`.

use crate::page::Page;
use eft_channel::socket::{DatagramHeader, Opt};

/// Datagrams of a record, as of Linux (`UDP_GRO_CNT_MAX`).
const COUNT_MAX: u32 = 64;
/// Bytes of a record's payload: what one datagram may have.
const LEN_MAX: u32 = 65507;

/// A record that was put into a receive ring in the turn that is told.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenRecord {
    turn: u64,
    /// Where it begins.
    pub at: u64,
    pub header: DatagramHeader,
    pub count: u32,
}

/// Where a datagram is put.
pub(super) struct Placed {
    pub newest: OpenRecord,
    /// Where its payload begins.
    pub payload: u64,
    /// Where the ring ends with it.
    pub end: u64,
}

impl Placed {
    /// Puts the datagram that `header` describes behind what is in the newest record, if the socket wants that and they
    /// belong together, else into a record of its own at the ring's end.
    pub fn of(
        newest: &Option<OpenRecord>,
        turn: u64,
        ring_end: u64,
        header: &DatagramHeader,
        page: &Page,
    ) -> Placed {
        let alone = OpenRecord { turn, at: ring_end, header: *header, count: 1 };
        let newest = newest.filter(|newest| newest.turn == turn && page.option(Opt::MergeReceived) != 0);
        let (newest, before) = match newest.as_ref().and_then(|newest| newest.with(header)) {
            Some(merged) => (merged, merged.header.len - header.len),
            None => (alone, 0),
        };
        Placed {
            newest,
            payload: newest.at + size_of::<DatagramHeader>() as u64 + u64::from(before),
            end: newest.at + newest.header.received_len() as u64,
        }
    }
}

impl OpenRecord {
    /// The record with one datagram more.
    fn with(&self, next: &DatagramHeader) -> Option<OpenRecord> {
        let whole = self.header;
        let segment = if self.count == 1 { whole.len } else { whole.segment.into() };
        let same =
            (whole.address, whole.port, whole.local, whole.local_port, whole.ttl, whole.tos, whole.interface)
                == (next.address, next.port, next.local, next.local_port, next.ttl, next.tos, next.interface);
        // A shorter one was the last.
        let even = whole.len == segment * self.count;
        let fits =
            (1..=segment).contains(&next.len) && whole.len + next.len <= LEN_MAX && self.count < COUNT_MAX;
        // One record has one time of arrival.
        if !(same && even && fits) || whole.stamps != next.stamps {
            return None;
        }
        let header =
            DatagramHeader { len: whole.len + next.len, segment: u16::try_from(segment).ok()?, ..whole };
        Some(OpenRecord { header, count: self.count + 1, ..*self })
    }
}

#[cfg(test)]
mod tests;
