//! The process that holds what the commands set, and undoes it when it ends.
//!
//! It runs the burners and the lazy part of parking, sleeps until the next step is due or a command nudges it, ends by
//! itself when nothing is held, and undoes everything on SIGTERM, SIGINT and SIGHUP. After a SIGKILL the next eft
//! undoes its changes, since their entries in the journal have a dead owner.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use eft_cores::duty::DutyOptions;
use eft_cores::park::ParkBackEnd;
use eft_machine::CpuId;
use rustix::process::{Pid, Signal};

use super::burner::Burner;
use super::held::{self, Held, Status};
use super::lazy::{LazyOptions, LazyWork};
use super::parking::Parking;
use super::scope::Scope;
use crate::clock;
use crate::error::{Error, error};
use crate::journal::Journal;
use crate::sensors::Tree;
use crate::sensors::tasks::{self, TaskId};

/// When nothing is due, the holder checks again after this time, in case a crash lost a nudge.
const IDLE: Duration = Duration::from_secs(5);

/// Tells a holder to read again what is held.
pub fn nudge(holder: TaskId) {
    if let Some(pid) = Pid::from_raw(holder.tid) {
        // The holder may just have ended; the caller learns that from its status.
        let _ = rustix::process::kill_process(pid, Signal::USR1);
    }
}

struct Holder {
    me: TaskId,
    burners: BTreeMap<CpuId, (DutyOptions, Burner)>,
    lazy: LazyWork,
    status: Status,
}

/// The holder's main loop. `ready` is called once signals are under control.
pub fn run(dir: &Path, ready: impl FnOnce()) -> Result<(), Error> {
    let signals = block_signals()?;
    close_inherited();
    // Sweeps are short, but late if they queue behind a loaded core's tasks: 17 ms were seen where 10 are promised.
    // SAFETY: plain numbers; 0 names this process. Without the privilege sweeps only come later.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
    // The holder must not end with the terminal. An error is ignored: the holder may already lead a session.
    let _ = rustix::process::setsid();
    let tree = Tree::live();
    let mut holder = Holder {
        me: tasks::myself(&tree),
        burners: BTreeMap::new(),
        lazy: LazyWork::default(),
        status: Status::default(),
    };
    ready();
    // The command that started us holds the lock until everything is in place.
    loop {
        // Others rely on what the holder holds, so it waits for the lock without a limit.
        let mut journal = Journal::lock_within(&tree, dir, Duration::MAX)?;
        let held = held::load(dir);
        if held.holder != Some(holder.me) {
            return Ok(());
        }
        if held.is_empty() {
            holder.burners.clear();
            journal.undo(|entry| entry.owner == holder.me);
            return end(dir, held.generation, Vec::new());
        }
        let wait = holder.serve(&mut journal, &held, dir)?;
        drop(journal);
        if wait_for_signal(&signals, wait) {
            return holder.undo_all(&tree, dir);
        }
    }
}

/// The holder outlives its parent, and must not keep the parent's locks and pipes open by inherited descriptors.
fn close_inherited() {
    // SAFETY: nothing in this process has opened a descriptor above standard error yet. Kernels before 5.9 refuse.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
}

impl Holder {
    /// Makes burners and lazy work agree with what is held; returns how long there is nothing to do.
    fn serve(&mut self, journal: &mut Journal, held: &Held, dir: &Path) -> Result<Duration, Error> {
        let is_new = self.status.generation != held.generation;
        if is_new {
            self.status.errors.clear();
            self.adjust_burners(held);
        }
        let mut wait = IDLE;
        let swept = self.lazy.swept;
        if let Some(parking) = &held.parking {
            let now = clock::now();
            let since = parking.since();
            let options =
                LazyOptions { delays: parking.delays, spread: &parking.spread, force: parking.force };
            let parked = Parking::resume(journal.tree(), parking.back_end, parking.scope.clone());
            self.lazy.run(journal, &parked, &since, &options, now);
            // Nothing needs a sweep where the kernel keeps new tasks out or they start inside the cpuset.
            let sweeps = match parking.back_end {
                ParkBackEnd::V2 => false,
                ParkBackEnd::V1 => parking.scope == Scope::All,
                ParkBackEnd::Affinity => true,
            };
            if let Some(next) = self.lazy.next(&since, &parking.delays, sweeps) {
                wait = wait.min(next.saturating_since(now).max(Duration::from_millis(1)));
            }
        }
        if is_new || swept != self.lazy.swept || self.status.notes != self.lazy.notes {
            self.status.generation = held.generation;
            self.status.notes = self.lazy.notes.clone();
            self.status.swept = self.lazy.swept;
            held::save_status(dir, &self.status)?;
        }
        Ok(wait)
    }

    fn adjust_burners(&mut self, held: &Held) {
        let wanted: BTreeMap<CpuId, DutyOptions> =
            held.speeds.iter().filter_map(|(cpu, speed)| Some((*cpu, speed.duty?))).collect();
        self.burners.retain(|cpu, (options, _)| wanted.get(cpu) == Some(options));
        for (cpu, options) in wanted {
            if self.burners.contains_key(&cpu) {
                continue;
            }
            match Burner::start(cpu, options) {
                Ok(burner) => {
                    self.burners.insert(cpu, (options, burner));
                }
                Err(reason) => self.status.errors.push(format!("CPU {cpu}: {reason}")),
            }
        }
        self.status.burners = self.burners.iter().map(|(cpu, (_, burner))| (*cpu, burner.tid())).collect();
    }

    fn undo_all(&mut self, tree: &Tree, dir: &Path) -> Result<(), Error> {
        self.burners.clear();
        let mut journal = Journal::lock_within(tree, dir, Duration::MAX)?;
        let notes = journal.undo(|entry| entry.owner == self.me);
        end(dir, held::load(dir).generation, notes)
    }
}

/// Writes the last status. The caller has the lock.
fn end(dir: &Path, generation: u64, notes: Vec<String>) -> Result<(), Error> {
    held::save_status(dir, &Status { generation, notes, ..Status::default() })?;
    held::save(dir, &Held::nothing(generation))
}

/// For other long work that must undo its changes: SIGTERM, SIGINT and SIGHUP are blocked and can be polled.
pub struct EndSignals(libc::sigset_t);

impl EndSignals {
    pub fn block() -> Result<Self, Error> {
        block_signals().map(Self)
    }

    /// Was the process asked to end?
    pub fn arrived(&self) -> bool {
        wait_for_signal(&self.0, Duration::ZERO)
    }
}

const SIGNALS: [i32; 4] = [libc::SIGUSR1, libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Blocks the signals, which are then received by waiting for them, so no handler runs at a bad moment. Threads that
/// start later inherit this.
fn block_signals() -> Result<libc::sigset_t, Error> {
    // SAFETY: `set` is initialised by sigemptyset before anything reads it, and all pointers live through the calls.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in SIGNALS {
            libc::sigaddset(&mut set, signal);
        }
        match libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) {
            0 => Ok(set),
            code => {
                Err(error!(System, "signals cannot be blocked ({})", std::io::Error::from_raw_os_error(code)))
            }
        }
    }
}

/// True if it is time to end.
fn wait_for_signal(set: &libc::sigset_t, wait: Duration) -> bool {
    let timeout = libc::timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
    // SAFETY: set and timeout live through the call, which only reads them; no information is asked for.
    let signal = unsafe { libc::sigtimedwait(set, std::ptr::null_mut(), &timeout) };
    signal > 0 && signal != libc::SIGUSR1
}
