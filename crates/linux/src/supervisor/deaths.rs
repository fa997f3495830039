//! What follows when a server has ended: who is informed, and when it is started again.

use super::ending::Ending;
use super::hearing::Heard;
use super::member::{Life, Member};
use super::say::{self, say};
use super::{Supervisor, TICK, Watched, children, update};
use crate::protocol::ToServer;
use crate::{life, operator};
use eft_control::hang::Hang;
use eft_control::restart::Decision;
use eft_host::clock;
use eft_messages::{ComponentId, Role};
use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

impl Supervisor {
    pub(super) fn take_deaths(&mut self) {
        for (pid, how) in self.deathwatch.take() {
            match how {
                Some(how) => {
                    let dead = children::dying(&mut self.members, pid, &how);
                    self.have_died(dead.into_iter().collect());
                }
                // Its page says that it dies, and it does not: it writes what is not its to write.
                None => self.members.iter_mut().filter(|m| m.pid() == Some(pid)).for_each(Member::kill),
            }
        }
    }

    /// Finds out whether the process hangs of which this is the first server.
    pub(super) fn find_hang(&mut self, i: usize) -> Option<Hang> {
        let company = self.company(i);
        let progress =
            Member::progress(company.iter().map(|j| &self.members[*j])).filter(|_| company[0] == i)?;
        self.members[i].find_hang(progress)
    }

    /// Watches the process of which this is the first server, if that holds its word.
    pub(super) fn watch_death(&self, first: usize) {
        let first = &self.members[first];
        if let Some(pid) = first.pid().filter(|_| life::is_held(first.status.life_word().load(Acquire))) {
            self.deathwatch.add(first.status.life_word(), pid);
        }
    }

    /// Handles the end of a process: of this server and those that share the process. The first of them speaks for all.
    pub(super) fn died(&mut self, i: usize, how: String) {
        if self.ending.is_some() {
            return;
        }
        let company = self.company(i);
        let i = company[0];
        self.hold_keeper(i);
        self.members[i].read_last_words();
        if self.replaces(i) || self.leaves(i) {
            return;
        }
        let meant = |m: usize| std::mem::take(&mut self.members[m].killed_on_purpose);
        let on_purpose = company.iter().copied().map(meant).fold(false, |any, this| any | this);
        let on_purpose = on_purpose | self.falls_back(i, &how);
        let hung = |m: usize| std::mem::take(&mut self.members[m].hung);
        let hung = company.iter().copied().map(hung).fold(false, |any, this| any | this);
        let failed = (hung || how != "signal 9") && !on_purpose;
        company.iter().for_each(|j| self.members[*j].failed = failed);
        let now = clock::now();
        company.iter().for_each(|j| self.members[*j].died_at = Some(now));
        let decisions: Vec<Decision> =
            company.iter().map(|j| self.members[*j].restarts.died(now, on_purpose)).collect();
        let decision = decisions[0];
        let others: Vec<String> = company[1..].iter().map(|j| self.members[*j].name.clone()).collect();
        let report = self.members[i].report(&how, &others);
        let line = format!("eft {}: {} ended ({how})\n", self.config.name, self.company_name(i));
        company.iter().for_each(|j| self.detach(*j));
        match decision {
            _ if self.reverts(i) => {
                let until = clock::now() + update::REVERT;
                company.iter().for_each(|j| self.members[*j].life = Life::Waiting(until));
            }
            Decision::Now => self.restart(i),
            Decision::After(delay) => self.postpone(i, delay),
        }
        self.tell_the_rest();
        // The successor is at its work by now.
        say::print(&line);
        let dir = operator::stack_dir(&self.config.name).join("crashes");
        report.keep(&dir);
        company.iter().for_each(|j| self.members[*j].drop_old_recording(&dir));
        let peer = self.members[i].peer;
        if !self.announced && peer != ComponentId::CORES && self.members[i].restarts.is_hopeless() {
            self.last_word = Some(format!(
                "{} died {} times before the stack was ready; last: {how}. Reports: {}",
                self.members[i].name,
                self.members[i].restarts.in_a_row(),
                operator::stack_dir(&self.config.name).join("crashes").display()
            ));
            self.ending = Some(Ending::Whole);
        }
        // A successor is shown when it serves: `cores` would compete with it for a CPU.
        for j in company {
            if self.members[j].life != Life::Starting {
                self.show_member(j);
            }
        }
    }

    /// A server's end of the control socket is closed: its process is about to end. One that goes on without it can be told
    /// nothing any more, and is killed after a while. Who looked on would be told of the end again and again.
    pub(super) fn fell_silent(&mut self, i: usize) {
        if self.members[i].peer.role == Role::Sockets {
            self.settle();
        }
        if let Some(control) = self.members[i].control.take() {
            self.unwatch(&control, Watched::Server(i));
            self.members[i].silent_since = Some(clock::now());
        }
        self.foresee(i);
    }

    /// Ends everything that others expect from a server that ended. Its neighbours are told later.
    pub(super) fn detach(&mut self, i: usize) {
        let peer = self.members[i].peer;
        self.moves_ended(i);
        if peer == ComponentId::CORES {
            self.cores_ended();
        }
        if let Some(control) = self.members[i].control.take() {
            self.unwatch(&control, Watched::Server(i));
            if peer.role == Role::Sockets {
                self.hear_the_rest(&control);
            }
        }
        if peer.role == Role::Sockets {
            // Its successor's messages are counted anew.
            self.heard_of = Heard::default();
        }
        // Who wrote to it must not believe that its successor knows what it was told.
        self.queues.retain(|q| q.reader != peer);
        self.forget_server(i);
        self.domain_mapped(peer, None);
        if let Some(words) = self.members[i].stderr.take() {
            self.unwatch(&words, Watched::LastWords(i));
        }
        // Those of its process died with it, and their successors never knew it.
        let died_with_it: Vec<ComponentId> =
            self.company(i).into_iter().map(|j| self.members[j].peer).collect();
        for n in self.neighbours(peer).into_iter().filter(|n| !died_with_it.contains(n)) {
            self.later.push((n, ToServer::Disconnect { peer }, Vec::new()));
        }
    }

    /// Starts a dead server again. If that fails, it reports why and tries again later.
    pub(super) fn restart(&mut self, i: usize) {
        let Err(why) = self.start(i) else { return };
        say!("eft {}: {} cannot be started: {why}", self.config.name, self.members[i].name);
        if self.members[i].child.is_some() {
            // The server was not set up completely: killing it makes this a death like any other.
            self.members[i].kill();
            return;
        }
        let company = self.company(i);
        let now = clock::now();
        let decisions: Vec<Decision> =
            company.iter().map(|j| self.members[*j].restarts.died(now, false)).collect();
        match decisions[0] {
            Decision::Now => self.postpone(i, TICK),
            Decision::After(delay) => self.postpone(i, delay),
        }
    }

    pub(super) fn postpone(&mut self, i: usize, delay: Duration) {
        let until = clock::now() + delay;
        self.company(i).into_iter().for_each(|j| self.members[j].life = Life::Waiting(until));
        say!(
            "eft {}: {} died {} times in a row: it is started again in {} s; the rest of the stack runs on",
            self.config.name,
            self.company_name(i),
            self.members[i].restarts.in_a_row(),
            delay.as_secs_f32()
        );
    }
}
