//! Where the application's records end (MSG_EOR): a segment does not reach beyond such an end, and none that ends there waits
//! for more. As on Linux, this is no promise: a stream has no records, and a successor knows only those ends that the page still
//! has.
//!
//! Derived state, from a ring in the page.

use super::scoreboard::Range;
use crate::page::Page;
use alloc::collections::VecDeque;
use eft_channel::socket::{Opt, RECORDS_MAX};

#[derive(Default)]
pub(crate) struct Records {
    /// Ends that are not acknowledged, in order.
    ends: VecDeque<u64>,
    /// How many the application had written when they were last read.
    seen: u32,
}

impl Records {
    /// The first end behind `start`, if there is one.
    pub fn next_end(&self, start: u64) -> Option<u64> {
        if self.ends.is_empty() {
            return None;
        }
        self.ends.get(self.ends.partition_point(|end| *end <= start)).copied()
    }

    /// The part of `range` that goes in one segment.
    pub fn first_part(&self, range: Range) -> Range {
        let end = self.next_end(range.start).map_or(range.end, |end| end.min(range.end));
        Range { end, ..range }
    }

    /// The last part of `range` that goes in one segment.
    pub fn last_part(&self, range: Range) -> Range {
        let within = self.ends.iter().rev().find(|end| **end < range.end);
        Range { start: within.map_or(range.start, |end| range.start.max(*end)), ..range }
    }

    /// Everything below `una` is acknowledged.
    pub fn forget(&mut self, una: u64) {
        while self.ends.front().is_some_and(|end| *end <= una) {
            self.ends.pop_front();
        }
    }

    /// Takes the ends that the application wrote since they were last read. It writes them before it publishes the bytes.
    pub fn read(&mut self, page: &Page, una: u64) {
        let count = page.option(Opt::Records);
        let new = count.wrapping_sub(self.seen).min(RECORDS_MAX);
        if new == 0 {
            return;
        }
        let end = una + page.send_len() as u64;
        for number in (0..new).rev() {
            self.add(page.record(count.wrapping_sub(number + 1)), una, end);
        }
        self.seen = count;
    }

    /// A further end, `low` being the low half of its offset. Nothing that the application writes here can do more than cut
    /// its own segments.
    fn add(&mut self, low: u32, una: u64, end: u64) {
        let offset = una + low.wrapping_sub(una as u32) as u64;
        let after = self.ends.back().is_none_or(|last| *last < offset);
        if offset > una && offset <= end && after {
            self.ends.push_back(offset);
        }
    }
}

#[cfg(test)]
mod tests;
