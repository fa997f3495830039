//! When a quick sample is enough, and when a whole sample is taken.
//!
//! A whole sample reads everything and lets the policy decide: a hundred microseconds. A quick sample reads a few
//! counters that are in memory anyway. While the policy searches, every period has a whole sample; when it has settled,
//! or nothing happens, quick samples watch for what calls for a whole one: an overload, a changed load, the first
//! packet.
//!
//! Must never happen: an overload that is noticed later than one period after it began, or a sample that never comes.

use eft_base::Instant;

/// The few counters of a stack that say whether a whole sample is worth while. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuickSample {
    /// Turns of all components.
    pub beats: u64,
    /// Payload bytes and segments, both directions.
    pub moved: u64,
    /// Overloads of queues, and hints: how often they arose.
    pub distress: u64,
}

/// After so many quick samples in which nothing moved, the stack is at rest.
const IDLE_QUICK_SAMPLES: u32 = 16;
/// At rest, a quick sample every so many periods.
const REST_PERIODS: u32 = 4;
/// Quick samples per whole one, at rest and settled: the policy has to see that the stack rests, or that the load is
/// the same.
const REST_QUICK_SAMPLES: u32 = 8;
const SETTLED_QUICK_SAMPLES: u32 = 5;
/// Whole samples in a row after a change was noticed: a policy acts on several, not on one.
const ALERT_SAMPLES: u32 = 12;
/// A load that departs so far from its mean is a new load.
const DEPARTED: f64 = 0.3;
/// Weight of the newest quick sample in that mean.
const NEWEST: f64 = 0.05;
/// Less movement than this in a quick sample says nothing about a load.
const MOVED_MIN: f64 = 20_000.0;

#[derive(Default)]
pub struct Attention {
    last: QuickSample,
    last_at: Instant,
    idle: u32,
    since_sample: u32,
    alert: u32,
    /// Moved per second: the mean, and the last quick sample's.
    mean: f64,
    previous: f64,
    /// Share of quick samples with distress: a load that always fills its queues does not count as a change.
    distress: f64,
}

/// Whether to take a whole sample now, and in how many periods to take the next quick one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    pub sample: bool,
    pub periods: u32,
}

impl Attention {
    pub fn pay(&mut self, quick_sample: QuickSample, now: Instant, settled: bool, members: u64) -> Pace {
        let before = core::mem::replace(&mut self.last, quick_sample);
        let length_s = now.saturating_since(core::mem::replace(&mut self.last_at, now)).as_secs_f64();
        // An idle stack's timers cause a few turns too.
        let beats = quick_sample.beats.wrapping_sub(before.beats) > members;
        self.idle = if beats { 0 } else { self.idle.saturating_add(1) };
        let notice = self.notices(quick_sample, before, length_s);
        if notice {
            self.alert = ALERT_SAMPLES;
        }
        self.since_sample += 1;
        let rest = self.idle >= IDLE_QUICK_SAMPLES;
        let every = match (rest, settled && self.alert == 0) {
            (true, _) => REST_QUICK_SAMPLES,
            (false, true) => SETTLED_QUICK_SAMPLES,
            (false, false) => 1,
        };
        self.alert = self.alert.saturating_sub(1);
        let sample = self.since_sample >= every;
        if sample {
            self.since_sample = 0;
        }
        Pace { sample, periods: if rest { REST_PERIODS } else { 1 } }
    }

    fn notices(&mut self, quick_sample: QuickSample, before: QuickSample, length_s: f64) -> bool {
        let distressed = quick_sample.distress != before.distress;
        let usual = self.distress > 0.5;
        self.distress += (f64::from(u8::from(distressed)) - self.distress) * NEWEST;
        let moved = quick_sample.moved.wrapping_sub(before.moved) as f64 / length_s.max(1e-4);
        // The mean of two: a pause between two segments is no pause of the load.
        let level = (moved + self.previous) / 2.0;
        self.previous = moved;
        let departed = (level - self.mean).abs() > self.mean.max(MOVED_MIN / length_s.max(1e-4)) * DEPARTED;
        self.mean += (moved - self.mean) * NEWEST;
        departed || (distressed && !usual)
    }
}

#[cfg(test)]
mod tests;
