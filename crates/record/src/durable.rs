//! A server's durable memory, as it is recorded.

use crate::recording::Image;
use eft_channel::Segment;
use serde_bytes::ByteBuf;
use std::ops::Range;

/// Unit in which an arena is recorded: pages of zeroes are left out.
const PAGE: usize = 4096;

/// Names the ranges of a memory in which anything was ever written.
type Written = Box<dyn Fn(&mut dyn FnMut(Range<usize>))>;

/// A server's arena, and what in it was ever written: to read the rest would make memory of it.
pub struct Durable {
    segment: Segment,
    written: Written,
}

impl Durable {
    /// `written` is also asked in the handler of a fatal signal, so it must not allocate.
    pub fn new(segment: Segment, written: impl Fn(&mut dyn FnMut(Range<usize>)) + 'static) -> Durable {
        Durable { segment, written: Box::new(written) }
    }

    /// One that is read as a whole.
    pub fn whole(segment: Segment) -> Durable {
        let all = 0..segment.len();
        Durable::new(segment, move |range| range(all.clone()))
    }

    /// The pages that are not empty, with their offsets.
    pub(crate) fn each_page(&self, heed: &mut dyn FnMut(usize, &[u8])) {
        let mut room = [0; PAGE];
        (self.written)(&mut |range| {
            for at in (range.start / PAGE * PAGE..range.end).step_by(PAGE) {
                let page = &mut room[..PAGE.min(self.segment.len().saturating_sub(at))];
                if self.segment.read(at, page).is_ok() && page.iter().any(|b| *b != 0) {
                    heed(at, page);
                }
            }
        });
    }

    /// Bytes of all of it.
    pub(crate) fn len(&self) -> usize {
        self.segment.len()
    }

    pub(crate) fn pages(&self) -> Image {
        let mut pages = Vec::new();
        self.each_page(&mut |at, page| pages.push((at, ByteBuf::from(page))));
        pages
    }
}
