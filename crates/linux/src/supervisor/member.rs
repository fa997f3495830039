//! One server, as the supervisor sees it.

use super::changes::{Changes, is_told_again};
use super::process::{self, Process};
use super::say;
use super::standby::{Recovery, Standby};
use crate::memory::Both;
use crate::namespaces::Namespaces;
use crate::protocol::{ToServer, encode};
use crate::{futex, scm, ticks};
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
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The stages of a server's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Starting,
    Running,
    /// Dead; it is started again at this time.
    Waiting(Instant),
}

/// A pool made for this member.
pub struct OwnedPool {
    pub id: PoolId,
    pub segment: Both,
    pub slot_size: usize,
    pub readers: Vec<ComponentId>,
}

/// A component and its process.
pub struct Member {
    pub peer: ComponentId,
    pub name: String,
    pub generation: u32,
    pub life: Life,
    /// The name of the process, if it shares one with others.
    pub process: Option<String>,
    pub child: Option<Process>,
    pub control: Option<OwnedFd>,
    pub stderr: Option<std::process::ChildStderr>,
    pub last_words: String,
    /// Since when nothing more can come from its end of the control socket.
    pub silent_since: Option<Instant>,
    pub status_page: Both,
    pub status: Status,
    pub eventfd: Rc<OwnedFd>,
    pub bell_fd: Both,
    pub bell: Shared<Doorbell>,
    pub arena: Option<OwnedFd>,
    /// An empty arena, for converting the one of another version of eft.
    pub spare: Option<OwnedFd>,
    /// The file from which it is started; `None`: the supervisor's own.
    pub program: Option<Arc<OwnedFd>>,
    /// The process that waits to take its place; kept by the first of the servers that share a process.
    pub standby: Standby,
    /// Those of its first process, for the next ones; kept by the first of the servers that share a process.
    pub namespaces: Option<Rc<Namespaces>>,
    /// When its predecessor was found dead; `None` once this one serves.
    pub died_at: Option<Instant>,
    /// How the last death was overcome.
    pub recovery: Option<Recovery>,
    pub device: Vec<OwnedFd>,
    pub pools: Vec<OwnedPool>,
    pub restarts: Restarts,
    /// An operator killed or broke this process.
    pub killed_on_purpose: bool,
    /// This process hung and was killed for it.
    pub hung: bool,
    /// It is recorded, so it writes what it was at when it dies.
    pub recorded: bool,
    /// It hung and was asked to write that, and is killed then.
    pub patience_until: Option<Instant>,
    /// It was told that the keeper has it.
    pub told_kept: bool,
    /// This process is in a Landlock domain.
    pub landlock: bool,
    /// The predecessor died of a fault or a hang, not on purpose.
    pub failed: bool,
    pub cpu: Option<CpuId>,
    /// It is to be alone on its CPU.
    pub dedicated: bool,
    /// It is alone on its CPU, so it may poll.
    pub alone: bool,
    /// Places that it was sent and has not confirmed.
    pub moving: u32,
    /// It hung and was killed; its process has not ended yet.
    condemned: bool,
    watch: Watch,
    /// How far its accusations of neighbours are believed.
    pub credit: Credit,
    unsent: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
    /// It was sent something without a ring.
    mentioned: bool,
    changes: Rc<Changes>,
    /// Its number in them.
    number: usize,
}

/// How long a server that hangs may write. It takes some milliseconds.
const PATIENCE: Duration = Duration::from_millis(200);

/// The most messages that wait for a server that does not take them.
const UNSENT_MAX: usize = 10_000;
/// The most bytes kept of a server's last words.
const WORDS_MAX: usize = 8192;

impl Member {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        peer: ComponentId,
        name: String,
        status_page: Both,
        status: Status,
        eventfd: OwnedFd,
        bell_fd: Both,
        bell: Shared<Doorbell>,
        changes: Rc<Changes>,
        number: usize,
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
            silent_since: None,
            status_page,
            status,
            eventfd: Rc::new(eventfd),
            bell_fd,
            bell,
            arena: None,
            spare: None,
            program: None,
            standby: Standby::default(),
            namespaces: None,
            died_at: None,
            recovery: None,
            device: Vec::new(),
            pools: Vec::new(),
            restarts: Restarts::default(),
            killed_on_purpose: false,
            hung: false,
            recorded: false,
            patience_until: None,
            told_kept: false,
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
            mentioned: false,
            changes,
            number,
        }
    }

    /// Whether it runs; a scheduler that dies again and again counts as running, since it does not harm the stack.
    pub fn is_up(&self) -> bool {
        match self.life {
            Life::Running => true,
            Life::Waiting(_) => self.peer == ComponentId::CORES,
            Life::Starting => false,
        }
    }

    /// Whether it has nothing to do; for a nic, whether it has ended.
    pub fn is_quiet(&self) -> bool {
        match self.peer.role {
            // A nic that has ended shows that it sleeps while others of its process still run.
            Role::Nic if self.process.is_none() => self.child.is_none(),
            _ => self.child.is_none() || self.status.state().load().0 != Mode::Awake,
        }
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(|child| child.borrow().id())
    }

    /// Sends a message and rings. Never waits: what a busy server cannot take now waits here.
    pub fn tell(&mut self, message: &ToServer, fds: &[&OwnedFd]) {
        if self.send(message, fds) {
            self.ring();
        }
    }

    /// Sends a message that is not urgent: the server finds it when it is told another one, or at the next tick.
    pub fn mention(&mut self, message: &ToServer) {
        self.mentioned |= self.send(message, &[]);
    }

    /// Rings for what was only mentioned.
    pub fn remind(&mut self) {
        if self.mentioned {
            self.ring();
        }
    }

    /// True: it is sent.
    fn send(&mut self, message: &ToServer, fds: &[&OwnedFd]) -> bool {
        self.flush();
        let Some(control) = &self.control else { return false };
        if !is_told_again(message) {
            self.changes.begin(self.number);
        }
        let bytes = encode(message);
        if self.unsent.is_empty() {
            // Sending needs no duplicates, which cannot be made when the table of descriptors is full.
            let borrowed: Vec<_> = fds.iter().map(|f| f.as_fd()).collect();
            if !is_full(scm::send(control, &bytes, &borrowed, true)) {
                return true;
            }
        }
        // It lies here alone.
        self.changes.begin(self.number);
        let duplicates: std::io::Result<Vec<OwnedFd>> = fds.iter().map(|f| f.try_clone()).collect();
        match duplicates {
            Ok(fds) if self.unsent.len() < UNSENT_MAX => self.unsent.push_back((bytes, fds)),
            // Without this message it would differ from what others believe of it. Its successor gets everything.
            _ => self.kill(),
        }
        false
    }

    /// Whoever starts reads its socket, and does not sleep on its bell until it is ready; then it is rung.
    pub fn ring(&mut self) {
        self.mentioned = false;
        self.bell.word().fetch_add(1, Ordering::Release);
        if self.life != Life::Starting {
            futex::wake(self.bell.word());
        }
    }

    /// Whether no successor of this process could know what this server was told.
    pub fn is_being_changed(&self) -> bool {
        self.changes.concern(self.number)
    }

    /// The keeper has what this server was told, unless it waits here.
    pub fn settle(&self) {
        if self.unsent.is_empty() {
            self.changes.end(self.number);
        }
    }

    /// Sends the messages that wait.
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
        self.silent_since = None;
        self.patience_until = None;
        self.watch = Watch::default();
        self.credit = Credit::default();
    }

    pub fn kill(&mut self) {
        if let Some(child) = &self.child {
            child.borrow_mut().kill();
        }
    }

    /// Ends a process that hangs. One with a server that is `recorded` may write what it was at before.
    pub fn end_hang(&mut self, recorded: bool) {
        match &self.child {
            Some(child) if recorded => {
                child.borrow().ask_for_the_hang();
                self.patience_until = Some(clock::now() + PATIENCE);
            }
            _ => self.kill(),
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

    /// The progress and the stage of a process: over all of its `company`, which runs in the same thread.
    pub fn progress<'a>(company: impl Iterator<Item = &'a Member>) -> Option<(u64, Stage)> {
        company
            .map(|m| Some((m.status.progress(), m.stage()?)))
            .reduce(|all, one| {
                let ((sum, first), (progress, stage)) = (all?, one?);
                Some((sum.wrapping_add(progress), first.min(stage)))
            })
            .flatten()
    }

    /// Finds out whether the process of which this is the first server hangs; `progress` is that of the process.
    /// Returns a hang once: the process is then to be killed.
    pub fn find_hang(&mut self, (progress, stage): (u64, Stage)) -> Option<Hang> {
        let pid = self.pid().filter(|_| !self.condemned)?;
        let mode = self.status.state().load().0;
        // A file of procfs is not read of a server that says it sleeps: at rest that would be most of the CPU time of the stack.
        let asks = stage != Stage::Running || mode == Mode::Awake;
        // It may say so while it computes: in the handler of a signal that ended its sleep.
        let (ticks, cpu) = (self.status.ticks(), clock::process_cpu(pid)?);
        let sample = Sample {
            progress,
            ticks,
            cpu,
            holds_tick: self.watch.is_deaf(progress, ticks, cpu) && process::holds_signal(pid, ticks::SIGNAL),
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

    /// Reads what the server wrote to its standard error, passes it on, and keeps the end of it.
    pub fn read_last_words(&mut self) {
        let Some(stderr) = &self.stderr else { return };
        let mut bytes = [0u8; 4096];
        while let Ok(n @ 1..) = rustix::io::read(stderr, &mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..n]);
            say::print(&text);
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
}

/// Whether a message has to wait, also for memory of the kernel. Otherwise it was sent, or the server is dead and its successor will get everything.
pub fn is_full(sent: std::result::Result<(), rustix::io::Errno>) -> bool {
    use rustix::io::Errno;
    matches!(sent, Err(Errno::AGAIN | Errno::TOOMANYREFS | Errno::NOMEM | Errno::NOBUFS))
}
