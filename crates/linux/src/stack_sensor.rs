//! Reads a running stack for the scheduler: status pages, the kernel's account of each process, CPUs, energy, and
//! performance counters where the machine has them, all into one [`Sample`].
//!
//! Promises: it only reads. It trusts nothing in a page: a page that makes no sense yields the last sensible values,
//! and `observation` refuses absurd ones. A sample costs microseconds, since it is taken a hundred times a second.

use std::collections::BTreeMap;
use std::time::Duration;

use eft_base::Instant;
use eft_channel::account::{AccountReading, QueueReading};
use eft_channel::status::Status;
use eft_component::server::FRAME_COUNTERS;
use eft_cores::attention::QuickSample;
use eft_cores::counted::indicators;
use eft_cores::member::MemberView;
use eft_cores::sample::{ComponentSample, HardwareCounters, Hint, QueueSample, Sample, Traffic};
use eft_messages::ComponentId;

use eft_host::clock;
use eft_host::sensors::counters::{Counters, Target};
use eft_host::sensors::cpus::CpuSensor;
use eft_host::sensors::energy::EnergySensor;
use eft_host::sensors::{Tree, counters};

pub mod pages;

/// Returns the names of an engine's own counters, in the order of their indices. The crate that composes the engines
/// provides it.
pub type CounterNames = fn(ComponentId) -> &'static [&'static str];

/// The indices of a component's indicators in its status page.
struct TrafficMap(Vec<(usize, fn(&mut Traffic) -> &mut u64)>);

impl TrafficMap {
    /// An indicator whose counter does not exist stays 0; [`missing_counters`] lists it.
    fn new(peer: ComponentId, names: &[&str]) -> TrafficMap {
        let place = |name: &str| names.iter().position(|n| *n == name).map(|i| FRAME_COUNTERS.len() + i);
        let all = indicators(peer.role)
            .iter()
            .flat_map(|(counters, field)| counters.iter().map(move |c| (c, field)));
        TrafficMap(all.filter_map(|(counter, field)| Some((place(counter)?, *field))).collect())
    }

    fn read(&self, status: &Status) -> Traffic {
        let mut traffic = Traffic::default();
        for (index, field) in &self.0 {
            let value = field(&mut traffic);
            *value = value.wrapping_add(status.get(*index));
        }
        traffic
    }
}

/// Counters that an indicator needs and an engine does not have. There are none unless a counter was renamed.
pub fn missing_counters(names: CounterNames) -> Vec<(ComponentId, &'static str)> {
    [ComponentId::TCP, ComponentId::UDP, ComponentId::IP]
        .into_iter()
        .flat_map(|peer| indicators(peer.role).iter().flat_map(|(c, _)| c.iter()).map(move |c| (peer, *c)))
        .filter(|(peer, counter)| !names(*peer).contains(counter))
        .collect()
}

/// One component, and what was last read of it.
struct Watched {
    view: MemberView,
    status: Status,
    traffic: TrafficMap,
    account: AccountReading,
    queues: BTreeMap<u32, QueueReading>,
    counters: Option<Counters>,
    cpu_time: Duration,
    /// The CPU time of earlier generations.
    earlier_cpu_time: Duration,
}

impl Watched {
    /// CPU time of the component. The kernel knows that of a process; if servers share one, each server's own account
    /// says which part is its own.
    fn cpu_time(&mut self, shares: bool) -> Duration {
        if shares {
            let account = &self.account;
            return Duration::from_nanos(account.busy_ns + account.polling_ns + account.waiting_ns);
        }
        let now = self.view.pid.and_then(clock::process_cpu);
        self.cpu_time = now.unwrap_or(self.cpu_time);
        self.earlier_cpu_time + self.cpu_time
    }

    fn hint(&self, reading: &AccountReading) -> Hint {
        let (before, hints) = (&self.account, reading.hints);
        if hints.starved || reading.starved_count != before.starved_count {
            Hint::Starved
        } else if hints.receiver_behind || reading.receiver_behind_count != before.receiver_behind_count {
            Hint::ReceiverBehind
        } else {
            Hint::None
        }
    }

    fn queue_samples(&mut self, names: &BTreeMap<u32, String>) -> Vec<QueueSample> {
        let readings: Vec<QueueReading> = self.status.account().queues().collect();
        let sample = |reading: &QueueReading| {
            let from = names.get(&reading.sender)?.clone();
            let (low, high) = self
                .queues
                .get(&reading.sender)
                .and_then(|before| reading.water_since(before))
                .unwrap_or((0, 0));
            Some(QueueSample {
                from,
                capacity: reading.capacity,
                high,
                low,
                overloads: u64::from(reading.overloads),
                underloads: u64::from(reading.underloads),
            })
        };
        let samples = readings.iter().filter_map(sample).collect();
        self.queues = readings.into_iter().map(|reading| (reading.sender, reading)).collect();
        samples
    }

    fn hardware(&mut self) -> Option<HardwareCounters> {
        let counts = self.counters.as_mut()?.read().ok()?;
        let sum = |of: fn(&counters::Counts) -> u64| counts.iter().map(of).sum();
        Some(HardwareCounters {
            instructions: sum(|c| c.instructions),
            cycles: sum(|c| c.cycles),
            cache_misses: sum(|c| c.cache_misses),
            cache_references: sum(|c| c.cache_references),
        })
    }

    fn sample(&mut self, now: Instant, names: &BTreeMap<u32, String>, shares: bool) -> ComponentSample {
        let reading = self.status.account().read(now).unwrap_or(self.account);
        let hint = self.hint(&reading);
        self.account = reading;
        ComponentSample {
            // Named by role, not by device, so that a profile of one machine fits another.
            name: self.view.peer.to_string(),
            generation: self.view.generation,
            running: self.view.running,
            heartbeat: self.status.heartbeat(),
            cpu: self.view.cpu,
            dedicated: self.view.alone,
            accounted_to: reading.until,
            busy: Duration::from_nanos(reading.busy_ns),
            polling: Duration::from_nanos(reading.polling_ns),
            waiting: Duration::from_nanos(reading.waiting_ns),
            sleeping: Duration::from_nanos(reading.sleeping_ns),
            cpu_time: self.cpu_time(shares),
            wake_ups: reading.wake_ups,
            wakes_sent: reading.wakes_sent,
            wakes_cost: Duration::from_nanos(reading.wakes_sent_ns),
            queues: self.queue_samples(names),
            hint,
            traffic: self.traffic.read(&self.status),
            counters: self.hardware(),
        }
    }
}

/// Reads a stack and its CPUs.
pub struct StackSensor {
    tree: Tree,
    names: CounterNames,
    watched: Vec<Watched>,
    /// The code of each sender in a page, and its name.
    senders: BTreeMap<u32, String>,
    cpus: CpuSensor,
    energy: EnergySensor,
}

impl StackSensor {
    pub fn new(tree: Tree, names: CounterNames, managed: &eft_machine::CpuSet) -> StackSensor {
        StackSensor {
            names,
            watched: Vec::new(),
            senders: BTreeMap::new(),
            cpus: CpuSensor::new(tree.clone(), managed.clone()),
            energy: EnergySensor::new(&tree),
            tree,
        }
    }

    /// Sets which CPUs later samples show as managed.
    pub fn manage(&mut self, managed: &eft_machine::CpuSet) {
        self.cpus = CpuSensor::new(self.tree.clone(), managed.clone());
    }

    /// A component appeared, was reborn, moved or died.
    pub fn update(&mut self, view: MemberView, status: Status) {
        self.senders.insert(view.peer.code(), view.peer.to_string());
        let counters = |pid: Option<u32>| {
            Counters::open(&self.tree, Target::Thread(pid.filter(|p| *p > 0)? as i32)).ok()
        };
        match self.watched.iter_mut().find(|w| w.view.peer == view.peer) {
            Some(w) => {
                if w.view.pid != view.pid {
                    w.counters = counters(view.pid);
                    w.earlier_cpu_time += std::mem::take(&mut w.cpu_time);
                }
                w.view = view;
            }
            None => self.watched.push(Watched {
                traffic: TrafficMap::new(view.peer, (self.names)(view.peer)),
                counters: counters(view.pid),
                view,
                status,
                account: AccountReading::default(),
                queues: BTreeMap::new(),
                cpu_time: Duration::ZERO,
                earlier_cpu_time: Duration::ZERO,
            }),
        }
    }

    /// The sum of all components' turns: shows at almost no cost whether anything happens at all.
    pub fn heartbeats(&self) -> u64 {
        self.watched.iter().fold(0, |sum, w| sum.wrapping_add(w.status.heartbeat()))
    }

    /// The sum of all turns, with numbers that show an overload or a changed load. Makes no system call and allocates
    /// nothing.
    pub fn quick_sample(&self, now: Instant) -> QuickSample {
        let mut quick_sample = QuickSample { beats: self.heartbeats(), ..QuickSample::default() };
        for w in &self.watched {
            let account = w.status.account();
            let reading = account.read(now).unwrap_or(w.account);
            let hints = reading.starved_count.wrapping_add(reading.receiver_behind_count);
            let overloads =
                account.queues().fold(0u64, |sum, queue| sum.wrapping_add(u64::from(queue.overloads)));
            quick_sample.distress = quick_sample.distress.wrapping_add(hints).wrapping_add(overloads);
            let t = w.traffic.read(&w.status);
            let parts = [t.received_bytes, t.sent_bytes, t.received_segments, t.sent_segments];
            quick_sample.moved = parts.iter().fold(quick_sample.moved, |sum, part| sum.wrapping_add(*part));
        }
        quick_sample
    }

    /// Like [`StackSensor::update`], for a component whose page is known. False: it is not known.
    pub fn update_view(&mut self, view: &MemberView) -> bool {
        let Some(page) = self.watched.iter().find(|w| w.view.peer == view.peer).map(|w| w.status.clone())
        else {
            return false;
        };
        self.update(view.clone(), page);
        true
    }

    pub fn views(&self) -> impl Iterator<Item = &MemberView> {
        self.watched.iter().map(|w| &w.view)
    }

    /// Reads everything at this moment.
    pub fn sample(&mut self, now: Instant) -> Sample {
        let senders = &self.senders;
        let pids: Vec<Option<u32>> =
            self.watched.iter().map(|w| w.view.pid).filter(|pid| pid.is_some()).collect();
        Sample {
            at: now,
            components: self
                .watched
                .iter_mut()
                .map(|w| w.sample(now, senders, pids.iter().filter(|pid| **pid == w.view.pid).count() > 1))
                .collect(),
            cpus: self.cpus.read(now),
            energy: self.energy.read(),
        }
    }
}

#[cfg(test)]
mod tests;
