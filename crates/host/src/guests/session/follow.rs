//! Guests that appear, change and go.

use std::time::Duration;

use eft_machine::{CpuSet, Ppm, Share};
use eft_vcpu::guest::{Vcpu, VcpuId, VmId, WEIGHT};
use eft_vcpu::host::GroupSet;

use super::super::discover::{Role, Thread, discover};
use super::super::place::Placer;
use super::super::sense::Sensor;
use super::{Found, RunSample, Session, Watched};
use crate::clock;
use crate::error::{Error, error};
use crate::sensors::tasks::TaskId;

/// Time from one search for guests to the next.
const SEARCH: Duration = Duration::from_secs(5);

/// A thread's name for the scheduler. Thread ids have 22 bits.
fn vcpu_id(id: TaskId) -> VcpuId {
    VcpuId(id.started << 22 | (id.tid as u64 & 0x3f_ffff))
}

impl Session {
    /// Finds out which guests there are now.
    pub(super) fn search(&mut self) {
        let found = discover(&self.tree, &self.settings.wanted, &self.guests);
        self.adopt(found);
    }

    /// The same in a thread of its own: a monitor that hangs must not delay the turns.
    pub(super) fn begin_search(&mut self) {
        if self.searching.is_some() {
            return;
        }
        let (tree, wanted, known) = (self.tree.clone(), self.settings.wanted.clone(), self.guests.clone());
        let search = std::thread::Builder::new().spawn(move || discover(&tree, &wanted, &known));
        match search {
            Ok(search) => self.searching = Some(search),
            Err(_) => self.search(),
        }
    }

    /// Takes the result of the search, if it is done.
    pub(super) fn end_search(&mut self) {
        if let Some(search) = self.searching.take_if(|search| search.is_finished()) {
            match search.join() {
                Ok(found) => self.adopt(found),
                // The next window begins a new search.
                Err(_) => self.tell("a search for guests has failed".into()),
            }
        }
    }

    fn adopt(&mut self, (mut guests, notes): Found) {
        self.next_search = clock::now() + SEARCH;
        guests.retain(|guest| !self.settings.guests.get(&guest.name).is_some_and(|options| options.ignore));
        notes.into_iter().for_each(|note| self.tell(note.to_string()));
        let before: Vec<String> = self.guests.iter().map(|guest| guest.name.clone()).collect();
        let now: Vec<String> = guests.iter().map(|guest| guest.name.clone()).collect();
        self.notes
            .extend(before.iter().filter(|name| !now.contains(name)).map(|name| format!("{name} has gone")));
        let how = if self.placer.is_some() { "managed" } else { "watched" };
        self.notes.extend(
            now.iter().filter(|name| !before.contains(name)).map(|name| format!("{name} is {how} now")),
        );
        self.guests = guests;
        if let Err(reason) = self.survey() {
            self.tell(reason.to_string());
        }
        self.follow();
        let changed = self.placer.as_mut().map(Placer::check).unwrap_or_default();
        changed.into_iter().for_each(|note| self.tell(note.to_string()));
        // Threads that the kernel refused to place are tried again.
        self.watched.iter_mut().for_each(|watched| watched.settled = None);
    }

    /// Reports a note; the same note only once.
    pub(super) fn tell(&mut self, note: String) {
        if !self.given_notes.contains(&note) {
            self.notes.push(note.clone());
            self.given_notes.push(note);
        }
    }

    /// Takes new threads over and releases old ones.
    fn follow(&mut self) {
        let wanted: Vec<(Thread, String, bool)> = self
            .guests
            .iter()
            .flat_map(|guest| guest.vcpus().map(|thread| (thread.clone(), guest.name.clone(), guest.kvm)))
            .collect();
        let stays = |watched: &Watched| wanted.iter().any(|(thread, ..)| thread.id == watched.thread.id);
        let (kept, gone): (Vec<Watched>, Vec<Watched>) =
            std::mem::take(&mut self.watched).into_iter().partition(stays);
        for watched in gone {
            let released = self.placer.as_mut().map(|placer| placer.release(watched.thread.id));
            if let Some(Err(note)) = released {
                self.tell(note.to_string());
            }
        }
        self.watched = kept;
        let mut vcpus = Vec::new();
        for (thread, guest, kvm) in wanted {
            match self.vcpu(&thread, &guest) {
                Ok((vcpu, within)) => {
                    if !self.watched.iter().any(|watched| watched.thread.id == thread.id) {
                        self.watch(thread, guest, kvm, vcpu.id, within);
                    }
                    vcpus.push(vcpu);
                }
                Err(note) => self.tell(note.to_string()),
            }
        }
        self.watched.retain(|watched| vcpus.iter().any(|vcpu| vcpu.id == watched.id));
        self.watched.sort_by_key(|watched| watched.id);
        self.scheduler.set_vcpus(&vcpus);
        self.place_helpers();
    }

    fn vcpu(&mut self, thread: &Thread, guest: &str) -> Result<(Vcpu, CpuSet), Error> {
        let next = self.vms.len() as u64;
        let vm = *self.vms.entry(guest.to_string()).or_insert(next);
        let within = match &mut self.placer {
            Some(placer) => placer
                .take(thread.process, thread.id)
                .map_err(|reason| error!(Refused, "{guest}: {reason}"))?,
            None => {
                crate::actuators::affinity::get(&self.tree, thread.process, thread.id.tid).unwrap_or_default()
            }
        };
        let options = self.settings.guests.get(guest);
        let within = match options.and_then(|options| options.cpus.as_ref()) {
            Some(cpus) => within.and(cpus),
            None => within,
        };
        let allowed: GroupSet =
            (0..self.sets.len()).filter(|group| !self.sets[*group].and(&within).is_empty()).collect();
        if allowed == GroupSet::default() {
            return Err(error!(
                Refused,
                "{guest}: thread {} may run on no CPU that is dealt out", thread.id.tid
            ));
        }
        let cap = options.and_then(|options| options.cap);
        let vcpu = Vcpu {
            id: vcpu_id(thread.id),
            vm: VmId(vm),
            weight: options.and_then(|options| options.weight).unwrap_or(WEIGHT),
            cap: cap.map_or(Ppm::MAX, |cores| Ppm::from(Share(cores.max(0.0)))),
            allowed,
        };
        Ok((vcpu, within))
    }

    fn watch(&mut self, thread: Thread, guest: String, kvm: bool, id: VcpuId, within: CpuSet) {
        let progress = self.settings.guests.get(&guest).and_then(|options| options.progress.clone());
        let has_progress = progress.is_some();
        let mut sensor = Sensor::new(&self.tree, thread.process, thread.id, progress);
        if self.blind.is_none()
            && !has_progress
            && let Err(reason) = sensor.count(&self.pmus, thread.id.tid, kvm)
        {
            if matches!(reason, Error::Gone(_)) {
                sensor.has_ended = true;
            } else {
                self.notes.push(format!("{reason}; going by utilisation alone"));
                self.blind = Some(reason.to_string());
            }
        }
        sensor.sample();
        let last = RunSample::of(&sensor, clock::now());
        self.watched.push(Watched { id, thread, guest, within, class: None, settled: None, sensor, last });
    }

    /// I/O, vhost and emulator threads go to the slowest cores: they wait for devices and for each other.
    fn place_helpers(&mut self) {
        let Some(placer) = &mut self.placer else { return };
        let slowest = self.scheduler.host().slowest_cores();
        let groups = self.scheduler.host().of_class(slowest);
        let cpus = groups.fold(CpuSet::new(), |all, group| all.union(&self.sets[group]));
        let mut notes = Vec::new();
        for guest in &self.guests {
            for thread in guest.threads.iter().filter(|thread| !matches!(thread.role, Role::Vcpu(_))) {
                // Helpers start and end every second; a helper that has ended is not reported.
                if placer.take(thread.process, thread.id).is_ok()
                    && let Err(reason) = placer.put(thread.id, &cpus)
                {
                    notes.push(format!("{}: {reason}", guest.name));
                }
            }
        }
        notes.into_iter().for_each(|note| self.tell(note.to_string()));
    }
}
