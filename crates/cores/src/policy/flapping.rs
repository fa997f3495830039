//! A load that changes its level more often than it pays to follow.
//!
//! Following each change costs a reconfiguration, and comes too late (thesis 4.6: "not worth to expand or consolidate,
//! especially when the workload changes frequently"). So when the level of the load turns round often, `adaptive` holds
//! still: it measures the consolidated and the spread stack, on either of equal CPUs that others use, each over several
//! flips, and keeps the one that is better on average, until the load calms down.
//!
//! Throughput also jumps when others use the same processor. So a turn counts as the load's only if it lasts, and if
//! the stack's work or the kind of traffic changed too. A plan that was chosen before is held again without measuring,
//! if the same load comes back soon.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use eft_base::Instant;
use eft_machine::Watts;

use crate::indicators::Mix;
use crate::plan::Plan;
use crate::policy::Goal;
use crate::policy::measure::{Level, Reading, is_the_loads};
use crate::policy::memory::SAME_MIX;
use crate::throughput::Throughput;

/// A level that differs by this factor is a new one.
const FACTOR: f64 = 1.6;
/// So many turns within [`SPAN`] are flapping.
const TURNS: usize = 5;
const SPAN: Duration = Duration::from_millis(1500);
/// How long each configuration is measured; several flips of 100 ms.
const TRIAL: Duration = Duration::from_millis(800);
/// So many samples right after a change say nothing about the load.
const BLIND_SAMPLES: usize = 5;
/// A shorter change is no turn of the load but a stall of the machine: a hypervisor stops a CPU for ten milliseconds
/// now and then.
const LASTING: Duration = Duration::from_millis(40);
/// The mix of a flapping load is only approximate, so this difference is tolerated.
const MIX_OF_FLIPS: f64 = 0.4;
/// How long a verdict holds, at first and at most.
const VERDICT: Duration = Duration::from_secs(60);
const VERDICT_DOUBLINGS_MAX: u32 = 6;
/// Turns of a load that leaves every CPU less busy than this do not matter.
const BUSY_MIN: f64 = 0.15;

#[derive(Clone, Debug, Default)]
pub struct Flapping {
    /// The extremes since the last turn.
    low: Seen,
    high: Seen,
    rising: Option<bool>,
    turning_since: Option<Instant>,
    busy: f64,
    turns: VecDeque<Instant>,
    trial: Option<Trial>,
    verdict: Option<Verdict>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    level: Level,
    mix: Mix,
}

#[derive(Clone, Debug)]
struct Verdict {
    plan: Plan,
    mix: Mix,
    until: Instant,
    times: u32,
}

#[derive(Clone, Debug)]
struct Trial {
    plans: Vec<Plan>,
    results: Vec<(Throughput, Watts)>,
    began: Instant,
    sum: (Throughput, Watts, f64),
    held: bool,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Advice {
    /// The load is calm.
    Calm,
    /// Stay with this plan; the text says why when that is new.
    Hold(Plan, Option<&'static str>),
}

impl Flapping {
    /// Notes the level of the load; `since_change` counts samples since the plan changed.
    pub fn note(&mut self, time: Instant, reading: Reading, mix: Mix, since_change: usize) {
        self.busy = (self.busy * 0.95).max(reading.busy);
        let level = reading.level();
        let now = Seen { level, mix };
        while self.turns.front().is_some_and(|at| time.saturating_since(*at) > SPAN) {
            self.turns.pop_front();
        }
        if since_change < BLIND_SAMPLES {
            return self.begin_from(now);
        }
        if level.throughput >= self.high.level.throughput {
            self.high = now;
        }
        if level.throughput <= self.low.level.throughput {
            self.low = now;
        }
        let fell = level.throughput * FACTOR < self.high.level.throughput;
        let rose = level.throughput > self.low.level.throughput * FACTOR;
        let turns = match self.rising {
            Some(true) => fell,
            Some(false) => rose,
            None => fell || rose,
        };
        match self.turning_since {
            None if turns => self.turning_since = Some(time),
            Some(_) if !turns => self.begin_from(now),
            Some(since) if time.saturating_since(since) >= LASTING => self.turn(time, now, fell),
            _ => {}
        }
    }

    fn begin_from(&mut self, now: Seen) {
        (self.low, self.high, self.turning_since) = (now, now, None);
    }

    fn turn(&mut self, time: Instant, now: Seen, fell: bool) {
        let was = if fell { self.high } else { self.low };
        self.rising = Some(!fell);
        self.begin_from(now);
        let is_the_loads = is_the_loads(was.level, now.level) || was.mix.difference(&now.mix) > SAME_MIX;
        if self.turns.len() < 64 && self.busy >= BUSY_MIN && is_the_loads {
            self.turns.push_back(time);
        }
    }

    /// `plans`: the candidates, the present plan among them.
    pub fn advise(
        &mut self,
        time: Instant,
        reading: Reading,
        mix: Mix,
        goal: Goal,
        plans: impl FnOnce() -> Vec<Plan>,
    ) -> Advice {
        if self.is_stale(time) {
            self.trial = None;
        }
        if self.trial.is_none() {
            if self.turns.len() < TURNS {
                return Advice::Calm;
            }
            if let Some(known) = self.known(time, mix) {
                self.trial = Some(Trial::new(alloc::vec![known.clone()], time, true));
                return Advice::Hold(known, Some("the load flaps again; holds what was better on average"));
            }
            let trial = Trial::new(plans(), time, false);
            let Some(first) = trial.plans.first().cloned() else { return Advice::Calm };
            self.trial = Some(trial);
            return Advice::Hold(
                first,
                Some("the load flaps; measures consolidated and spread over several flips"),
            );
        }
        if self.turns.len() < 2 {
            self.trial = None;
            return Advice::Calm;
        }
        let Some(trial) = &mut self.trial else { return Advice::Calm };
        let was_held = trial.held;
        let advice = trial.step(time, reading, goal);
        if trial.held && !was_held {
            let plan = trial.chosen();
            self.judge(plan, time, mix);
        }
        advice
    }

    /// Whether the verdict is so old that it has to be measured again; this happens ever more seldom.
    fn is_stale(&self, time: Instant) -> bool {
        let held = self.trial.as_ref().is_some_and(|trial| trial.held);
        held && self.verdict.as_ref().is_none_or(|verdict| time >= verdict.until)
    }

    /// The plan that was better on average when this load flapped before.
    fn known(&self, time: Instant, mix: Mix) -> Option<Plan> {
        let verdict = self.verdict.as_ref().filter(|verdict| time < verdict.until)?;
        (verdict.mix.difference(&mix) <= MIX_OF_FLIPS).then(|| verdict.plan.clone())
    }

    fn judge(&mut self, plan: Plan, time: Instant, mix: Mix) {
        let same = self.verdict.as_ref().filter(|verdict| verdict.plan.is_same(&plan));
        let times = same.map_or(0, |verdict| (verdict.times + 1).min(VERDICT_DOUBLINGS_MAX));
        let until = time + VERDICT * (1 << times);
        self.verdict = Some(Verdict { plan, mix, until, times });
    }

    /// The stack rests: turns are forgotten, verdicts are kept.
    pub fn rest(&mut self) {
        *self = Self { verdict: self.verdict.take(), ..Self::default() };
    }
}

impl Trial {
    fn new(plans: Vec<Plan>, began: Instant, held: bool) -> Self {
        Self { plans, results: Vec::new(), began, sum: (Throughput::NONE, Watts::ZERO, 0.0), held }
    }

    fn chosen(&self) -> Plan {
        self.plans.first().cloned().unwrap_or_default()
    }

    fn step(&mut self, time: Instant, reading: Reading, goal: Goal) -> Advice {
        let current = |trial: &Self| trial.plans.get(trial.results.len()).cloned().unwrap_or_default();
        if self.held {
            return Advice::Hold(self.chosen(), None);
        }
        self.sum = (self.sum.0 + reading.throughput, self.sum.1 + reading.power, self.sum.2 + 1.0);
        if time.saturating_since(self.began) < TRIAL {
            return Advice::Hold(current(self), None);
        }
        let (throughput, power, readings) = self.sum;
        self.results.push((throughput / readings, power / readings));
        (self.began, self.sum) = (time, (Throughput::NONE, Watts::ZERO, 0.0));
        if self.results.len() < self.plans.len() {
            return Advice::Hold(current(self), Some("the load flaps; measures the next configuration"));
        }
        let best = self.results.iter().map(|result| result.0).fold(Throughput(1e-9), Throughput::max);
        let score = |index: &usize| goal.score(self.results[*index].0 / best, self.results[*index].1);
        let chosen = (0..self.plans.len()).max_by(|a, b| score(a).total_cmp(&score(b))).unwrap_or(0);
        self.plans = alloc::vec![self.plans[chosen].clone()];
        self.held = true;
        Advice::Hold(self.chosen(), Some("the load flaps; holds what is better on average"))
    }
}
