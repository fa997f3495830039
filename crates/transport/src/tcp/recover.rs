//! What an acknowledgment, or the passing of time, means for recovery: which bytes are lost, how much may be sent, and
//! whether an earlier reduction was wrong. The order follows RFC 8985 §6.2, §7.4 and RFC 9937.

use super::ack::Heard;
use super::block::{NOWHERE, bit};
use super::congestion::Acked;
use super::congestion::hystart::{Growth, Round};
use super::connection::Connection;
use super::counters::Counter;
use super::live::due;
use super::prr::Evidence as RecoveryEvidence;
use super::rate::Sample;
use super::recovery::Phase;
use super::segment::Segment;
use super::tail_probe::{self, TailProbes, Verdict};
use super::undo::{Evidence, Undo};
use crate::timers::NEVER;
use eft_base::Instant;
use eft_component::Context;

/// RFC 5681 §3.2
const DUPLICATE_THRESHOLD: u32 = 3;

impl Connection<'_> {
    /// Draws the conclusions from an acknowledgment after it was entered into the scoreboard.
    pub(super) fn recover(&mut self, cx: &Context, segment: &Segment, heard: &Heard) {
        self.sample_rtt_beyond_a_hole(cx.now, heard);
        self.time_newest(cx.now, heard);
        let recovery = &mut self.live.recovery;
        recovery.measured |= heard.delivered.timed_at.is_some();
        self.judge_probe(cx, heard);
        self.judge_undo(cx, segment, heard);
        let (before, counted) = (self.live.recovery.phase, self.live.recovery.duplicates);
        let left = self.end_phase();
        let known = self.live.recovery.board.lost();
        let lost = if self.block.has(bit::SACK) {
            self.detect_by_time(cx, heard)
        } else {
            self.count_duplicates(cx, heard)
        };
        let newly_lost = self.live.recovery.board.lost().saturating_sub(known);
        self.judge_mtu_probe(cx);
        if (lost || left) && !self.is_lost_mtu_probe(cx.now) && self.live.recovery.phase == Phase::Open {
            self.enter_recovery(cx, heard.delivered.bytes);
        }
        let echo = self.take_echo(cx, segment, heard);
        let sample = self.measure_rate(cx.now, heard);
        match self.live.recovery.phase {
            _ if self.block.congestion.is_by_rate() => self.steer(cx, heard, sample, newly_lost),
            Phase::Recovery => self.shrink(heard.delivered.bytes, heard.acked > 0 && !lost),
            _ if before != Phase::Recovery && !echo => self.grow(cx, heard, counted),
            _ => {}
        }
        if heard.acked > 0 || heard.sacked {
            self.arm_probe(cx.now);
        }
        self.note_heard_for_statistics(cx.now, heard, sample);
    }

    fn note_heard_for_statistics(&mut self, now: Instant, heard: &Heard, sample: Option<Sample>) {
        let (block, live) = (&*self.block, &mut *self.live);
        let statistics = &mut live.statistics;
        let distance = heard.delivered.distance.div_ceil(block.segment_size() as u64);
        statistics.on_heard(heard.duplicate.is_some(), distance);
        if heard.delivered.bytes > 0 {
            statistics.on_delivered(heard.delivered.bytes, block.segment_size());
        }
        if let Some(sample) = &sample {
            statistics.on_sample(sample);
        }
        if live.recovery.phase != Phase::Loss {
            statistics.on_recovered(now);
        }
        if heard.delivered.bytes > 0 || heard.duplicate.is_some() {
            self.mark(due::INFO);
        }
    }

    /// RFC 8985 §7.4.
    fn judge_probe(&mut self, cx: &Context, heard: &Heard) {
        let block = &mut self.block;
        let recovery = &mut self.live.recovery;
        let Some(probe) = recovery.probe else {
            return;
        };
        let duplicate = heard.duplicate.map(|range| range.end);
        match probe.judge(block.snd_una, duplicate, heard.repeated && !heard.sacked) {
            Verdict::Unknown => return,
            Verdict::Needless => {}
            Verdict::Repaired if recovery.phase == Phase::Open => {
                cx.count(Counter::ProbesRepaired);
                let mss = block.segment_size();
                let flight_size = heard.flight_size.min(block.congestion.cwnd as u64) as u32;
                block.congestion.on_loss(flight_size, mss);
                recovery.probe = None;
                return self.note_reduction();
            }
            Verdict::Repaired => {}
        }
        recovery.probe = None;
    }

    /// Undoes a reduction if nothing was lost.
    fn judge_undo(&mut self, cx: &Context, segment: &Segment, heard: &Heard) {
        let can_send_new = self.block.send_window() > 0 && self.has_unsent();
        let echo = self.is_echo(segment);
        let block = &mut self.block;
        let recovery = &mut self.live.recovery;
        recovery.undo = recovery.undo.take().filter(|undo| !undo.is_over(block.snd_una));
        if echo {
            // The echo proves congestion, whether or not anything was lost.
            recovery.force |= recovery.undo.take().is_some_and(|undo| undo.tries_new_data());
        }
        let Some(undo) = &mut recovery.undo else {
            return;
        };
        let evidence = Evidence {
            advanced: heard.acked > 0,
            // Without SACK the first acknowledgment may be for data behind a hole.
            originals: heard.delivered.originals > 0 && (block.has(bit::SACK) || undo.tries_new_data()),
            repeated: heard.repeated || heard.sacked,
            can_send_new,
            duplicate: heard.duplicate.map_or(0, |range| range.len()),
        };
        let tried = undo.tries_new_data();
        if !undo.judge(segment, &evidence) {
            // RFC 5682 §3.1 step 3a: the timeout was right, and the new data that were tried may fill the window.
            recovery.force |= tried && !undo.tries_new_data();
            return;
        }
        let counter = match undo.after_timeout {
            true => Counter::SpuriousTimeouts,
            false => Counter::SpuriousRecoveries,
        };
        cx.count(counter);
        let before = undo.congestion;
        let acked = heard.acked.min(u32::MAX as u64) as u32;
        let (mss, flight_size) = (block.segment_size(), block.flight_size() as u32);
        block.congestion.restore(&before, flight_size, acked, mss);
        recovery.forgive();
        if let Some(bbr) = &mut self.live.bbr {
            bbr.on_undo();
        }
    }

    /// Ends a phase whose end is now acknowledged. True if more was lost meanwhile, of what was sent since it began: that is a loss in
    /// the next window, and a second sign of congestion (RFC 5681 §4.3).
    fn end_phase(&mut self) -> bool {
        let block = &mut self.block;
        let recovery = &mut self.live.recovery;
        let phase = recovery.phase;
        let ended = recovery.ends_at(block.snd_una, block.snd_nxt);
        let left = ended && block.has(bit::SACK) && recovery.board.lost() + recovery.board.sent_again() > 0;
        if !ended || phase != Phase::Recovery || block.congestion.is_by_rate() {
            return left;
        }
        let mss = block.segment_size();
        let in_flight = (block.flight_size() as u32).saturating_add(mss);
        let (sack, congestion) = (block.has(bit::SACK), &mut block.congestion);
        congestion.cwnd = match sack {
            // RFC 9937: about as much is in the network.
            true => congestion.ssthresh,
            // RFC 6582 §3.2 step 3: no burst at the end.
            false => congestion.ssthresh.min(in_flight.max(2 * mss)),
        };
        self.calm_down();
        left
    }

    /// RFC 8985 §6.2. True if more is lost than was known.
    fn detect_by_time(&mut self, cx: &Context, heard: &Heard) -> bool {
        let (una, nxt) = (self.block.snd_una, self.block.snd_nxt);
        let rack = &mut self.live.recovery.rack;
        rack.on_delivered(cx.now, &heard.delivered);
        if heard.duplicate.is_some() {
            cx.count(Counter::DuplicatesReported);
            rack.on_duplicate(una, nxt);
        }
        self.detect_now(cx.now)
    }

    fn detect_now(&mut self, now: Instant) -> bool {
        let mss = self.block.segment_size();
        let recovery = &mut self.live.recovery;
        let impatient = recovery.phase != Phase::Open || recovery.board.has_three_beyond(mss);
        let found = recovery.rack.detect(&mut recovery.board, now, &self.block.rtt, impatient);
        self.live.reorder_at = found.check_again_at.unwrap_or(NEVER);
        if found.again_at.is_some_and(|at| at >= self.live.recovery.reduced_at) {
            self.reduce_again(now);
        }
        found.lost > 0
    }

    /// Something was lost that had been sent again since the timer ran out: a second sign of congestion (RFC 5681 §4.3), which ends the
    /// slow start after it. In a fast recovery proportional rate reduction replaces no more than what arrives (RFC 9937), and the
    /// window stays, as on Linux.
    fn reduce_again(&mut self, now: Instant) {
        let (block, recovery) = (&mut self.block, &mut self.live.recovery);
        if recovery.phase != Phase::Loss || block.congestion.is_by_rate() {
            return;
        }
        let mss = block.segment_size();
        let flight_size = block.flight_size().min(block.congestion.cwnd as u64) as u32;
        block.congestion.on_loss(flight_size, mss);
        recovery.enter(block.snd_nxt, block.flight_size() - recovery.board.sacked(), now);
        self.note_reduction();
    }

    /// The reordering window has passed (RFC 8985 §6.3).
    pub(super) fn expire_reordering(&mut self, cx: &Context) {
        if !self.detect_now(cx.now) {
            return;
        }
        let is_probe = self.is_lost_mtu_probe(cx.now);
        match self.live.recovery.phase {
            Phase::Open if is_probe => {}
            Phase::Open => {
                self.enter_recovery(cx, 0);
                self.shrink(0, false);
            }
            Phase::Recovery => self.shrink(0, false),
            Phase::Loss => {}
        }
        self.mark(due::SEND);
    }

    /// Without SACK (RFC 5681 §3.2, RFC 6582 §3.2). True if the first segment is found to be lost.
    fn count_duplicates(&mut self, cx: &Context, heard: &Heard) -> bool {
        let block = &*self.block;
        let mss = block.segment_size();
        let recovery = &mut self.live.recovery;
        if heard.acked > 0 {
            match recovery.phase {
                Phase::Recovery => recovery.on_partial(block.snd_una, block.snd_nxt, heard.acked, mss),
                _ => recovery.duplicates = 0,
            }
            return false;
        }
        if !heard.repeated {
            return false;
        }
        cx.count(Counter::DuplicateAcks);
        recovery.duplicates += 1;
        let fresh = block.snd_una >= recovery.point || recovery.point == 0;
        let lost = recovery.phase == Phase::Open && recovery.duplicates == DUPLICATE_THRESHOLD && fresh;
        if lost {
            recovery.lose_first(block.snd_una, block.snd_nxt, mss);
        }
        lost
    }

    /// `delivered`: bytes that the acknowledgment that showed the loss reports as delivered.
    fn enter_recovery(&mut self, cx: &Context, delivered: u64) {
        cx.count(Counter::FastRecoveries);
        let reduced = self.is_reduced_for(self.block.snd_una);
        let live = &mut *self.live;
        let block = &mut self.block;
        let mss = block.segment_size();
        let outstanding = live.recovery.board.sent_again();
        // Acknowledgments of earlier retransmissions echo older timestamps.
        let has_clock = block.has(bit::TIMESTAMPS) && outstanding == 0;
        let clock = has_clock.then(|| block.timestamp(cx.now));
        let mut undo = Undo::new(block.congestion, clock, false);
        if outstanding > 0 {
            undo.on_sent_again(outstanding);
        }
        live.recovery.undo = Some(undo);
        // What limited transmit sent beyond the window does not count (RFC 5681 §3.2 step 2).
        let flight_size = block.flight_size().min(block.congestion.cwnd as u64) as u32;
        if !reduced {
            block.congestion.on_loss(flight_size, mss);
        }
        let not_left = block.flight_size() - live.recovery.board.sacked() + delivered;
        live.recovery.enter(block.snd_nxt, not_left, cx.now);
        live.timing = live.timing.map(|(_, at)| (NOWHERE, at));
        live.probe_at = NEVER;
        live.retransmit_at = cx.now + block.rtt.rto();
        if !reduced {
            self.note_reduction();
        }
    }

    /// The window in a recovery (RFC 9937). Without SACK it is the threshold, and each duplicate counts as a segment that
    /// left the network.
    fn shrink(&mut self, delivered: u64, is_good: bool) {
        if !self.block.has(bit::SACK) || self.block.congestion.is_by_rate() {
            return;
        }
        let mss = self.block.segment_size();
        let recovery = &mut self.live.recovery;
        let evidence = RecoveryEvidence { delivered, pipe: recovery.pipe(mss), is_good };
        let congestion = &mut self.block.congestion;
        let window = recovery.prr.window(evidence, congestion.ssthresh as u64, mss as u64);
        congestion.cwnd = window.clamp(mss as u64, u32::MAX as u64) as u32;
    }

    /// Grows the window outside of a recovery (RFC 5681 §3.1), if it was used. Each of `counted` duplicate acknowledgements
    /// told before that a segment had arrived, and let another go (RFC 3042): it does not count again.
    fn grow(&mut self, cx: &Context, heard: &Heard, counted: u32) {
        let live = &mut *self.live;
        let block = &mut self.block;
        // Out-of-order arrival is no sign of more capacity, unless the network is known to reorder.
        if heard.acked == 0 && !(heard.sacked && live.recovery.rack.has_seen_reordering()) {
            return;
        }
        if !live.usage.may_grow(block) {
            live.unused_since.get_or_insert(cx.now);
            return;
        }
        if let Some(since) = live.unused_since.take() {
            block.congestion.on_limited(cx.now.saturating_since(since));
        }
        let counted = if block.has(bit::SACK) { 0 } else { counted.saturating_mul(block.segment_size()) };
        let mut bytes = (heard.delivered.bytes.min(u32::MAX as u64) as u32).saturating_sub(counted);
        if block.congestion.in_first_slow_start() {
            let rtt_us = heard.delivered.timed_at.map(|at| cx.now.saturating_since(at).as_micros() as u32);
            let (min_rtt_us, cwnd) = (block.rtt.min_us, block.congestion.cwnd / block.segment_size());
            let round = Round { una: block.snd_una, nxt: block.snd_nxt, rtt_us, min_rtt_us, cwnd };
            match live.hystart.on_ack(live.slow_start, round, bytes) {
                Growth::By(by) => bytes = by,
                Growth::Over => block.congestion.end_slow_start(),
            }
        }
        let (mss, srtt_us) = (block.segment_size(), block.rtt.srtt_us);
        block.congestion.on_ack(Acked { bytes, mss, now: cx.now, srtt_us });
    }

    /// Sets the time of a tail loss probe, if no acknowledgment comes before (RFC 8985 §7.2). Its time runs from when the pace allows
    /// another segment, as on Linux: a probe of new data would leave before that.
    pub(super) fn arm_probe(&mut self, now: Instant) {
        let live = &*self.live;
        let recovery = &live.recovery;
        let probes = live.tail_probes == TailProbes::On
            && tail_probe::is_of_use(&self.block)
            && recovery.is_calm()
            && recovery.probe.is_none()
            && !recovery.probe_due
            && recovery.measured;
        self.live.probe_at = match probes {
            true => tail_probe::due_at(&self.block, self.pace_allows_at(now), live.retransmit_at),
            false => NEVER,
        };
    }

    /// RFC 8985 §7.3. A probe cannot find segments that our own side has not sent yet.
    pub(super) fn expire_probe(&mut self, cx: &Context) {
        self.live.probe_at = NEVER;
        if self.block.flight_size() == 0 || !self.block.state().may_send() {
            return;
        }
        if self.live.in_flight.count() > 0 {
            if self.live.retransmit_at > cx.now {
                self.arm_probe(cx.now);
            }
            return;
        }
        self.live.recovery.probe_due = true;
        self.live.retransmit_at = cx.now + self.block.rtt.rto();
        self.mark(due::SEND);
    }
}
