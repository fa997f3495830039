//! One run of tier 1 under a policy, or under none.

use std::cmp::Reverse;

use eft_base::random::Random;
use eft_component::scheduling::PolicyName;
use eft_cores::error::SchedulerError;
use eft_cores::history::History;
use eft_cores::plan::Plan;
use eft_cores::policy::{Goal, Settings};
use eft_cores::profile::Profiles;
use eft_cores::scheduler::Scheduler;
use eft_machine::CpuId;

use super::change::{Clocks, InForce};
use super::job::{Job, Offered};
use super::judge::{Judge, Reached};
use super::latency::Latency;
use super::meter::Meter;
use super::placement::{PLACED, Placement};
use super::profiles::swept;
use super::rates::Rates;
use super::search::{self, Rated, in_parallel};
use super::sensor::Sensor;
use super::told;
use crate::batch::Setting;
use crate::calibration::{Calibration, CalibrationError};
use crate::hardware::{Cores, PS_PER_MS, PS_PER_NS};
use crate::timed::charge::component;
use crate::timed::check::Load;
use crate::timed::run::{self as bulk, SLOW_START_PS};
use crate::timed::world::{Workload, World};
use crate::timed::{trace, web};

/// Loads that whoever made the profiles knew: bulk, and the multiserver paper's clients with small and with larger files. No policy
/// is run under these web servers unless one is asked for.
const KNOWN: [(&str, Load); 3] = [
    ("bulk", Load::Bulk),
    ("small", Load::Web { file_bytes: 10, clients: 8 }),
    ("large", Load::Web { file_bytes: 100_000, clients: 8 }),
];

/// How long what may be the best runs before it is counted, and while it is: servers of a core have it for some 30 ms each.
const BRIEF_MS: (u64, u64) = (50, 200);

/// A sample and a decision, so often.
const PERIOD_PS: u64 = 10 * PS_PER_MS;
/// Random moves, each after so many samples.
const RESTS: u64 = 10;

/// Who decides where the servers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Adaptive,
    Profile,
    /// Nobody: it stays as it is.
    Fixed(Placement),
    /// A random server goes to a random core.
    Random,
}

/// A machine with eft, what its programs are asked for, and how long they are.
pub struct Experiment {
    job: Job,
    clocks: Clocks,
    /// What the scheduler knows of such loads.
    profiles: Profiles,
    /// Says what the scheduler's goal is, too.
    pub judge: Judge,
    pub seed: u64,
    /// Before anything is counted, and while it is.
    pub settle_ms: u64,
    pub measured_ms: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Payload that the peer has acknowledged, or of answers that clients have read.
    pub rates: Rates,
    /// `None`: nobody asks.
    pub latency: Option<Latency>,
    /// Of the stack's chip.
    pub milliwatts: u64,
    /// In the whole run: servers that went to another core, and cores that got another clock.
    pub moves: u64,
    pub clock_changes: u64,
    /// At the end.
    pub plan: Plan,
    /// The scheduler's decisions, one a line.
    pub decisions: Vec<String>,
}

impl Outcome {
    pub fn reached(&self) -> Reached {
        Reached { kbps: self.rates.mean(), milliwatts: self.milliwatts }
    }
}

enum Decider {
    Scheduler(Box<Scheduler>, History),
    Random(Random, u64),
    Nobody,
}

impl Experiment {
    /// `segments`: whether the card cuts large segments into packets; else tcp sends packets. `told`: the machine as whoever made
    /// the profiles knew it; without that there are none. They are of bulk, and
    /// where programs answer of such web servers as [`KNOWN`] has, too.
    pub fn new(
        calibration: &Calibration,
        told: Option<&Calibration>,
        seed: u64,
        (load, segments): (impl Into<Offered>, bool),
        (settle_ms, measured_ms): (u64, u64),
    ) -> Result<Self, CalibrationError> {
        let load = load.into();
        let is_bulk = load == Offered::Load(Load::Bulk);
        let known = KNOWN.into_iter().filter(|(_, known)| *known == Load::Bulk || !is_bulk);
        let profiles = match told {
            Some(told) => {
                let job =
                    |(name, load): (&'static str, Load)| Ok((name, Job::new(told, &load.into(), segments)?));
                let jobs = known.map(job).collect::<Result<Vec<(&str, Job)>, CalibrationError>>()?;
                swept(&jobs, &told.cores()?, seed)
            }
            None => Profiles::default(),
        };
        // Not every machine's file says it: the clock changes at once then.
        let transition_ps = calibration.get("machine", "transition_ns").unwrap_or(0) * PS_PER_NS;
        Ok(Self {
            job: Job::new(calibration, &load, segments)?,
            clocks: Clocks { cores: calibration.cores()?, transition_ps },
            profiles,
            judge: Judge::THROUGHPUT,
            seed,
            settle_ms,
            measured_ms,
        })
    }

    /// Fixed configurations one of which is the best: tier 2 tries all, and those that may be the best by it run for a short time on
    /// tier 1. `count` of the fastest, the fastest one first, and of those that are best by the goal.
    pub fn candidates(&self, count: usize) -> Result<Vec<Placement>, SchedulerError> {
        let all = search::rate_all(&self.job, self.cores(), self.seed);
        let mut fastest = self.briefly(&search::may_be_fastest(self.cores(), &all))?;
        // Stable: of equals tier 2's order decides.
        fastest.sort_by_key(|(_, reached)| Reverse(reached.kbps));
        let most = fastest.first().map_or(0, |(_, reached)| reached.kbps);
        let best =
            if self.judge == Judge::THROUGHPUT { Vec::new() } else { self.best(&all, &fastest, most)? };
        fastest.truncate(count);
        let mut candidates: Vec<Placement> = Vec::new();
        for (placement, _) in fastest.into_iter().chain(best.into_iter().take(count)) {
            if !candidates.contains(&placement) {
                candidates.push(placement);
            }
        }
        Ok(candidates)
    }

    /// By the goal, the best one first; `most`: of the fastest one.
    fn best(&self, all: &[Rated], fastest: &[Rated], most: u64) -> Result<Vec<Rated>, SchedulerError> {
        let mut fastest = fastest.to_vec();
        self.improve(&mut fastest, most)?;
        let mut tried = Vec::new();
        for part in search::may_be_best(self.judge, all) {
            tried.extend(self.briefly(&part)?);
            if tried.iter().any(|(_, reached)| reached.kbps >= self.judge.floor_kbps(most)) {
                break;
            }
        }
        self.improve(&mut tried, most)?;
        // Two ways to the best: a hill may have two tops.
        fastest.retain(|(placement, _)| !tried.iter().any(|(known, _)| known == placement));
        tried.extend(fastest);
        tried.sort_by_key(|(_, reached)| Reverse(self.judge.worth(*reached, most)));
        Ok(tried)
    }

    /// Puts the best one first, and tries what is next to it for as long as that is better: tier 2 is not exact enough about power.
    fn improve(&self, tried: &mut Vec<Rated>, most: u64) -> Result<(), SchedulerError> {
        loop {
            tried.sort_by_key(|(_, reached)| Reverse(self.judge.worth(*reached, most)));
            let Some((best, _)) = tried.first() else { return Ok(()) };
            let is_new = |next: &Placement| !tried.iter().any(|(known, _)| known == next);
            let new: Vec<Placement> =
                search::next_to(best, self.cores()).into_iter().filter(is_new).collect();
            if new.is_empty() {
                return Ok(());
            }
            tried.extend(self.briefly(&new)?);
        }
    }

    fn briefly(&self, placements: &[Placement]) -> Result<Vec<Rated>, SchedulerError> {
        let run = |placement: &Placement| {
            let outcome = self.run_for(Way::Fixed(*placement), BRIEF_MS)?;
            Ok((*placement, outcome.reached()))
        };
        in_parallel(placements, run).into_iter().collect()
    }

    pub fn cores(&self) -> &Cores {
        &self.clocks.cores
    }

    fn scheduler(&self, name: PolicyName) -> Result<Scheduler, SchedulerError> {
        let components: Vec<String> =
            PLACED.into_iter().filter_map(component).map(|c| c.to_string()).collect();
        let settings = Settings {
            goal: Goal { objective: self.judge.objective, floor: self.judge.floor() },
            power: told::power(self.cores(), self.seed),
            profiles: self.profiles.clone(),
            ..Settings::default()
        };
        let duty = told::duty_levels(self.cores());
        Scheduler::new(name, told::machine(self.cores()), &components, duty.as_deref(), settings)
    }

    fn decider(&self, way: Way) -> Result<(Decider, Plan), SchedulerError> {
        let scheduled = |name| -> Result<(Decider, Plan), SchedulerError> {
            let scheduler = self.scheduler(name)?;
            let plan = scheduler.plan().clone();
            Ok((Decider::Scheduler(Box::new(scheduler), History::default()), plan))
        };
        match way {
            Way::Adaptive => scheduled(PolicyName::Adaptive),
            Way::Profile => scheduled(PolicyName::Profile),
            Way::Fixed(placement) => Ok((Decider::Nobody, placement.plan(self.cores()))),
            Way::Random => {
                let random = Decider::Random(Random::new(self.seed), 0);
                Ok((random, Placement::SPREAD.plan(self.cores())))
            }
        }
    }

    fn placement(&self, plan: &Plan) -> Placement {
        Placement::of(plan, self.cores()).unwrap_or(Placement::SPREAD)
    }

    fn setting(&self, plan: &Plan) -> Setting {
        self.placement(plan).setting(self.cores())
    }

    /// With cores that have no servers yet, at the plan's clocks.
    fn with_cores<'a, W: Workload>(&self, mut world: World<'a, W>, plan: &Plan) -> World<'a, W> {
        let cores = self.cores();
        let core = |number: usize| {
            let speed = cores.speed(number, plan.speed(CpuId(number as u32)).0);
            (number, cores.clock(number, speed))
        };
        world.machine = world.machine.with_cores((1..=cores.count() as usize).map(core));
        world
    }

    /// Deterministic: the same arguments give the same outcome on any machine.
    pub fn run(&self, way: Way) -> Result<Outcome, SchedulerError> {
        self.run_for(way, (self.settle_ms, self.measured_ms))
    }

    fn run_for(&self, way: Way, span: (u64, u64)) -> Result<Outcome, SchedulerError> {
        let (decider, plan) = self.decider(way)?;
        let setting = self.setting(&plan);
        match &self.job {
            Job::Bulk(profile) => {
                self.run_world(bulk::world(profile, &setting, self.seed), decider, plan, span)
            }
            Job::Web(web) => self.run_world(web::run::world(web, &setting, self.seed), decider, plan, span),
            Job::Trace(web, replay) => {
                self.run_world(trace::run::world(web, replay, &setting, self.seed), decider, plan, span)
            }
        }
    }

    fn run_world<W: Workload>(
        &self,
        world: World<W>,
        mut decider: Decider,
        plan: Plan,
        (settle_ms, measured_ms): (u64, u64),
    ) -> Result<Outcome, SchedulerError> {
        let mut world = self.with_cores(world, &plan);
        let (mut meter, mut sensor) = (Meter::new(self.cores().clone()), Sensor::default());
        let mut force = InForce { plan, moves: 0, clock_changes: 0 };
        let begins_ps = SLOW_START_PS + settle_ms * PS_PER_MS;
        let ends_ps = begins_ps + measured_ms * PS_PER_MS;
        let mut begun = None;
        while world.machine.now_ps < ends_ps {
            let next_ps = (world.machine.now_ps / PERIOD_PS + 1) * PERIOD_PS;
            let next_ps = if begun.is_none() { next_ps.min(begins_ps) } else { next_ps.min(ends_ps) };
            world.advance(next_ps);
            if next_ps == begins_ps {
                meter.count(&world);
                begun = Some((parts(&world), meter.microjoules(), world.rest.load.latencies().len()));
            }
            if next_ps % PERIOD_PS != 0 {
                continue;
            }
            let sample = sensor.sample(&mut world, &mut meter, self.cores().count() as usize, &force.plan);
            let plan = match &mut decider {
                Decider::Scheduler(scheduler, history) => scheduler.decide(&sample, history).plan,
                Decider::Random(random, count) => self.at_random(random, count, &force.plan),
                Decider::Nobody => continue,
            };
            force.change(&mut world, &mut meter, &self.clocks, &plan);
        }
        meter.count(&world);
        let (parts_before, microjoules, answers) = begun.unwrap_or_default();
        let decisions = match &decider {
            Decider::Scheduler(_, history) => history.entries().map(|kept| kept.entry.to_string()).collect(),
            _ => Vec::new(),
        };
        Ok(Outcome {
            rates: Rates::of(&parts_before, &parts(&world), measured_ms),
            latency: Latency::of(&world.rest.load.latencies()[answers..]),
            milliwatts: (meter.microjoules() - microjoules) / measured_ms,
            moves: force.moves,
            clock_changes: force.clock_changes,
            plan: force.plan,
            decisions,
        })
    }

    fn at_random(&self, random: &mut Random, count: &mut u64, plan: &Plan) -> Plan {
        *count += 1;
        let mut placement = self.placement(plan);
        if count.is_multiple_of(RESTS) {
            let server = random.below(PLACED.len() as u64) as usize;
            placement.core_of[server] = 1 + random.below(self.cores().count()) as usize;
        }
        placement.plan(self.cores())
    }
}

/// What has come to programs for each part of the load, which no policy reads.
fn parts<W: Workload>(world: &World<W>) -> Vec<u64> {
    world.rest.load.parts(&world.rest.servers.stack)
}

#[cfg(test)]
mod tests;
