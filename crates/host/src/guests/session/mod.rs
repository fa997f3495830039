//! The scheduler of virtual CPUs, live: looks when it asks, places as it says, follows guests that come and go.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use eft_base::time::Instant;
use eft_machine::{CpuSet, Machine, SpeedSet};
use eft_vcpu::PPM;
use eft_vcpu::guest::{Progress, Vcpu, VcpuId, VmId, WEIGHT};
use eft_vcpu::host::{GroupSet, Host};
use eft_vcpu::options::{Options, Policy};
use eft_vcpu::promote::Since;
use eft_vcpu::scheduler::{Due, Scheduler};
use eft_vcpu::survey::survey;
use serde::{Deserialize, Serialize};

use super::discover::{Guest, Role, Thread, Wanted, discover};
use super::perf::{self, Pmu};
use super::place::Placer;
use super::sense::Sensor;
use crate::actuators::held;
use crate::clock;
use crate::journal::Journal;
use crate::sensors::tasks::TaskId;
use crate::sensors::{self, Tree};

/// The journal of guests lies apart from that of the CPUs, so that neither waits for the other.
pub const STATE_DIR: &str = "/run/eft/vm";
/// As eft's servers have it.
const NICENESS: i32 = -11;
/// From one search for guests to the next.
const SEARCH: Duration = Duration::from_secs(5);

/// What an operator says of one guest.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GuestOptions {
    /// Of all its vCPUs together; 256 unless said.
    pub weight: Option<u32>,
    /// Cores' worth of time that all its vCPUs together may use.
    pub cap: Option<f64>,
    /// CPUs that it may use.
    pub cpus: Option<CpuSet>,
    /// A file with a number that counts up as the guest gets on.
    pub progress: Option<PathBuf>,
    /// Leave it alone.
    #[serde(default)]
    pub ignore: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub wanted: Wanted,
    pub options: Options,
    /// CPUs to deal out; all unless said.
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
    sensor: Sensor,
}

pub struct Session {
    tree: Tree,
    settings: Settings,
    sets: Vec<CpuSet>,
    /// Of each group: see [`Sensor::stretch_ppm`].
    stretches: Vec<u64>,
    scheduler: Scheduler,
    placer: Option<Placer>,
    /// In the order of the scheduler's entries.
    watched: Vec<Watched>,
    guests: Vec<Guest>,
    vms: BTreeMap<String, u64>,
    pmus: Vec<Pmu>,
    /// Told once: why there are no counters.
    blind: Option<String>,
    told: Vec<String>,
    news: Vec<String>,
    next_search: Instant,
    /// What the last look at everybody saw.
    full: Vec<(u64, u64)>,
    full_at: Instant,
}

/// A thread's name for the scheduler. Thread ids have 22 bits.
fn vcpu_id(id: TaskId) -> VcpuId {
    VcpuId(id.started << 22 | (id.tid as u64 & 0x3f_ffff))
}

/// The machine as the policy sees it, with the speeds that `eft cpu` set.
pub fn host(
    tree: &Tree,
    cpu_state_dir: &Path,
    cpus: Option<&CpuSet>,
) -> Result<(Host, Vec<CpuSet>, Machine), String> {
    let mut machine = sensors::observe(tree)?;
    let held = held::load(cpu_state_dir);
    let parked = held.parked();
    for cpu in &mut machine.cpus {
        cpu.parked = parked.contains(cpu.cpu);
        cpu.speed_set = held.speeds.get(&cpu.cpu).map(|speed| SpeedSet {
            share: speed.share,
            back_end: speed.back_end.to_string(),
            phase: speed.phase.clone(),
        });
    }
    let usable = cpus.cloned().unwrap_or_else(|| machine.online.clone());
    let (host, sets) = survey(&machine.cpus, &usable)?;
    Ok((host, sets, machine))
}

/// What the emulated speed of a group's CPUs makes of time on them.
fn stretch(machine: &Machine, cpus: &CpuSet) -> u64 {
    let of = |cpu: &&eft_machine::Cpu| cpus.contains(cpu.cpu);
    let set = machine.cpus.iter().find(of).and_then(|cpu| cpu.speed_set.as_ref());
    set.filter(|set| set.back_end == "emulated").map_or(PPM, |set| (PPM as f64 / set.share.max(0.01)) as u64)
}

impl Session {
    pub fn open(tree: &Tree, settings: Settings) -> Result<Self, String> {
        let (host, sets, machine) = host(tree, &settings.cpu_state_dir, settings.cpus.as_ref())?;
        let stretches = sets.iter().map(|set| stretch(&machine, set)).collect();
        let usable = sets.iter().fold(CpuSet::new(), |all, set| all.union(set));
        let mut news = Vec::new();
        let placer = if settings.watch_only {
            None
        } else {
            let mut journal = Journal::lock_within(tree, &settings.state_dir, Duration::from_millis(500))?;
            let (count, notes) = journal.recover();
            if count > 0 {
                news.push(format!("put {count} threads back that an instance left behind"));
            }
            news.extend(notes);
            Some(Placer::new(journal, usable))
        };
        let class_of = |cpus: &CpuSet| {
            sets.iter()
                .zip(&host.groups)
                .find(|(set, _)| !set.and(cpus).is_empty())
                .map(|(_, group)| group.class)
        };
        let pmus = perf::pmus(tree, class_of);
        if !host.is_asymmetric() {
            news.push(
                "nothing tells the cores apart, so there is nothing to deal out; turns and followers work"
                    .into(),
            );
        }
        // Turns are to be taken in time on a busy host, too; without the privilege they come later.
        if !settings.watch_only
            && let Ok(now) = rustix::process::getpriority_process(None)
        {
            let _ = rustix::process::setpriority_process(None, now.min(NICENESS));
        }
        let scheduler = Scheduler::new(host, settings.options.clone())?;
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
            blind: None,
            told: Vec::new(),
            news,
            next_search: Instant::ZERO,
            full: Vec::new(),
            full_at: clock::now(),
        };
        session.search();
        Ok(session)
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

    /// What happened since the last call that an operator wants to know.
    pub fn take_news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// Looks and places until `end`, or until `stop` says so.
    pub fn run(&mut self, end: Instant, mut stop: impl FnMut() -> bool) {
        while !stop() {
            let (at, due) = self.scheduler.due();
            let now = clock::now();
            if now >= end {
                return;
            }
            let wait = at.min(end).saturating_since(now);
            if !wait.is_zero() {
                // At most this long, so that whoever wants to stop is heard.
                std::thread::sleep(wait.min(Duration::from_millis(100)));
                if clock::now() < at {
                    continue;
                }
            }
            self.step(due);
        }
    }

    /// One look and what follows from it.
    pub fn step(&mut self, due: Due) {
        let now = clock::now();
        match due {
            Due::Tick => self.tick(now),
            Due::Turn => {
                self.watched.iter_mut().for_each(|watched| watched.sensor.look());
                self.with_progress(|scheduler, all| scheduler.turn(now, all));
                self.remember(now);
            }
            Due::Window => {
                for (index, watched) in self.watched.iter_mut().enumerate() {
                    let group = self.scheduler.entries().get(index).and_then(|entry| entry.group);
                    let class = group.map(|group| self.scheduler.host().groups[group].class);
                    watched.sensor.look_closely(class);
                }
                self.with_progress(|scheduler, all| scheduler.window(now, all));
                self.remember(now);
                if now >= self.next_search || self.watched.iter().any(|watched| watched.sensor.has_ended) {
                    self.search();
                }
            }
        }
        self.place();
    }

    fn tick(&mut self, now: Instant) {
        for (index, watched) in self.watched.iter_mut().enumerate() {
            if self.scheduler.watched_at_ticks(index) {
                watched.sensor.look();
            }
        }
        let mut has_seats = false;
        self.with_progress(|scheduler, all| has_seats = scheduler.tick(now, all));
        if has_seats {
            self.watched.iter_mut().for_each(|watched| watched.sensor.look());
            let since = |(watched, (run, wait)): (&Watched, &(u64, u64))| {
                let sensor = &watched.sensor;
                let did = Since {
                    ran_ns: sensor.run_ns.saturating_sub(*run),
                    waited_ns: sensor.wait_ns.saturating_sub(*wait),
                };
                (watched.id, did)
            };
            let all: Vec<(VcpuId, Since)> = self.watched.iter().zip(&self.full).map(since).collect();
            self.scheduler.promote(&all, now.saturating_since(self.full_at));
            self.remember(now);
        }
    }

    fn remember(&mut self, now: Instant) {
        self.full.clear();
        self.full.extend(self.watched.iter().map(|watched| (watched.sensor.run_ns, watched.sensor.wait_ns)));
        self.full_at = now;
    }

    fn with_progress(&mut self, tell: impl FnOnce(&mut Scheduler, &[Progress])) {
        let progress = |watched: &'_ Watched| -> (VcpuId, u64, u64) {
            (watched.id, watched.sensor.run_ns, watched.sensor.wait_ns)
        };
        let all: Vec<Progress> = self
            .watched
            .iter()
            .map(|watched| {
                let (id, run_ns, wait_ns) = progress(watched);
                Progress {
                    id,
                    run_ns,
                    wait_ns,
                    counts: &watched.sensor.counts,
                    own_unit: watched.sensor.own_unit(),
                }
            })
            .collect();
        tell(&mut self.scheduler, &all);
    }

    fn place(&mut self) {
        let Some(placer) = &mut self.placer else { return };
        for (entry, watched) in self.scheduler.entries().iter().zip(&mut self.watched) {
            let Some(group) = entry.group else { continue };
            watched.sensor.stretch_ppm = self.stretches[group];
            if placer.put(watched.thread.id, &self.sets[group].and(&watched.within)).is_err() {
                // It has ended, or may not be moved any more; the next search finds out.
                watched.sensor.has_ended = true;
            }
        }
    }

    /// Finds out which guests there are now.
    pub fn search(&mut self) {
        self.next_search = clock::now() + SEARCH;
        let (mut guests, notes) = discover(&self.tree, &self.settings.wanted);
        guests.retain(|guest| !self.settings.guests.get(&guest.name).is_some_and(|options| options.ignore));
        notes.into_iter().for_each(|note| self.tell(note));
        let before: Vec<String> = self.guests.iter().map(|guest| guest.name.clone()).collect();
        let now: Vec<String> = guests.iter().map(|guest| guest.name.clone()).collect();
        self.news
            .extend(before.iter().filter(|name| !now.contains(name)).map(|name| format!("{name} has gone")));
        self.news.extend(
            now.iter().filter(|name| !before.contains(name)).map(|name| format!("{name} is managed now")),
        );
        self.guests = guests;
        self.follow();
        let changed = self.placer.as_mut().map(Placer::check).unwrap_or_default();
        changed.into_iter().for_each(|note| self.tell(note));
    }

    /// What was told once is not told again.
    fn tell(&mut self, note: String) {
        if !self.told.contains(&note) {
            self.news.push(note.clone());
            self.told.push(note);
        }
    }

    /// Takes new threads over and lets old ones go.
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
                self.tell(note);
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
                Err(note) => self.tell(note),
            }
        }
        self.watched.retain(|watched| vcpus.iter().any(|vcpu| vcpu.id == watched.id));
        self.watched.sort_by_key(|watched| watched.id);
        self.scheduler.set_vcpus(&vcpus);
        self.remember(clock::now());
        self.place_helpers();
    }

    fn vcpu(&mut self, thread: &Thread, guest: &str) -> Result<(Vcpu, CpuSet), String> {
        let next = self.vms.len() as u64;
        let vm = *self.vms.entry(guest.to_string()).or_insert(next);
        let within = match &mut self.placer {
            Some(placer) => {
                placer.take(thread.process, thread.id).map_err(|reason| format!("{guest}: {reason}"))?
            }
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
        let cap = options.and_then(|options| options.cap);
        let vcpu = Vcpu {
            id: vcpu_id(thread.id),
            vm: VmId(vm),
            weight: options.and_then(|options| options.weight).unwrap_or(WEIGHT),
            cap_ppm: cap.map_or(u64::MAX, |cores| (cores.max(0.0) * PPM as f64) as u64),
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
            if reason.contains("ended") {
                sensor.has_ended = true;
            } else {
                self.news.push(format!("{reason}; going by utilisation alone"));
                self.blind = Some(reason);
            }
        }
        sensor.look();
        self.watched.push(Watched { id, thread, guest, within, sensor });
    }

    /// I/O, vhost and emulator threads go to the slowest cores: they wait for devices and for each other.
    fn place_helpers(&mut self) {
        let Some(placer) = &mut self.placer else { return };
        let slowest = self.scheduler.host().classes.len() - 1;
        let groups = self.scheduler.host().of_class(slowest);
        let cpus = groups.fold(CpuSet::new(), |all, group| all.union(&self.sets[group]));
        let mut notes = Vec::new();
        for guest in &self.guests {
            for thread in guest.threads.iter().filter(|thread| !matches!(thread.role, Role::Vcpu(_))) {
                // Helpers come and go by the second; one that has gone is no news.
                if placer.take(thread.process, thread.id).is_ok()
                    && let Err(reason) = placer.put(thread.id, &cpus)
                {
                    notes.push(format!("{}: {reason}", guest.name));
                }
            }
        }
        notes.into_iter().for_each(|note| self.tell(note));
    }

    /// Every affinity as it was before; what there is to say about it.
    pub fn restore(&mut self) -> Vec<String> {
        self.placer.as_mut().map(Placer::restore).unwrap_or_default()
    }

    /// What is known now, for whoever shows it.
    pub fn view(&self) -> View {
        let host = self.scheduler.host();
        let vcpu = |(index, watched): (usize, &Watched)| {
            let (entry, known) = (&self.scheduler.entries()[index], self.scheduler.known(index));
            let share = |ppm: u64| ppm as f64 / PPM as f64;
            let ran: u64 = known.ran_ns.iter().sum();
            VcpuView {
                guest: watched.guest.clone(),
                role: watched.thread.name.clone(),
                tid: watched.thread.id.tid,
                group: entry.group.map(|group| self.sets[group].clone()),
                class: entry.group.map(|group| host.classes[host.class_of(group)].name.clone()),
                is_active: entry.active,
                ipc: known.ipc_ppm.map(share),
                utilisation: share(known.ran_ppm),
                waiting: share(known.waited_ppm),
                score: share(known.score),
                dealt: entry.shares.iter().map(|ppm| share(*ppm)).collect(),
                fast_share: if ran == 0 { 0.0 } else { known.ran_ns[0] as f64 / ran as f64 },
                ran_s: known.ran_ns.iter().map(|ns| *ns as f64 / 1e9).collect(),
                moves: known.moves,
                cache_moves: known.cache_moves,
                slowdown: share(known.slowdown_ppm),
                is_left_alone: self
                    .placer
                    .as_ref()
                    .is_some_and(|p| p.left_alone.contains_key(&watched.thread.id)),
            }
        };
        View {
            policy: self.scheduler.options().policy.to_string(),
            even: self.scheduler.even_ppm() as f64 / PPM as f64,
            deals: self.scheduler.deals(),
            classes: (0..host.classes.len())
                .map(|class| ClassView {
                    name: host.classes[class].name.clone(),
                    speed: f64::from(host.classes[class].speed_ppm) / PPM as f64,
                    cpus: host.of_class(class).fold(CpuSet::new(), |all, group| all.union(&self.sets[group])),
                })
                .collect(),
            counters: self.blind.clone(),
            vcpus: self.watched.iter().enumerate().map(vcpu).collect(),
        }
    }
}

/// What `eft vm run` publishes and `eft vm top` shows. Shares are parts of one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct View {
    pub policy: String,
    /// Part of the fast time dealt out evenly.
    pub even: f64,
    pub deals: u64,
    pub classes: Vec<ClassView>,
    /// Why there are no counters; absent where there are.
    pub counters: Option<String>,
    pub vcpus: Vec<VcpuView>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClassView {
    pub name: String,
    pub speed: f64,
    pub cpus: CpuSet,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct VcpuView {
    pub guest: String,
    pub role: String,
    pub tid: i32,
    pub group: Option<CpuSet>,
    pub class: Option<String>,
    pub is_active: bool,
    pub ipc: Option<f64>,
    pub utilisation: f64,
    pub waiting: f64,
    pub score: f64,
    /// Of each class, in cores.
    pub dealt: Vec<f64>,
    /// Of its run time so far, on the fastest class.
    pub fast_share: f64,
    pub ran_s: Vec<f64>,
    pub moves: u64,
    pub cache_moves: u64,
    /// Less done than under amp-fair, by prediction.
    pub slowdown: f64,
    pub is_left_alone: bool,
}
