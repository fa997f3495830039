//! A supervisor that was killed leaves its servers running; its successor adopts them.
//!
//! The keeper holds the supervisor's ends of the control sockets, so servers notice nothing: what they say waits in the
//! sockets. A supervisor may be killed between any two of its steps, and no server starts again for it that it was not changing:
//!
//! - What servers say stays in their sockets until it is done ([`hearing`](super::hearing)); a successor hears it again.
//! - A server that was being started is not one that the keeper has: it is ended, as is a standby that may have the memory of a
//!   dead server, and that server is started again. Its neighbours are told so, whatever they had been told about it; numbers of
//!   pools and lives that the keeper may not have heard of are not used again.
//! - A domain that not all servers have mapped is with the keeper until sockets knows of it, and is told of again.
//! - What a server alone was told, such as a setting, is done again by nobody. Until the keeper has it, a bit in shared memory says
//!   so ([`changes`](super::changes)), and that server is started again with what the keeper has.

use super::accusations::Queue;
use super::changes::CHANGES;
use super::inheritance::Inheritance;
use super::kept::Kept;
use super::member::{Life, Member, OwnedPool};
use super::process::{Process, Running};
use super::request::SETTINGS;
use super::say::say;
use super::{OLD_POOLS, StackConfig, Supervisor, Watched, children};
use crate::Result;
use crate::life::Witness;
use crate::memory::{self, Both};
use crate::operator::has_ended;
use crate::protocol::{PROTOCOL, ToServer};
use eft_base::PoolId;
use eft_channel::notify::Doorbell;
use eft_control::plan;
use eft_host::clock;
use eft_machine::CpuId;
use eft_messages::ComponentId;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::process::ChildStderr;
use std::rc::Rc;
use std::sync::Arc;

/// The keeper's names.
const FORM: &str = "form";
const POOLS: &str = "pools";

/// What the keeper has of a running server. Its descriptors: the process, the control socket, the eventfd, the bell, its
/// standard error if any, its program if it is not the supervisor's, its pools.
#[derive(Serialize, Deserialize)]
struct Server {
    pid: u32,
    landlock: bool,
    cpu: Option<CpuId>,
    dedicated: bool,
    alone: bool,
    process: Option<String>,
    has_words: bool,
    has_program: bool,
    pools: Vec<(PoolId, usize)>,
}

/// Numbers of pools, and of a member's lives, that a supervisor gives at most before the keeper hears of it.
const UNHEARD_OF: u16 = 32;

impl Server {
    /// Whether its process still executes something.
    fn lives(&self, pidfd: Option<&OwnedFd>) -> bool {
        !pidfd.is_none_or(has_ended)
            && Witness::of(self.pid).is_some_and(|witness| witness.ending().is_none())
    }
}

/// What must be the same so that servers of a predecessor do what this supervisor wants of them: the program file, its
/// protocol, and the options.
fn form(config: &StackConfig) -> String {
    let file = std::fs::metadata("/proc/self/exe")
        .map(|f| format!("{}:{} {} {}.{}", f.dev(), f.ino(), f.size(), f.mtime(), f.mtime_nsec()));
    // Every option is named, so that a new one cannot be forgotten.
    let StackConfig {
        topology,
        gateways,
        host_addresses,
        mtu,
        nameserver,
        ecn,
        fastopen,
        fastopen_key,
        timestamps,
        min_tso_segs,
        congestion,
        slow_start,
        slow_start_after_idle,
        pacing,
        mtu_probing,
        tail_probes,
        protection,
        record,
        private,
        // The likeness compares them.
        name: _,
        devices: _,
        // They concern the supervisor alone.
        keep: _,
        wait_online: _,
        take_over: _,
        // They are of the program file.
        check_ip: _,
        arena_len: _,
    } = config;
    format!(
        "{PROTOCOL} {file:?} {topology:?} {gateways:?} {host_addresses:?} {mtu:?} {nameserver:?} {ecn} {fastopen} \
         {fastopen_key} {timestamps} {min_tso_segs} {congestion} {slow_start} {slow_start_after_idle} {pacing} {mtu_probing} {tail_probes} {protection:?} {record:?} {private}"
    )
}

/// What the servers of a predecessor are.
pub enum Left {
    /// None of them lives.
    Dead,
    Adoptable,
    /// They live and cannot be adopted, for this reason.
    Strange(&'static str),
}

/// Examines what a predecessor of the same likeness left.
pub fn examine(inheritance: &Inheritance, config: &StackConfig) -> Left {
    let servers = inheritance.names("server/");
    let lives = |name: &String| {
        inheritance.value::<Server>(name).is_some_and(|server| server.lives(inheritance.descriptor(name)))
    };
    if !servers.iter().any(lives) {
        return Left::Dead;
    }
    if inheritance.value::<String>(FORM) != Some(form(config)) {
        return Left::Strange("they are of another program file, or were given other options");
    }
    match inheritance.descriptor(CHANGES) {
        Some(_) => Left::Adoptable,
        None => Left::Strange("their supervisor was killed before its keeper knew them"),
    }
}

/// The predecessor's end of a server's control socket.
pub fn control_of(inheritance: &mut Inheritance, server: &str) -> Option<OwnedFd> {
    let (_, fds) = inheritance.take::<Server>(&format!("server/{server}"))?;
    fds.into_iter().nth(1)
}

impl Supervisor {
    /// Puts everything into the keeper by which a successor adopts the servers.
    pub(super) fn keep_for_adoption(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.put(FORM.into(), &form(&self.config), &[]);
            kept.put(CHANGES.into(), &(), &[self.changes.segment()]);
            for q in &self.queues {
                q.keep(kept);
            }
        }
        self.keep_pools();
        SETTINGS.iter().for_each(|key| self.keep_stored(key));
        (0..self.members.len()).for_each(|i| self.keep_server(i));
    }

    /// Puts a running server into the keeper, as it is now.
    pub(super) fn keep_server(&mut self, i: usize) {
        let (Some(kept), m) = (&mut self.kept, &self.members[i]) else { return };
        if m.life != Life::Running {
            return;
        }
        let pidfd = m.child.as_ref().and_then(|child| child.borrow().pidfd());
        let (Some(pid), Some(pidfd), Some(control)) = (m.pid(), pidfd, &m.control) else { return };
        let words = m.stderr.as_ref().and_then(|words| rustix::io::fcntl_dupfd_cloexec(words, 0).ok());
        let mut fds = vec![&pidfd, control, &m.eventfd, &m.bell_fd.own];
        fds.extend(&words);
        fds.extend(m.program.iter().map(|program| &**program));
        fds.extend(m.pools.iter().map(|pool| &*pool.segment.own));
        let server = Server {
            pid,
            landlock: m.landlock,
            cpu: m.cpu,
            dedicated: m.dedicated,
            alone: m.alone,
            process: m.process.clone(),
            has_words: words.is_some(),
            has_program: m.program.is_some(),
            pools: m.pools.iter().map(|pool| (pool.id, pool.slot_size)).collect(),
        };
        kept.put(format!("server/{}", m.name), &server, &fds);
    }

    /// The server is not one that can be adopted any more.
    pub(super) fn forget_server(&mut self, i: usize) {
        if let Some(kept) = &mut self.kept {
            kept.forget(format!("server/{}", self.members[i].name));
        }
    }

    /// Puts the numbers of all pools that servers may have mapped into the keeper.
    pub(super) fn keep_pools(&mut self) {
        let Some(kept) = &mut self.kept else { return };
        let old = self.old_pools.iter().map(|(_, id)| *id);
        let all: Vec<PoolId> =
            old.chain(self.members.iter().flat_map(|m| m.pools.iter().map(|p| p.id))).collect();
        kept.put(POOLS.into(), &(self.next_pool, all), &[]);
    }

    /// Notes which servers a successor could adopt as they are now, if the keeper has everything.
    pub(super) fn end_turn(&mut self) {
        if self.kept.as_ref().is_some_and(Kept::has_all) {
            self.members.iter().filter(|m| !self.owes_an_answer(m.peer)).for_each(Member::settle);
            for m in self.members.iter_mut().filter(|m| m.life == Life::Running && !m.told_kept) {
                m.told_kept = true;
                m.mention(&ToServer::Kept);
            }
        }
    }

    /// Whether its answer decides what a successor of it would be told.
    fn owes_an_answer(&self, peer: ComponentId) -> bool {
        let question = match peer {
            ComponentId::FILTER => "filter.load:",
            ComponentId::CORES => "cores.ask:policy:",
            _ => return false,
        };
        self.waiting.iter().any(|(key, _)| key.starts_with(question))
    }

    /// Takes over the servers of a predecessor. Those that it was about to start end, and are started again.
    pub(super) fn adopt(&mut self, inherited: &mut Inheritance) -> Result<()> {
        for name in inherited.names("queue/") {
            self.queues.extend(inherited.take(&name).and_then(|((writer, reader), fds)| {
                let fds: [OwnedFd; 2] = fds.try_into().ok()?;
                let [lines, position] = fds.map(Rc::new);
                Some(Queue { writer, reader, lines, position })
            }));
        }
        let (next, pools) =
            inherited.take::<(u16, Vec<PoolId>)>(POOLS).map_or_else(Default::default, |(v, _)| v);
        self.next_pool = next.wrapping_add(UNHEARD_OF);
        let unheard_of = (1..=UNHEARD_OF).map(|n| next.wrapping_add(n)).map(PoolId);
        inherited.fill_store(&mut self.store, &SETTINGS);
        // Who shares a process may have changed since the topology was read.
        for m in &mut self.members {
            if let Some(server) = inherited.value::<Server>(&format!("server/{}", m.name)) {
                m.process = server.process;
            }
        }
        let mut processes: Vec<Process> = Vec::new();
        let mut changed = Vec::new();
        for i in 0..self.members.len() {
            let names: Vec<String> =
                self.company(i).into_iter().map(|j| format!("server/{}", self.members[j].name)).collect();
            let whole = self.company(i)[0] != i && self.members[self.company(i)[0]].child.is_some()
                || names.iter().all(|name| inherited.descriptor(name).is_some());
            let name = self.members[i].name.clone();
            let taken = inherited.take::<Server>(&format!("server/{name}")).filter(|_| whole);
            let lives = taken.as_ref().is_some_and(|(server, fds)| server.lives(fds.first()));
            let is_changed = self.members[i].is_being_changed();
            if taken.and_then(|(server, fds)| self.adopt_one(i, server, fds, &mut processes)).is_none() {
                inherited.confirm_death(&format!("process/{name}"))?;
            } else if is_changed {
                changed.push(i);
            }
            if !lives {
                inherited.confirm_death(&format!("process/{name}/standby"))?;
                self.members[i].generation += u32::from(UNHEARD_OF);
            }
        }
        let due = clock::now() + OLD_POOLS;
        let used = |id: &PoolId| self.members.iter().any(|m| m.pools.iter().any(|p| p.id == *id));
        let unheard_of = unheard_of.filter(|id| !self.keeping.uses_pool(*id));
        self.old_pools =
            pools.into_iter().chain(unheard_of).filter(|id| !used(id)).map(|id| (due, id)).collect();
        self.announce_again();
        for i in 0..self.members.len() {
            if self.members[i].child.is_none() {
                self.detach(i);
            }
        }
        for i in changed {
            // It is heard to its end, and started again.
            let name = &self.members[i].name;
            say!("eft {}: {name} was being changed, and starts again", self.config.name);
            self.members[i].killed_on_purpose = true;
            self.members[i].kill();
        }
        if let Some(cores) = self.index(ComponentId::CORES) {
            self.show_all_members(cores);
        }
        let adopted = self.members.iter().filter(|m| m.child.is_some()).count();
        say!(
            "eft {}: its supervisor died; {adopted} of {} components run on under this one",
            self.config.name,
            self.members.len()
        );
        Ok(())
    }

    fn adopt_one(
        &mut self,
        i: usize,
        server: Server,
        fds: Vec<OwnedFd>,
        processes: &mut Vec<Process>,
    ) -> Option<()> {
        let mut fds = fds.into_iter();
        let (pidfd, control, eventfd, bell) = (fds.next()?, fds.next()?, fds.next()?, fds.next()?);
        let words = if server.has_words { Some(fds.next()?) } else { None };
        let program =
            if server.has_program { Some(children::above_control(fds.next()?).ok()?) } else { None };
        let readers = plan::pools(&self.config.topology, self.nics(), self.members[i].peer);
        let mut pools = Vec::new();
        for ((id, slot_size), plan) in server.pools.iter().copied().zip(readers) {
            let own = fds.next()?;
            let segment = Both::of(own).ok()?;
            pools.push(OwnedPool { id, segment, slot_size, readers: plan.readers });
        }
        let process = match processes.iter().find(|p| p.borrow().id() == server.pid) {
            Some(process) => process.clone(),
            None => {
                let seen = pidfd.try_clone().ok()?;
                self.watch(&seen, Watched::Adopted(server.pid)).ok()?;
                self.adopted.push((server.pid, seen));
                let process = Rc::new(RefCell::new(Running::Adopted { pid: server.pid, pidfd }));
                processes.push(process.clone());
                process
            }
        };
        self.watch_control(i, &control).ok()?;
        if let Some(words) = &words {
            self.watch(words, Watched::LastWords(i)).ok()?;
        }
        let m = &mut self.members[i];
        // SAFETY: Doorbell is one atomic.
        m.bell = unsafe { memory::map(&bell, true).ok()?.shared::<Doorbell>(0) }.ok()?;
        m.bell_fd = Both::of(bell).ok()?;
        m.eventfd = Rc::new(eventfd);
        m.control = Some(control);
        m.stderr = words.map(ChildStderr::from);
        m.program = program.map(Arc::new);
        m.pools = pools;
        m.spare = None;
        (m.landlock, m.cpu, m.dedicated, m.alone) =
            (server.landlock, server.cpu, server.dedicated, server.alone);
        m.child = Some(process);
        m.life = Life::Running;
        m.restarts.started(clock::now());
        if self.company(i)[0] == i {
            self.watch_death(i);
        }
        Some(())
    }

    /// A process that was adopted has ended, which its parent is told, and not this process.
    pub(super) fn adopted_ended(&mut self, pid: u32) {
        if let Some(n) = self.adopted.iter().position(|(adopted, _)| *adopted == pid) {
            let (_, seen) = self.adopted.swap_remove(n);
            self.unwatch(&seen, Watched::Adopted(pid));
        }
        let ended = children::ended(&mut self.members);
        self.have_died(ended);
    }
}

impl Queue {
    pub fn keep(&self, kept: &mut Kept) {
        let ways: (ComponentId, ComponentId) = (self.writer, self.reader);
        let name = format!("queue/{}>{}", self.writer, self.reader);
        kept.put_shared(name, &ways, &[&self.lines, &self.position]);
    }
}
