//! A load that flips faster than it pays to follow.
//!
//! Following each flip costs a reconfiguration, and comes too late (thesis 4.6: "not worth to expand or consolidate,
//! especially when the workload changes frequently"). So when the level of the load turns round often, `adaptive` holds
//! still: it measures the consolidated and the spread stack, each over several flips, and keeps the one that is better
//! on average, until the load calms down.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::plan::Plan;
use crate::policy::Objective;
use crate::policy::measure::Look;

/// A level is another if it differs by this factor.
const FACTOR: f64 = 1.6;
/// So many turns within [`SPAN_NS`] are flapping.
const TURNS: usize = 5;
const SPAN_NS: u64 = 1_500_000_000;
/// How long each configuration is measured; several flips of 100 ms.
const TRIAL_NS: u64 = 800_000_000;
/// Looks right after a change say nothing about the load.
const BLIND_LOOKS: usize = 5;
/// Turns of a load that leaves every CPU less busy than this do not matter.
const BUSY_MIN: f64 = 0.15;

#[derive(Clone, Debug, Default)]
pub struct Flapping {
    low: f64,
    high: f64,
    rising: Option<bool>,
    previous: f64,
    busy: f64,
    turns: VecDeque<u64>,
    trial: Option<Trial>,
}

#[derive(Clone, Debug)]
struct Trial {
    plans: Vec<Plan>,
    results: Vec<(f64, f64)>,
    began_ns: u64,
    sum: (f64, f64, f64),
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
    /// Notes the level of the load; `since_change` counts looks since the plan changed.
    pub fn note(&mut self, now_ns: u64, look: Look, since_change: usize) {
        self.busy = (self.busy * 0.95).max(look.busy);
        // Two looks together: one may fall into a pause between two segments.
        let level = (look.throughput + self.previous) / 2.0;
        self.previous = look.throughput;
        while self.turns.front().is_some_and(|at| now_ns.saturating_sub(*at) > SPAN_NS) {
            self.turns.pop_front();
        }
        if since_change < BLIND_LOOKS {
            return (self.low, self.high) = (level, level);
        }
        self.high = self.high.max(level);
        self.low = self.low.min(level);
        let fell = level * FACTOR < self.high;
        let rose = level > self.low * FACTOR;
        let turned = match self.rising {
            Some(true) => fell,
            Some(false) => rose,
            None => fell || rose,
        };
        if turned {
            self.rising = Some(self.rising.map_or(rose && !fell, |rising| !rising));
            (self.low, self.high) = (level, level);
            if self.turns.len() < 64 && self.busy >= BUSY_MIN {
                self.turns.push_back(now_ns);
            }
        }
    }

    /// `plans`: what there is to choose from, the present one among them.
    pub fn advise(
        &mut self,
        now_ns: u64,
        look: Look,
        objective: Objective,
        plans: impl FnOnce() -> Vec<Plan>,
    ) -> Advice {
        if self.trial.is_none() {
            if self.turns.len() < TURNS {
                return Advice::Calm;
            }
            let trial = Trial {
                plans: plans(),
                results: Vec::new(),
                began_ns: now_ns,
                sum: (0.0, 0.0, 0.0),
                held: false,
            };
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
        match &mut self.trial {
            Some(trial) => trial.step(now_ns, look, objective),
            None => Advice::Calm,
        }
    }
}

impl Trial {
    fn chosen(&self) -> Plan {
        self.plans.first().cloned().unwrap_or_default()
    }

    fn step(&mut self, now_ns: u64, look: Look, objective: Objective) -> Advice {
        let current = |trial: &Self| trial.plans.get(trial.results.len()).cloned().unwrap_or_default();
        if self.held {
            return Advice::Hold(self.chosen(), None);
        }
        self.sum = (self.sum.0 + look.throughput, self.sum.1 + look.power_w, self.sum.2 + 1.0);
        if now_ns.saturating_sub(self.began_ns) < TRIAL_NS {
            return Advice::Hold(current(self), None);
        }
        let (throughput, power, looks) = self.sum;
        self.results.push((throughput / looks, power / looks));
        (self.began_ns, self.sum) = (now_ns, (0.0, 0.0, 0.0));
        if self.results.len() < self.plans.len() {
            return Advice::Hold(current(self), Some("the load flaps; measures the next configuration"));
        }
        let best = self.results.iter().map(|result| result.0).fold(1e-9, f64::max);
        let score = |index: &usize| objective.score(self.results[*index].0 / best, self.results[*index].1);
        let chosen = (0..self.plans.len()).max_by(|a, b| score(a).total_cmp(&score(b))).unwrap_or(0);
        self.plans = alloc::vec![self.plans[chosen].clone()];
        self.held = true;
        Advice::Hold(self.chosen(), Some("the load flaps; holds what is better on average"))
    }
}
