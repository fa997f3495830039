//! Acknowledgments and the peer's window (RFC 9293 §3.10.7.4 step 5, RFC 5961 §5, RFC 6675 §5).

use super::block::{NOWHERE, State, bit};
use super::congestion::Acked;
use super::connection::Connection;
use super::counters::Counter;
use super::engine::Tcp;
use super::live::due;
use super::recovery::Phase;
use super::sack::Range;
use super::segment::Segment;
use crate::timers::NEVER;
use eft_base::wire::{TCP_ACK, TCP_FIN};
use eft_component::Context;

/// RFC 5681 §3.2
const DUPLICATE_THRESHOLD: u32 = 3;

impl Connection<'_> {
    /// The offset that an acceptable segment acknowledges. `None` if the segment ends here: it acknowledges nothing, or
    /// what cannot be (RFC 5961 §5.2).
    pub(super) fn judge_acknowledgment(&mut self, cx: &Context, segment: &Segment) -> Option<i64> {
        let block = &*self.block;
        if segment.has(TCP_ACK) && block.may_acknowledge(segment.ack, self.cold.snd_wnd_max) {
            return Some(block.acknowledged_offset(segment.ack));
        }
        cx.count(Counter::DropAck);
        if segment.has(TCP_ACK) {
            self.challenge(cx);
        }
        None
    }

    /// SND.WND by SND.WL1 and SND.WL2. True if the right edge or the window moved.
    fn update_send_window(&mut self, segment: &Segment, ack: i64) -> bool {
        let block = &mut self.block;
        let seq = block.received_offset(segment.seq).max(0) as u64;
        let current = ack >= block.snd_una as i64
            && (seq > block.snd_wl1 || (seq == block.snd_wl1 && ack as u64 >= block.snd_wl2));
        if !current {
            return false;
        }
        let window = (segment.window as u64) << block.send_scale;
        let edge = ack as u64 + window;
        let changed = edge != block.snd_edge;
        block.snd_edge = edge;
        block.snd_wl1 = seq;
        block.snd_wl2 = ack as u64;
        if window as u32 > self.cold.snd_wnd_max {
            self.cold.snd_wnd_max = window as u32;
        }
        changed
    }

    /// Enters SACK blocks into the scoreboard. True if they told something new. Blocks below
    /// `snd_una` report duplicates (RFC 2883) and are no news.
    fn take_sack(&mut self, segment: &Segment) -> bool {
        let block = &*self.block;
        if !block.has(bit::SACK) {
            return false;
        }
        let mut news = 0;
        for (start, end) in segment.options.sack_blocks() {
            let start = block.acknowledged_offset(*start);
            let end = block.acknowledged_offset(*end);
            if start > block.snd_una as i64 && end <= block.snd_nxt as i64 && start < end {
                news += self.live.recovery.board.insert(Range { start: start as u64, end: end as u64 });
            }
        }
        news > 0
    }

    /// New data is acknowledged.
    fn advance(&mut self, cx: &Context, ack: u64, segment: &Segment) {
        let flight_size = self.block.flight_size();
        let acked = ack - self.block.snd_una;
        self.sample_rtt(cx, ack, segment);
        let live = &mut *self.live;
        let block = &mut self.block;
        let mss = block.segment_size();
        block.snd_una = ack;
        block.backoff = 0;
        live.stuck_since = cx.now;
        if let Some(undo) = live.recovery.undo.take().filter(|undo| undo.is_due(segment)) {
            cx.count(Counter::SpuriousTimeouts as usize);
            let (left, acked) = (block.flight_size() as u32, acked.min(u32::MAX as u64) as u32);
            block.congestion.restore(&undo.congestion, left, acked, mss);
            live.recovery.forgive();
        }
        let phase = live.recovery.phase;
        let ended = live.recovery.advance(ack);
        match (phase, ended) {
            (Phase::Recovery, true) => {
                // RFC 6582 §3.2 step 3: no burst at the end.
                let left = (block.flight_size() as u32).saturating_add(mss);
                let cc = &mut block.congestion;
                cc.cwnd = cc.ssthresh.min(left.max(2 * mss));
            }
            (Phase::Recovery, false) if !block.has(bit::SACK) => {
                live.recovery.on_partial(ack, block.snd_nxt, acked, mss);
            }
            (Phase::Recovery, false) => {}
            _ => {
                live.recovery.duplicates = 0;
                let srtt_us = block.rtt.srtt_us;
                let cc = &mut block.congestion;
                let used = live.window_limited || (cc.in_slow_start() && (cc.cwnd as u64) < 2 * flight_size);
                if used {
                    cc.on_ack(Acked { bytes: acked.min(u32::MAX as u64) as u32, mss, now: cx.now, srtt_us });
                }
            }
        }
        live.retransmit_at = if block.flight_size() > 0 { cx.now + block.rtt.rto() } else { NEVER };
        self.release_ring();
        self.mark(due::INFO);
    }

    /// A round trip is measured by one segment at a time; after a retransmission, when Karn's rule
    /// (RFC 6298 §3) forbids that, by the echoed timestamp.
    fn sample_rtt(&mut self, cx: &Context, ack: u64, segment: &Segment) {
        let live = &mut *self.live;
        let block = &mut self.block;
        match live.timing {
            Some((offset, at)) if offset <= ack => {
                let us = cx.now.saturating_since(at).as_micros();
                block.rtt.sample(us.min(u32::MAX as u128) as u32);
                live.timing = None;
            }
            None if block.backoff > 0 && block.has(bit::TIMESTAMPS) => {
                let Some((_, echo)) = segment.options.timestamps else {
                    return;
                };
                let ms = block.timestamp(cx.now).wrapping_sub(echo);
                if echo != 0 && ms < 120_000 {
                    block.rtt.sample(ms.max(1) * 1000);
                }
            }
            _ => {}
        }
    }

    /// A duplicate acknowledgment. With SACK it means nothing by itself.
    fn receive_duplicate(&mut self, cx: &Context) {
        cx.count(Counter::DuplicateAcks);
        let live = &mut *self.live;
        let block = &*self.block;
        if block.has(bit::SACK) {
            return;
        }
        live.recovery.duplicates += 1;
        let fresh = block.snd_una >= live.recovery.point || live.recovery.point == 0;
        if live.recovery.phase == Phase::Open && live.recovery.duplicates == DUPLICATE_THRESHOLD && fresh {
            self.enter_recovery(cx);
        }
    }

    /// The scoreboard grew: is something lost?
    fn judge_sack(&mut self, cx: &Context) {
        let block = &*self.block;
        let (una, mss) = (block.snd_una, block.segment_size());
        if self.live.recovery.on_sack(una, mss) {
            self.enter_recovery(cx);
        }
    }

    fn enter_recovery(&mut self, cx: &Context) {
        let live = &mut *self.live;
        let block = &mut self.block;
        cx.count(Counter::FastRecoveries);
        let mss = block.segment_size();
        // What limited transmit sent beyond the window does not count (RFC 5681 §3.2 step 2).
        let flight_size = block.flight_size().min(block.congestion.cwnd as u64) as u32;
        block.congestion.on_loss(flight_size, mss);
        live.recovery.enter(block.snd_una, block.snd_nxt, mss);
        live.timing = None;
        live.retransmit_at = cx.now + block.rtt.rto();
    }
}

impl Tcp {
    /// Handles an acknowledgment that was judged. False if the connection ended with it.
    pub(super) fn take_acknowledgment(&mut self, cx: &Context, i: u32, segment: &Segment, ack: i64) -> bool {
        let mut c = self.connection(i);
        if c.cold.probes > 0 {
            c.cold.probes = 0;
        }
        let window_changed = c.update_send_window(segment, ack);
        let news = c.take_sack(segment);
        let before = c.block.snd_una as i64;
        if ack > before {
            c.advance(cx, ack as u64, segment);
            if c.block.fin_acknowledged() {
                self.receive_fin_acknowledgment(cx, i);
            }
        } else if ack == before {
            let duplicate =
                segment.len == 0 && !segment.has(TCP_FIN) && !window_changed && c.block.flight_size() > 0;
            if duplicate {
                c.receive_duplicate(cx);
            }
        }
        let mut c = self.connection(i);
        if news {
            c.judge_sack(cx);
        }
        c.mark(due::SEND);
        !matches!(c.block.state(), State::Closed | State::Free)
    }

    /// Our FIN is acknowledged.
    fn receive_fin_acknowledgment(&mut self, cx: &Context, i: u32) {
        let mut c = self.connection(i);
        debug_assert!(c.block.fin_at != NOWHERE);
        match c.block.state() {
            State::FinWait1 => {
                c.block.set_state(State::FinWait2);
                c.refresh_flags();
                c.wait_as_orphan(cx.now);
            }
            State::Closing => self.enter_time_wait(cx, i),
            State::LastAck => self.end(cx, i, 0),
            _ => {}
        }
    }
}
