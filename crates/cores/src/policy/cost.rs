//! What a change of plan costs, and what it must promise to be worth that.
//!
//! A change delays traffic: moved components stand still, caches are cold, the peers' windows have to open again. The
//! cost is *learnt*: the throughput that is missing in the samples in which a change settles, times their length, as a
//! decaying mean; each moved component costs the same. Before the first change the costs are assumed ([`MOVE_NS`],
//! [`SPEED_NS`]). The load must last long enough to earn back the change, and its undoing if it was a mistake. How long
//! it will last is estimated from the lengths of earlier loads and of the present one.
//!
//! Promises: costs are finite, not negative, and at most as long as the samples in which they were observed.

use core::time::Duration;

use eft_base::Instant;
use eft_base::time::nanos;
use eft_machine::CpuId;

use crate::plan::Plan;
use crate::throughput::Throughput;

/// Initial cost of each moved component, in time without throughput. A move stops one component for some 0.4 ms, and
/// windows that collapse meanwhile open again in some 15 ms.
const MOVE_NS: f64 = 5_000_000.0;
/// The same for a change of speeds alone.
const SPEED_NS: f64 = 1_000_000.0;
const NEWEST: f64 = 0.25;
/// A change that turns out badly is taken back, which costs as much again.
const THERE_AND_BACK: f64 = 2.0;
/// Bounds on how much longer a load is expected to last.
const LASTS_MIN_NS: f64 = 1_000_000_000.0;
const LASTS_MAX_NS: f64 = 600_000_000_000.0;
/// A shorter burst does not count as a load.
const LOAD_MIN: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub struct Costs {
    move_ns: f64,
    speed_ns: f64,
    /// Mean length of past loads.
    usual_ns: Option<f64>,
    load_since: Option<Instant>,
    /// A change under a steady load that is settling: moved components, and the throughput before.
    settling: Option<(usize, Throughput)>,
}

impl Default for Costs {
    fn default() -> Self {
        Self { move_ns: MOVE_NS, speed_ns: SPEED_NS, usual_ns: None, load_since: None, settling: None }
    }
}

impl Costs {
    /// Cost of a change of plan, as time in which nothing passes.
    pub fn of(&self, from: &Plan, to: &Plan) -> Duration {
        whole(self.of_ns(from, to))
    }

    fn of_ns(&self, from: &Plan, to: &Plan) -> f64 {
        match moved(from, to) {
            0 => self.speed_ns,
            count => self.move_ns * count as f64,
        }
    }

    /// The same for a change that moves so many components.
    pub fn of_moves(&self, count: usize) -> Duration {
        whole(self.move_ns * count as f64)
    }

    /// The gain that a change must promise now; at least `floor`.
    pub fn gain_min(&self, floor: f64, from: &Plan, to: &Plan, now: Instant) -> f64 {
        floor.max(THERE_AND_BACK * self.of_ns(from, to) / self.lasts_ns(now))
    }

    /// How much longer the present load will last: the rest of the usual length, or as long as it has lasted already.
    fn lasts_ns(&self, now: Instant) -> f64 {
        let passed = nanos(self.load_age(now)) as f64;
        self.usual_ns.map_or(passed, |usual| passed.max(usual - passed)).clamp(LASTS_MIN_NS, LASTS_MAX_NS)
    }

    /// How long the present load has lasted.
    pub fn load_age(&self, now: Instant) -> Duration {
        now.saturating_since(self.load_since.unwrap_or(now))
    }

    pub fn load_begins(&mut self, now: Instant) {
        self.load_ends(now);
        self.load_since = Some(now);
    }

    pub fn load_ends(&mut self, now: Instant) {
        self.settling = None;
        let Some(since) = self.load_since.take() else { return };
        let length = now.saturating_since(since);
        if length >= LOAD_MIN {
            let length_ns = nanos(length) as f64;
            let usual = self.usual_ns.get_or_insert(length_ns);
            *usual += (length_ns - *usual) * NEWEST;
        }
    }

    /// The plan was changed under a load with this throughput; what is missing next is the cost of the change.
    pub fn begins(&mut self, from: &Plan, to: &Plan, throughput: Throughput) {
        self.settling = Some((moved(from, to), throughput));
    }

    /// The plan was changed for another reason: the next samples say nothing about its cost.
    pub fn forget(&mut self) {
        self.settling = None;
    }

    /// Throughput before the change that is settling.
    pub fn settling(&self) -> Option<Throughput> {
        self.settling.map(|(_, throughput)| throughput)
    }

    /// The change has settled; `lost` is the missing throughput, as time in which nothing passed.
    pub fn learn(&mut self, lost: Duration) {
        let Some((moved, _)) = self.settling.take() else { return };
        let lost_ns = nanos(lost) as f64;
        let (mean, seen) = match moved {
            0 => (&mut self.speed_ns, lost_ns),
            count => (&mut self.move_ns, lost_ns / count as f64),
        };
        *mean += (seen - *mean) * NEWEST;
    }

    /// What each moved component costs.
    pub fn of_move(&self) -> Duration {
        whole(self.move_ns)
    }

    /// What a change of speeds alone costs.
    pub fn of_speed(&self) -> Duration {
        whole(self.speed_ns)
    }
}

/// Means are kept in fractions of a nanosecond, and returned in whole ones.
fn whole(ns: f64) -> Duration {
    Duration::from_nanos(ns as u64)
}

fn moved(from: &Plan, to: &Plan) -> usize {
    let is_elsewhere = |name: &str, cpu: CpuId| from.seats.get(name).is_some_and(|seat| seat.cpu != cpu);
    to.seats.iter().filter(|(name, seat)| is_elsewhere(name, seat.cpu)).count()
}

#[cfg(test)]
mod tests;
