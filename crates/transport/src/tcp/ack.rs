//! Acknowledgments and the peer's window (RFC 9293 §3.10.7.4 step 5, RFC 5961 §5, RFC 2018, RFC 2883). The consequences
//! for recovery are in [`super::recover`].

use super::block::{Block, NOWHERE, State, bit};
use super::connection::Connection;
use super::counters::Counter;
use super::engine::Tcp;
use super::live::due;
use super::scoreboard::{Delivered, Evidence, Range};
use super::segment::Segment;
use super::statistics::Busy;
use crate::timers::NEVER;
use eft_base::Instant;
use eft_base::wire::{TCP_ACK, TCP_FIN};
use eft_component::Context;

/// What an acknowledgment said, besides the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    /// Bytes and FIN that are now acknowledged.
    pub acked: u64,
    pub delivered: Delivered,
    /// SACK blocks reported something new.
    pub sacked: bool,
    /// What the peer has twice (RFC 2883).
    pub duplicate: Option<Range>,
    /// A duplicate acknowledgment (RFC 5681 §2).
    pub repeated: bool,
    /// FlightSize before it, and bytes believed to be in the network.
    pub flight_size: u64,
    pub pipe: u64,
}

/// The blocks of an acknowledgment, checked.
struct SackBlocks {
    arrived: [Option<Range>; 4],
    /// The range that the first block reports as received twice: it lies below the acknowledgment or within the second
    /// block (RFC 2883 §4).
    duplicate: Option<Range>,
}

impl SackBlocks {
    fn read(block: &Block, window_max: u32, segment: &Segment, ack: i64) -> SackBlocks {
        let mut blocks = SackBlocks { arrived: [None; 4], duplicate: None };
        if !block.has(bit::SACK) || segment.options.sack_count == 0 {
            return blocks;
        }
        let offsets =
            |pair: &(u32, u32)| (block.acknowledged_offset(pair.0), block.acknowledged_offset(pair.1));
        let said = segment.options.sack_blocks();
        let second = said.get(1).map(offsets);
        for (i, pair) in said.iter().enumerate() {
            let (start, end) = offsets(pair);
            let oldest = (block.snd_una as i64 - window_max as i64).max(0);
            if start >= end || start < oldest || end > block.snd_nxt as i64 {
                continue;
            }
            let range = Range { start: start as u64, end: end as u64 };
            let within_second = second.is_some_and(|(from, to)| from <= start && end <= to);
            if i == 0 && (end <= ack || within_second) {
                blocks.duplicate = Some(range);
            } else if start > block.snd_una as i64 {
                blocks.arrived[i] = Some(range);
            }
        }
        blocks
    }
}

impl Connection<'_> {
    /// The offset that an acceptable segment acknowledges. `None` if the segment is dropped: it acknowledges nothing, or
    /// an impossible number (RFC 5961 §5.2).
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

    /// SND.WND (RFC 9293 §3.10.7.4). True if the right edge or the window moved.
    ///
    /// An acknowledgment of new data is newer than all before it, whatever its sequence number. Of segments with the same numbers
    /// nobody knows which is newer: a smaller window is not taken from them, except none, as on Linux.
    fn update_send_window(&mut self, segment: &Segment, ack: i64) -> bool {
        let block = &mut self.block;
        let seq = block.received_offset(segment.seq).max(0) as u64;
        let window = (segment.window as u64) << block.send_scale;
        let edge = (ack.max(0) as u64).saturating_add(window);
        let una = block.snd_una as i64;
        let grows = window == 0 || edge >= block.snd_edge;
        let current = ack > una || ack == una && (seq > block.snd_wl1 || seq == block.snd_wl1 && grows);
        if !current {
            return false;
        }
        let changed = edge != block.snd_edge;
        block.snd_edge = edge;
        block.snd_wl1 = seq;
        block.snd_wl2 = ack as u64;
        if window as u32 > self.cold.snd_wnd_max {
            self.cold.snd_wnd_max = window as u32;
        }
        changed
    }

    /// Enters what an acknowledgment says into the scoreboard.
    fn take_delivered(&mut self, now: Instant, segment: &Segment, ack: i64) -> Heard {
        let blocks = SackBlocks::read(&self.block, self.cold.snd_wnd_max, segment, ack);
        let block = &*self.block;
        let recovery = &mut self.live.recovery;
        let acked = (ack - block.snd_una as i64).max(0) as u64;
        let mut heard = Heard { acked, duplicate: blocks.duplicate, ..Heard::default() };
        let (echo, min_rtt) =
            (segment.options.timestamps.map_or(0, |(_, echo)| echo), block.rtt.min_us as u128);
        let point = recovery.point;
        // RFC 8985 §6.2 step 2.
        let is_early = |sent: Instant| now.saturating_since(sent).as_micros() < min_rtt;
        let is_older = |sent: Instant| {
            let echoes_older = echo != 0 && (echo.wrapping_sub(block.timestamp(sent)) as i32) < 0;
            echoes_older || is_early(sent)
        };
        // In the order of the stream: what one acknowledgment reports at once shows no reordering (RFC 8985 §6.2 step 3).
        if acked > 0 {
            let evidence = Evidence { is_older, point };
            recovery.board.advance(ack as u64, &evidence, &mut heard.delivered);
        }
        let advanced = heard.delivered.bytes;
        if blocks.arrived.iter().all(Option::is_none) {
            return heard;
        }
        let mut arrived = blocks.arrived;
        arrived.sort_unstable_by_key(|range| range.map(|range| range.start));
        // Beyond a hole the echo is that of the last segment before it (RFC 7323 §4.3), and tells nothing of these.
        let evidence = Evidence { is_older: is_early, point };
        for range in arrived.into_iter().flatten() {
            recovery.board.arrive(range, &evidence, &mut heard.delivered);
        }
        heard.sacked = heard.delivered.bytes > advanced;
        heard
    }

    /// New data is acknowledged.
    fn advance(&mut self, cx: &Context, ack: u64, segment: &Segment) {
        self.sample_rtt(cx, ack, segment);
        let live = &mut *self.live;
        let block = &mut self.block;
        block.snd_una = ack;
        block.backoff = 0;
        live.more_released = block.snd_end;
        live.stuck_since = cx.now;
        live.retransmit_at = if block.flight_size() > 0 { cx.now + block.rtt.rto() } else { NEVER };
        if block.flight_size() == 0 && !self.has_unsent() {
            self.live.statistics.set_busy(cx.now, Busy::Not);
        }
        self.live.records.forget(ack);
        self.stamp_acknowledged(cx.now, ack);
        self.release_ring();
        self.mark(due::INFO);
    }

    /// A round trip is measured by one segment at a time; after a timeout, when Karn's rule (RFC 6298 §3) forbids that, by the echoed
    /// timestamp.
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
                    self.note_round_trip(cx.now, ms.max(1) * 1000);
                }
            }
            _ => {}
        }
    }

    /// Beyond a hole a block tells when a segment arrived that was sent once. Otherwise a path that always loses something would not be
    /// measured any more.
    pub(super) fn sample_rtt_beyond_a_hole(&mut self, now: Instant, heard: &Heard) {
        let live = &mut *self.live;
        let Some((_, since)) = live.timing.filter(|_| heard.sacked) else { return };
        if let Some(at) = heard.delivered.timed_at.filter(|at| *at >= since) {
            self.block.rtt.sample(now.saturating_since(at).as_micros().min(u32::MAX as u128) as u32);
            live.timing = None;
        }
    }

    /// Times the newest segment that an acknowledgment reports, as BBR does, if it was sent once (Karn's algorithm).
    pub(super) fn time_newest(&mut self, now: Instant, heard: &Heard) {
        let Some(at) = heard.delivered.timed_at else { return };
        let us = now.saturating_since(at).as_micros().min(u32::MAX as u128) as u32;
        // The answer to a small segment alone may have been delayed, and says how long at most.
        let is_alone = heard.acked == heard.flight_size && heard.acked < self.block.segment_size() as u64;
        if !is_alone || us <= self.block.rtt.min_us {
            self.note_round_trip(now, us);
        }
    }

    pub(super) fn note_round_trip(&mut self, now: Instant, us: u32) {
        let rtt = &mut self.block.rtt;
        rtt.min_us = self.live.min_rtt.update(now, us.max(1), rtt.min_us);
    }
}

impl Tcp {
    /// Handles an acceptable acknowledgment. False if the connection ended with it.
    pub(super) fn take_acknowledgment(&mut self, cx: &Context, i: u32, segment: &Segment, ack: i64) -> bool {
        let mut c = self.connection(i);
        if c.cold.probes > 0 {
            c.cold.probes = 0;
        }
        c.forget_soft_error();
        let window_changed = c.update_send_window(segment, ack);
        let before = c.block.snd_una as i64;
        let flight_size = c.block.flight_size();
        let pipe = c.live.recovery.pipe(c.block.segment_size());
        let bare = segment.len == 0 && !segment.has(TCP_FIN) && !window_changed;
        let mut heard = c.take_delivered(cx.now, segment, ack);
        (heard.flight_size, heard.pipe) = (flight_size, pipe);
        heard.repeated = ack == before && bare && flight_size > 0;
        if heard.acked > 0 {
            c.advance(cx, ack as u64, segment);
        }
        c.recover(cx, segment, &heard);
        if heard.acked > 0 && c.block.fin_acknowledged() {
            self.receive_fin_acknowledgment(cx, i);
        }
        let mut c = self.connection(i);
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
