//! Which connections are paced at a time, and how ([`super::pacing`]).

use super::congestion::initial_window;
use super::connection::Connection;
use super::pacing::{Beat, Pacing, UNLIMITED, window_rate};
use super::recovery::Phase;
use eft_base::Instant;
use eft_channel::socket::pacing;

/// The first segments are not paced, as on Linux: few paths cannot take them, and many exchanges end with them.
const FIRST_SEGMENTS: u32 = 10;
/// Bursts of a recovery are spread if a round trip takes so long.
const LONG_US: u32 = 1_000;

impl Connection<'_> {
    /// Takes SO_MAX_PACING_RATE from the page.
    pub(super) fn take_pacing_limit(&mut self) {
        self.live.pace.limit = match &self.live.page {
            Some(page) => pacing::limit(|option| page.option(option)),
            None => UNLIMITED,
        };
    }

    /// Bytes per second at which the connection sends, or would if it were paced.
    pub(super) fn pacing_rate(&self) -> u64 {
        let block = &*self.block;
        let by_window = || window_rate(&block.congestion, block.rtt.srtt_us);
        let set = self.live.bbr.as_ref().and_then(|bbr| bbr.rate());
        set.or_else(by_window).unwrap_or(UNLIMITED).min(self.live.pace.limit)
    }

    fn beat(&self) -> Option<Beat> {
        let (block, live) = (&*self.block, &*self.live);
        let by_rate = block.congestion.is_by_rate();
        let always = by_rate || live.pace.mode == Pacing::On || live.pace.limit != UNLIMITED;
        let is_long = || block.rtt.srtt_us >= LONG_US;
        let burst = match always {
            true if live.statistics.counted.data_segments_out >= FIRST_SEGMENTS => 0,
            false if self.may_burst() && is_long() => initial_window(block.segment_size()) as u64,
            _ => return None,
        };
        let rate = self.pacing_rate();
        (rate != 0 && rate != UNLIMITED).then_some(Beat { rate, burst })
    }

    /// Whether the window may have become free without acknowledgements that spread what is sent.
    fn may_burst(&self) -> bool {
        self.live.recovery.phase == Phase::Recovery || self.block.snd_una < self.live.pace.calm_at
    }

    /// When the next segment may leave, if not now.
    pub(super) fn paced_until(&mut self, now: Instant) -> Option<Instant> {
        let beat = self.beat()?;
        self.live.pace.wait(now, beat)
    }

    /// When a next segment could leave, if there were one: now, or when the pace allows it.
    pub(super) fn pace_allows_at(&self, now: Instant) -> Instant {
        self.beat().and_then(|beat| self.live.pace.busy_until(now, beat)).unwrap_or(now)
    }

    pub(super) fn keep_pace(&mut self, now: Instant, len: u64) {
        if let Some(beat) = self.beat() {
            self.live.pace.on_sent(now, beat, len);
        }
    }

    /// A recovery ended: what its window allows now may be a burst.
    pub(super) fn calm_down(&mut self) {
        self.live.pace.calm_at = self.block.snd_una + self.block.congestion.cwnd as u64;
    }
}
