//! Segments that try whether the path takes larger packets ([`super::mtu_search`]).

use super::block::bit;
use super::connection::Connection;
use super::counters::Counter;
use super::mtu_search::Bounds;
use super::recovery::Phase;
use super::route::fixed_headers;
use super::scoreboard::Range;
use eft_base::Instant;
use eft_component::Context;

/// Expiries of the timer in a row from which on the path may swallow packets of this size: Linux's `tcp_retries1` is 3, and it is
/// exceeded.
const BLACK_HOLE: u8 = 4;
/// Segments behind a probe, by which its loss is noticed without a timeout (RFC 4821 §7.4).
const BEHIND: u64 = 4;
/// In smaller windows a probe's loss would cost too much (as on Linux).
const WINDOW_MIN: u64 = 11;

impl Connection<'_> {
    /// What bounds the search.
    pub(super) fn mtu_bounds(&self) -> Bounds {
        let headers = fixed_headers(self.block.tuple.remote);
        let ceiling = self.cold.path_mtu.min(self.cold.peer_mss.saturating_add(headers));
        Bounds { headers, ceiling }
    }

    pub(super) fn begin_mtu_search(&mut self, now: Instant) {
        // After a SYN cookie the path is not known yet, and its connection searches when segments get lost.
        if self.block.has(bit::ROUTED) {
            let bounds = self.mtu_bounds();
            self.live.mtu.begin(now, bounds);
            self.set_mss();
        }
    }

    pub(super) fn resume_mtu_search(&mut self, now: Instant) {
        let bounds = self.mtu_bounds();
        self.live.mtu.resume(now, self.block.mss, bounds);
    }

    /// The segment to try next, if this is a good time (RFC 4821 §7.4, §7.5).
    pub(super) fn next_mtu_probe(&mut self, now: Instant) -> Option<Range> {
        if !self.live.mtu.is_on() {
            return None;
        }
        let bounds = self.mtu_bounds();
        let mtu = self.live.mtu.next(now, bounds)?;
        let block = &*self.block;
        let recovery = &self.live.recovery;
        let mss = block.segment_size();
        let options = block.mss as u32 - mss;
        let len = (mtu as u64).saturating_sub(bounds.headers as u64 + options as u64);
        let mss = mss as u64;
        let needed = len + BEHIND * mss;
        let (cwnd, pipe) = (block.congestion.cwnd as u64, recovery.pipe(mss as u32));
        let has_data = block.snd_end.saturating_sub(block.snd_nxt) >= needed && block.send_window() >= needed;
        let has_room = cwnd >= WINDOW_MIN * mss && cwnd.saturating_sub(pipe) >= len;
        let end = block.snd_nxt + len;
        let is_plain = !self.view().is_urgent()
            && !block.has(bit::ECN_REDUCED)
            && self.live.records.next_end(block.snd_nxt).is_none_or(|at| at >= end);
        let is_due = len > mss && recovery.is_calm() && has_data && has_room && is_plain;
        is_due.then_some(Range { start: block.snd_nxt, end })
    }

    /// `range` was sent as one packet that is larger than the others.
    pub(super) fn note_mtu_probe(&mut self, cx: &Context, range: Range) {
        let block = &*self.block;
        let options = block.mss as u32 - block.segment_size();
        let mtu = range.len() + options as u64 + self.mtu_bounds().headers as u64;
        self.live.mtu.on_sent(range, mtu.min(u16::MAX as u64) as u16);
        cx.count(Counter::MtuProbes);
    }

    /// An acknowledgment came: a probe that it covers has passed.
    pub(super) fn judge_mtu_probe(&mut self, cx: &Context) {
        if self.live.mtu.on_acknowledged(self.block.snd_una) {
            cx.count(Counter::MtuProbesPassed);
            self.set_mss();
        }
    }

    /// Something is lost. True if it is the probe alone: that is no sign of congestion (RFC 4821 §7.6.2).
    pub(super) fn is_lost_mtu_probe(&mut self, now: Instant) -> bool {
        let Some(probe) = self.live.mtu.probe() else {
            return false;
        };
        let recovery = &mut self.live.recovery;
        let first = recovery.board.first_lost();
        let alone = recovery.phase == Phase::Open
            && first.is_some_and(|lost| lost.start == probe.start && lost.end <= probe.end)
            && recovery.board.lost() <= probe.len();
        if !alone {
            self.live.mtu.forget();
            return false;
        }
        self.live.mtu.on_lost(now);
        recovery.board.lose_range(probe);
        true
    }

    /// The timer ran out: if it does so again and again, the path may swallow what is sent (RFC 4821 §7.7).
    pub(super) fn suspect_black_hole(&mut self, cx: &Context) {
        self.live.mtu.forget();
        let bounds = self.mtu_bounds();
        let block = &*self.block;
        // What is smaller than a full segment was not lost for its size.
        let is_full = block.flight_size() >= block.segment_size() as u64;
        if block.backoff < BLACK_HOLE || !block.has(bit::ROUTED) || !is_full {
            return;
        }
        if self.live.mtu.on_black_hole(cx.now, bounds) {
            cx.count(Counter::BlackHoles);
            self.set_mss();
        }
    }
}
