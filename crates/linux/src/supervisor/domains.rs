//! Domains and applications' descriptors, kept for servers that are reborn.

mod new;

use super::Supervisor;
use super::inheritance::Inheritance;
use super::kept::Kept;
use super::kept_ends::{Far, loopback, name_of};
use super::owners::Owners;
use crate::error::error;
use crate::protocol::{self, ArenaShape, FromServer, ToServer};
use crate::{Result, memory};
use eft_base::{DomainId, PoolId, SocketId};
use eft_control::plan;
use eft_messages::{ComponentId, Role};
use new::{ANNOUNCED, Announced};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;

struct Domain {
    pool: PoolId,
    arena: OwnedFd,
    shape: ArenaShape,
    bell: OwnedFd,
}

impl Domain {
    fn keep(&self, id: DomainId, kept: &mut Kept) {
        kept.put(format!("domain/{}", id.0), &(self.pool, self.shape), &[&self.arena, &self.bell]);
    }
}

struct Connection {
    fd: OwnedFd,
    domain: Option<DomainId>,
    role: protocol::Role,
}

/// Everything that is kept for applications.
#[derive(Default)]
pub struct Keeping {
    domains: BTreeMap<DomainId, Domain>,
    pub far: HashMap<SocketId, Far>,
    /// Those that the keeper does not have yet, and some that are gone.
    pub unkept: Vec<SocketId>,
    /// Kernel sockets beside sockets, with whether they are a listener's second.
    loopback: HashMap<(SocketId, bool), OwnedFd>,
    pub owners: Owners,
    connections: HashMap<u64, Connection>,
    announced: Vec<Announced>,
    next_domain: u16,
}

impl Keeping {
    pub fn uses_pool(&self, id: PoolId) -> bool {
        self.domains.values().any(|f| f.pool == id)
    }

    /// Puts everything into the keeper.
    pub fn keep(&mut self, kept: &mut Kept) {
        for (id, f) in &self.domains {
            f.keep(*id, kept);
        }
        self.far.iter_mut().for_each(|(s, far)| far.keep(*s, kept));
        for ((socket, second), fd) in &self.loopback {
            kept.put(name_of(loopback(*second), *socket), &(), &[fd]);
        }
        self.owners.keep(kept);
        for (id, c) in &self.connections {
            c.keep(*id, kept);
        }
        self.announced.iter().for_each(|announced| announced.keep(kept));
    }

    /// Takes over what a predecessor left.
    pub fn restore(inherited: &mut Inheritance) -> Keeping {
        let mut keeping = Keeping::default();
        for (numbers, (pool, shape), fds) in inherited.numbered("domain") {
            let fds: std::result::Result<[OwnedFd; 2], _> = fds.try_into();
            if let ([id], Ok([arena, bell])) = (&numbers[..], fds) {
                keeping.next_domain = keeping.next_domain.max(*id as u16);
                keeping.domains.insert(DomainId(*id as u16), Domain { pool, arena, shape, bell });
            }
        }
        let socket = |numbers: &[u64]| match numbers {
            [domain, slot] => Some(SocketId { domain: DomainId(*domain as u16), slot: *slot as u32 }),
            _ => None,
        };
        for (numbers, transport, fds) in inherited.numbered("far") {
            if let (Some(socket), Some(fd)) = (socket(&numbers), fds.into_iter().next()) {
                keeping.far.insert(socket, Far { fd, transport, kept: true });
            }
        }
        for second in [false, true] {
            for (numbers, (), fds) in inherited.numbered(loopback(second)) {
                if let (Some(socket), Some(fd)) = (socket(&numbers), fds.into_iter().next()) {
                    keeping.loopback.insert((socket, second), fd);
                }
            }
        }
        keeping.owners = Owners::restore(inherited);
        for (numbers, (domain, role), fds) in inherited.numbered("connection") {
            if let ([id], Some(fd)) = (&numbers[..], fds.into_iter().next()) {
                keeping.connections.insert(*id, Connection { fd, domain, role });
            }
        }
        for (numbers, domain, _) in inherited.numbered(ANNOUNCED) {
            if let [connection] = numbers[..] {
                keeping.announced.push(Announced { domain, connection, missing: Vec::new() });
            }
        }
        keeping
    }

    /// The far ends that a server has, by domain and transport.
    pub(super) fn far_of(&self, peer: ComponentId) -> Vec<(DomainId, ComponentId, Vec<(SocketId, &Far)>)> {
        let hears = |far: &Far| peer.role == Role::Sockets || far.transport == peer;
        let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (socket, far) in self.far.iter().filter(|(_, far)| hears(far)) {
            groups.entry((socket.domain, far.transport)).or_default().push((*socket, far));
        }
        let whole = |((domain, transport), ends)| (domain, transport, ends);
        groups.into_iter().map(whole).collect()
    }

    pub fn domains(&self) -> usize {
        self.domains.len()
    }

    pub fn sockets(&self) -> usize {
        self.far.len()
    }

    /// A domain's arena (read-only) and its shape.
    pub fn show(&self, domain: DomainId) -> Result<(Value, Vec<OwnedFd>)> {
        let found =
            self.domains.get(&domain).ok_or_else(|| error!(Missing, "there is no domain {}", domain.0))?;
        let arena = memory::read_only(&found.arena)?;
        Ok((json!({ "domain": domain.0, "shape": found.shape }), vec![arena]))
    }
}

impl Connection {
    fn keep(&self, id: u64, kept: &mut Kept) {
        kept.put(format!("connection/{id}"), &(self.domain, self.role), &[&self.fd]);
    }
}

impl Supervisor {
    /// Handles what sockets says about applications.
    pub(super) fn heard_of_applications(&mut self, message: FromServer, fds: Vec<OwnedFd>) {
        let mut fds = fds.into_iter();
        match message {
            FromServer::Keep { domain, slot, transport } => {
                if let Some(fd) = fds.next() {
                    self.tell(transport, &ToServer::Far { domain, slots: vec![slot], transport }, &[&fd]);
                    let socket = SocketId { domain, slot };
                    self.keeping.far.insert(socket, Far { fd, transport, kept: false });
                    self.keeping.unkept.push(socket);
                }
            }
            FromServer::Drop { domain, slot } => {
                let socket = SocketId { domain, slot };
                let far = self.keeping.far.remove(&socket);
                // It closes its end when it is told of another one. What it shows there until then, nobody sees.
                if let Some(i) = far.as_ref().and_then(|far| self.index(far.transport)) {
                    self.members[i].mention(&ToServer::DropFar { domain, slot });
                }
                if far.as_ref().is_none_or(|far| far.kept) {
                    self.forget(name_of("far", socket));
                }
                for second in [false, true] {
                    if self.keeping.loopback.remove(&(socket, second)).is_some() {
                        self.forget(name_of(loopback(second), socket));
                    }
                }
                self.drop_owner(socket);
            }
            FromServer::KeepConnection { id, domain, role } => {
                if let Some(fd) = fds.next() {
                    // A predecessor of this process may have heard this, and what followed, and given it a domain.
                    let known = self.keeping.connections.get(&id).and_then(|c| c.domain);
                    let connection = Connection { fd, domain: domain.or(known), role };
                    self.kept.iter_mut().for_each(|kept| connection.keep(id, kept));
                    self.keeping.connections.insert(id, connection);
                }
            }
            FromServer::DropConnection { id } => {
                self.keeping.connections.remove(&id);
                self.forget(format!("connection/{id}"));
            }
            FromServer::KeepLoopback { domain, slot, second } => {
                if let Some(fd) = fds.next() {
                    self.keep(loopback(second), SocketId { domain, slot }, &(), &fd);
                    self.keeping.loopback.insert((SocketId { domain, slot }, second), fd);
                }
            }
            FromServer::KeepOwner { domain, slot, transport } => {
                if let Some(fd) = fds.next() {
                    self.keep_owner(SocketId { domain, slot }, transport, fd);
                }
            }
            FromServer::NewDomain { id, shape } => {
                let brought = fds.next().zip(fds.next()).map(|(arena, bell)| (arena, shape, bell));
                self.new_domain(id, brought)
            }
            FromServer::CloseDomain { domain } => self.close_domain(domain),
            _ => {}
        }
    }

    pub(super) fn keep<T: Serialize>(&mut self, folder: &str, socket: SocketId, what: &T, fd: &OwnedFd) {
        if let Some(kept) = &mut self.kept {
            kept.put(name_of(folder, socket), what, &[fd]);
        }
    }

    pub(super) fn forget(&mut self, name: String) {
        if let Some(kept) = &mut self.kept {
            kept.forget(name);
        }
    }

    /// Gives a newborn server everything of applications that it needs.
    pub(super) fn give_applications(&mut self, i: usize) {
        let peer = self.members[i].peer;
        let mappers = plan::domain_mappers(&self.config.topology, self.nics());
        let mapping = mappers.into_iter().find(|(p, _)| *p == peer).map(|(_, writable)| writable);
        let listener = (peer == ComponentId::SOCKETS).then(|| self.for_newborn_sockets());
        let Supervisor { keeping, members, .. } = self;
        let member = &mut members[i];
        for (id, f) in keeping.domains.iter().filter(|_| mapping.is_some()) {
            let writable = mapping == Some(true);
            let message = ToServer::Domain { domain: *id, pool: f.pool, shape: f.shape, writable };
            match memory::read_only(&f.arena) {
                _ if writable => member.tell(&message, &[&f.arena, &f.bell]),
                Ok(shown) => member.tell(&message, &[&shown]),
                Err(_) => member.tell(&message, &[]),
            }
        }
        let Some(statuses) = listener else { return };
        let fds: Vec<&OwnedFd> = statuses.iter().collect();
        member.tell(&ToServer::Listener, &fds);
        for (id, c) in &keeping.connections {
            let message = ToServer::Connection { id: *id, domain: c.domain, role: c.role };
            member.tell(&message, &[&c.fd]);
        }
        for ((s, second), fd) in &keeping.loopback {
            member.tell(&ToServer::Loopback { domain: s.domain, slot: s.slot, second: *second }, &[fd]);
        }
    }

    /// The socket at which applications arrive, and the transports' status pages.
    fn for_newborn_sockets(&self) -> Vec<OwnedFd> {
        let mut fds: Vec<OwnedFd> = self.applications.try_clone().into_iter().collect();
        for transport in self.config.topology.transports() {
            let status = self.index(transport).map(|i| &self.members[i].status_page.shown);
            fds.extend(status.and_then(|shown| shown.try_clone().ok()));
        }
        fds
    }
}
