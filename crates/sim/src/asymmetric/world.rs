//! The paper's machine running a mix: cores of two speeds on two dies, the credit scheduler, and a policy on top.
//!
//! Time advances in steps of a millisecond; all decisions use integers. Memory is shared per die: when the traffic of
//! its running vCPUs exceeds its bandwidth, their waits for memory grow in proportion. A vCPU that changes its core
//! first refills caches, and more of them if it leaves the die.

use std::time::Duration;

use eft_base::random::Random;
use eft_base::time::Instant;
use eft_vcpu::guest::{Count, Progress, VcpuId};
use eft_vcpu::options::{Policy, Score};
use eft_vcpu::promote::Since;
use eft_vcpu::scheduler::{Due, Scheduler};
use eft_vcpu::turns::Entry;

use super::calibration::Calibration;
use super::credit::{ACCOUNTING, Credit, State, TICK};
use super::error::Error;
use super::machine::Machine;
use super::program::{Next, Running};

/// Performance counts from here. Until then the policy learns, which is negligible in the paper's runs of minutes.
const LEARNING_MS: u64 = 5_000;
/// The length of a step.
const STEP: Duration = Duration::from_millis(1);
/// A run that takes longer than this never ends.
const MS_MAX: u64 = 600_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each vCPU on a core of its own for ever.
    Pinned,
    /// Xen as it is.
    Credit,
    Policy(Policy),
}

#[derive(Clone, Debug)]
pub struct Run<'a> {
    pub calibration: &'a Calibration,
    /// Program and vCPUs of each VM.
    pub vms: &'a [(&'a str, usize)],
    /// Of the paper's machine.
    pub fast_cores: usize,
    /// Another machine than the paper's.
    pub machine: Option<&'a Machine>,
    /// Where each vCPU may run, one bit for each core; empty: everywhere.
    pub masks: &'a [u128],
    pub score: Score,
    pub way: Way,
    /// How long a program takes when a third of its cycles are fast and it has its cores to itself.
    pub seconds: u64,
    pub seed: u64,
}

impl<'a> Run<'a> {
    /// Without VMs, on the paper's machine, with the paper's score.
    pub fn of_the_paper(calibration: &'a Calibration, way: Way) -> Self {
        Self {
            calibration,
            vms: &[],
            fast_cores: 0,
            machine: None,
            masks: &[],
            score: Score::Paper,
            way,
            seconds: 30,
            seed: 1,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Of each VM: programs that end, work over their time; servers, over the whole run. In parts per million of a
    /// fast core's.
    pub performance: Vec<u64>,
    /// VMs that serve requests without end.
    pub serves: Vec<bool>,
    /// Each VM's fast and slow milliseconds in each second.
    pub usage: Vec<Vec<(u32, u32)>>,
    /// Each VM's instructions, cycles (both in thousands) and milliseconds on a core.
    pub counted: Vec<(u64, u64, u64)>,
    /// Dispatches on another core, and on another die, than before.
    pub moves: u64,
    pub die_moves: u64,
    pub ms: u64,
}

/// One vCPU as the hypervisor's counters see it.
#[derive(Clone, Debug, Default)]
struct Seen {
    ran: Duration,
    waited: Duration,
    /// By class.
    counts: Vec<Count>,
    by_class: Vec<Duration>,
    /// Refilling caches until then.
    refill_ns: u64,
}

struct World<'a> {
    run: &'a Run<'a>,
    machine: Machine,
    credit: Credit,
    programs: Vec<Running>,
    /// VM and its vCPU, of each vCPU in the order of the credit scheduler; dom0 is the last.
    owner: Vec<(usize, usize)>,
    seen: Vec<Seen>,
    scheduler: Option<Scheduler>,
    /// Cores of each group of the policy, one bit each.
    groups: Vec<u128>,
    /// The counters at the policy's last tick.
    ticked: Vec<Since>,
    ticked_at: u64,
    /// When performance began to count, and each VM's work until then.
    learnt: (u64, Vec<u64>),
    outcome: Outcome,
}

pub fn run(run: &Run) -> Result<Outcome, Error> {
    let mut world = World::new(run)?;
    while world.outcome.ms < MS_MAX && !world.is_over() {
        world.step();
    }
    if !world.is_over() {
        let vms = run.vms.iter().map(|(name, vcpus)| (name.to_string(), *vcpus)).collect();
        return Err(Error::Endless { vms, seed: run.seed });
    }
    Ok(world.finish())
}

impl<'a> World<'a> {
    fn new(run: &'a Run<'a>) -> Result<Self, Error> {
        let machine = match run.machine {
            Some(machine) => machine.clone(),
            None => Machine::of_the_paper(run.calibration, run.fast_cores),
        };
        let (cores, ratio_milli) = (machine.class.len(), machine.slowest_milli());
        let mut random = Random::new(run.seed);
        let (mut credit, mut programs, mut owner) = (Credit::new(cores), Vec::new(), Vec::new());
        let mut order = shuffled(cores, &mut random).into_iter().cycle();
        for (vm, (name, vcpus)) in run.vms.iter().enumerate() {
            let placement: Vec<usize> = order.by_ref().take(*vcpus).collect();
            credit.add_domain(256, &placement);
            owner.extend((0..*vcpus).map(|vcpu| (vm, vcpu)));
            let program = run.calibration.program(name)?;
            programs.push(Running::start(program, *vcpus, run.seconds, ratio_milli, random.next_u64()));
        }
        // The control domain, whose back ends do the guests' I/O.
        credit.add_domain(256, &[random.below(cores as u64) as usize]);
        owner.push((programs.len(), 0));
        let mut dom0 = run.calibration.program("sysbench")?;
        dom0.run_ms = run.calibration.machine("dom0_run_ms");
        dom0.sleep_ms = run.calibration.machine("dom0_sleep_ms");
        programs.push(Running::start(dom0, 1, run.seconds, ratio_milli, random.next_u64()));
        let guests = owner.len() - 1;
        if run.way == Way::Pinned {
            (0..guests).for_each(|v| credit.vcpus[v].allowed = 1 << credit.vcpus[v].last_core);
        }
        credit.vcpus.iter_mut().zip(run.masks).for_each(|(vcpu, mask)| vcpu.allowed = *mask);
        let (scheduler, groups) = match run.way {
            Way::Policy(policy) => machine.scheduler(policy, run.score, &owner[..guests])?,
            _ => (None, Vec::new()),
        };
        let nothing = Seen {
            counts: machine.no_counts(),
            by_class: vec![Duration::ZERO; machine.classes.len()],
            ..Seen::default()
        };
        let seen = vec![nothing; owner.len()];
        let usage = vec![Vec::new(); run.vms.len()];
        let ticked = vec![Since::default(); owner.len()];
        let outcome = Outcome { usage, ..Outcome::default() };
        Ok(Self {
            run,
            machine,
            credit,
            programs,
            owner,
            seen,
            scheduler,
            groups,
            ticked,
            ticked_at: 0,
            learnt: (0, vec![0; run.vms.len()]),
            outcome,
        })
    }

    fn is_over(&self) -> bool {
        let guests = &self.programs[..self.run.vms.len()];
        let batch = guests.iter().filter(|program| !program.is_server());
        let is_all_servers = guests.iter().all(Running::is_server);
        if is_all_servers {
            self.outcome.ms >= self.run.seconds * 1000
        } else {
            batch.clone().all(|p| p.finished_at.is_some())
        }
    }

    fn step(&mut self) {
        let now = self.outcome.ms;
        self.programs.iter_mut().for_each(|program| program.wake(now));
        for vcpu in 0..self.owner.len() {
            let (vm, index) = self.owner[vcpu];
            if self.credit.vcpus[vcpu].state == State::Blocked && self.programs[vm].has_work(index) {
                self.credit.wake(vcpu);
            }
        }
        if let Some(mut scheduler) = self.scheduler.take() {
            self.consult(&mut scheduler);
            self.scheduler = Some(scheduler);
        }
        self.work();
        self.outcome.ms += 1;
        if self.outcome.ms == LEARNING_MS.min(self.run.seconds * 1000 / 4) {
            let done = |program: &Running| program.done_ns.iter().sum();
            self.learnt = (now + 1, self.programs[..self.run.vms.len()].iter().map(done).collect());
        }
        self.credit.pass();
        if self.outcome.ms.is_multiple_of(TICK) {
            (0..self.credit.cores.len()).for_each(|core| self.credit.tick(core));
        }
        if self.outcome.ms.is_multiple_of(ACCOUNTING) {
            self.credit.account();
        }
    }

    /// Runs every core for a millisecond.
    fn work(&mut self) {
        let second = (self.outcome.ms / 1000) as usize;
        let mut traffic = vec![0u64; self.machine.contention.len()];
        for core in 0..self.credit.cores.len() {
            let Some(vcpu) = self.credit.cores[core].current else { continue };
            let (vm, index) = self.owner[vcpu];
            self.arrive(vcpu, core);
            let program = self.programs[vm].program();
            let (memory, die, class) = (program.memory, self.machine.die[core], self.machine.class[core]);
            let rate = self.machine.rate(memory, core);
            traffic[die] += rate.part_of(memory);
            let seen = &mut self.seen[vcpu];
            let refill = seen.refill_ns.min(1_000_000);
            seen.refill_ns -= refill;
            let work = rate.part_of(1_000_000 - refill);
            let khz = self.machine.classes[class].khz;
            seen.ran += STEP;
            seen.by_class[class] += STEP;
            let count = &mut seen.counts[class];
            count.cycles += khz;
            let fast_khz = self.machine.classes[0].khz;
            count.instructions += work * fast_khz / 1_000_000 * self.programs[vm].ipc(index) / 1000;
            if let Some(usage) = self.outcome.usage.get_mut(vm) {
                usage.resize(second + 1, (0, 0));
                if class == 0 { usage[second].0 += 1 } else { usage[second].1 += 1 }
            }
            if self.programs[vm].work(index, work, self.outcome.ms + 1) == Next::Sleeps {
                self.credit.cores[core].current = None;
                self.credit.vcpus[vcpu].state = State::Blocked;
            }
        }
        for vcpu in 0..self.owner.len() {
            if let State::Queued(_) = self.credit.vcpus[vcpu].state {
                self.seen[vcpu].waited += STEP;
            }
        }
        self.machine.settle(&traffic);
    }

    fn arrive(&mut self, vcpu: usize, core: usize) {
        let last = self.credit.vcpus[vcpu].last_core;
        if last == core {
            return;
        }
        self.credit.vcpus[vcpu].last_core = core;
        self.outcome.moves += 1;
        let crosses = self.machine.die[last] != self.machine.die[core];
        self.outcome.die_moves += u64::from(crosses);
        self.seen[vcpu].refill_ns =
            if crosses { self.machine.move_across_ns } else { self.machine.move_in_cache_ns };
    }

    /// The policy's turn, if one is due.
    fn consult(&mut self, scheduler: &mut Scheduler) {
        let now = Instant::from_millis(self.outcome.ms);
        let (at, due) = scheduler.due();
        if at > now {
            return;
        }
        let guests = self.owner.len() - 1;
        let progress: Vec<Progress> = (0..guests)
            .map(|vcpu| {
                let seen = &self.seen[vcpu];
                let counts: &[Count] = if due == Due::Window { &seen.counts } else { &[] };
                Progress {
                    id: VcpuId(vcpu as u64),
                    ran: seen.ran,
                    waited: seen.waited,
                    by_class: &seen.by_class,
                    counts,
                    own_unit: false,
                }
            })
            .collect();
        match due {
            Due::Window => scheduler.window(now, &progress),
            Due::Turn => {
                let leavers = scheduler.turn(now, &progress);
                scheduler.left(now, &leavers, &progress);
            }
            Due::Tick => {
                if scheduler.tick(now, &progress) {
                    let since: Vec<(VcpuId, Since)> = (0..guests)
                        .map(|vcpu| {
                            let (seen, before) = (&self.seen[vcpu], self.ticked[vcpu]);
                            let did =
                                Since { ran: seen.ran - before.ran, waited: seen.waited - before.waited };
                            (VcpuId(vcpu as u64), did)
                        })
                        .collect();
                    let length = Duration::from_millis(self.outcome.ms - self.ticked_at);
                    let leavers = scheduler.promote(&since, length);
                    scheduler.left(now, &leavers, &progress);
                }
            }
        }
        for (seen, ticked) in self.seen.iter().zip(&mut self.ticked) {
            *ticked = Since { ran: seen.ran, waited: seen.waited };
        }
        self.ticked_at = self.outcome.ms;
        let home = |entry: &Entry| entry.group.map_or(u128::MAX, |group| self.groups[group]);
        let homes: Vec<u128> = scheduler.entries().iter().map(home).collect();
        if !self.machine.plain_policies {
            // Linux keeps a thread within its affinity: there are no visitors.
            self.credit.vcpus.iter_mut().zip(&homes).for_each(|(vcpu, home)| vcpu.allowed = *home);
        }
        self.credit.settle(&homes);
    }

    fn finish(mut self) -> Outcome {
        let performance = |(vm, program): (usize, &Running)| {
            let done = program.done_ns.iter().sum::<u64>() - self.learnt.1[vm];
            let ms = program.finished_at.unwrap_or(self.outcome.ms) - self.learnt.0;
            done / ms.max(1) / self.run.vms[vm].1 as u64
        };
        self.outcome.serves = self.programs[..self.run.vms.len()].iter().map(Running::is_server).collect();
        self.outcome.counted = vec![(0, 0, 0); self.run.vms.len()];
        for ((vm, _), seen) in self.owner.iter().zip(&self.seen) {
            if let Some(counted) = self.outcome.counted.get_mut(*vm) {
                counted.0 += seen.counts.iter().map(|count| count.instructions).sum::<u64>() / 1000;
                counted.1 += seen.counts.iter().map(|count| count.cycles).sum::<u64>() / 1000;
                counted.2 += seen.ran.as_millis() as u64;
            }
        }
        self.outcome.performance =
            self.programs[..self.run.vms.len()].iter().enumerate().map(performance).collect();
        self.outcome
    }
}

fn shuffled(count: usize, random: &mut Random) -> Vec<usize> {
    let mut all: Vec<usize> = (0..count).collect();
    for i in (1..count).rev() {
        all.swap(i, random.below(i as u64 + 1) as usize);
    }
    all
}

#[cfg(test)]
mod tests;
