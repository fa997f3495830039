//! Who takes a dead server's place: the standbys that wait for it, and how long it took.

use super::Supervisor;
use super::member::{Life, Member};
use super::process::Spawned;
use super::standby::{Recovery, Waiting, memory_of};
use eft_base::Instant;
use eft_host::clock;
use std::time::Duration;

/// Until another one is started in the place of a standby that ended by itself, or could not be started.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

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
