//! Which times of a stream's sends are wanted (SO_TIMESTAMPING): when the segment with a send's last byte was given to ip, when a
//! device had it, and when the peer acknowledged it.
//!
//! Derived state, from a ring in the page: as on Linux, times are no promise. After a rebirth, those of sends that are under way
//! may come again, or not.

use crate::page::Page;
use alloc::collections::VecDeque;
use eft_base::Instant;
use eft_channel::socket::{STAMP_REQUESTS_MAX, Stamp, stamped, stamping};

/// A send whose times are wanted.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// The offset behind its last byte.
    end: u64,
    /// Those of [`stamping`] that are still to come.
    left: u32,
    /// When its last byte was given to ip.
    scheduled_at: Option<Instant>,
}

/// What has happened to all bytes up to an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Scheduled,
    Sent,
    Acknowledged,
}

#[derive(Default)]
pub(crate) struct Stamps {
    /// In the order of their ends.
    wanted: VecDeque<Wanted>,
    /// How many the application had requested when they were last read.
    seen: u32,
}

impl Stamps {
    /// Takes the requests since they were last read, of a stream that is acknowledged up to `una`. Nothing that the application
    /// writes there can do more than mislead itself.
    pub fn read(&mut self, page: &Page, una: u64) {
        let last = una + page.send_len() as u64;
        let count = page.stamp_requests();
        let new = count.wrapping_sub(self.seen).min(STAMP_REQUESTS_MAX);
        for number in (0..new).rev() {
            let (low, wanted) = page.stamp_request(count.wrapping_sub(number + 1));
            let end = una + low.wrapping_sub(una as u32) as u64;
            let follows = self.wanted.back().is_none_or(|before| before.end < end);
            let left = wanted & (stamping::TX_SCHED | stamping::TX_SOFTWARE | stamping::TX_ACK);
            if follows && end > una && end <= last && left != 0 {
                self.wanted.push_back(Wanted { end, left, scheduled_at: None });
            }
        }
        self.seen = count;
        while self.wanted.len() > 2 * STAMP_REQUESTS_MAX as usize {
            self.wanted.pop_front();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// `event` has happened to all up to `end`: the times that are told with it. One send's times are told in their order, and
    /// before those of the next, as on Linux: so the first waits for the second.
    pub fn reached(&mut self, now: Instant, end: u64, event: Event, mut tell: impl FnMut(Stamp)) {
        for wanted in self.wanted.iter_mut().take_while(|wanted| wanted.end <= end) {
            let scheduled = *wanted.scheduled_at.get_or_insert(now);
            let mut told = |bit: u32, kind: u32, at: Instant| {
                if wanted.left & bit != 0 {
                    wanted.left &= !bit;
                    tell(Stamp { at: at.as_nanos(), end: wanted.end as u32, kind });
                }
            };
            if event != Event::Scheduled {
                told(stamping::TX_SCHED, stamped::SCHEDULED, scheduled);
            }
            if event == Event::Sent {
                told(stamping::TX_SOFTWARE, stamped::SENT, now);
            }
            if event == Event::Acknowledged {
                told(stamping::TX_ACK, stamped::ACKNOWLEDGED, now);
            }
        }
        while self.wanted.front().is_some_and(|wanted| wanted.left == 0) {
            self.wanted.pop_front();
        }
    }

    /// Everything up to `una` is acknowledged: no time of it is still to come.
    pub fn forget(&mut self, una: u64) {
        while self.wanted.front().is_some_and(|wanted| wanted.end <= una) {
            self.wanted.pop_front();
        }
    }
}
