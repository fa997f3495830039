//! Families and descriptors of applications, kept for whoever is reborn.

use super::Supervisor;
use super::kept::{Inheritance, Kept};
use crate::error::error;
use crate::protocol::{self, ArenaShape, FromServer, ToServer};
use crate::scm::FDS_MAX;
use crate::{Result, bell, memory};
use eft_base::{FamilyId, PoolId, SocketId};
use eft_channel::socket::Geometry;
use eft_control::plan;
use eft_messages::{ComponentId, Role};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;

struct Family {
    pool: PoolId,
    arena: OwnedFd,
    shape: ArenaShape,
    bell: OwnedFd,
}

/// A family's arena, its shape and its bell.
type Brought = (OwnedFd, ArenaShape, OwnedFd);

/// A new family that not everybody has mapped yet.
struct Announced {
    family: FamilyId,
    /// The connection that asked for it.
    connection: u64,
    missing: Vec<ComponentId>,
}

/// The far end of a socket's descriptor.
struct Far {
    fd: OwnedFd,
    /// Whose the socket is.
    transport: ComponentId,
}

struct Connection {
    fd: OwnedFd,
    family: Option<FamilyId>,
    role: protocol::Role,
}

/// Everything kept on behalf of applications.
#[derive(Default)]
pub struct Keeping {
    families: BTreeMap<FamilyId, Family>,
    far: HashMap<SocketId, Far>,
    loopback: HashMap<SocketId, OwnedFd>,
    connections: HashMap<u64, Connection>,
    announced: Vec<Announced>,
    next_family: u16,
}

impl Keeping {
    pub fn uses_pool(&self, id: PoolId) -> bool {
        self.families.values().any(|f| f.pool == id)
    }

    /// Leaves everything with the keeper.
    pub fn keep(&self, kept: &mut Kept) {
        for (id, f) in &self.families {
            kept.put(format!("family/{}", id.0), &(f.pool, f.shape), &[&f.arena, &f.bell]);
        }
        self.far.iter().for_each(|(s, far)| kept.put(name_of("far", *s), &far.transport, &[&far.fd]));
        self.loopback.iter().for_each(|(s, fd)| kept.put(name_of("loopback", *s), &(), &[fd]));
        for (id, c) in &self.connections {
            c.keep(*id, kept);
        }
    }

    /// Takes up what a predecessor had left.
    pub fn restore(inherited: &mut Inheritance) -> Keeping {
        let mut keeping = Keeping::default();
        for (numbers, (pool, shape), fds) in inherited.numbered("family") {
            let fds: std::result::Result<[OwnedFd; 2], _> = fds.try_into();
            if let ([id], Ok([arena, bell])) = (&numbers[..], fds) {
                keeping.next_family = keeping.next_family.max(*id as u16);
                keeping.families.insert(FamilyId(*id as u16), Family { pool, arena, shape, bell });
            }
        }
        let socket = |numbers: &[u64]| match numbers {
            [family, slot] => Some(SocketId { family: FamilyId(*family as u16), slot: *slot as u32 }),
            _ => None,
        };
        for (numbers, transport, fds) in inherited.numbered("far") {
            if let (Some(socket), Some(fd)) = (socket(&numbers), fds.into_iter().next()) {
                keeping.far.insert(socket, Far { fd, transport });
            }
        }
        for (numbers, (), fds) in inherited.numbered("loopback") {
            if let (Some(socket), Some(fd)) = (socket(&numbers), fds.into_iter().next()) {
                keeping.loopback.insert(socket, fd);
            }
        }
        for (numbers, (family, role), fds) in inherited.numbered("connection") {
            if let ([id], Some(fd)) = (&numbers[..], fds.into_iter().next()) {
                keeping.connections.insert(*id, Connection { fd, family, role });
            }
        }
        keeping
    }

    pub fn families(&self) -> usize {
        self.families.len()
    }

    pub fn sockets(&self) -> usize {
        self.far.len()
    }

    /// A family's arena, read-only, and its shape.
    pub fn show(&self, family: FamilyId) -> Result<(Value, Vec<OwnedFd>)> {
        let found =
            self.families.get(&family).ok_or_else(|| error!(Missing, "there is no family {}", family.0))?;
        let arena = memory::read_only(&found.arena)?;
        Ok((json!({ "family": family.0, "shape": found.shape }), vec![arena]))
    }
}

impl Connection {
    fn keep(&self, id: u64, kept: &mut Kept) {
        kept.put(format!("connection/{id}"), &(self.family, self.role), &[&self.fd]);
    }
}

/// What an end of a socket is called at the keeper's.
fn name_of(folder: &str, socket: SocketId) -> String {
    format!("{folder}/{}/{}", socket.family.0, socket.slot)
}

fn geometry(shape: &ArenaShape) -> Geometry {
    Geometry { slots: shape.slots, send_len: shape.send_len, receive_len: shape.receive_len }
}

/// Whether a program brought an arena that servers may map: cut as it says, and of a size that it cannot
/// change. What lies in it is never believed anyway.
fn is_arena(arena: &OwnedFd, shape: &ArenaShape) -> bool {
    let geometry = geometry(shape);
    geometry.is_valid() && memory::is_usable(arena, geometry.arena_len())
}

impl Supervisor {
    /// What sockets says of applications.
    pub(super) fn heard_of_applications(&mut self, message: FromServer, fds: Vec<OwnedFd>) {
        let mut fds = fds.into_iter();
        match message {
            FromServer::Keep { family, slot, transport } => {
                if let Some(fd) = fds.next() {
                    self.tell(transport, &ToServer::Far { family, slots: vec![slot], transport }, &[&fd]);
                    self.keep("far", SocketId { family, slot }, &transport, &fd);
                    self.keeping.far.insert(SocketId { family, slot }, Far { fd, transport });
                }
            }
            FromServer::Drop { family, slot } => {
                let socket = SocketId { family, slot };
                let far = self.keeping.far.remove(&socket);
                self.keeping.loopback.remove(&socket);
                self.forget(name_of("far", socket));
                self.forget(name_of("loopback", socket));
                if let Some(far) = far {
                    self.tell(far.transport, &ToServer::DropFar { family, slot }, &[]);
                }
            }
            FromServer::KeepConnection { id, family, role } => {
                if let Some(fd) = fds.next() {
                    let connection = Connection { fd, family, role };
                    self.kept.iter_mut().for_each(|kept| connection.keep(id, kept));
                    self.keeping.connections.insert(id, connection);
                }
            }
            FromServer::DropConnection { id } => {
                self.keeping.connections.remove(&id);
                self.forget(format!("connection/{id}"));
            }
            FromServer::KeepLoopback { family, slot } => {
                if let Some(fd) = fds.next() {
                    self.keep("loopback", SocketId { family, slot }, &(), &fd);
                    self.keeping.loopback.insert(SocketId { family, slot }, fd);
                }
            }
            FromServer::NewFamily { id, shape } => {
                let brought = fds.next().zip(fds.next()).map(|(arena, bell)| (arena, shape, bell));
                self.new_family(id, brought)
            }
            FromServer::CloseFamily { family } => self.close_family(family),
            _ => {}
        }
    }

    fn keep<T: Serialize>(&mut self, folder: &str, socket: SocketId, what: &T, fd: &OwnedFd) {
        if let Some(kept) = &mut self.kept {
            kept.put(name_of(folder, socket), what, &[fd]);
        }
    }

    fn forget(&mut self, name: String) {
        if let Some(kept) = &mut self.kept {
            kept.forget(name);
        }
    }

    /// Control messages and queues are read independently: a request of the family's, forwarded by sockets, could reach
    /// tcp before the family does. So sockets hears of a family when everybody else has mapped it.
    fn new_family(&mut self, connection: u64, brought: Option<Brought>) {
        if self.keeping.announced.iter().any(|a| a.connection == connection) {
            return;
        }
        let made = self.make_family(brought).unwrap_or_else(|why| {
            eprintln!("eft {}: a program is refused: {why}", self.config.name);
            None
        });
        let Some(family) = made else {
            return self.tell_of_family(connection, None);
        };
        let missing = plan::family_mappers(&self.config.topology, self.nics())
            .into_iter()
            .map(|(peer, _)| peer)
            .filter(|peer| *peer != ComponentId::SOCKETS)
            // One that is not there is given the family when it is born.
            .filter(|peer| self.index(*peer).is_some_and(|i| self.members[i].control.is_some()))
            .collect();
        self.keeping.announced.push(Announced { family, connection, missing });
        self.tell_of_mapped_families();
    }

    /// `peer` has mapped this family; `None`: is gone, and need not be waited for.
    pub(super) fn family_mapped(&mut self, peer: ComponentId, family: Option<FamilyId>) {
        for announced in &mut self.keeping.announced {
            if family.is_none_or(|f| f == announced.family) {
                announced.missing.retain(|p| *p != peer);
            }
        }
        self.tell_of_mapped_families();
    }

    fn tell_of_mapped_families(&mut self) {
        let mapped: Vec<_> = self.keeping.announced.extract_if(.., |a| a.missing.is_empty()).collect();
        for Announced { family, connection, .. } in mapped {
            self.tell_of_family(connection, Some(family));
        }
    }

    fn tell_of_family(&mut self, connection: u64, family: Option<FamilyId>) {
        let Some(c) = self.keeping.connections.get_mut(&connection) else {
            // Its program has ended meanwhile.
            family.into_iter().for_each(|f| self.close_family(f));
            return;
        };
        c.family = family;
        self.kept.iter_mut().for_each(|kept| c.keep(connection, kept));
        let answer = ToServer::Connection { id: connection, family, role: c.role };
        self.tell(ComponentId::SOCKETS, &answer, &[]);
    }

    /// Makes an arena, or takes one of an earlier stack, and shows it to whoever may map it. `None`: the
    /// limit is reached, or what was brought is no arena.
    fn make_family(&mut self, brought: Option<Brought>) -> Result<Option<FamilyId>> {
        let limits = &self.config.topology.limits;
        if self.keeping.families.len() >= limits.families {
            return Ok(None);
        }
        let is_sound = |(arena, shape, bell): &Brought| is_arena(arena, shape) && bell::is_bell(bell);
        if brought.as_ref().is_some_and(|brought| !is_sound(brought)) {
            return Ok(None);
        }
        let memory_spec = &self.config.topology.memory;
        let own = ArenaShape {
            slots: plan::family_slots(&self.config.topology),
            send_len: memory_spec.send_ring_bytes,
            receive_len: memory_spec.receive_ring_bytes,
        };
        let family = loop {
            self.keeping.next_family = self.keeping.next_family.wrapping_add(1).max(1);
            let id = FamilyId(self.keeping.next_family);
            if !self.keeping.families.contains_key(&id) {
                break id;
            }
        };
        let (arena, shape, bell) = match brought {
            Some(brought) => brought,
            None => {
                let len = geometry(&own).arena_len();
                (memory::create(&format!("eft-family-{}", family.0), len)?, own, bell::create()?)
            }
        };
        let pool = self.next_pool_id();
        let shown = memory::read_only(&arena)?;
        for (peer, writable) in plan::family_mappers(&self.config.topology, self.nics()) {
            let fds: &[&OwnedFd] = if writable { &[&arena, &bell] } else { &[&shown] };
            self.tell(peer, &ToServer::Family { family, pool, shape, writable }, fds);
        }
        if let Some(kept) = &mut self.kept {
            kept.put(format!("family/{}", family.0), &(pool, shape), &[&arena, &bell]);
        }
        self.keeping.families.insert(family, Family { pool, arena, shape, bell });
        Ok(Some(family))
    }

    fn close_family(&mut self, family: FamilyId) {
        if self.keeping.families.remove(&family).is_none() {
            return;
        }
        let mut names = vec![format!("family/{}", family.0)];
        let Keeping { far, loopback, connections, .. } = &mut self.keeping;
        names.extend(far.extract_if(|s, _| s.family == family).map(|(s, _)| name_of("far", s)));
        names.extend(loopback.extract_if(|s, _| s.family == family).map(|(s, _)| name_of("loopback", s)));
        let ended = connections.extract_if(|_, c| c.family == Some(family));
        names.extend(ended.map(|(id, _)| format!("connection/{id}")));
        names.into_iter().for_each(|name| self.forget(name));
        for i in 0..self.members.len() {
            self.tell_index(i, &ToServer::FamilyClosed { family }, &[]);
        }
    }

    /// Everything of applications that a newborn server must have.
    pub(super) fn give_applications(&mut self, i: usize) {
        let peer = self.members[i].peer;
        let mappers = plan::family_mappers(&self.config.topology, self.nics());
        let mapping = mappers.into_iter().find(|(p, _)| *p == peer).map(|(_, writable)| writable);
        let listener = (peer == ComponentId::SOCKETS).then(|| self.for_newborn_sockets());
        let Supervisor { keeping, members, .. } = self;
        let member = &mut members[i];
        for (id, f) in keeping.families.iter().filter(|_| mapping.is_some()) {
            let writable = mapping == Some(true);
            let message = ToServer::Family { family: *id, pool: f.pool, shape: f.shape, writable };
            match memory::read_only(&f.arena) {
                _ if writable => member.tell(&message, &[&f.arena, &f.bell]),
                Ok(shown) => member.tell(&message, &[&shown]),
                Err(_) => member.tell(&message, &[]),
            }
        }
        let hears = |far: &Far| peer.role == Role::Sockets || far.transport == peer;
        let mut ends: Vec<_> = keeping.far.iter().filter(|(_, far)| hears(far)).collect();
        ends.sort_unstable_by_key(|(s, far)| (s.family, far.transport, s.slot));
        for alike in
            ends.chunk_by(|(s, far), (t, next)| (s.family, far.transport) == (t.family, next.transport))
        {
            for some in alike.chunks(FDS_MAX) {
                let (socket, Far { transport, .. }) = some[0];
                let slots = some.iter().map(|(s, _)| s.slot).collect();
                let fds: Vec<&OwnedFd> = some.iter().map(|(_, far)| &far.fd).collect();
                member.tell(&ToServer::Far { family: socket.family, slots, transport: *transport }, &fds);
            }
        }
        let Some(statuses) = listener else { return };
        let fds: Vec<&OwnedFd> = statuses.iter().collect();
        member.tell(&ToServer::Listener, &fds);
        for (id, c) in &keeping.connections {
            let message = ToServer::Connection { id: *id, family: c.family, role: c.role };
            member.tell(&message, &[&c.fd]);
        }
        for (s, fd) in &keeping.loopback {
            member.tell(&ToServer::Loopback { family: s.family, slot: s.slot }, &[fd]);
        }
    }

    /// Where applications come in, and how the transports are.
    fn for_newborn_sockets(&self) -> Vec<OwnedFd> {
        let mut fds: Vec<OwnedFd> = self.applications.try_clone().into_iter().collect();
        for transport in self.config.topology.transports() {
            let status = self.index(transport).map(|i| &self.members[i].status_fd);
            fds.extend(status.and_then(|s| memory::read_only(s).ok()));
        }
        fds
    }
}
