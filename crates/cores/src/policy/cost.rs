//! What a change of plan costs, and what it must promise to be worth that.
//!
//! A change holds traffic up: what is moved stands still, caches are cold, the peers' windows have to open again. How much
//! is *learnt*: the throughput that is missing in the looks in which a change settles, times their length, as a mean
//! that forgets; each moved component costs the same. Before the first change the costs are assumed ([`MOVE_NS`],
//! [`SPEED_NS`]). The load must last long enough to earn that back, and the way back if the change was a mistake: that is
//! estimated from how long loads have been lasting and how long the present one has.
//!
//! Promises: costs are finite, not negative, and at most as long as the looks that they were seen in.

use crate::plan::Plan;

/// Until it is learnt: what each moved component costs, of the throughput's time. A move stops one component for some
/// 0.4 ms, and windows that collapse meanwhile open again in some 15 ms.
const MOVE_NS: f64 = 5_000_000.0;
/// The same for a change of speeds alone.
const SPEED_NS: f64 = 1_000_000.0;
const NEWEST: f64 = 0.25;
/// A change that turns out badly is taken back, which costs as much again.
const THERE_AND_BACK: f64 = 2.0;
/// How long a load is expected to last yet, at least and at most.
const LASTS_MIN_NS: f64 = 1_000_000_000.0;
const LASTS_MAX_NS: f64 = 600_000_000_000.0;
/// What is over sooner is no load of its own.
const LOAD_NS_MIN: u64 = 100_000_000;

#[derive(Clone, Debug)]
pub struct Costs {
    move_ns: f64,
    speed_ns: f64,
    /// Mean length of the loads that are over.
    usual_ns: Option<f64>,
    load_since_ns: Option<u64>,
    /// A change under a steady load that is settling: moved components, and the throughput before.
    settling: Option<(usize, f64)>,
}

impl Default for Costs {
    fn default() -> Self {
        Self { move_ns: MOVE_NS, speed_ns: SPEED_NS, usual_ns: None, load_since_ns: None, settling: None }
    }
}

impl Costs {
    /// Time in which nothing passes that a change of plan is worth.
    pub fn of(&self, from: &Plan, to: &Plan) -> f64 {
        match moved(from, to) {
            0 => self.speed_ns,
            count => self.of_moves(count),
        }
    }

    /// The same for a change that moves so many components.
    pub fn of_moves(&self, count: usize) -> f64 {
        self.move_ns * count as f64
    }

    /// The gain that a change must promise now; at least `floor`.
    pub fn gain_min(&self, floor: f64, from: &Plan, to: &Plan, now_ns: u64) -> f64 {
        floor.max(THERE_AND_BACK * self.of(from, to) / self.lasts_ns(now_ns))
    }

    /// How long the present load will last yet: what is left of the usual length; but what has lasted so long will last as
    /// long again.
    fn lasts_ns(&self, now_ns: u64) -> f64 {
        let passed = self.load_age_ns(now_ns) as f64;
        self.usual_ns.map_or(passed, |usual| passed.max(usual - passed)).clamp(LASTS_MIN_NS, LASTS_MAX_NS)
    }

    pub fn load_age_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.load_since_ns.unwrap_or(now_ns))
    }

    pub fn load_begins(&mut self, now_ns: u64) {
        self.load_ends(now_ns);
        self.load_since_ns = Some(now_ns);
    }

    pub fn load_ends(&mut self, now_ns: u64) {
        self.settling = None;
        let Some(since_ns) = self.load_since_ns.take() else { return };
        let length_ns = now_ns.saturating_sub(since_ns);
        if length_ns >= LOAD_NS_MIN {
            let usual = self.usual_ns.get_or_insert(length_ns as f64);
            *usual += (length_ns as f64 - *usual) * NEWEST;
        }
    }

    /// The plan was changed under a load that brought this throughput; what comes now is the change's doing.
    pub fn begins(&mut self, from: &Plan, to: &Plan, throughput: f64) {
        self.settling = Some((moved(from, to), throughput));
    }

    /// The plan was changed for another reason: what comes now says nothing.
    pub fn forget(&mut self) {
        self.settling = None;
    }

    /// Throughput before the change that is settling.
    pub fn settling(&self) -> Option<f64> {
        self.settling.map(|(_, throughput)| throughput)
    }

    /// The change has settled; so much was missing, as time in which nothing passed.
    pub fn learn(&mut self, lost_ns: f64) {
        let Some((moved, _)) = self.settling.take() else { return };
        if !(lost_ns.is_finite() && lost_ns >= 0.0) {
            return;
        }
        let (mean, seen) = match moved {
            0 => (&mut self.speed_ns, lost_ns),
            count => (&mut self.move_ns, lost_ns / count as f64),
        };
        *mean += (seen - *mean) * NEWEST;
    }

    /// What each moved component costs, ns.
    pub fn move_ns(&self) -> f64 {
        self.move_ns
    }

    /// What a change of speeds alone costs, ns.
    pub fn speed_ns(&self) -> f64 {
        self.speed_ns
    }
}

fn moved(from: &Plan, to: &Plan) -> usize {
    let is_elsewhere = |name: &str, cpu: u32| from.seats.get(name).is_some_and(|seat| seat.cpu != cpu);
    to.seats.iter().filter(|(name, seat)| is_elsewhere(name, seat.cpu)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Seat;

    const S: u64 = 1_000_000_000;

    fn plan(cpus: [u32; 3], speed: f64) -> Plan {
        let seats = ["ip", "tcp", "nic0"].into_iter().zip(cpus);
        let seats = seats.map(|(name, cpu)| (name.into(), Seat { cpu, dedicated: false })).collect();
        Plan { seats, speeds: [(1, speed)].into(), ..Plan::default() }
    }

    #[test]
    fn more_moves_must_promise_more_and_a_speed_least() {
        let mut costs = Costs::default();
        costs.load_begins(0);
        let here = plan([1, 1, 1], 1.0);
        let gain = |to: &Plan, now_ns| costs.gain_min(0.001, &here, to, now_ns);
        let (speed, one, three) = (plan([1, 1, 1], 0.5), plan([1, 1, 2], 1.0), plan([2, 2, 2], 1.0));
        assert!(gain(&speed, S) < gain(&one, S) && gain(&one, S) * 2.9 < gain(&three, S));
        assert!((gain(&three, S) - 2.0 * 3.0 * MOVE_NS / 1e9).abs() < 1e-9);
        assert!(
            (gain(&three, 10 * S) - gain(&three, S) / 10.0).abs() < 1e-9,
            "it has lasted ten times as long"
        );
        assert_eq!(costs.gain_min(0.03, &here, &one, 10 * S), 0.03, "the floor");
    }

    #[test]
    fn loads_that_usually_last_long_pay_sooner_and_short_ones_later() {
        let here = plan([1, 1, 1], 1.0);
        let gain = |length_ns: u64| {
            let mut costs = Costs::default();
            for index in 0..20 {
                costs.load_begins(index * length_ns);
            }
            costs.gain_min(0.0, &here, &plan([2, 2, 2], 1.0), 19 * length_ns + S)
        };
        assert!(gain(30 * S) < gain(4 * S) / 5.0);
        assert!(gain(4 * S) < gain(S));
        // What is held for a look at a time is no load.
        assert_eq!(gain(LOAD_NS_MIN / 10), gain(LOAD_NS_MIN / 5));
    }

    #[test]
    fn what_a_change_was_seen_to_cost_replaces_what_was_assumed() {
        let mut costs = Costs::default();
        let (here, there) = (plan([1, 1, 1], 1.0), plan([2, 2, 1], 1.0));
        for _ in 0..30 {
            costs.begins(&here, &there, 100.0);
            costs.learn(60_000_000.0);
        }
        assert!((costs.of(&here, &there) - 60e6).abs() < 1e5);
        assert!((costs.of(&here, &plan([2, 2, 2], 1.0)) - 90e6).abs() < 2e5);
        assert_eq!(costs.of(&here, &plan([1, 1, 1], 0.5)), SPEED_NS, "a speed costs what it did");
        // Nothing was begun, or another load came meanwhile, or it is absurd.
        let before = costs.move_ns();
        costs.learn(1e12);
        costs.begins(&here, &there, 100.0);
        costs.load_begins(S);
        costs.learn(1e12);
        costs.begins(&here, &there, 100.0);
        costs.learn(f64::NAN);
        assert_eq!(costs.move_ns(), before);
    }

    /// A kernel with Bolt changes CPUs in a hundredth of the time: what a policy demands of a change has to follow.
    #[test]
    fn a_faster_way_to_reconfigure_pays_for_smaller_gains() {
        let mut costs = Costs::default();
        let (here, there) = (plan([1, 1, 1], 1.0), plan([2, 2, 1], 1.0));
        costs.load_begins(0);
        let mut gain_after = |lost_ns: f64, changes: u32| {
            for _ in 0..changes {
                costs.begins(&here, &there, 100.0);
                costs.learn(lost_ns);
            }
            costs.gain_min(0.0, &here, &there, 10 * S)
        };
        let (native_ns, bolt_ns) = (36_770_000.0, 400_000.0);
        let native = gain_after(native_ns, 30);
        assert!(gain_after(bolt_ns, 1) < native * 0.8, "the first one counts");
        let bolt = gain_after(bolt_ns, 29);
        assert!((native / bolt - native_ns / bolt_ns).abs() < 2.0, "{native} natively, {bolt} with Bolt");
        assert!(
            (gain_after(native_ns, 30) - native).abs() < native / 100.0,
            "and back, where Bolt is switched off"
        );
    }
}
