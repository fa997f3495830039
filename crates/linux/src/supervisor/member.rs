//! One server as the supervisor sees it.

use super::process::{self, Process};
use super::standby::{Recovery, Standby};
use crate::protocol::{ToServer, encode};
use crate::{futex, scm};
use eft_base::{Instant, PoolId};
use eft_channel::Shared;
use eft_channel::notify::{Doorbell, Mode};
use eft_channel::status::Status;
use eft_control::accusation::Credit;
use eft_control::hang::{Hang, Sample, Stage, ThreadState, Watch};
use eft_control::restart::Restarts;
use eft_host::clock;
use eft_machine::CpuId;
use eft_messages::{ComponentId, Role};
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Where a server is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Starting,
    Running,
    /// Dead; to be started again at this time.
    Waiting(Instant),
}

/// A pool made for this member.
pub struct OwnedPool {
    pub id: PoolId,
    pub fd: OwnedFd,
    pub slot_size: usize,
    pub readers: Vec<ComponentId>,
}

/// A component and its process.
pub struct Member {
    pub peer: ComponentId,
    pub name: String,
    pub generation: u32,
    pub life: Life,
    /// The name of the process that it shares with others.
    pub process: Option<String>,
    pub child: Option<Process>,
    pub control: Option<OwnedFd>,
    pub stderr: Option<std::process::ChildStderr>,
    pub last_words: String,
    pub status_fd: OwnedFd,
    pub status: Status,
    pub eventfd: OwnedFd,
    pub bell_fd: OwnedFd,
    pub bell: Shared<Doorbell>,
    pub arena: Option<OwnedFd>,
    /// Empty, to convert the arena of another version of eft into.
    pub spare: Option<OwnedFd>,
    /// What it is started from; `None`: our own.
    pub program: Option<Arc<OwnedFd>>,
    /// Of the first of those that share a process: what waits to take its place.
    pub standby: Standby,
    /// When the one before it was found dead, until this one is at work.
    pub died_at: Option<Instant>,
    /// How the last death was overcome.
    pub recovery: Option<Recovery>,
    pub device: Vec<OwnedFd>,
    pub pools: Vec<OwnedPool>,
    pub restarts: Restarts,
    /// This process was killed or broken by an operator.
    pub killed_on_purpose: bool,
    /// This process hangs, and was killed for it.
    pub hung: bool,
    /// This process is in a Landlock domain.
    pub landlock: bool,
    /// The last one died of itself, by a fault or a hang.
    pub failed: bool,
    pub cpu: Option<CpuId>,
    /// It is to be alone on its CPU.
    pub dedicated: bool,
    /// It is, so it may poll.
    pub alone: bool,
    /// Places that it was told and has not answered.
    pub moving: u32,
    /// It hung and was killed; its process has not ended yet.
    condemned: bool,
    watch: Watch,
    /// What it said against neighbours.
    pub credit: Credit,
    unsent: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
}

/// Messages that may wait for a server that does not listen.
const UNSENT_MAX: usize = 10_000;
/// Bytes of a server's last words that are kept.
const WORDS_MAX: usize = 8192;

impl Member {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        peer: ComponentId,
        name: String,
        status_fd: OwnedFd,
        status: Status,
        eventfd: OwnedFd,
        bell_fd: OwnedFd,
        bell: Shared<Doorbell>,
    ) -> Member {
        Member {
            peer,
            name,
            generation: 0,
            life: Life::Starting,
            process: None,
            child: None,
            control: None,
            stderr: None,
            last_words: String::new(),
            status_fd,
            status,
            eventfd,
            bell_fd,
            bell,
            arena: None,
            spare: None,
            program: None,
            standby: Standby::default(),
            died_at: None,
            recovery: None,
            device: Vec::new(),
            pools: Vec::new(),
            restarts: Restarts::default(),
            killed_on_purpose: false,
            hung: false,
            landlock: false,
            failed: false,
            cpu: None,
            dedicated: false,
            alone: false,
            moving: 0,
            condemned: false,
            watch: Watch::default(),
            credit: Credit::default(),
            unsent: VecDeque::new(),
        }
    }

    /// Running, or dying again and again without harm to the stack.
    pub fn is_up(&self) -> bool {
        match self.life {
            Life::Running => true,
            Life::Waiting(_) => self.peer == ComponentId::CORES,
            Life::Starting => false,
        }
    }

    /// It has nothing to do; of a nic: it has ended.
    pub fn is_quiet(&self) -> bool {
        match self.peer.role {
            // Of several in a process, one that has ended says that it sleeps.
            Role::Nic if self.process.is_none() => self.child.is_none(),
            _ => self.child.is_none() || self.status.state().load().0 != Mode::Awake,
        }
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(|child| child.borrow().id())
    }

    /// Sends a message and rings. Never waits: what a busy server cannot take now waits here.
    pub fn tell(&mut self, message: &ToServer, fds: &[&OwnedFd]) {
        self.flush();
        let Some(control) = &self.control else { return };
        let bytes = encode(message);
        if self.unsent.is_empty() {
            // Needs no duplicates, which cannot be made when the table of descriptors is full.
            let borrowed: Vec<_> = fds.iter().map(|f| f.as_fd()).collect();
            if !is_full(scm::send(control, &bytes, &borrowed, true)) {
                return self.ring();
            }
        }
        let duplicates: std::io::Result<Vec<OwnedFd>> = fds.iter().map(|f| f.try_clone()).collect();
        match duplicates {
            Ok(fds) if self.unsent.len() < UNSENT_MAX => self.unsent.push_back((bytes, fds)),
            // Without this message it is not what the others take it for: its successor gets everything.
            _ => self.kill(),
        }
    }

    fn ring(&self) {
        self.bell.word().fetch_add(1, Ordering::Release);
        futex::wake(self.bell.word());
    }

    /// Sends what waits.
    pub fn flush(&mut self) {
        let Some(control) = &self.control else {
            self.unsent.clear();
            return;
        };
        if self.unsent.is_empty() {
            return;
        }
        while let Some((bytes, fds)) = self.unsent.front() {
            let borrowed: Vec<_> = fds.iter().map(|f| f.as_fd()).collect();
            if is_full(scm::send(control, bytes, &borrowed, true)) {
                break;
            }
            self.unsent.pop_front();
        }
        self.ring();
    }

    pub fn forget_process(&mut self) {
        self.unsent.clear();
        self.moving = 0;
        self.condemned = false;
        self.watch = Watch::default();
        self.credit = Credit::default();
    }

    pub fn kill(&mut self) {
        if let Some(child) = &self.child {
            let _ = child.borrow_mut().kill();
        }
    }

    fn stage(&self) -> Option<Stage> {
        match self.life {
            Life::Running => Some(Stage::Running),
            Life::Starting if self.unsent.is_empty() => Some(Stage::Starting),
            Life::Starting => Some(Stage::Waiting),
            Life::Waiting(_) => None,
        }
    }

    /// What its process has done and how far it is: with those of its `company`, who run in the same thread.
    pub fn progress<'a>(company: impl Iterator<Item = &'a Member>) -> Option<(u64, Stage)> {
        company
            .map(|m| Some((m.status.progress(), m.stage()?)))
            .reduce(|all, one| {
                let ((sum, first), (progress, stage)) = (all?, one?);
                Some((sum.wrapping_add(progress), first.min(stage)))
            })
            .flatten()
    }

    /// Whether its process hangs, of which it is the first, and whose `progress` is this. Said once: then it is to be killed.
    pub fn find_hang(&mut self, (progress, stage): (u64, Stage)) -> Option<Hang> {
        let pid = self.pid().filter(|_| !self.condemned)?;
        let mode = self.status.state().load().0;
        // Of one that sleeps by its own word nothing more is asked: at rest this is most of what the stack uses.
        let asks = stage != Stage::Running || mode == Mode::Awake;
        let sample = Sample {
            progress,
            ticks: self.status.ticks(),
            cpu: if asks { clock::process_cpu(pid)? } else { Duration::ZERO },
            mode,
            thread: if asks { process::thread_state(pid)? } else { ThreadState::Sleeping },
            stage,
        };
        let hang = self.watch.observe(sample)?;
        if process::is_held(pid) {
            self.watch.forgive();
            return None;
        }
        self.condemned = true;
        self.hung = true;
        Some(hang)
    }

    /// Takes what the server wrote to its standard error, passes it on and keeps the end of it.
    pub fn read_last_words(&mut self) {
        let Some(stderr) = &self.stderr else { return };
        let mut bytes = [0u8; 4096];
        while let Ok(n @ 1..) = rustix::io::read(stderr, &mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..n]);
            eprint!("{text}");
            self.last_words.push_str(&text);
            if self.last_words.len() > WORDS_MAX {
                let mut cut = self.last_words.len() - WORDS_MAX;
                while !self.last_words.is_char_boundary(cut) {
                    cut += 1;
                }
                self.last_words.drain(..cut);
            }
        }
    }

    /// Where a life is recorded.
    pub fn recording(&self, dir: &Path, generation: u32) -> PathBuf {
        dir.join(format!("{}-{generation}.eftrec", self.name))
    }

    /// Writes a crash report. `company`: who died with it.
    pub fn keep_report(&mut self, dir: &Path, how: &str, company: &[String]) {
        let dir = dir.join("crashes");
        let _ = std::fs::create_dir_all(&dir);
        let counters: Vec<String> = (0..64).map(|i| self.status.get(i)).map(|v| v.to_string()).collect();
        let report = format!(
            "component: {}\n{}generation: {}\nended: {how}\nturns: {}\ncounters: {}\nlast words:\n{}\n",
            self.name,
            if company.is_empty() { String::new() } else { format!("with: {}\n", company.join(", ")) },
            self.generation,
            self.status.heartbeat(),
            counters.join(" "),
            std::mem::take(&mut self.last_words)
        );
        let file = |generation: u32| dir.join(format!("{}-{generation}.txt", self.name));
        let _ = std::fs::write(file(self.generation), report);
        let _ = std::fs::remove_file(file(self.generation.wrapping_sub(REPORTS_MAX)));
    }

    /// Removes the recording of a life long ago, where those of lives after failures lie.
    pub fn drop_old_recording(&self, dir: &Path) {
        let dir = dir.join("crashes");
        let _ = std::fs::remove_file(self.recording(&dir, self.generation.wrapping_sub(RECORDINGS_MAX)));
    }
}

/// Whether a message must wait. Else it is sent, or the server is dead and will be told anew.
pub fn is_full(sent: std::result::Result<(), rustix::io::Errno>) -> bool {
    matches!(sent, Err(rustix::io::Errno::AGAIN | rustix::io::Errno::TOOMANYREFS))
}

/// Crash reports kept of one component, and recordings.
const REPORTS_MAX: u32 = 64;
const RECORDINGS_MAX: u32 = 4;
