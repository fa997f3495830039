//! `eft move COMPONENT process=NAME`: components share a process, or no longer do, and connections survive.
//!
//! The new processes are started beside the old ones, which are then told to end; what follows is a rebirth like any other,
//! without the time to start a program. The supervisor remembers how components are grouped, and so does its successor if it
//! adopts them; a stack that starts again does as its topology says.

use super::Supervisor;
use super::children;
use super::member::{Life, Member};
use super::process::{self, Spawned};
use super::say::say;
use super::standby::is_same_program;
use crate::error::error;
use crate::protocol::ToServer;
use crate::{Error, Result, life};
use eft_base::Instant;
use eft_component::scheduling::PolicyName;
use eft_component::topology::is_process_name;
use eft_control::hang::ThreadState;
use eft_host::clock;
use eft_messages::ComponentId;
use serde_json::{Value, json};
use std::time::Duration;

/// How long the old processes may take to end.
const END: Duration = Duration::from_secs(1);
/// How long the new processes may take until all of their servers are at work.
const PATIENCE: Duration = Duration::from_secs(5);

/// A change of processes that is under way.
pub struct Regroup {
    client: u64,
    moved: usize,
    /// The process to which it moves; `None`: one of its own.
    process: Option<String>,
    /// All servers that are started again.
    affected: Vec<usize>,
    /// Those whose processes have not ended yet.
    leaving: Vec<usize>,
    /// The new processes, each with its servers, until the old ones have ended.
    newcomers: Vec<(Vec<usize>, Spawned)>,
    /// When the old ones were told to end: not before the new ones wait to be told who they are.
    told_at: Option<Instant>,
    /// The new processes, then the old ones, and then the new ones again must be done by this time.
    until: Instant,
}

impl Supervisor {
    /// An operator's `eft move COMPONENT process=NAME`. The answer comes when all that are affected are at work again.
    pub(super) fn operator_regroups(
        &mut self,
        client: u64,
        component: &str,
        process: Option<String>,
    ) -> Result<Option<Value>> {
        let i = self.find(component)?;
        self.may_regroup(i, process.as_deref())?;
        let joined: Vec<usize> = match &process {
            Some(_) => {
                (0..self.members.len()).filter(|j| *j != i && self.members[*j].process == process).collect()
            }
            None => Vec::new(),
        };
        let left: Vec<usize> =
            self.company(i).into_iter().filter(|j| *j != i && !joined.contains(j)).collect();
        if left.is_empty() && joined.len() + 1 == self.company(i).len() {
            self.members[i].process = process;
            self.keep_server(i);
            return Ok(Some(self.describe_process(i, Duration::ZERO)));
        }
        let mut together = joined;
        together.push(i);
        together.sort_unstable();
        let companies = [together, left].into_iter().filter(|company| !company.is_empty());
        let newcomers = self.start_companies(companies.collect())?;
        let affected: Vec<usize> =
            newcomers.iter().flat_map(|(company, _)| company.iter().copied()).collect();
        let (moved, leaving, until) = (i, affected.clone(), clock::now() + END);
        self.regroup =
            Some(Regroup { client, moved, process, affected, leaving, newcomers, told_at: None, until });
        Ok(None)
    }

    fn may_regroup(&self, i: usize, process: Option<&str>) -> Result<()> {
        let name = &self.members[i].name;
        if process.is_some_and(|process| !is_process_name(process)) {
            return Err(error!(Invalid, "a process is named by 1 to 32 of a-z, 0-9 and `-`"));
        }
        if self.members[i].peer == ComponentId::CORES {
            return Err(error!(
                Refused,
                "cores has rights that no server may have: it stays in a process of its own"
            ));
        }
        if self.policy() != PolicyName::Fixed {
            return Err(error!(
                Refused,
                "the policy `{}` places every component for itself: choose `fixed` first (eft sched policy fixed)",
                self.policy()
            ));
        }
        if self.update.is_some() || self.regroup.is_some() {
            return Err(error!(Busy, "a component is being replaced: wait until that is done"));
        }
        let same = |j: &usize| *j == i || process.is_some() && self.members[*j].process.as_deref() == process;
        let program = self.members[i].program.as_ref();
        for j in (0..self.members.len()).filter(|j| same(j) || self.company(i).contains(j)) {
            let other = &self.members[j];
            if other.life != Life::Running {
                return Err(error!(Busy, "{} is not running at the moment: try again", other.name));
            }
            if same(&j) && !is_same_program(other.program.as_ref(), program) {
                return Err(error!(
                    Refused,
                    "{name} and {} run different programs since an update", other.name
                ));
            }
        }
        Ok(())
    }

    /// Starts a process for each of these companies, which is told nothing yet.
    fn start_companies(&self, companies: Vec<Vec<usize>>) -> Result<Vec<(Vec<usize>, Spawned)>> {
        let mut started: Vec<(Vec<usize>, Spawned)> = Vec::new();
        for company in companies {
            let names: Vec<&str> = company.iter().map(|j| self.members[*j].name.as_str()).collect();
            let Member { program, namespaces, .. } = &self.members[company[0]];
            let (program, namespaces) = (program.as_ref(), namespaces.as_deref());
            match children::spawn(&self.config.name, &names, program, namespaces, true) {
                Ok(spawned) => started.push((company, spawned)),
                Err(why) => {
                    for (_, mut spawned) in started {
                        // It is a child that has not been reaped, so no other process can have its number.
                        let _ = spawned.child.kill();
                        let _ = spawned.child.wait();
                    }
                    return Err(Error::System(format!("no process is changed: {why}")));
                }
            }
        }
        Ok(started)
    }

    /// Whether this server is being put into another process.
    pub(super) fn is_regrouped(&self, i: usize) -> bool {
        self.regroup.as_ref().is_some_and(|regroup| regroup.affected.contains(&i))
    }

    /// A process has ended, of which this is a server. False: it was not told to end for a change of processes.
    pub(super) fn leaves(&mut self, i: usize) -> bool {
        let company = self.company(i);
        let now = clock::now();
        let Some(regroup) = self.regroup.as_mut().filter(|regroup| regroup.leaving.contains(&i)) else {
            return false;
        };
        regroup.leaving.retain(|j| !company.contains(j));
        let have_all_left = regroup.leaving.is_empty();
        for j in company {
            self.detach(j);
            self.members[j].died_at = Some(now);
            // The last of them to end starts them all.
            self.members[j].life = Life::Waiting(now + END + PATIENCE);
        }
        if have_all_left {
            self.raise_newcomers(now);
        }
        self.tell_the_rest();
        true
    }

    fn raise_newcomers(&mut self, now: Instant) {
        let Some(regroup) = &mut self.regroup else { return };
        let newcomers = std::mem::take(&mut regroup.newcomers);
        regroup.until = now + PATIENCE;
        let (moved, affected) = (regroup.moved, regroup.affected.clone());
        // What their predecessors were to be told of each other's ends is none of theirs.
        let affected: Vec<ComponentId> = affected.into_iter().map(|j| self.members[j].peer).collect();
        self.later.retain(|(peer, ..)| !affected.contains(peer));
        self.members[moved].process = regroup.process.clone();
        let host = self.company(moved).into_iter().find(|j| *j != moved);
        if let Some(host) = host {
            let (cpu, dedicated) = (self.members[host].cpu, self.members[host].dedicated);
            (self.members[moved].cpu, self.members[moved].dedicated) = (cpu, dedicated);
        }
        self.settle_modes(None);
        for (company, mut newcomer) in newcomers {
            self.regroup_standby(&company);
            let first = company[0];
            let raised = match newcomer.child.try_wait() {
                Ok(None) => {
                    life::wake_elsewhere(newcomer.child.id());
                    self.raise(first, newcomer)
                }
                // It died before its turn came.
                _ => self.start(first),
            };
            if let Err(why) = raised {
                say!("eft {}: {} cannot be started: {why}", self.config.name, self.company_name(first));
                // The death that follows is handled like any other.
                self.members[first].kill();
            }
        }
    }

    /// The standby of a process that is no more does not know the servers of this one.
    fn regroup_standby(&mut self, company: &[usize]) {
        let topology = &self.config.topology;
        let wants = |j: &usize| topology.spec(self.members[*j].peer).is_some_and(|spec| spec.standby);
        let is_wanted = company.iter().any(wants);
        for j in company {
            self.members[*j].standby.end();
            self.members[*j].standby.is_wanted = is_wanted;
        }
    }

    /// A server is at work: maybe the last one that a change of processes waits for.
    pub(super) fn regrouped_is_up(&mut self) {
        let at_work = |j: &usize| self.members[*j].life == Life::Running;
        let is_done = |regroup: &Regroup| regroup.leaving.is_empty() && regroup.affected.iter().all(at_work);
        if !self.regroup.as_ref().is_some_and(is_done) {
            return;
        }
        if let Some(Regroup { client, moved, told_at, .. }) = self.regroup.take() {
            let pause = told_at.map_or(Duration::ZERO, |told_at| clock::now().saturating_since(told_at));
            let answer = self.describe_process(moved, pause);
            self.answer_client(client, &answer, &[]);
        }
    }

    fn describe_process(&self, i: usize, pause: Duration) -> Value {
        let others = self.company(i).into_iter().filter(|j| *j != i).map(|j| self.members[j].name.as_str());
        let m = &self.members[i];
        json!({
            "moved": m.name,
            "process": m.process,
            "with": others.collect::<Vec<_>>(),
            "pause_ms": pause.as_secs_f64() * 1000.0,
        })
    }

    /// Tells the old processes to end, if the new ones have nothing to do but to wait.
    fn begin_regroup(&mut self, now: Instant) {
        let Some(regroup) = self.regroup.as_mut().filter(|regroup| regroup.told_at.is_none()) else { return };
        let waits = |(_, newcomer): &(Vec<usize>, Spawned)| {
            let state = process::thread_state(newcomer.child.id());
            state.is_none_or(|state| state == ThreadState::Sleeping)
        };
        // One that does not come to rest costs a longer pause.
        if now < regroup.until && !regroup.newcomers.iter().all(waits) {
            return;
        }
        (regroup.told_at, regroup.until) = (Some(now), now + END);
        let leaving = regroup.leaving.clone();
        leaving.into_iter().for_each(|j| self.tell_index(j, &ToServer::Stop, &[]));
    }

    /// Begins what is ready to begin, kills what does not end in time, and gives up to wait for what does not come.
    pub(super) fn check_regroup(&mut self, now: Instant) {
        self.begin_regroup(now);
        let Some(regroup) = self.regroup.as_mut().filter(|regroup| now >= regroup.until) else { return };
        if !regroup.leaving.is_empty() {
            regroup.until = now + END;
            let leaving = regroup.leaving.clone();
            return leaving.into_iter().for_each(|j| self.members[j].kill());
        }
        let Some(Regroup { client, affected, .. }) = self.regroup.take() else { return };
        let late = affected.into_iter().filter(|j| self.members[*j].life != Life::Running);
        let late: Vec<&str> = late.map(|j| self.members[j].name.as_str()).collect();
        let error = format!(
            "{} not at work after {} s; tried again as after a death",
            late.join(", "),
            PATIENCE.as_secs()
        );
        self.answer_client(client, &json!({ "error": error }), &[]);
    }
}
