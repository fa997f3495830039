//! Whether a segment may change anything: PAWS (RFC 7323 §5) and the window (RFC 9293 §3.10.7.4 step 1), with RFC 5961
//! against attackers who do not know the connection's sequence numbers.
//!
//! A segment that is not acceptable changes nothing of the connection, not even TS.Recent and the keepalive clock. It
//! may cause one acknowledgement, at a limited rate. Whether that acknowledgement comes depends on this connection
//! alone: a limit that all connections shared would tell a stranger which of them exist (RFC 5961 §7 as first built;
//! CVE-2016-5696).

use super::block::{Block, MSS_DEFAULT, NOWHERE, bit};
use super::connection::{Connection, View};
use super::counters::Counter;
use super::live::due;
use super::scoreboard::Range;
use super::segment::Segment;
use core::time::Duration;
use eft_base::Instant;
use eft_base::wire::{TCP_RST, TCP_SYN};
use eft_channel::socket::wish;
use eft_component::Context;

/// Least time between two answers to unacceptable segments of one connection: any host may have sent them.
pub(super) const STRAY_INTERVAL: Duration = Duration::from_millis(50);
/// RFC 7323 §5.5: a timestamp older than this is not used.
const TIMESTAMP_LIFETIME: Duration = Duration::from_secs(24 * 24 * 3600);

/// Whether a segment's timestamp shows that it is an old duplicate (RFC 7323 §5.3 R1).
pub(super) fn is_old(block: &Block, segment: &Segment, now: Instant) -> bool {
    let Some((value, _)) = segment.options.timestamps.filter(|_| block.has(bit::TIMESTAMPS)) else {
        return false;
    };
    let age = now.as_nanos().saturating_sub(block.ts_recent_at);
    (value.wrapping_sub(block.ts_recent) as i32) < 0 && age < TIMESTAMP_LIFETIME.as_nanos() as u64
}

impl View<'_> {
    /// Whether a SYN-ACK may answer a SYN of ours: it echoes no timestamp that we have not sent yet (RFC 7323 §3.2).
    pub(super) fn may_be_answered(&self, now: Instant, answer: &Segment) -> bool {
        let echo = answer.options.timestamps.map_or(0, |(_, echo)| echo);
        echo == 0 || self.block.timestamp(now).wrapping_sub(echo) as i32 >= 0
    }
}

impl Connection<'_> {
    /// Whether a segment's text is refused with a reset, since no application will read it (RFC 1122 §4.2.2.13, RFC 9293
    /// §3.6.1): none has the socket any more, or it has shut both directions down. Text that came before is no reason. Nor is text
    /// taken that contradicts the peer's FIN: it begins before it, and goes on behind it.
    pub(super) fn refuses_text(&self, segment: &Segment) -> bool {
        let block = &*self.block;
        let shut = || {
            let page = self.live.page.as_ref();
            block.fin_at != NOWHERE && page.is_some_and(|page| page.wishes() & wish::SHUT_READ != 0)
        };
        let start = block.received_offset(segment.seq);
        let end = start + segment.len as i64;
        let finished = block.rcv_nxt as i64 + 1;
        if block.has(bit::RECEIVED_FIN) && start < finished && end > finished {
            return true;
        }
        block.state().may_receive() && end > block.rcv_nxt as i64 && (block.has(bit::ORPHAN) || shut())
    }

    /// PAWS and the sequence check. False if the segment is dropped; it is then answered as required.
    pub(super) fn is_acceptable(&mut self, cx: &Context, segment: &Segment) -> bool {
        let block = &*self.block;
        if !segment.has(TCP_RST) && is_old(block, segment, cx.now) {
            cx.count(Counter::DropPaws);
            // What its repetition has overtaken is reported as any duplicate, as on Linux.
            let (start, next) = (block.received_offset(segment.seq), block.rcv_nxt as i64);
            self.note_duplicate(start, next.min(start + segment.len as i64));
            self.answer_unacceptable(cx, segment);
            return false;
        }
        let seq = block.received_offset(segment.seq);
        let next = block.rcv_nxt as i64 + block.has(bit::RECEIVED_FIN) as i64;
        let window = (block.rcv_adv as i64 - next).max(0);
        let len = segment.sequence_len() as i64;
        let acceptable = if len == 0 {
            (0..=window).contains(&(seq - next))
        } else {
            // With a closed window the acknowledgment still counts; the text is cut off later.
            seq - next < window.max(1) && seq + len > next
        };
        if acceptable {
            return true;
        }
        // What ends where we acknowledged last, or later, may be as new as what we have: its acknowledgment counts, as on Linux.
        let acknowledged = block.rcv_acked as i64 + block.has(bit::RECEIVED_FIN) as i64;
        let counts = seq + len >= acknowledged && seq <= next && !segment.has(TCP_SYN | TCP_RST);
        if counts && segment.len > 0 && block.state().may_receive() {
            // Its text is found to be a duplicate later.
            return true;
        }
        if !segment.has(TCP_RST) {
            if len > 0 && seq + len <= next {
                cx.count(Counter::DuplicateData);
                self.note_duplicate(seq, seq + segment.len as i64);
            } else {
                cx.count(Counter::DropWindow);
            }
            self.answer_unacceptable(cx, segment);
        }
        counts
    }

    /// Takes what an acceptable segment with an acceptable acknowledgment says about the peer: that it lives, and its
    /// clock (RFC 7323 §5.3 R3, §4.3).
    pub(super) fn note_heard(&mut self, now: Instant, segment: &Segment) {
        self.live.last_heard = now;
        let block = &mut self.block;
        let statistics = &mut self.live.statistics;
        if segment.len > 0
            && segment.len >= statistics.counted.received_mss.max(MSS_DEFAULT as u32)
            && block.has(bit::TIMESTAMPS)
            && let Some((_, echo)) = segment.options.timestamps
        {
            let waits = block.rcv_nxt != block.rcv_taken;
            statistics.arriving.on_echo(echo, block.timestamp(now), waits);
        }
        let last_sent = block.rcv_acked as i64 + block.has(bit::RECEIVED_FIN) as i64;
        if let Some((value, _)) = segment.options.timestamps
            && block.has(bit::TIMESTAMPS)
            && block.received_offset(segment.seq) <= last_sent
            && !is_old(block, segment, now)
        {
            self.live.accurate.newest = block.ts_recent != value;
            block.ts_recent = value;
            block.ts_recent_at = now.as_nanos();
        }
    }

    /// The peer's SYN, which lies before the first byte, came twice.
    pub(super) fn note_duplicate_syn(&mut self) {
        self.live.duplicate = Some(Range { start: u64::MAX, end: 0 });
    }

    /// Notes that these bytes came twice, to be reported (RFC 2883). Bytes further back than any window are not a
    /// duplicate by the network.
    pub(super) fn note_duplicate(&mut self, start: i64, end: i64) {
        let block = &*self.block;
        let oldest = block.rcv_nxt as i64 - (65535 << block.receive_scale);
        if start >= oldest.max(0) && end > start {
            let mut range = Range { start: start as u64, end: end as u64 };
            // Several in a batch are reported as one if they touch, else the last.
            if let Some(before) = self.live.duplicate.filter(|b| b.start <= range.end && range.start <= b.end)
            {
                range = Range { start: before.start.min(range.start), end: before.end.max(range.end) };
            }
            self.live.duplicate = Some(range);
        }
    }

    /// RFC 9293 §3.10.7.4: an unacceptable segment is acknowledged. Data always is, since the peer waits for it.
    fn answer_unacceptable(&mut self, cx: &Context, segment: &Segment) {
        if segment.len == 0 || segment.has(TCP_SYN) {
            self.answer_stray(cx.now);
        } else if self.can_acknowledge() {
            self.mark(due::ACK);
        }
    }

    /// RFC 5961: an acknowledgement to which an honest peer answers with its exact sequence number.
    pub(super) fn challenge(&mut self, cx: &Context) {
        if self.answer_stray(cx.now) {
            cx.count(Counter::ChallengeAcks);
        }
    }

    /// Acknowledges a segment that any host may have sent, unless one was just acknowledged. True if it does.
    pub(super) fn answer_stray(&mut self, now: Instant) -> bool {
        let live = &mut *self.live;
        let recently = live.stray_answered_at.is_some_and(|at| now.saturating_since(at) < STRAY_INTERVAL);
        if recently || !self.can_acknowledge() {
            return false;
        }
        self.live.stray_answered_at = Some(now);
        self.mark(due::ACK);
        true
    }
}
