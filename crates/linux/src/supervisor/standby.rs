//! Processes that are started ahead and wait to take a dead server's place, so that nobody waits for a process to start.
//!
//! Such a process has been told nothing: it waits for its identity as any newborn does, and becomes a server by the same
//! messages. So a standby knows no more of the stack, and has no more of its memory, than a process that does not exist yet.

use super::Supervisor;
use super::children::Spawned;
use super::member::{Life, Member};
use eft_base::Instant;
use eft_host::clock;
use serde_json::{Value, json};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Until another one is started in the place of a standby that ended by itself, or could not be started.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What waits to take a server's place.
#[derive(Default)]
pub struct Standby {
    /// The topology asks for one.
    pub is_wanted: bool,
    waiting: Option<Waiting>,
    /// No other one is started before.
    not_before: Option<Instant>,
}

struct Waiting {
    spawned: Spawned,
    /// What it was started from.
    program: Option<Arc<OwnedFd>>,
}

/// How a death was overcome.
#[derive(Clone, Copy, Debug)]
pub struct Recovery {
    /// From when the death was noticed until the successor was at work.
    pub took: Duration,
    /// When it was at work, by the monotonic clock.
    pub at: Instant,
    /// Memory of the durable state that it took over.
    pub state_bytes: u64,
}

impl Recovery {
    pub fn to_json(self) -> Value {
        json!({
            "took_us": self.took.as_micros() as u64,
            "at_ns": self.at.as_nanos(),
            "state_bytes": self.state_bytes,
        })
    }
}

impl Standby {
    pub fn pid(&self) -> Option<u32> {
        self.waiting.as_ref().map(|waiting| waiting.spawned.child.id())
    }

    /// A child of ours that has not been reaped: nobody else has its number.
    fn end(&mut self) {
        if let Some(mut waiting) = self.waiting.take() {
            let _ = waiting.spawned.child.kill();
            let _ = waiting.spawned.child.wait();
        }
    }

    /// Whether it waits still.
    fn is_alive(&mut self) -> bool {
        self.waiting.as_mut().is_some_and(|waiting| matches!(waiting.spawned.child.try_wait(), Ok(None)))
    }

    /// Whether it was started from what its server is started from now.
    fn suits(&self, program: Option<&Arc<OwnedFd>>) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| match (&waiting.program, program) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        })
    }
}

impl Supervisor {
    /// The process that waits to take this one's place, if it can.
    pub(super) fn take_standby(&mut self, i: usize) -> Option<Spawned> {
        let Member { standby, program, .. } = &mut self.members[i];
        if !standby.is_alive() || !standby.suits(program.as_ref()) {
            standby.end();
            return None;
        }
        standby.waiting.take().map(|waiting| waiting.spawned)
    }

    /// Sees to it that one waits for each server at work that is to have one; at most one is started at a time, since that
    /// takes a millisecond in which nothing else is looked after.
    pub(super) fn renew_standbys(&mut self, now: Instant) {
        for i in 0..self.members.len() {
            if self.company(i)[0] != i || self.members[i].life != Life::Running {
                continue;
            }
            let Member { standby, program, name, .. } = &mut self.members[i];
            if standby.waiting.is_some() && !standby.is_alive() {
                eprintln!("eft {}: the standby of {name} ended", self.config.name);
                standby.not_before = Some(now + AGAIN_AFTER);
                standby.end();
            }
            if standby.waiting.is_some() && !standby.suits(program.as_ref()) {
                standby.end();
            }
            let is_due = standby.not_before.is_none_or(|at| now >= at);
            if standby.is_wanted && standby.waiting.is_none() && is_due {
                return self.start_standby(i, now);
            }
        }
    }

    fn start_standby(&mut self, i: usize, now: Instant) {
        let program = self.members[i].program.clone();
        let spawned = self.spawn(i, program.as_ref());
        let standby = &mut self.members[i].standby;
        match spawned {
            Ok(spawned) => standby.waiting = Some(Waiting { spawned, program }),
            // Its server works, and would be started without it.
            Err(_) => standby.not_before = Some(now + AGAIN_AFTER),
        }
    }

    pub(super) fn end_standbys(&mut self) {
        self.members.iter_mut().for_each(|member| member.standby.end());
    }

    /// A server is at work (again).
    pub(super) fn note_recovery(&mut self, i: usize) {
        let member = &mut self.members[i];
        let Some(died_at) = member.died_at.take() else { return };
        let at = clock::now();
        let state_bytes = member.arena.as_ref().map_or(0, memory_of);
        let recovery = Recovery { took: at.saturating_since(died_at), at, state_bytes };
        member.recovery = Some(recovery);
        eprintln!(
            "eft {}: {} works again {:.1} ms after its end was noticed; it took over {} KiB of state",
            self.config.name,
            member.name,
            recovery.took.as_secs_f64() * 1e3,
            state_bytes >> 10
        );
    }
}

/// Bytes of a segment that are there: of a memory file, pages that were never written take none.
fn memory_of(segment: &impl AsFd) -> u64 {
    rustix::fs::fstat(segment).map_or(0, |stat| stat.st_blocks as u64 * 512)
}
