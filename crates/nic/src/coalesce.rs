//! Receive coalescing: TCP segments of one connection that arrive one behind the other go to ip as one.
//!
//! The rules are those of Linux (`tcp_gro_receive`, `inet_gro_receive`): what comes out could be cut into what came in again. The
//! headers agree but for lengths, sequence numbers, checksums and IPv4's identification; segments are of one size, the last may
//! be shorter; nothing follows one with PSH. Checksums that the device has not verified are verified here, since that of the whole
//! cannot be.

mod headers;

use alloc::vec;
use alloc::vec::Vec;
use eft_base::PacketRef;
use eft_channel::Pool;
use eft_component::ReceivedFrame;
pub(crate) use headers::finish;
use headers::{Headers, Kind, read, sums_up};

/// Connections whose segments are gathered at a time.
const OPEN_MAX: usize = 8;
/// Longer ones are not copied: that costs more than the message that it saves.
const COPIED_MAX: usize = 9000;

/// A frame in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// All of the slot.
    pub slot: PacketRef,
    pub frame: ReceivedFrame,
}

impl Arrived {
    /// The bytes of the frame.
    pub fn packet(&self) -> PacketRef {
        PacketRef { len: self.frame.len.min(self.slot.len), ..self.slot }
    }
}

/// Segments that are one.
struct Aggregate {
    arrived: Arrived,
    /// Of the first segment.
    headers: Headers,
    /// Bytes of payload, and of each segment but the last.
    payload: usize,
    size: usize,
    frames: usize,
    pushed: bool,
}

impl Aggregate {
    fn new(arrived: Arrived, headers: Headers) -> Aggregate {
        let size = match arrived.frame.segment_size {
            0 => headers.payload,
            size => size.into(),
        };
        Aggregate { arrived, payload: headers.payload, size, frames: 1, pushed: headers.pushed, headers }
    }

    fn segments(&self) -> usize {
        self.payload.div_ceil(self.size.max(1))
    }

    /// Whether `next` continues it.
    fn is_continued_by(&self, next: &Arrived, headers: &Headers) -> bool {
        let fits = match next.frame.segment_size {
            0 => headers.payload <= self.size,
            size => usize::from(size) == self.size,
        };
        let len = self.headers.len + self.payload + headers.payload;
        fits && !self.pushed
            && self.payload.is_multiple_of(self.size.max(1))
            && len <= headers::FRAME_LEN_MAX
            && len <= self.arrived.slot.len as usize
            && headers.payload <= COPIED_MAX
            && self.headers.is_continued_by(headers, self.payload, self.segments())
    }

    /// Copies the payload of `next`. False, and it is as long as before, if that cannot be read, or a checksum is wrong.
    fn take(&mut self, pool: &Pool, next: &Arrived, headers: &Headers, scratch: &mut [u8]) -> bool {
        if !self.arrived.frame.checksum_ok && !sums_up(pool, &self.arrived, &self.headers, scratch) {
            return false;
        }
        self.arrived.frame.checksum_ok = true;
        if !next.frame.checksum_ok && !sums_up(pool, next, headers, scratch) {
            return false;
        }
        let payload = next.packet().skip(headers.len as u32);
        let end = PacketRef {
            len: payload.len,
            ..self.arrived.slot.skip((self.headers.len + self.payload) as u32)
        };
        let view = pool.view();
        let (Some(from), Some(to)) = (view.locate(payload), view.locate(end)) else { return false };
        if view.segment.copy_to(from, &view.segment, to, headers.payload).is_err() {
            return false;
        }
        self.payload += headers.payload;
        self.frames += 1;
        self.pushed = headers.pushed;
        true
    }

    /// The frame of several that it is so far, but for its headers.
    fn joined(&self) -> Joined {
        let mut whole = self.arrived;
        whole.frame.len = (self.headers.len + self.payload) as u32;
        whole.frame.segment_size = self.size as u16;
        Joined { whole, pushed: self.pushed }
    }

    /// The frame that it has become.
    fn close(self, pool: &Pool) -> Arrived {
        if self.frames == 1 {
            return self.arrived;
        }
        let Joined { whole, pushed } = self.joined();
        finish(pool, whole, pushed);
        whole
    }
}

/// Several frames that are one, of which the headers may be those of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    pub whole: Arrived,
    /// One of them had PSH.
    pub pushed: bool,
}

/// What becomes of a frame.
pub(crate) enum Fate {
    /// It is part of another one now; its slot is no longer needed.
    Merged(Joined),
    /// It waits for what follows it.
    Kept,
    /// It goes to ip behind those that [`Coalescer::next`] gives.
    Passes,
}

/// The aggregates that are open, in the order in which their first segments arrived. They are closed at the end of a poll, so nothing
/// waits for a segment that is not there.
pub(crate) struct Coalescer {
    open: Vec<Aggregate>,
    /// Those at the front that are to leave.
    closed: usize,
    scratch: Vec<u8>,
}

impl Coalescer {
    pub fn new() -> Coalescer {
        Coalescer {
            open: Vec::with_capacity(OPEN_MAX),
            closed: 0,
            scratch: vec![0; COPIED_MAX + headers::LEN_MAX],
        }
    }

    /// Takes the frame that arrived last.
    pub fn put(&mut self, pool: &Pool, arrived: Arrived) -> Fate {
        let headers = match read(pool, &arrived) {
            Kind::Segment(headers) => headers,
            Kind::OfConnection(headers) => {
                self.close_that_of(&headers);
                return Fate::Passes;
            }
            Kind::Other => {
                self.close_all();
                return Fate::Passes;
            }
        };
        let place = self.open.iter().position(|aggregate| aggregate.headers.is_of_connection(&headers));
        if let Some(place) = place {
            let aggregate = &mut self.open[place];
            if aggregate.is_continued_by(&arrived, &headers)
                && aggregate.take(pool, &arrived, &headers, &mut self.scratch)
            {
                return Fate::Merged(aggregate.joined());
            }
            self.close(place);
        } else if self.open.len() == OPEN_MAX {
            self.close(0);
        }
        self.open.push(Aggregate::new(arrived, headers));
        Fate::Kept
    }

    pub fn close_all(&mut self) {
        self.closed = self.open.len();
    }

    fn close_that_of(&mut self, headers: &Headers) {
        if let Some(place) =
            self.open.iter().position(|aggregate| aggregate.headers.is_of_connection(headers))
        {
            self.close(place);
        }
    }

    fn close(&mut self, place: usize) {
        self.open[..=place].rotate_right(1);
        self.closed = 1;
    }

    /// The next that is closed.
    pub fn next(&mut self, pool: &Pool) -> Option<Arrived> {
        self.closed = self.closed.checked_sub(1)?;
        Some(self.open.remove(0).close(pool))
    }
}

#[cfg(test)]
pub(crate) mod tests;
