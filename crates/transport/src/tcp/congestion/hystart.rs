//! HyStart++ (RFC 9406): slow start ends when round trips grow longer, before a queue overflows.
//!
//! Or HyStart, from which it comes, as Linux's CUBIC has it (`eft up --slow-start hystart`): it ends at once, and compares with
//! the shortest round trip of all; from a window of 16 segments on.
//!
//! Derived state: after a rebirth a round begins anew.

use core::str::FromStr;

/// How slow start ends before a loss, as `eft up --slow-start` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStart {
    /// RFC 9406: growth is a quarter at first, until it is clear that the delay stays.
    #[default]
    HyStartPlusPlus,
    /// As Linux's CUBIC.
    HyStart,
}

impl SlowStart {
    pub fn name(self) -> &'static str {
        match self {
            SlowStart::HyStartPlusPlus => "hystart++",
            SlowStart::HyStart => "hystart",
        }
    }
}

impl FromStr for SlowStart {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<SlowStart, &'static str> {
        let all = [SlowStart::HyStartPlusPlus, SlowStart::HyStart];
        all.into_iter().find(|kind| kind.name() == text).ok_or("is neither hystart++ nor hystart")
    }
}

/// HyStart watches windows of at least so many segments (Linux's `hystart_low_window`).
const LOW_WINDOW: u32 = 16;

/// §4.3
const THRESHOLD_MIN_US: u32 = 4_000;
const THRESHOLD_MAX_US: u32 = 16_000;
const THRESHOLD_DIVISOR: u32 = 8;
const SAMPLES: u32 = 8;
const GROWTH_DIVISOR: u32 = 4;
const ROUNDS: u32 = 5;

/// No round trip measured yet.
const UNKNOWN: u32 = u32::MAX;

/// Conservative slow start (§4.2): growth is a quarter, until it is clear that the delay stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Conservative {
    baseline_us: u32,
    rounds: u32,
}

/// The state of one connection's first slow start.
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    /// A round ends when this is acknowledged.
    window_end: u64,
    last_us: u32,
    current_us: u32,
    samples: u32,
    conservative: Option<Conservative>,
}

impl Default for HyStart {
    fn default() -> Self {
        HyStart { window_end: 0, last_us: UNKNOWN, current_us: UNKNOWN, samples: 0, conservative: None }
    }
}

/// The result of an acknowledgment in slow start.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub una: u64,
    pub nxt: u64,
    pub rtt_us: Option<u32>,
    pub min_rtt_us: u32,
    /// The window, in segments.
    pub cwnd: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// The window grows by this many bytes.
    By(u32),
    /// Slow start is over.
    Over,
}

impl HyStart {
    /// How an acknowledgment of `bytes` lets the window grow.
    pub fn on_ack(&mut self, kind: SlowStart, round: Round, bytes: u32) -> Growth {
        if kind == SlowStart::HyStart {
            return if self.is_over(round) { Growth::Over } else { Growth::By(bytes) };
        }
        if round.una > self.window_end && self.begin_round(round.nxt) {
            return Growth::Over;
        }
        if let Some(us) = round.rtt_us {
            self.current_us = self.current_us.min(us);
            self.samples += 1;
        }
        if self.samples >= SAMPLES {
            self.judge();
        }
        Growth::By(if self.conservative.is_some() { bytes / GROWTH_DIVISOR } else { bytes })
    }

    /// HyStart: whether the first nine round trips of a round are all longer than the shortest one by an eighth, within bounds.
    fn is_over(&mut self, round: Round) -> bool {
        let Some(us) = round.rtt_us.filter(|_| round.cwnd >= LOW_WINDOW) else {
            return false;
        };
        if round.una > self.window_end {
            (self.window_end, self.current_us, self.samples) = (round.nxt, UNKNOWN, 0);
        }
        self.current_us = self.current_us.min(us);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let threshold = (round.min_rtt_us / THRESHOLD_DIVISOR).clamp(THRESHOLD_MIN_US, THRESHOLD_MAX_US);
        self.current_us > round.min_rtt_us.saturating_add(threshold)
    }

    /// True if it was the last one.
    fn begin_round(&mut self, nxt: u64) -> bool {
        self.window_end = nxt;
        self.last_us = self.current_us;
        self.current_us = UNKNOWN;
        self.samples = 0;
        let Some(conservative) = &mut self.conservative else {
            return false;
        };
        conservative.rounds += 1;
        conservative.rounds > ROUNDS
    }

    fn judge(&mut self) {
        match self.conservative {
            None if self.current_us != UNKNOWN && self.last_us != UNKNOWN => {
                let threshold = (self.last_us / THRESHOLD_DIVISOR).clamp(THRESHOLD_MIN_US, THRESHOLD_MAX_US);
                if self.current_us >= self.last_us.saturating_add(threshold) {
                    self.conservative = Some(Conservative { baseline_us: self.current_us, rounds: 0 });
                }
            }
            // The delay was temporary.
            Some(conservative) if self.current_us < conservative.baseline_us => self.conservative = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
