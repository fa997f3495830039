//! Successors of dead servers: the standbys that wait to take their place, and how long a recovery takes.

use super::member::{Life, Member};
use super::process::Spawned;
use super::say::say;
use super::standby::{Recovery, Waiting, memory_of};
use super::{Supervisor, children};
use crate::life;
use crate::namespaces::Namespaces;
use eft_base::Instant;
use eft_host::clock;
use eft_messages::ComponentId;
use std::rc::Rc;
use std::time::Duration;

/// How long to wait before another standby is started in place of one that ended by itself or could not be started.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Takes the process that waits for this server's place, if it is alive and of the right program.
    pub(super) fn take_standby(&mut self, i: usize) -> Option<Spawned> {
        let Member { standby, program, .. } = &mut self.members[i];
        if !standby.is_alive() || !standby.suits(program.as_ref()) {
            standby.end();
            return None;
        }
        standby.waiting.take().map(|waiting| waiting.spawned)
    }

    /// Starts a standby for a running server that is to have one. It starts one at a time, since that takes a
    /// millisecond in which the supervisor does nothing else.
    pub(super) fn renew_standbys(&mut self, now: Instant) {
        for i in 0..self.members.len() {
            let member = &self.members[i];
            let is_wanted = member.standby.is_wanted || member.standby.waiting.is_some();
            if !is_wanted || member.life != Life::Running || self.company(i)[0] != i || self.is_regrouped(i) {
                continue;
            }
            let Member { standby, program, name, .. } = &mut self.members[i];
            if standby.waiting.is_some() && !standby.is_alive() {
                say!("eft {}: the standby of {name} ended", self.config.name);
                standby.not_before = Some(now + AGAIN_AFTER);
                standby.end();
            }
            if standby.waiting.is_some() && !standby.suits(program.as_ref()) {
                standby.end();
            }
            let is_due = standby.not_before.is_none_or(|at| now >= at);
            if standby.is_wanted && standby.waiting.is_none() && is_due {
                return self.start_standby(i, now, true);
            }
        }
    }

    /// A process is about to end: while the kernel takes it apart, another one starts, which is told nothing until then.
    pub(super) fn foresee(&mut self, i: usize) {
        let i = self.company(i)[0];
        if self.members[i].standby.waiting.is_none() && !self.is_updated(i) && !self.is_regrouped(i) {
            self.start_standby(i, clock::now(), false);
        }
    }

    fn start_standby(&mut self, i: usize, now: Instant, ahead: bool) {
        let program = self.members[i].program.clone();
        let spawned = self.spawn(i, program.as_ref(), ahead);
        let standby = &mut self.members[i].standby;
        match spawned {
            Ok(spawned) => {
                standby.waiting = Some(Waiting { spawned, program, is_kept: ahead });
                self.keep_standby(i);
            }
            // The server itself runs, and can be restarted without a standby.
            Err(_) => standby.not_before = Some(now + AGAIN_AFTER),
        }
    }

    /// A server is up: its successors enter its namespaces. `cores` has the host's files in its own, as they are mounted when it
    /// starts.
    pub(super) fn keep_namespaces(&mut self, i: usize) {
        let first = self.company(i)[0];
        let Member { namespaces, peer, .. } = &self.members[first];
        if namespaces.is_none() && *peer != ComponentId::CORES {
            let of = self.members[first].pid().and_then(Namespaces::of);
            self.members[first].namespaces = of.map(Rc::new);
        }
    }

    /// Clears away what is left of processes that have ended.
    pub(super) fn bury_the_dead(&mut self) {
        self.dead.retain(|process| !children::bury(process));
        if self.members.iter().all(Member::is_up) {
            // They have stepped aside for their successors (`deathwatch`); beside busy programs they would never end.
            self.dead.iter().for_each(|dead| life::step_forward(dead.borrow().id()));
        }
    }

    pub(super) fn end_standbys(&mut self) {
        self.members.iter_mut().for_each(|member| member.standby.end());
    }

    /// A server serves (again): records how long its recovery took.
    pub(super) fn note_recovery(&mut self, i: usize) {
        let member = &mut self.members[i];
        let Some(died_at) = member.died_at.take() else { return };
        let at = clock::now();
        let state_bytes = member.arena.as_ref().map_or(0, memory_of);
        let recovery = Recovery { took: at.saturating_since(died_at), at, state_bytes };
        member.recovery = Some(recovery);
        say!(
            "eft {}: {} works again {:.1} ms after its end was noticed; it took over {} KiB of state",
            self.config.name,
            member.name,
            recovery.took.as_secs_f64() * 1e3,
            state_bytes >> 10
        );
    }
}
