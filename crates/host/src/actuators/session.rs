//! One command's work on the host: checks, changes, and the hand-over to the holder.
//!
//! Promises: every operation is checked as a whole before its first change; an operation that fails half way is undone
//! before the error is returned; and every session begins by undoing what dead instances left behind.

mod holder_process;
mod speeds;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use eft_base::Instant;
use eft_base::time::TimeDelta;
use eft_cores::park::{Delays, Situation};
use eft_machine::{CpuId, CpuSet};

use super::held::{self, Held, HeldParking};
use super::hotplug::{self, HotplugOptions};
use super::parking::{ParkOptions, Parking, SetUp};
use super::{holder, lazy};
use crate::clock;
use crate::error::{Error, error};
use crate::journal::{Change, Entry, Journal};
use crate::sensors::tasks::{self};
use crate::sensors::{Tree, topology};
use holder_process::{end_process, start_holder};

#[derive(Clone, Debug)]
pub struct Host {
    pub tree: Tree,
    pub dir: PathBuf,
    pub managed: CpuSet,
    /// The eft binary, which is also the holder's.
    pub program: PathBuf,
}

pub struct Session {
    host: Host,
    journal: Journal,
    held: Held,
    /// Entries from here on are this operation's.
    first: u64,
    /// Notes of the recovery.
    pub notes: Vec<String>,
    pub recovered: usize,
    /// Rates of the measuring loop at full speed, to be kept with the speeds that are set.
    pub full_rates: BTreeMap<CpuId, f64>,
    /// Start of the last operation whose latency was measured, on the monotonic clock.
    pub began: Instant,
}

#[derive(Clone, Debug)]
pub struct Parked {
    pub set_up: Option<SetUp>,
    pub latency: Duration,
    pub parked: CpuSet,
}

const PATIENCE: Duration = Duration::from_secs(10);

/// Now, rounded down to the microsecond, the resolution of traces: later events are traced at this time or later.
fn traced_now() -> Instant {
    Instant::from_micros(clock::now().as_micros())
}

impl Session {
    /// Takes the lock and undoes what was left behind.
    pub fn open(host: &Host) -> Result<Self, Error> {
        let mut journal = Journal::lock(&host.tree, &host.dir)?;
        let (recovered, notes) = journal.recover();
        let mut held = held::load(&host.dir);
        if held.holder.is_none_or(|holder| !tasks::is_alive(&Tree::live(), holder)) {
            // The last holder's status counts more than a damaged file.
            let had_one = held.holder.is_some();
            held = Held::nothing(held.generation.max(held::load_status(&host.dir).generation));
            if had_one {
                held::save(&host.dir, &held)?;
            }
        }
        if host.tree.is_live() && recovered > 0 {
            crate::sensors::trace::remove_stale();
        }
        let first = journal.entries().iter().map(|entry| entry.id + 1).max().unwrap_or(1);
        Ok(Self {
            host: host.clone(),
            journal,
            held,
            first,
            notes,
            recovered,
            full_rates: BTreeMap::new(),
            began: Instant::ZERO,
        })
    }

    pub fn held(&self) -> &Held {
        &self.held
    }

    pub fn situation(&self) -> Result<Situation, Error> {
        let sets = topology::cpu_sets(&self.host.tree)?;
        Ok(Situation {
            present: sets.present,
            online: sets.online,
            managed: self.host.managed.clone(),
            parked: self.held.parked(),
            offlined: hotplug::offlined(&self.journal),
        })
    }

    /// The holder, started if there is none. From then on it owns the changes.
    fn ensure_holder(&mut self) -> Result<(), Error> {
        let live = Tree::live();
        let owner = match self.held.holder.filter(|holder| tasks::is_alive(&live, *holder)) {
            Some(holder) => holder,
            None if !self.host.tree.is_live() => {
                // A recorded machine needs no process to hold it: its changes last until they are restored.
                tasks::leader(&live, 1).ok_or_else(|| error!(Missing, "there is no process 1"))?.id
            }
            None => start_holder(&self.host)?,
        };
        self.held.holder = Some(owner);
        self.journal.own(owner);
        Ok(())
    }

    /// Undoes this operation's changes, and restores what was held before.
    fn abandon(&mut self, before: Held, reason: Error) -> Error {
        let first = self.first;
        self.journal.undo(|entry| entry.id >= first);
        let holder = self.held.holder;
        self.held = Held { holder, generation: self.held.generation, ..before };
        match self.publish() {
            Ok(()) => reason,
            Err(more) => error!(Holder, "{reason}; {more}"),
        }
    }

    /// Writes what is held, and nudges the holder.
    fn publish(&mut self) -> Result<(), Error> {
        self.held.generation += 1;
        self.held.managed = self.host.managed.clone();
        held::save(&self.host.dir, &self.held)?;
        if let Some(holder) = self.held.holder.filter(|_| self.host.tree.is_live()) {
            holder::nudge(holder);
        }
        Ok(())
    }

    pub fn park(
        &mut self,
        cpus: &CpuSet,
        options: &ParkOptions,
        delays: Delays,
        keep_set_up: bool,
    ) -> Result<Parked, Error> {
        self.situation()?.check_leave(&cpus.minus(&self.held.parked()).union(cpus))?;
        super::parking::choose(&self.host.tree, options)?;
        let before = self.held.clone();
        self.ensure_holder()?;
        self.park_checked(cpus, options, delays, keep_set_up).map_err(|reason| self.abandon(before, reason))
    }

    fn park_checked(
        &mut self,
        cpus: &CpuSet,
        options: &ParkOptions,
        delays: Delays,
        keep_set_up: bool,
    ) -> Result<Parked, Error> {
        let (parking, set_up) = match &self.held.parking {
            Some(held) => (Parking::resume(&self.host.tree, held.back_end, held.scope.clone()), None),
            None => {
                let (parking, set_up) = Parking::set_up(&mut self.journal, options)?;
                (parking, Some(set_up))
            }
        };
        let held = self.held.parking.get_or_insert_with(|| HeldParking {
            back_end: parking.back_end(),
            scope: options.scope.clone(),
            spread: options.spread.clone(),
            delays,
            force: options.force,
            keep_set_up,
            parked: BTreeMap::new(),
        });
        held.delays = delays;
        held.keep_set_up |= keep_set_up;
        let now = clock::now();
        cpus.iter().for_each(|cpu| {
            held.parked.entry(cpu).or_insert(now);
        });
        let parked = held.set();
        held::save(&self.host.dir, &self.held)?;
        self.began = traced_now();
        let latency = parking.apply(&mut self.journal, &parked, &[])?;
        self.publish()?;
        Ok(Parked { set_up, latency, parked })
    }

    pub fn unpark(&mut self, cpus: &CpuSet) -> Result<(Duration, Vec<String>), Error> {
        self.situation()?.check_managed(cpus)?;
        let not_parked = cpus.minus(&self.held.parked());
        if not_parked == *cpus && cpus.is_subset(&hotplug::offlined(&self.journal)) {
            // A CPU that the kernel's Bolt has parked is offline.
            return self
                .online(cpus, HotplugOptions::default())
                .map(|(took, note)| (took, note.into_iter().collect()));
        }
        if !not_parked.is_empty() {
            return Err(error!(Refused, "CPU {not_parked} is not parked"));
        }
        self.ensure_holder()?;
        let Some(mut parking) = self.held.parking.clone() else {
            return Err(error!(Refused, "CPU {cpus} is not parked"));
        };
        self.began = traced_now();
        let begin = clock::now();
        let offlined = hotplug::offlined(&self.journal).and(cpus);
        if !offlined.is_empty() {
            hotplug::online(&mut self.journal, &offlined, HotplugOptions::default())?;
        }
        parking.parked.retain(|cpu, _| !cpus.contains(*cpu));
        let rest = parking.set();
        Parking::resume(&self.host.tree, parking.back_end, parking.scope.clone()).apply(
            &mut self.journal,
            &rest,
            &[],
        )?;
        let latency = clock::now().saturating_since(begin);
        let mut notes = lazy::give_back(&mut self.journal, &rest, &parking.spread)?;
        let gone = cpus.iter().filter(|cpu| !hotplug::is_online(&self.host.tree, *cpu));
        notes.extend(gone.map(|cpu| format!("CPU {cpu} is offline, and not by eft; it stays so")));
        if rest.is_empty() && !parking.keep_set_up {
            notes.extend(self.journal.undo(|entry| is_parking(&entry.change)));
            self.held.parking = None;
        } else {
            self.held.parking = Some(parking);
        }
        self.publish()?;
        Ok((latency, notes))
    }

    pub fn offline(
        &mut self,
        cpus: &CpuSet,
        options: HotplugOptions,
    ) -> Result<(Duration, Option<String>), Error> {
        self.situation()?.check_leave(cpus)?;
        hotplug::check(&self.host.tree, cpus)?;
        let before = self.held.clone();
        self.ensure_holder()?;
        self.held.switched = self.held.switched.union(cpus);
        self.began = traced_now();
        let begin = clock::now();
        match hotplug::offline(&mut self.journal, cpus, options) {
            Ok(note) => {
                let latency = clock::now().saturating_since(begin);
                self.publish()?;
                Ok((latency, note))
            }
            Err(reason) => Err(self.abandon(before, reason)),
        }
    }

    pub fn online(
        &mut self,
        cpus: &CpuSet,
        options: HotplugOptions,
    ) -> Result<(Duration, Option<String>), Error> {
        self.situation()?.check_managed(cpus)?;
        hotplug::check(&self.host.tree, cpus)?;
        let before = self.held.clone();
        self.ensure_holder()?;
        self.began = traced_now();
        let begin = clock::now();
        match hotplug::online(&mut self.journal, cpus, options) {
            Ok(note) => {
                let latency = clock::now().saturating_since(begin);
                let foreign =
                    |entry: &Entry| matches!(&entry.change, Change::Online { cpu } if cpus.contains(*cpu));
                let by_us: CpuSet =
                    if self.journal.entries().iter().any(foreign) { cpus.clone() } else { CpuSet::new() };
                self.held.switched = self.held.switched.minus(cpus).union(&by_us);
                self.publish()?;
                Ok((latency, note))
            }
            Err(reason) => Err(self.abandon(before, reason)),
        }
    }

    /// Undoes everything that eft holds on this host. Returns how many changes were held, and notes.
    pub fn restore(mut self) -> Result<(usize, Vec<String>), Error> {
        let mut notes = std::mem::take(&mut self.notes);
        let live = Tree::live();
        let count = self.journal.entries().len() + self.held.speeds.len() + self.recovered;
        if let Some(holder) =
            self.held.holder.filter(|holder| holder.tid > 1 && tasks::is_alive(&live, *holder))
        {
            self.journal.unlocked(|| end_process(holder))?;
            notes.extend(held::load_status(&self.host.dir).notes);
            self.journal.reload()?;
        }
        let recorded = !self.host.tree.is_live();
        notes.extend(self.journal.undo(|entry| recorded || !tasks::is_alive(&live, entry.owner)));
        if self.journal.entries().is_empty() {
            held::save(&self.host.dir, &Held::nothing(self.held.generation))?;
        } else {
            let owners: Vec<String> =
                self.journal.entries().iter().map(|entry| entry.owner.tid.to_string()).collect();
            notes.push(format!(
                "{} changes belong to running processes ({}), and are theirs to undo",
                owners.len(),
                owners[0]
            ));
        }
        Ok((count, notes))
    }
}

/// Two switches and the cache that they cost, before calibration.
const COST: TimeDelta = TimeDelta(2_000);

/// Whether a change is set-up or a mask of parking, in contrast to speeds.
fn is_parking(change: &Change) -> bool {
    match change {
        Change::MakeCgroup { .. }
        | Change::Controller { .. }
        | Change::Attach { .. }
        | Change::Masks { .. } => true,
        Change::Write { path, .. } => path.starts_with("proc/irq/"),
        _ => false,
    }
}

/// The folder of a host's state.
pub fn state_dir(tree: &Tree) -> PathBuf {
    tree.path(Path::new(crate::journal::STATE_DIR).to_str().unwrap_or_default())
}
