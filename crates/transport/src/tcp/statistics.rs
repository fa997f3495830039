//! Counts of a connection for `TCP_INFO` (RFC 4898 §3).
//!
//! Derived state: a successor continues from the counts that its predecessor last published (at most 100 ms before
//! its death). Numbers in the block are published from there ([`super::info`]).

use super::arriving::Arriving;
use super::rate::Sample;
use super::segment::Segment;
use eft_base::Instant;
use eft_base::wire::ECN_EXPERIENCED;
use eft_channel::socket::SocketStatistics;

/// As Linux's `tcp_max_reordering`.
const REORDERING_MAX: u64 = 300;

/// What the sender waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Busy {
    /// Nothing: all data are sent and acknowledged.
    #[default]
    Not = 0,
    /// The network, or the sender itself.
    Sending = 1,
    /// The peer's window.
    Window = 2,
    /// The ring is full of sent data, and a writer waits.
    Ring = 3,
}

#[derive(Default)]
pub(crate) struct Statistics {
    /// Numbers that are not in the block.
    pub counted: SocketStatistics,
    pub arriving: Arriving,
    pub busy: Busy,
    pub busy_since: Instant,
    /// When the present recovery from a timeout began.
    recovering_since: Option<Instant>,
}

impl Statistics {
    /// Continues from counts that were published for the same socket. They may hold any values.
    pub fn resumed(told: SocketStatistics, now: Instant) -> Statistics {
        Statistics { counted: told, busy_since: now, ..Statistics::default() }
    }

    /// Segments without payload were sent.
    pub fn on_sent_bare(&mut self) {
        self.counted.segments_out = self.counted.segments_out.wrapping_add(1);
    }

    /// `len` bytes were sent in `segments` segments.
    pub fn on_sent(&mut self, now: Instant, len: u64, segments: u32, again: bool) {
        let c = &mut self.counted;
        c.segments_out = c.segments_out.wrapping_add(segments);
        if len > 0 {
            c.data_segments_out = c.data_segments_out.wrapping_add(segments);
            c.bytes_sent = c.bytes_sent.wrapping_add(len);
            c.bytes_sent_again = c.bytes_sent_again.wrapping_add(if again { len } else { 0 });
            c.data_sent_at = now.as_nanos();
        }
    }

    pub fn on_received(&mut self, now: Instant, segment: &Segment) {
        let c = &mut self.counted;
        c.segments_in = c.segments_in.wrapping_add(segment.count);
        if segment.len > 0 {
            c.data_segments_in = c.data_segments_in.wrapping_add(segment.count);
            c.received_mss = c.received_mss.max(segment.len.div_ceil(segment.count.max(1)));
            c.data_received_at = now.as_nanos();
        }
    }

    /// An acceptable segment came whose packet says that it may be marked, or is (RFC 3168 §5).
    pub fn on_received_markable(&mut self, segment: &Segment) {
        let c = &mut self.counted;
        if segment.ecn == ECN_EXPERIENCED {
            c.received_marked = c.received_marked.wrapping_add(segment.count.max(1));
        }
        if let Some(bytes) =
            (segment.ecn as usize).checked_sub(1).and_then(|i| c.received_bytes_by_mark.get_mut(i))
        {
            *bytes = bytes.wrapping_add(segment.len);
        }
    }

    pub fn on_out_of_order(&mut self, segments: u32) {
        self.counted.out_of_order = self.counted.out_of_order.wrapping_add(segments);
    }

    /// The peer reported a duplicate, or something came so many segments late (0: it did not).
    pub fn on_heard(&mut self, duplicate: bool, distance: u64) {
        let c = &mut self.counted;
        c.duplicates_reported = c.duplicates_reported.wrapping_add(duplicate as u32);
        c.reorderings = c.reorderings.wrapping_add((distance > 0) as u32);
        c.reordering = c.reordering.max(distance.min(REORDERING_MAX) as u32);
    }

    /// The handshake is done: the SYN arrived. Until data do, their ages count from here, as on Linux.
    pub fn on_established(&mut self, now: Instant) {
        let c = &mut self.counted;
        c.delivered = c.delivered.wrapping_add(1);
        for at in [&mut c.data_sent_at, &mut c.data_received_at] {
            *at = if *at == 0 { now.as_nanos() } else { *at };
        }
        self.on_recovered(now);
    }

    pub fn on_delivered(&mut self, bytes: u64, mss: u32) {
        let segments = bytes.div_ceil(mss as u64) as u32;
        self.counted.delivered = self.counted.delivered.wrapping_add(segments);
    }

    /// A rate was measured. One that the application limits is only a lower bound, and never makes the known one less.
    pub fn on_sample(&mut self, sample: &Sample) {
        let (rate, c) = (sample.bandwidth(), &mut self.counted);
        if !sample.limited || rate >= c.delivery_rate {
            (c.delivery_rate, c.application_limited) = (rate, sample.limited as u32);
        }
    }

    /// These of the delivered bytes were acknowledged with the echo of a mark (RFC 3168).
    pub fn on_delivered_marked(&mut self, bytes: u64, mss: u32) {
        let segments = bytes.div_ceil(mss as u64) as u32;
        self.counted.delivered_marked = self.counted.delivered_marked.wrapping_add(segments);
    }

    /// The retransmission timer ran out. `first`: for the first time for this data.
    pub fn on_timeout(&mut self, now: Instant, first: bool) {
        let c = &mut self.counted;
        c.timeouts_total = c.timeouts_total.wrapping_add(1);
        c.timeout_recoveries = c.timeout_recoveries.wrapping_add(first as u32);
        self.recovering_since.get_or_insert(now);
    }

    /// No timeout is being recovered from.
    pub fn on_recovered(&mut self, now: Instant) {
        if let Some(since) = self.recovering_since.take() {
            let ms = now.saturating_since(since).as_millis() as u32;
            self.counted.timeout_recovery_ms = self.counted.timeout_recovery_ms.wrapping_add(ms);
        }
    }

    /// What keeps the sender busy from now on.
    pub fn set_busy(&mut self, now: Instant, busy: Busy) {
        if busy != self.busy {
            self.count_busy(now);
            self.busy = busy;
        }
    }

    /// Adds the time since the last count to those of what the connection is busy with.
    fn count_busy(&mut self, now: Instant) {
        let us = now.saturating_since(self.busy_since).as_micros() as u64;
        let c = &mut self.counted;
        let limit = match self.busy {
            Busy::Not | Busy::Sending => None,
            Busy::Window => Some(&mut c.window_limited_us),
            Busy::Ring => Some(&mut c.ring_limited_us),
        };
        if let Some(limit) = limit {
            *limit = limit.wrapping_add(us);
        }
        if self.busy != Busy::Not {
            c.busy_us = c.busy_us.wrapping_add(us);
        }
        self.busy_since = now;
    }

    /// Brings the running times up to date.
    pub fn settle(&mut self, now: Instant) {
        self.count_busy(now);
        if self.recovering_since.is_some() {
            self.on_recovered(now);
            self.recovering_since = Some(now);
        }
    }
}

#[cfg(test)]
mod tests;
