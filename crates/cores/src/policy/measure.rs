//! What a plan achieves: means over the samples since it was applied.
//!
//! The first samples after a change are left out, since caches and the peers' windows have to recover.

use alloc::collections::VecDeque;
use core::time::Duration;

use eft_base::time::nanos;
use eft_machine::{CpuId, Share, Watts};

use crate::estimate::{self, Activity};
use crate::indicators::{self, Mix};
use crate::observation::{ComponentLoad, Observation};
use crate::plan::Plan;
use crate::platform::Platform;
use crate::power::PowerModel;
use crate::sample::Hint;
use crate::throughput::Throughput;

/// Most samples that are kept.
const READINGS_MAX: usize = 64;
/// Samples after a change that say more about the change than about the plan.
pub const SETTLING_SAMPLES: usize = 4;
/// A CPU on which the stack works for more than this has nothing to spare.
const BUSY_SHARE: f64 = 0.93;
/// A smaller share of others may be an artefact of the kernel's ticks, see [`crate::applications`].
const OTHERS_DOUBT: f64 = 0.05;
/// On average over several samples, a CPU this busy is saturated.
const SATURATED_SHARE: f64 = 0.85;
/// A hint counts where the stack is that busy.
const HINT_SHARE: f64 = 0.4;
/// When a load grows, the stack's work grows by at least this share of that; batches grow with it.
const WORK_FOLLOWS: f64 = 0.4;
/// If work grew by more than this factor, the load grew, whatever the machine did.
const WORK_GREW: f64 = 1.5;
/// A queue that was so full was about to overflow, whatever its marks.
const FULL_SHARE: Share = Share(0.75);

/// One sample's figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    pub period: Duration,
    /// Delivered, see [`indicators::delivered`], per second.
    pub throughput: Throughput,
    /// Measured, or else modelled.
    pub power: Watts,
    /// Busiest CPU's share of work, polling not counted.
    pub busy: f64,
    pub overloaded: bool,
}

/// Means over several samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    pub throughput: Throughput,
    pub power: Watts,
    pub busy: f64,
    /// Share of samples with an overload.
    pub overloaded: f64,
    pub mix: Mix,
}

/// A throughput, and the work that it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Level {
    pub throughput: Throughput,
    /// Busiest CPU's share of work.
    pub busy: f64,
}

impl Measured {
    /// Whether the stack was saturated, so that its throughput depends on the machine more than on the load. Others on
    /// its CPUs lower that throughput, with the same symptoms.
    pub fn is_saturated(&self) -> bool {
        self.overloaded >= 0.5 || self.busy >= SATURATED_SHARE
    }

    pub fn level(&self) -> Level {
        Level { throughput: self.throughput, busy: self.busy }
    }
}

/// Whether throughput moved because the stack had more or less to do, under the same plan with the same kind of traffic.
/// Otherwise the same work took longer or went faster: others use the processor, its caches or its memory.
pub fn is_the_loads(was: Level, now: Level) -> bool {
    let (low, high) = if now.throughput < was.throughput { (now, was) } else { (was, now) };
    let ratio = |of: fn(&Level) -> f64| of(&high).max(1e-3) / of(&low).max(1e-3);
    let (done, work) = (ratio(|level| level.throughput.0), ratio(|level| level.busy));
    work >= (1.0 + (done - 1.0) * WORK_FOLLOWS).min(WORK_GREW)
}

#[derive(Clone, Debug, Default)]
pub struct Meter {
    readings: VecDeque<Reading>,
    since_change: usize,
}

impl Meter {
    pub fn restart(&mut self) {
        self.readings.clear();
        self.since_change = 0;
    }

    pub fn add(&mut self, reading: Reading) {
        self.since_change = self.since_change.saturating_add(1);
        if self.readings.len() == READINGS_MAX {
            self.readings.pop_front();
        }
        self.readings.push_back(reading);
    }

    /// Samples since the last change of plan.
    pub fn since_change(&self) -> usize {
        self.since_change
    }

    /// The throughput missing while the last change settled, relative to this one, as time in which nothing passed.
    pub fn missing(&self, throughput: Throughput) -> Duration {
        let skipped = self.readings.len().saturating_sub(self.since_change);
        let settling = self.readings.iter().skip(skipped).take(SETTLING_SAMPLES);
        let missing = |reading: &Reading| {
            (1.0 - reading.throughput.ratio_to(throughput)) * nanos(reading.period) as f64
        };
        // Noise has both signs, so the sum is clamped at zero, not the single samples.
        Duration::from_nanos(settling.map(missing).sum::<f64>().max(0.0) as u64)
    }

    /// Means over the last `count` samples since the change, without those in which it settled; `None` while there are
    /// too few.
    pub fn last(&self, count: usize, settling: usize, mix: Mix) -> Option<Measured> {
        if count == 0 || self.since_change < count + settling || self.readings.len() < count {
            return None;
        }
        let readings = || self.readings.iter().rev().take(count);
        let mean = |of: fn(&Reading) -> f64| readings().map(of).sum::<f64>() / count as f64;
        Some(Measured {
            throughput: Throughput(mean(|reading| reading.throughput.0)),
            power: readings().map(|reading| reading.power).sum::<Watts>() / count as f64,
            busy: mean(|reading| reading.busy),
            overloaded: mean(|reading| f64::from(u8::from(reading.overloaded))),
            mix,
        })
    }
}

impl Reading {
    pub fn level(&self) -> Level {
        Level { throughput: self.throughput, busy: self.busy }
    }

    pub fn of(platform: &Platform, model: &PowerModel, plan: &Plan, seen: &Observation) -> Self {
        let activity = estimate::seen_activity(plan, seen);
        let modelled = || estimate::power(platform, model, plan, &activity);
        let delivered = indicators::delivered(&seen.traffic);
        let work = work(plan, seen);
        let busy = work.values().copied().fold(0.0, f64::max);
        Self {
            period: seen.period,
            throughput: Throughput(delivered * 1e9 / nanos(seen.period).max(1) as f64),
            power: seen.power.unwrap_or_else(modelled),
            busy,
            overloaded: is_full(&work, seen) || seen.components.iter().any(|load| is_overloaded(load, busy)),
        }
    }
}

/// Share of work on each used CPU, without polling.
fn work(plan: &Plan, seen: &Observation) -> Activity {
    let busy = |name: &str| seen.component(name).map_or(0.0, |load| load.busy.0);
    plan.used().iter().map(|cpu| (cpu, plan.on(cpu).map(busy).sum::<f64>())).collect()
}

/// Whether a used CPU has nothing to spare. Others' share counts where the stack itself has much to do there: its
/// programs then compete with it.
fn is_full(work: &Activity, seen: &Observation) -> bool {
    let others = |cpu: CpuId| seen.cpu(cpu).map_or(0.0, |load| (load.others.0 - OTHERS_DOUBT).max(0.0));
    work.iter()
        .any(|(cpu, busy)| *busy > BUSY_SHARE || (*busy >= HINT_SHARE && busy + others(*cpu) > BUSY_SHARE))
}

/// A component that waits for a CPU on which the stack has little to do waits for other programs: more cores for the
/// stack would not help.
fn is_overloaded(load: &ComponentLoad, busy: f64) -> bool {
    let complains = load.hint != Hint::None && busy >= HINT_SHARE;
    load.overloads > 0 || complains || load.fill() >= FULL_SHARE
}

#[cfg(test)]
mod tests;
