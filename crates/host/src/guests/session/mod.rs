//! The scheduler of virtual CPUs, live: samples when it asks, places as it says, [`follow`]s guests that come and go.

mod follow;
pub mod host;
pub mod view;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use eft_base::time::Instant;
use eft_machine::cpu_set::CPU_MAX;
use eft_machine::{CpuId, CpuSet, Ppm};
use eft_vcpu::guest::{Progress, VcpuId};
use eft_vcpu::host::Host;
use eft_vcpu::options::{Options, Policy};
use eft_vcpu::promote::Since;
use eft_vcpu::scheduler::{Due, Scheduler};
use serde::Deserialize;

use super::discover::{Guest, Thread, Wanted};
use super::perf::{self, Pmu};
use super::place::Placer;
use super::sense::Sensor;
use super::siblings::Siblings;
use crate::clock;
use crate::error::Error;
use crate::journal::Journal;
use crate::sensors::Tree;
use host::Changing;

/// The journal of guests is separate from that of the CPUs, so that neither waits for the other.
pub const STATE_DIR: &str = "/run/eft/vm";
/// The same as that of eft's servers.
const NICENESS: i32 = -11;

/// An operator's settings for one guest.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GuestOptions {
    /// Of all its vCPUs together; 256 by default.
    pub weight: Option<u32>,
    /// Cores' worth of time that all its vCPUs together may use.
    pub cap: Option<f64>,
    /// CPUs that it may use.
    pub cpus: Option<CpuSet>,
    /// A file with a number that counts up as the guest makes progress.
    pub progress: Option<PathBuf>,
    /// Leave it alone.
    #[serde(default)]
    pub ignore: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub wanted: Wanted,
    pub options: Options,
    /// CPUs to deal out; all by default.
    pub cpus: Option<CpuSet>,
    pub guests: BTreeMap<String, GuestOptions>,
    /// Watch and decide, but touch nothing.
    pub watch_only: bool,
    pub state_dir: PathBuf,
    /// Where `eft cpu` says which CPUs it has slowed or parked.
    pub cpu_state_dir: PathBuf,
}

struct Watched {
    id: VcpuId,
    thread: Thread,
    guest: String,
    /// CPUs that its operator allows and eft may use.
    within: CpuSet,
    /// The class where it was placed last.
    class: Option<u8>,
    /// The group where it certainly is; `None` if another program may have moved it.
    settled: Option<usize>,
    sensor: Sensor,
    /// The sample of the last turn that read it.
    last: RunSample,
}

/// Run and wait times at one time.
#[derive(Clone, Copy)]
struct RunSample {
    at: Instant,
    ran: Duration,
    waited: Duration,
}

impl RunSample {
    fn of(sensor: &Sensor, at: Instant) -> Self {
        Self { at, ran: sensor.ran, waited: sensor.waited }
    }

    /// What was done since `began`; an average, if that is later than the sample.
    fn since(&self, began: Instant, now: Self) -> Since {
        let (own, wanted) = (now.at.saturating_since(self.at), now.at.saturating_since(began));
        let part = |time: Duration| match own > wanted {
            true => Duration::from_nanos((time.as_nanos() * wanted.as_nanos() / own.as_nanos()) as u64),
            false => time,
        };
        Since {
            ran: part(now.ran.saturating_sub(self.ran)),
            waited: part(now.waited.saturating_sub(self.waited)),
        }
    }
}

/// The guests that a search found, and notes.
type Found = (Vec<Guest>, Vec<String>);

pub struct Session {
    tree: Tree,
    settings: Settings,
    sets: Vec<CpuSet>,
    /// Of each group: see [`Sensor::stretch`].
    stretches: Vec<Ppm>,
    scheduler: Scheduler,
    placer: Option<Placer>,
    /// In the order of the scheduler's entries.
    watched: Vec<Watched>,
    guests: Vec<Guest>,
    vms: BTreeMap<String, u64>,
    pmus: Vec<Pmu>,
    siblings: Siblings,
    /// Why there are no counters; reported once.
    blind: Option<String>,
    given_notes: Vec<String>,
    notes: Vec<String>,
    next_search: Instant,
    /// The search that is under way.
    searching: Option<JoinHandle<Found>>,
    /// The machine as it was dealt out last.
    machine: Changing,
    last_turn: Instant,
}

/// The machine as it is dealt out.
struct Layout {
    host: Host,
    sets: Vec<CpuSet>,
    stretches: Vec<Ppm>,
    pmus: Vec<Pmu>,
    siblings: Siblings,
}

impl Layout {
    fn survey(tree: &Tree, settings: &Settings) -> Result<Self, Error> {
        let (host, sets, machine) = host::host(tree, &settings.cpu_state_dir, settings.cpus.as_ref())?;
        let stretches = sets.iter().map(|set| host::stretch(&machine, set)).collect();
        let class_of = |cpus: &CpuSet| {
            sets.iter()
                .zip(&host.groups)
                .find(|(set, _)| !set.and(cpus).is_empty())
                .map(|(_, group)| group.class)
        };
        let pmus = perf::pmus(tree, class_of);
        let siblings = Siblings::new(&host, &sets, &machine);
        Ok(Self { host, sets, stretches, pmus, siblings })
    }
}

impl Session {
    pub fn open(tree: &Tree, settings: Settings) -> Result<Self, Error> {
        let machine = host::changing(tree, &settings.cpu_state_dir);
        let Layout { host, sets, stretches, pmus, siblings } = Layout::survey(tree, &settings)?;
        let mut notes = Vec::new();
        let placer = if settings.watch_only {
            None
        } else {
            let mut journal = Journal::lock_within(tree, &settings.state_dir, Duration::from_millis(500))?;
            let (count, recovered) = journal.recover();
            if count > 0 {
                notes.push(format!("put {count} threads back that an instance left behind"));
            }
            notes.extend(recovered);
            // This includes CPUs that are offline or parked now: they may come back.
            let usable = settings.cpus.clone().unwrap_or_else(|| (0..=CPU_MAX).map(CpuId).collect());
            Some(Placer::new(journal, usable))
        };
        if !host.is_asymmetric() {
            notes.push(
                "nothing tells the cores apart, so there is nothing to deal out; turns and followers work"
                    .into(),
            );
        }
        // Turns must be on time on a busy host, too; without the privilege they come later.
        if !settings.watch_only
            && let Ok(now) = rustix::process::getpriority_process(None)
        {
            let _ = rustix::process::setpriority_process(None, now.min(NICENESS));
        }
        let scheduler =
            Scheduler::new(host, settings.options.clone()).map_err(|e| Error::Invalid(e.to_string()))?;
        let mut session = Self {
            tree: tree.clone(),
            settings,
            sets,
            stretches,
            scheduler,
            placer,
            watched: Vec::new(),
            guests: Vec::new(),
            vms: BTreeMap::new(),
            pmus,
            siblings,
            blind: None,
            given_notes: Vec::new(),
            notes,
            next_search: Instant::ZERO,
            searching: None,
            machine,
            last_turn: clock::now(),
        };
        session.search();
        Ok(session)
    }

    /// Deals anew if CPUs came, went or got another speed. Measurements of the old classes are dropped.
    fn survey(&mut self) -> Result<(), Error> {
        let machine = host::changing(&self.tree, &self.settings.cpu_state_dir);
        if machine == self.machine {
            return Ok(());
        }
        let Layout { host, sets, stretches, pmus, siblings } = Layout::survey(&self.tree, &self.settings)?;
        self.scheduler = Scheduler::new(host, self.scheduler.options().clone())
            .map_err(|e| Error::Invalid(e.to_string()))?;
        (self.sets, self.stretches, self.pmus, self.siblings) = (sets, stretches, pmus, siblings);
        self.watched.clear();
        self.machine = machine;
        self.notes.push("CPUs came, went or got another speed; they are dealt out anew".into());
        Ok(())
    }

    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    pub fn guests(&self) -> &[Guest] {
        &self.guests
    }

    pub fn set_policy(&mut self, policy: Policy) {
        self.scheduler.set_policy(policy);
    }

    /// Notes for the operator since the last call.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Samples and places until `end`, or until `stop` returns true.
    pub fn run(&mut self, end: Instant, mut stop: impl FnMut() -> bool) {
        while !stop() {
            let (at, due) = self.scheduler.due();
            let now = clock::now();
            if now >= end {
                return;
            }
            let wait = at.min(end).saturating_since(now);
            if !wait.is_zero() {
                // Sleeps at most this long, so that `stop` is asked often enough.
                std::thread::sleep(wait.min(Duration::from_millis(100)));
                if clock::now() < at {
                    continue;
                }
            }
            self.step(due);
        }
    }

    /// One sample and its consequences.
    pub fn step(&mut self, due: Due) {
        self.end_search();
        let now = clock::now();
        match due {
            Due::Tick => self.tick(now),
            Due::Turn => self.turn(now),
            Due::Window => {
                self.siblings.sample(&self.tree);
                for watched in &mut self.watched {
                    watched.sensor.sample_counters(watched.class, |class| self.siblings.is_busy(class));
                    watched.last = RunSample::of(&watched.sensor, now);
                }
                self.last_turn = now;
                self.with_progress(|scheduler, all| scheduler.window(now, all));
                if now >= self.next_search || self.watched.iter().any(|watched| watched.sensor.has_ended) {
                    self.begin_search();
                }
            }
        }
        self.place();
    }

    /// Samples some threads and updates their last sample.
    fn sample(&mut self, now: Instant, indices: impl IntoIterator<Item = usize>) {
        for index in indices {
            let watched = &mut self.watched[index];
            watched.sensor.sample();
            watched.last = RunSample::of(&watched.sensor, now);
        }
    }

    fn turn(&mut self, now: Instant) {
        let due = (0..self.watched.len()).filter(|index| self.scheduler.watched_at_turns(*index));
        self.sample(now, due.collect::<Vec<_>>());
        self.last_turn = now;
        let mut leavers = Vec::new();
        self.with_progress(|scheduler, all| leavers = scheduler.turn(now, all));
        if !leavers.is_empty() {
            self.sample(now, leavers.iter().map(|leaver| leaver.index));
            self.with_progress(|scheduler, all| scheduler.left(now, &leavers, all));
        }
    }

    fn tick(&mut self, now: Instant) {
        for (index, watched) in self.watched.iter_mut().enumerate() {
            if self.scheduler.watched_at_ticks(index) {
                watched.sensor.sample();
            }
        }
        let mut has_seats = false;
        self.with_progress(|scheduler, all| has_seats = scheduler.tick(now, all));
        if has_seats {
            let began = self.last_turn;
            let since = |watched: &mut Watched| {
                watched.sensor.sample();
                let seen = RunSample::of(&watched.sensor, now);
                (watched.id, std::mem::replace(&mut watched.last, seen).since(began, seen))
            };
            let all: Vec<(VcpuId, Since)> = self.watched.iter_mut().map(since).collect();
            let leavers = self.scheduler.promote(&all, now.saturating_since(began));
            self.with_progress(|scheduler, all| scheduler.left(now, &leavers, all));
            self.last_turn = now;
        }
    }

    fn with_progress(&mut self, tell: impl FnOnce(&mut Scheduler, &[Progress])) {
        let all: Vec<Progress> = self
            .watched
            .iter()
            .map(|watched| Progress {
                id: watched.id,
                ran: watched.sensor.ran,
                waited: watched.sensor.waited,
                by_class: &[],
                counts: &watched.sensor.counts,
                own_unit: watched.sensor.own_unit(),
            })
            .collect();
        tell(&mut self.scheduler, &all);
    }

    fn place(&mut self) {
        let Some(placer) = &mut self.placer else { return };
        let mut refused = Vec::new();
        for (entry, watched) in self.scheduler.entries().iter().zip(&mut self.watched) {
            let Some(group) = entry.group.filter(|group| watched.settled != Some(*group)) else { continue };
            watched.settled = Some(group);
            watched.sensor.stretch = self.stretches[group];
            let class = Some(self.scheduler.host().core_class_of(group) as u8);
            if watched.class != class {
                watched.sensor.leave(watched.class, |class| self.siblings.is_busy(class));
                watched.class = class;
            }
            if let Err(reason) = placer.put(watched.thread.id, &self.sets[group].and(&watched.within)) {
                watched.settled = None;
                if placer.is_left_alone(watched.thread.id) {
                    refused.push(format!("{}: {reason}; it is left alone", watched.guest));
                } else {
                    // The thread has ended; the next search notices.
                    watched.sensor.has_ended = true;
                }
            }
        }
        refused.into_iter().for_each(|note| self.tell(note));
    }

    /// Restores every affinity as it was before; returns notes.
    pub fn restore(&mut self) -> Vec<String> {
        self.placer.as_mut().map(Placer::restore).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
