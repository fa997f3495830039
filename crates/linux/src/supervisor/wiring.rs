//! Gives a server its memory and its neighbours.

use super::accusations::Queue;
use super::children;
use super::member::{Life, OwnedPool};
use super::process::{Running, Spawned};
use super::say::say;
use super::{OLD_POOLS, Supervisor, Watched};
use crate::protocol::{Identity, ToServer};
use crate::{Doing, Result, life, operator};
use eft_base::{Instant, PoolId, Protection};
use eft_control::plan;
use eft_host::clock;
use eft_messages::{ComponentId, Role};
use std::cell::RefCell;
use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::ChildStderr;
use std::rc::Rc;
use std::sync::Arc;

/// The most bytes of a recording that an operator asked for.
const RECORDING_MAX: usize = 256 << 20;
/// The most bytes of a recording for the case of a second failure.
const FAILURE_MAX: usize = 16 << 20;

impl Supervisor {
    pub(super) fn nics(&self) -> usize {
        self.config.devices.len()
    }

    pub(super) fn neighbours(&self, peer: ComponentId) -> Vec<ComponentId> {
        plan::neighbours(&self.config.topology, self.nics(), peer).into_iter().map(|(p, _)| p).collect()
    }

    /// Starts all that do not run. Where connections wait for them, one that cannot be started now is tried again.
    pub(super) fn start_all(&mut self) -> Result<()> {
        let firsts = (0..self.members.len()).filter(|i| self.company(*i)[0] == *i);
        let missing: Vec<usize> = firsts.filter(|i| self.members[*i].child.is_none()).collect();
        if self.has_inherited {
            missing.into_iter().for_each(|i| self.restart(i));
            return Ok(());
        }
        missing.into_iter().try_for_each(|i| self.start(i))
    }

    /// The members that run in the process of this one, in order.
    pub(super) fn company(&self, i: usize) -> Vec<usize> {
        match &self.members[i].process {
            None => vec![i],
            process => (0..self.members.len()).filter(|j| self.members[*j].process == *process).collect(),
        }
    }

    /// The name of a process: the names of its servers.
    pub(super) fn company_name(&self, i: usize) -> String {
        let names: Vec<&str> = self.company(i).into_iter().map(|j| self.members[j].name.as_str()).collect();
        names.join(", ")
    }

    /// Starts a server (again), with those that share its process.
    pub(super) fn start(&mut self, i: usize) -> Result<()> {
        let spawned = match self.take_standby(i) {
            Some(standby) => {
                life::wake_elsewhere(standby.child.id());
                standby
            }
            None => self.spawn(i, self.members[i].program.as_ref(), false)?,
        };
        self.raise(i, spawned)
    }

    /// Starts a process for a server and those that share it. One that is started `ahead` of its time takes the CPU from nobody
    /// until it is [raised](Self::raise).
    pub(super) fn spawn(&self, i: usize, program: Option<&Arc<OwnedFd>>, ahead: bool) -> Result<Spawned> {
        let names: Vec<&str> = self.company(i).into_iter().map(|j| self.members[j].name.as_str()).collect();
        let namespaces = self.members[self.company(i)[0]].namespaces.as_deref();
        let spawned = children::spawn(&self.config.name, &names, program, namespaces, ahead)?;
        if ahead && life::may_step_aside() {
            life::step_aside(spawned.child.id());
        }
        Ok(spawned)
    }

    /// Makes a process the server, and those that share it, and connects them with all live neighbours.
    pub(super) fn raise(&mut self, i: usize, spawned: Spawned) -> Result<()> {
        let Spawned { child, controls, mut stderr } = spawned;
        life::step_forward(child.id());
        let child = Rc::new(RefCell::new(Running::Ours(child)));
        let company = self.company(i);
        company.iter().for_each(|j| self.members[*j].child = Some(child.clone()));
        let raised = company
            .into_iter()
            .zip(controls)
            .try_for_each(|(j, control)| self.raise_one(j, control, stderr.take()));
        self.tell_the_rest();
        raised
    }

    fn raise_one(&mut self, i: usize, control: OwnedFd, stderr: Option<ChildStderr>) -> Result<()> {
        let watched = self.watch_control(i, &control).and_then(|()| match &stderr {
            Some(stderr) => self.watch(stderr, Watched::LastWords(i)),
            None => Ok(()),
        });
        let member = &mut self.members[i];
        member.control = Some(control);
        member.stderr = stderr;
        member.generation += 1;
        member.life = Life::Starting;
        member.killed_on_purpose = false;
        member.hung = false;
        member.told_kept = false;
        member.restarts.started(clock::now());
        watched?;
        self.introduce(i)?;
        self.give_pools(i)?;
        // Before it has the arena: if this process dies, the next one must know whose end to wait for.
        self.keep_member(i);
        self.members[i].tell_arena();
        self.tell_index(i, &ToServer::Construct, &[]);
        self.give_others_pools(i);
        self.give_applications(i);
        self.give_configuration(i);
        self.show_all_members(i);
        let peer = self.members[i].peer;
        for (other, capacity) in plan::neighbours(&self.config.topology, self.nics(), peer) {
            if let Some(j) = self.index(other)
                && self.members[j].control.is_some()
            {
                self.connect(i, j, capacity)?;
            }
        }
        self.give_far_ends_ahead(i);
        self.tell_index(i, &ToServer::Run, &[]);
        Ok(())
    }

    pub(super) fn identity(&self, i: usize) -> Result<Identity> {
        let member = &self.members[i];
        let limits = &self.config.topology.limits;
        let device = match member.peer {
            ComponentId { role: Role::Nic, instance } => {
                self.config.devices.get(instance as usize).map(|d| d.setup(instance))
            }
            _ => None,
        };
        Ok(Identity {
            peer: member.peer,
            stack: self.config.name.clone(),
            seed: seed()?,
            generation: member.generation,
            cpu: member.cpu,
            dedicated: member.alone,
            with_filter: self.config.topology.has("filter"),
            connections: limits.connections,
            sockets_per_domain: limits.sockets_per_domain,
            listeners_per_domain: limits.listeners_per_domain,
            slots: plan::slot_share(&self.config.topology, member.peer),
            device,
            record: None,
            predecessor_failed: member.failed,
        })
    }

    /// Where a server is recorded, and the most bytes. It is recorded if the operator asks for it, and after a life
    /// that failed, since this one may fail in the same way. A replay protects what it does, so nothing else is recorded.
    fn recording(&self, i: usize) -> Option<(PathBuf, usize)> {
        let member = &self.members[i];
        let recorded = matches!(member.peer.role, Role::Ip | Role::Filter | Role::Tcp | Role::Udp);
        match &self.config.record {
            _ if !recorded => None,
            Some(dir) => Some((member.recording(dir, member.generation), RECORDING_MAX)),
            None if member.failed && self.config.protection == Protection::On => {
                let dir = operator::stack_dir(&self.config.name).join("crashes");
                Some((member.recording(&dir, member.generation), FAILURE_MAX))
            }
            None => None,
        }
    }

    /// A file for what a server is told, and bytes of it at most. A server cannot open files.
    fn open_recording(&self, i: usize) -> Option<(OwnedFd, usize)> {
        let (path, bytes_max) = self.recording(i)?;
        let opened = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| {
            // The recording holds all traffic, and secrets.
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)
        });
        match opened {
            Ok(file) => Some((file.into(), bytes_max)),
            Err(why) => {
                let (stack, name) = (&self.config.name, &self.members[i].name);
                say!("eft {stack}: {name} is not recorded: {}: {why}", path.display());
                None
            }
        }
    }

    fn introduce(&mut self, i: usize) -> Result<()> {
        let mut identity = self.identity(i)?;
        let recording = self.open_recording(i);
        identity.record = recording.as_ref().map(|(_, bytes_max)| *bytes_max);
        let member = &mut self.members[i];
        member.recorded = recording.is_some();
        let device = std::mem::take(&mut member.device);
        let shared = [&member.status_page.own, &member.eventfd, &member.bell_fd.shown].map(Rc::clone);
        let mut fds: Vec<&OwnedFd> = shared.iter().map(|fd| &**fd).collect();
        fds.extend(&device);
        fds.extend(recording.iter().map(|(file, _)| file));
        member.tell(&ToServer::Identity(identity), &fds);
        member.device = device;
        Ok(())
    }

    fn pool_id(&mut self) -> PoolId {
        loop {
            self.next_pool = self.next_pool.wrapping_add(1).max(1);
            let id = PoolId(self.next_pool);
            let used = self.members.iter().any(|m| m.pools.iter().any(|p| p.id == id))
                || self.keeping.uses_pool(id)
                || self.old_pools.iter().any(|(_, p)| *p == id);
            if !used {
                return id;
            }
        }
    }

    pub(super) fn next_pool_id(&mut self) -> PoolId {
        self.pool_id()
    }

    /// Makes new pools for a newborn. Those of its predecessor are dropped a little later, when they are no longer
    /// read.
    fn give_pools(&mut self, i: usize) -> Result<()> {
        let peer = self.members[i].peer;
        let due = clock::now() + OLD_POOLS;
        let old: Vec<OwnedPool> = self.members[i].pools.drain(..).collect();
        self.old_pools.extend(old.iter().map(|pool| (due, pool.id)));
        let pools = plan::pools(&self.config.topology, self.nics(), peer);
        for (nth, plan) in pools.into_iter().enumerate() {
            let id = self.pool_id();
            let segment = self.take_pool(i, nth, plan.bytes())?;
            let left = old.get(nth).filter(|_| plan.has_journal).map(|old| self.left_to(peer, old));
            let fds: Vec<Rc<OwnedFd>> =
                [segment.own.clone()].into_iter().chain(left.into_iter().flatten()).collect();
            let plan::PoolPlan { slot_size, readers, .. } = plan;
            self.tell_index(
                i,
                &ToServer::OwnPool { id, slot_size },
                &fds.iter().map(|fd| &**fd).collect::<Vec<_>>(),
            );
            for reader in &readers {
                self.later.push((*reader, ToServer::Pool { id, slot_size }, vec![segment.shown.clone()]));
            }
            let pool = OwnedPool { id, segment, slot_size, readers };
            self.members[i].pools.push(pool);
        }
        self.keep_pools();
        Ok(())
    }

    /// What a dead server has left in a pool, and the queue that says of what its reader has heard, if that one lives.
    fn left_to(&self, writer: ComponentId, old: &OwnedPool) -> Vec<Rc<OwnedFd>> {
        let mut read =
            self.queues.iter().filter(|q| q.writer == writer && old.readers.first() == Some(&q.reader));
        let queue = read.next().map(|q| [q.lines.clone(), q.position.clone()]);
        [old.segment.shown.clone()].into_iter().chain(queue.into_iter().flatten()).collect()
    }

    /// Dead servers' pools, once nobody reads them any more. A successor need not drop them again.
    pub(super) fn drop_old_pools(&mut self, now: Instant) {
        let due: Vec<PoolId> = self.old_pools.iter().filter(|(t, _)| *t <= now).map(|(_, p)| *p).collect();
        if due.is_empty() {
            return;
        }
        for id in due {
            for i in 0..self.members.len() {
                self.tell_index(i, &ToServer::DropPool { id }, &[]);
            }
        }
        self.old_pools.retain(|(t, _)| *t > now);
        self.keep_pools();
    }

    /// A server has lost a pool. If it is one that it reads, it gets all of these: it may have lost others with it.
    pub(super) fn lacks_pool(&mut self, i: usize, id: PoolId) {
        if self.pools_read_by(i).any(|pool| pool.id == id) {
            self.give_others_pools(i);
        }
    }

    /// A component may also read its own pools by reference.
    fn pools_read_by(&self, i: usize) -> impl Iterator<Item = &OwnedPool> {
        let peer = self.members[i].peer;
        let all = self.members.iter().enumerate().flat_map(|(j, m)| m.pools.iter().map(move |p| (j, p)));
        all.filter(move |(j, pool)| *j == i || pool.readers.contains(&peer)).map(|(_, pool)| pool)
    }

    fn give_others_pools(&mut self, i: usize) {
        let shown = self.pools_read_by(i).map(|pool| {
            (ToServer::Pool { id: pool.id, slot_size: pool.slot_size }, pool.segment.shown.clone())
        });
        let messages: Vec<_> = shown.collect();
        for (message, fd) in messages {
            self.tell_index(i, &message, &[&fd]);
        }
    }

    fn give_configuration(&mut self, i: usize) {
        let peer = self.members[i].peer;
        let values: Vec<(String, Vec<u8>)> =
            self.store.for_peer(peer).map(|(k, v)| (k.to_string(), v.to_vec())).collect();
        for (key, value) in values {
            self.tell_index(i, &ToServer::Configure { key, value }, &[]);
        }
    }

    /// Connects a newborn with a live member by new queues, of which the latter is told later.
    fn connect(&mut self, i: usize, j: usize, capacity: usize) -> Result<()> {
        let (there, back) = (self.take_way(i, j, capacity)?, self.take_way(j, i, capacity)?);
        let (a, b) = (&self.members[i], &self.members[j]);
        let (peer_a, peer_b) = (a.peer, b.peer);
        let for_b = [
            &back.lines.own,
            &there.lines.shown,
            &back.position.shown,
            &there.position.own,
            &a.status_page.shown,
            &a.eventfd,
        ]
        .map(Rc::clone);
        let for_a = [
            &there.lines.own,
            &back.lines.shown,
            &there.position.shown,
            &back.position.own,
            &b.status_page.shown,
            &b.eventfd,
        ]
        .map(Rc::clone);
        self.tell_index(i, &ToServer::Connect { peer: peer_b }, &for_a.each_ref().map(|fd| &**fd));
        self.later.push((peer_b, ToServer::Connect { peer: peer_a }, for_b.into()));
        for (writer, reader, way) in [(peer_a, peer_b, there), (peer_b, peer_a, back)] {
            let (lines, position) = (way.lines.shown, way.position.shown);
            self.keep_queue(Queue { writer, reader, lines, position });
        }
        Ok(())
    }
}

impl super::member::Member {
    fn tell_arena(&mut self) {
        let Some(arena) = self.arena.take() else { return };
        let spare = self.spare.take();
        self.tell(&ToServer::Arena, &[&arena].into_iter().chain(&spare).collect::<Vec<_>>());
        (self.arena, self.spare) = (Some(arena), spare);
    }
}

/// A seed from the kernel for a server's random generator.
pub(super) fn seed() -> Result<u64> {
    let mut bytes = [0u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).doing("getrandom")?;
    Ok(u64::from_ne_bytes(bytes))
}
