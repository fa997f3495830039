//! The difference of two samples: rates, shares of time, traffic indicators; and which readings are not credible.
//!
//! An [`Observer`] keeps the previous [`Sample`] and turns each new one into an [`Observation`]. Promises: every
//! number in an observation is finite and not negative, every share lies in 0..=1; what is stale, missing or absurd
//! is named in [`Observation::problems`], one clear line each, and left at zero. Policies decide only on an
//! observation that [is sound](Observation::is_sound), and keep their last good plan otherwise.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use eft_base::{Instant, time};
use eft_machine::{CpuId, Share, Watts};
use serde::Serialize;

mod component;
mod doubt;

use component::{Differences, differences};
pub use doubt::Doubt;

use crate::indicators::{Indicators, Window};
use crate::power::WATTS_MAX;
use crate::sample::{ComponentSample, CpuSample, Hint, QueueSample, Sample, Traffic};

/// More components or CPUs than this in one sample are absurd.
const PARTS_MAX: usize = 8192;
/// Two samples farther apart than this (a suspended machine) are not compared.
const PERIOD_MAX: Duration = Duration::from_secs(60);
/// If a component's account stands still (it lost its CPU while it left a phase), its last shares hold for so long.
const QUIET: Duration = Duration::from_secs(1);
/// A component that is down for longer counts as absent: it no longer makes the observation unsound.
const DOWN: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Observation {
    #[serde(rename = "at_ns")]
    pub at: Instant,
    #[serde(rename = "period_ns", with = "time::nanos")]
    pub period: Duration,
    pub components: Vec<ComponentLoad>,
    pub cpus: Vec<CpuLoad>,
    /// Of this period alone.
    pub traffic: Traffic,
    /// Derived over the recent past.
    pub indicators: Indicators,
    /// Measured; `None` without a meter.
    #[serde(rename = "power_w")]
    pub power: Option<Watts>,
    pub problems: Vec<Problem>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ComponentLoad {
    pub name: String,
    pub running: bool,
    pub cpu: Option<CpuId>,
    pub dedicated: bool,
    /// Shares of the time that its account covers; together at most 1.
    pub busy: Share,
    pub polling: Share,
    /// In user-mode wait.
    pub waiting: Share,
    pub sleeping: Share,
    /// CPU time as the kernel accounts it, as a share of the period.
    pub cpu_share: Share,
    pub wake_ups_per_s: f64,
    /// Mean cost of a wake that it sent; zero if it sent none.
    #[serde(rename = "wake_cost_ns", with = "time::nanos")]
    pub wake_cost: Duration,
    pub overloads: u64,
    pub underloads: u64,
    pub queues: Vec<QueueSample>,
    pub hint: Hint,
    pub instructions_per_cycle: Option<f64>,
    /// Cache misses per cycle: a component that waits for memory loses little on a slower core (thesis 4.6).
    pub misses_per_cycle: Option<f64>,
}

impl ComponentLoad {
    /// Highest fill of any of its queues since the previous sample, as a share of the capacity.
    pub fn fill(&self) -> Share {
        let fill = |queue: &QueueSample| Share(f64::from(queue.high) / f64::from(queue.capacity.max(1)));
        self.queues.iter().map(fill).fold(Share::NONE, Share::max).min(Share::ALL)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CpuLoad {
    pub cpu: CpuId,
    pub online: bool,
    pub managed: bool,
    pub parked: bool,
    /// Of its full speed.
    pub speed: Share,
    /// Busy share of the accounted time.
    pub busy: Share,
    /// How much time the kernel accounted for: it counts in ticks, so this may be less or more than the period.
    #[serde(rename = "accounted_ns", with = "time::nanos")]
    pub accounted: Duration,
    /// Time taken by other virtual machines, as a share of the accounted and the stolen time.
    pub stolen: Share,
    /// Share that programs other than the stack took, as a mean over recent samples; see [`crate::applications`].
    pub others: Share,
}

/// A part of the sample that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    pub part: Part,
    pub why: Doubt,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    Whole,
    Component(String),
    Cpu(CpuId),
    /// Only the power is unknown then.
    Energy,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.part {
            Part::Whole => write!(f, "the sample is unusable: {}", self.why),
            Part::Component(name) => write!(f, "{name}: {}", self.why),
            Part::Cpu(cpu) => write!(f, "CPU {cpu}: {}", self.why),
            Part::Energy => write!(f, "energy: {}", self.why),
        }
    }
}

impl Observation {
    /// Whether a policy may decide on it.
    pub fn is_sound(&self) -> bool {
        self.problems.iter().all(|problem| problem.part == Part::Energy)
    }

    /// All problems in one line; `None` if it is sound.
    pub fn complaint(&self) -> Option<String> {
        const SHOWN: usize = 3;
        let grave: Vec<String> =
            self.problems.iter().filter(|p| p.part != Part::Energy).map(ToString::to_string).collect();
        let more =
            if grave.len() > SHOWN { format!("; and {} more", grave.len() - SHOWN) } else { String::new() };
        (!grave.is_empty()).then(|| format!("{}{more}", grave[..grave.len().min(SHOWN)].join("; ")))
    }

    pub fn component(&self, name: &str) -> Option<&ComponentLoad> {
        self.components.iter().find(|component| component.name == name)
    }

    pub fn cpu(&self, cpu: CpuId) -> Option<&CpuLoad> {
        self.cpus.iter().find(|load| load.cpu == cpu)
    }
}

/// Keeps the sample that the next one is compared with.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    previous: Option<Sample>,
    window: Window,
    down_since: BTreeMap<String, Instant>,
    /// The last known shares of each component's time, and when they were measured.
    known: BTreeMap<String, ([Share; 4], Instant)>,
}

impl Observer {
    pub fn observe(&mut self, sample: &Sample) -> Observation {
        let mut seen = Observation { at: sample.at, ..Observation::default() };
        let previous = self.previous.take();
        if let Err(why) = period(previous.as_ref(), sample) {
            // The newest sample is always the next base, or samples would be refused for ever after the clock went
            // back.
            seen.problems.push(Problem { part: Part::Whole, why });
            self.previous = bounded(sample);
            return seen;
        }
        let previous = previous.unwrap_or_default();
        seen.period = sample.at - previous.at;
        let before: BTreeMap<&str, &ComponentSample> =
            previous.components.iter().map(|component| (component.name.as_str(), component)).collect();
        for now in &sample.components {
            self.observe_component(now, before.get(now.name.as_str()).copied(), &mut seen);
        }
        let named = |name: &str| sample.components.iter().any(|component| component.name == name);
        for gone in previous.components.iter().filter(|before| before.running && !named(&before.name)) {
            problem(&mut seen, component_part(&gone.name), Doubt::Missing);
        }
        observe_cpus(&previous.cpus, &sample.cpus, &mut seen);
        seen.power = power(&previous, sample, &mut seen.problems);
        let open = sample.components.iter().map(|component| component.traffic.connections_open);
        seen.traffic.connections_open = open.fold(0, u64::saturating_add);
        self.window.add(&seen.traffic, seen.period);
        seen.indicators = self.window.indicators();
        self.previous = Some(sample.clone());
        seen
    }

    fn observe_component(
        &mut self,
        now: &ComponentSample,
        before: Option<&ComponentSample>,
        seen: &mut Observation,
    ) {
        let name = one_line(&now.name);
        let mut load = ComponentLoad {
            name: name.clone(),
            running: now.running,
            cpu: now.cpu,
            dedicated: now.dedicated,
            ..ComponentLoad::default()
        };
        if !now.running {
            let since = *self.down_since.entry(name.clone()).or_insert(seen.at);
            if seen.at.saturating_since(since) < DOWN {
                problem(seen, component_part(&name), Doubt::NotRunning);
            }
            return seen.components.push(load);
        }
        self.down_since.remove(&name);
        match before.map(|before| differences(now, before, seen.at, seen.period)) {
            None => problem(seen, component_part(&name), Doubt::New),
            Some(Ok(Differences { shares: None, .. })) if self.known_shares(&name, seen.at).is_none() => {
                problem(seen, component_part(&name), Doubt::AccountStandsStill);
            }
            Some(Err(why)) => problem(seen, component_part(&name), why),
            Some(Ok(Differences {
                shares,
                cpu,
                traffic,
                wake_ups,
                wakes_sent,
                wakes_cost,
                queues,
                counters,
            })) => {
                let known = shares.or_else(|| self.known_shares(&name, seen.at)).unwrap_or_default();
                [load.busy, load.polling, load.waiting, load.sleeping] = known;
                if let Some(shares) = shares {
                    self.known.insert(name, (shares, seen.at));
                }
                load.cpu_share = Share::of(cpu, seen.period).min(Share::ALL);
                load.wake_ups_per_s = wake_ups as f64 * 1e9 / time::nanos(seen.period) as f64;
                load.wake_cost = Duration::from_nanos(time::nanos(wakes_cost) / wakes_sent.max(1));
                load.hint = now.hint;
                load.overloads = queues.iter().fold(0, |sum, queue| sum.saturating_add(queue.overloads));
                load.underloads = queues.iter().fold(0, |sum, queue| sum.saturating_add(queue.underloads));
                load.queues = queues;
                (load.instructions_per_cycle, load.misses_per_cycle) = counters;
                add_traffic(&mut seen.traffic, &traffic);
            }
        }
        seen.components.push(load);
    }

    fn known_shares(&self, name: &str, at: Instant) -> Option<[Share; 4]> {
        let (shares, since) = self.known.get(name)?;
        (at.saturating_since(*since) < QUIET).then_some(*shares)
    }
}

fn period(previous: Option<&Sample>, sample: &Sample) -> Result<(), Doubt> {
    if sample.components.len() > PARTS_MAX || sample.cpus.len() > PARTS_MAX {
        return Err(Doubt::TooManyParts);
    }
    let previous = previous.ok_or(Doubt::First)?;
    match sample.at.checked_since(previous.at) {
        None => Err(Doubt::TimeWentBack),
        Some(Duration::ZERO) => Err(Doubt::Stale),
        Some(length) if length > PERIOD_MAX => Err(Doubt::TooLate { seconds: length.as_secs() }),
        Some(_) => Ok(()),
    }
}

fn bounded(sample: &Sample) -> Option<Sample> {
    (sample.components.len() <= PARTS_MAX && sample.cpus.len() <= PARTS_MAX).then(|| sample.clone())
}

fn component_part(name: &str) -> Part {
    Part::Component(one_line(name))
}

fn problem(seen: &mut Observation, part: Part, why: Doubt) {
    seen.problems.push(Problem { part, why });
}

/// Names come from outside; a message that shows them must stay one line.
fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(64).collect()
}

/// What components count together, but for the connections that are open.
pub fn add_traffic(sum: &mut Traffic, more: &Traffic) {
    macro_rules! add {
        ($($field:ident),*) => {$( sum.$field = sum.$field.saturating_add(more.$field); )*};
    }
    add!(received_bytes, sent_bytes, received_segments, sent_segments);
    add!(sent_empty_segments, received_empty_segments);
    add!(outbound_connections, accepted_connections, closed_connections, opened_sockets, closed_sockets);
    add!(ip_received_bytes, ip_sent_bytes, arp_packets, icmp_packets);
}

fn observe_cpus(before: &[CpuSample], now: &[CpuSample], seen: &mut Observation) {
    let earlier: BTreeMap<CpuId, &CpuSample> = before.iter().map(|cpu| (cpu.cpu, cpu)).collect();
    let named: alloc::collections::BTreeSet<CpuId> = now.iter().map(|cpu| cpu.cpu).collect();
    for gone in before.iter().filter(|cpu| !named.contains(&cpu.cpu)) {
        problem(seen, Part::Cpu(gone.cpu), Doubt::Vanished);
    }
    for cpu in now {
        let mut load = CpuLoad {
            cpu: cpu.cpu,
            online: cpu.online,
            managed: cpu.managed,
            parked: cpu.parked,
            speed: cpu.speed,
            ..CpuLoad::default()
        };
        if !cpu.speed.is_valid() || cpu.speed == Share::NONE {
            problem(seen, Part::Cpu(cpu.cpu), Doubt::Speed(cpu.speed));
            load.speed = Share::ALL;
        }
        if let Some(earlier) = earlier.get(&cpu.cpu) {
            if earlier.online && !cpu.online && !cpu.parked {
                problem(seen, Part::Cpu(cpu.cpu), Doubt::WentOffline);
            }
            match cpu_share(cpu, earlier) {
                Ok((busy, accounted, stolen)) => {
                    (load.busy, load.accounted, load.stolen) = (busy, accounted, stolen);
                }
                Err(why) => problem(seen, Part::Cpu(cpu.cpu), why),
            }
        }
        seen.cpus.push(load);
    }
}

/// Idle counters of the kernel go back by a tick now and then (proc(5)); that much is tolerated.
fn cpu_share(now: &CpuSample, before: &CpuSample) -> Result<(Share, Duration, Share), Doubt> {
    const TICK: Duration = Duration::from_millis(20);
    let since = |what: &str, now: Duration, before: Duration| match Doubt::time_since(what, now, before) {
        Err(_) if before - now <= TICK => Ok(Duration::ZERO),
        length => length,
    };
    let busy = since("its busy time", now.busy, before.busy)?;
    let idle = since("its idle time", now.idle, before.idle)?;
    let stolen = since("its stolen time", now.stolen, before.stolen)?;
    let accounted = busy.saturating_add(idle);
    Ok((Share::of(busy, accounted), accounted, Share::of(stolen, accounted.saturating_add(stolen))))
}

/// The meter may wrap or be reset; a negative or impossible power counts as none.
fn power(before: &Sample, now: &Sample, problems: &mut Vec<Problem>) -> Option<Watts> {
    let (after, earlier) = (now.energy?, before.energy?);
    let length = now.at.checked_since(before.at)?;
    let watts = after.checked_since(earlier).map(|used| used.over(length));
    match watts {
        Some(watts) if watts <= WATTS_MAX => Some(watts),
        _ => {
            let why = Doubt::Meter { before: earlier, now: after };
            problems.push(Problem { part: Part::Energy, why });
            None
        }
    }
}

#[cfg(test)]
mod tests;
