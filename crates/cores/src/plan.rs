//! A plan: which component runs where, how fast each managed CPU is, which CPUs are parked or given back.
//!
//! A plan is absolute and therefore safe to reapply: it describes the wanted state, not the changes. [`check`] refuses
//! a plan that the machine cannot carry out, with one reason; [`changes`] finds the least that leads from one plan to
//! another, in an order in which nothing ever stands on a CPU that is parked or not yet fast enough (first unpark and
//! speed up, then move, then slow down and park).
//!
//! Must never happen: a plan that passes the check and parks the base CPU, or seats a component on a CPU that it parks.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use eft_machine::{CpuId, CpuSet, Machine, Share};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::park::{ParkError, Situation};

/// Two speeds closer than this are one.
pub const SPEED_EQUAL: Share = Share(0.005);

/// Where a component runs. Alone (`dedicated`) it polls and waits in user space; sharing, it blocks in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    pub cpu: CpuId,
    pub dedicated: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// By the component's name.
    pub seats: BTreeMap<String, Seat>,
    /// Share of full speed of managed CPUs; one that is not named runs at full speed.
    #[serde(with = "speed_table")]
    pub speeds: BTreeMap<CpuId, Share>,
    pub parked: CpuSet,
    /// Managed CPUs that the stack leaves to other programs.
    pub given_back: CpuSet,
}

impl Plan {
    pub fn speed(&self, cpu: CpuId) -> Share {
        self.speeds.get(&cpu).copied().unwrap_or(Share::ALL)
    }

    /// The CPUs that components run on.
    pub fn used(&self) -> CpuSet {
        self.seats.values().map(|seat| seat.cpu).collect()
    }

    pub fn on(&self, cpu: CpuId) -> impl Iterator<Item = &str> + '_ {
        self.seats.iter().filter(move |(_, seat)| seat.cpu == cpu).map(|(name, _)| name.as_str())
    }

    /// Whether all of it is on one CPU.
    pub fn is_consolidated(&self) -> bool {
        self.used().len() <= 1
    }

    pub fn same_seats(&self, other: &Self) -> bool {
        self.seats == other.seats
    }

    /// Equal but for rounding of speeds.
    pub fn is_same(&self, other: &Self) -> bool {
        let same_speeds = || {
            let mut cpus = self.speeds.keys().chain(other.speeds.keys());
            cpus.all(|cpu| !self.speed(*cpu).differs(other.speed(*cpu), SPEED_EQUAL))
        };
        self.seats == other.seats
            && self.parked == other.parked
            && self.given_back == other.given_back
            && same_speeds()
    }
}

impl fmt::Display for Plan {
    /// One line: `sockets+tcp@1*1.00 ip+nic0@2*0.50 parked 3 back 4`; `!` marks a dedicated CPU.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        for cpu in self.used().iter() {
            let names: Vec<&str> = self.on(cpu).collect();
            let dedicated = self.seats.values().any(|seat| seat.cpu == cpu && seat.dedicated);
            let mark = if dedicated { "!" } else { "" };
            parts.push(format!("{}@{cpu}{mark}*{:.2}", names.join("+"), self.speed(cpu)));
        }
        if !self.parked.is_empty() {
            parts.push(format!("parked {}", self.parked));
        }
        if !self.given_back.is_empty() {
            parts.push(format!("back {}", self.given_back));
        }
        f.pad(&parts.join(" "))
    }
}

/// Why a machine cannot do what a plan says.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PlanError {
    #[error("the plan puts {component} on CPU {cpu}, which {problem}")]
    Seat { component: String, cpu: CpuId, problem: SeatProblem },
    #[error("the plan dedicates CPU {cpu} to {component}, and puts others there too")]
    NotAlone { component: String, cpu: CpuId },
    #[error("the plan sets CPU {cpu} to {share} of its speed (above 0, at most 1)")]
    Share { cpu: CpuId, share: Share },
    #[error("the plan sets a speed for CPU {cpu}, which is offline")]
    SpeedOffline { cpu: CpuId },
    #[error("the plan asks for {asked} of CPU {cpu}, which does not exist")]
    NoSuchCpu { cpu: CpuId, asked: &'static str },
    #[error("the plan asks for {asked} of CPU {cpu}, which is not managed")]
    NotManaged { cpu: CpuId, asked: &'static str },
    #[error("the plan both parks CPU {cpu} and gives it back")]
    ParkedAndGivenBack { cpu: CpuId },
    #[error("the plan cannot park: {0}")]
    Park(ParkError),
    #[error("the plan has no place for {component}")]
    NoPlace { component: String },
    #[error("{component} was placed anywhere")]
    PlacedAnywhere { component: String },
}

// By hand, not `#[from]`: the message contains the cause, so it must not be a `source` too, or it would be printed
// twice.
impl From<ParkError> for PlanError {
    fn from(error: ParkError) -> PlanError {
        PlanError::Park(error)
    }
}

/// Why a component cannot be put on a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SeatProblem {
    #[error("does not exist (this machine has {present})")]
    NoSuchCpu { present: CpuSet },
    #[error("it parks")]
    ParkedByPlan,
    #[error("it gives back")]
    GivenBackByPlan,
    #[error("is offline")]
    Offline,
    #[error("is parked, and not managed")]
    ParkedByOthers,
}

/// Refuses, with one reason, what this machine cannot do.
pub fn check(plan: &Plan, machine: &Machine) -> Result<(), PlanError> {
    let present = machine.online.union(&machine.offline);
    // A parked CPU may have been taken offline by us; it comes back when it is unparked.
    let available = machine.online.union(&machine.parked);
    for (name, seat) in &plan.seats {
        check_seat(name, *seat, plan, machine, &present, &available)?;
    }
    for cpu in plan.used().iter() {
        check_neighbours(plan, cpu)?;
    }
    for (cpu, share) in &plan.speeds {
        if !share.is_valid() || *share == Share::NONE {
            return Err(PlanError::Share { cpu: *cpu, share: *share });
        }
        check_ours(*cpu, "a speed", machine, &present)?;
        if !available.contains(*cpu) {
            return Err(PlanError::SpeedOffline { cpu: *cpu });
        }
    }
    for cpu in plan.given_back.iter() {
        check_ours(cpu, "giving back", machine, &present)?;
    }
    if let Some(cpu) = plan.given_back.and(&plan.parked).first() {
        return Err(PlanError::ParkedAndGivenBack { cpu });
    }
    check_parked(plan, machine, present)
}

fn check_seat(
    name: &str,
    seat: Seat,
    plan: &Plan,
    machine: &Machine,
    present: &CpuSet,
    available: &CpuSet,
) -> Result<(), PlanError> {
    let cpu = seat.cpu;
    let problem = if !present.contains(cpu) {
        SeatProblem::NoSuchCpu { present: present.clone() }
    } else if plan.parked.contains(cpu) {
        SeatProblem::ParkedByPlan
    } else if plan.given_back.contains(cpu) {
        SeatProblem::GivenBackByPlan
    } else if !available.contains(cpu) {
        SeatProblem::Offline
    } else if machine.parked.contains(cpu) && !machine.managed.contains(cpu) {
        SeatProblem::ParkedByOthers
    } else {
        return Ok(());
    };
    Err(PlanError::Seat { component: name.into(), cpu, problem })
}

fn check_neighbours(plan: &Plan, cpu: CpuId) -> Result<(), PlanError> {
    let mut alone = plan.seats.iter().filter(|(_, seat)| seat.cpu == cpu && seat.dedicated);
    match (alone.next(), plan.on(cpu).count()) {
        (Some((name, _)), 2..) => Err(PlanError::NotAlone { component: name.clone(), cpu }),
        _ => Ok(()),
    }
}

fn check_ours(cpu: CpuId, asked: &'static str, machine: &Machine, present: &CpuSet) -> Result<(), PlanError> {
    if !present.contains(cpu) {
        return Err(PlanError::NoSuchCpu { cpu, asked });
    }
    if !machine.managed.contains(cpu) {
        return Err(PlanError::NotManaged { cpu, asked });
    }
    Ok(())
}

/// The rules of [`crate::park`]: the base CPU stays, something is left to run on.
fn check_parked(plan: &Plan, machine: &Machine, present: CpuSet) -> Result<(), PlanError> {
    if plan.parked.is_empty() {
        return Ok(());
    }
    let situation = Situation {
        present,
        online: machine.online.union(&machine.parked),
        managed: machine.managed.clone(),
        parked: CpuSet::new(),
        offlined: machine.offline.and(&machine.parked),
    };
    Ok(situation.check_leave(&plan.parked)?)
}

/// One step from a plan to the next.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    Unpark(CpuSet),
    /// Managed CPUs that had been given back.
    Take(CpuSet),
    Speed {
        cpu: CpuId,
        share: Share,
    },
    Move {
        component: String,
        seat: Seat,
    },
    /// The component is not in the new plan: it may run anywhere.
    Release {
        component: String,
    },
    Park(CpuSet),
    GiveBack(CpuSet),
}

/// The least that leads from `old` to `new`, in the order in which it has to be done.
pub fn changes(old: &Plan, new: &Plan) -> Vec<Change> {
    let mut steps = Vec::new();
    let mut add_set = |cpus: CpuSet, change: fn(CpuSet) -> Change| {
        if !cpus.is_empty() {
            steps.push(change(cpus));
        }
    };
    add_set(old.parked.minus(&new.parked), Change::Unpark);
    add_set(old.given_back.minus(&new.given_back), Change::Take);
    let named: CpuSet = old.speeds.keys().chain(new.speeds.keys()).copied().collect();
    let differs = |cpu: &CpuId| new.speed(*cpu).differs(old.speed(*cpu), SPEED_EQUAL);
    let (faster, slower): (Vec<CpuId>, Vec<CpuId>) =
        named.iter().filter(differs).partition(|cpu| new.speed(*cpu) > old.speed(*cpu));
    let speed = |cpu: CpuId| Change::Speed { cpu, share: new.speed(cpu) };
    steps.extend(faster.into_iter().map(speed));
    steps.extend(moves(old, new));
    steps.extend(slower.into_iter().map(speed));
    let mut add_set = |cpus: CpuSet, change: fn(CpuSet) -> Change| {
        if !cpus.is_empty() {
            steps.push(change(cpus));
        }
    };
    add_set(new.parked.minus(&old.parked), Change::Park);
    add_set(new.given_back.minus(&old.given_back), Change::GiveBack);
    steps
}

/// Components that will share a CPU move first, so that a dedicated CPU is empty when its component comes.
fn moves(old: &Plan, new: &Plan) -> Vec<Change> {
    let gone = old.seats.keys().filter(|name| !new.seats.contains_key(*name));
    let mut steps: Vec<Change> = gone.map(|name| Change::Release { component: name.clone() }).collect();
    for dedicated in [false, true] {
        let moved = new
            .seats
            .iter()
            .filter(|(name, seat)| seat.dedicated == dedicated && old.seats.get(*name) != Some(*seat));
        steps.extend(moved.map(|(name, seat)| Change::Move { component: name.clone(), seat: *seat }));
    }
    steps
}

/// TOML keys are strings.
mod speed_table {
    use alloc::collections::BTreeMap;
    use alloc::string::{String, ToString};

    use eft_machine::{CpuId, Share};
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(
        speeds: &BTreeMap<CpuId, Share>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(speeds.iter().map(|(cpu, share)| (cpu.to_string(), share)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<CpuId, Share>, D::Error> {
        let named = BTreeMap::<String, Share>::deserialize(deserializer)?;
        let pair = |(cpu, share): (String, Share)| {
            cpu.parse()
                .map(|cpu| (cpu, share))
                .map_err(|_| serde::de::Error::custom(alloc::format!("'{cpu}' is no CPU's number")))
        };
        named.into_iter().map(pair).collect()
    }
}

#[cfg(test)]
mod tests;
