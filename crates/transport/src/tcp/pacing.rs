//! Pacing: segments leave at a rate, not all at once when a window allows it, as with Linux's internal pacing: twice a window in a
//! round trip in slow start, a fifth more than a window in avoidance, and no more than SO_MAX_PACING_RATE.
//!
//! By default, as on Linux without the queueing discipline `fq`, a connection is paced only if its application set
//! SO_MAX_PACING_RATE. And so that bulk transfer over short paths costs nothing more, one more burst is spread: that of a window
//! which proportional rate reduction has kept, since acknowledgements came while nothing could be sent (`prr_delivered -
//! prr_out`, RFC 9937 §6), or which lies empty when a recovery ends. RFC 9937 §6 lets it go at once; a queue that cannot hold
//! it loses its end, and nothing later shows that loss. So no more than an initial window (RFC 6928 §2) of it leaves at once
//! on paths whose round trip is a millisecond or more.
//!
//! Derived state: after a rebirth the pace begins anew.

use super::congestion::Congestion;
use super::congestion::bbr::FIRST_PERCENT;
use crate::timers::NEVER;
use core::str::FromStr;
use core::time::Duration;
use eft_base::Instant;

/// Which connections are paced, as `eft up` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// Those that SO_MAX_PACING_RATE asks for it, and the bursts of a recovery.
    #[default]
    Auto,
    /// All, as with Linux's `fq`.
    On,
}

impl Pacing {
    pub fn name(self) -> &'static str {
        match self {
            Pacing::Auto => "auto",
            Pacing::On => "on",
        }
    }
}

impl FromStr for Pacing {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Pacing, &'static str> {
        let all = [Pacing::Auto, Pacing::On];
        all.into_iter().find(|pacing| pacing.name() == text).ok_or("is neither auto nor on")
    }
}

/// No limit, in bytes per second.
pub const UNLIMITED: u64 = u64::MAX;
/// Time that a late timer may make up for at once, if half of what is sent takes less.
const CREDIT: Duration = Duration::from_micros(500);

/// The most of a delay that is made up for at once, while segments wait for nothing but the pace. A server that shares its CPU may
/// sleep for a tick of the kernel (4 ms) too long. Without this it sends less than the rate, and a congestion control that measures
/// rates takes that for the path's, and sends less again.
const DELAY_MAX: Duration = Duration::from_millis(5);

/// How a connection is paced at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Bytes per second; not 0.
    pub rate: u64,
    /// Bytes that may go at once.
    pub burst: u64,
}

impl Beat {
    /// How long `bytes` take.
    fn time(&self, bytes: u64) -> Duration {
        let ns = bytes as u128 * 1_000_000_000 / self.rate.max(1) as u128;
        Duration::from_nanos(ns.min(u32::MAX as u128 * 1000) as u64)
    }
}

/// The pace of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// As configured when the connection was established.
    pub mode: Pacing,
    /// SO_MAX_PACING_RATE, in bytes per second.
    pub limit: u64,
    /// When a wire with the rate has carried what was sent.
    free_at: Instant,
    /// What was to be sent had to wait for that, and has waited for nothing else since.
    waited: bool,
    /// Until this is acknowledged bursts are spread: a recovery has just ended.
    pub calm_at: u64,
    /// When sending goes on, and for what.
    pub resume_at: Instant,
    pub resume_for: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            mode: Pacing::default(),
            limit: UNLIMITED,
            free_at: Instant::ZERO,
            waited: false,
            calm_at: 0,
            resume_at: NEVER,
            resume_for: 0,
        }
    }
}

impl Pace {
    /// When the next segment may leave, if not now.
    pub fn wait(&mut self, now: Instant, beat: Beat) -> Option<Instant> {
        let at = self.busy_until(now, beat);
        self.waited |= at.is_some();
        at
    }

    /// When a next segment could leave, if there were one, and if not now.
    pub fn busy_until(&self, now: Instant, beat: Beat) -> Option<Instant> {
        let burst = beat.time(beat.burst).as_nanos() as u64;
        let at = Instant(self.free_at.as_nanos().saturating_sub(burst));
        (at > now).then_some(at)
    }

    /// Nothing is to be sent now, for another reason than the pace.
    pub fn on_rest(&mut self) {
        self.waited = false;
    }

    /// `len` bytes were sent.
    pub fn on_sent(&mut self, now: Instant, beat: Beat, len: u64) {
        let time = beat.time(len);
        let least = if self.waited { DELAY_MAX } else { CREDIT };
        let credit = match beat.burst {
            0 => least.max(time / 2).as_nanos() as u64,
            _ => 0,
        };
        self.free_at = self.free_at.max(Instant(now.as_nanos().saturating_sub(credit))) + time;
    }
}

/// The rate of a window in bytes per second, as Linux's `tcp_update_pacing_rate` has it; `None` before a round trip is measured. Of BBR
/// it is the first, with which the search for the path's begins (`bbr_init_pacing_rate_from_rtt`).
pub fn window_rate(congestion: &Congestion, srtt_us: u32) -> Option<u64> {
    let percent = match () {
        _ if congestion.is_by_rate() => FIRST_PERCENT,
        _ if congestion.cwnd < congestion.ssthresh / 2 => 200,
        _ => 120,
    };
    (congestion.cwnd as u64 * percent * 10_000).checked_div(srtt_us as u64)
}

#[cfg(test)]
mod tests;
