//! New domains, which all servers have mapped before a program hears of them, and domains that end.

use super::{Domain, Keeping};
use crate::protocol::{ArenaShape, ToServer};
use crate::supervisor::Supervisor;
use crate::supervisor::kept::Kept;
use crate::supervisor::kept_ends::{loopback, name_of};
use crate::supervisor::member::Life;
use crate::supervisor::say::say;
use crate::{Result, bell, memory};
use eft_base::DomainId;
use eft_channel::socket::Geometry;
use eft_control::plan;
use eft_messages::ComponentId;
use std::os::fd::OwnedFd;

/// The keeper's folder of domains that sockets was not told of yet.
pub const ANNOUNCED: &str = "announced";

/// A domain's arena, its shape and its bell.
type Brought = (OwnedFd, ArenaShape, OwnedFd);

/// A new domain that some servers have not mapped yet.
pub struct Announced {
    pub domain: DomainId,
    /// The connection that asked for it.
    pub connection: u64,
    pub missing: Vec<ComponentId>,
}

impl Announced {
    fn name(connection: u64) -> String {
        format!("{ANNOUNCED}/{connection}")
    }

    pub fn keep(&self, kept: &mut Kept) {
        kept.put(Announced::name(self.connection), &self.domain, &[]);
    }
}

fn geometry(shape: &ArenaShape) -> Geometry {
    Geometry { slots: shape.slots, send_len: shape.send_len, receive_len: shape.receive_len }
}

/// Whether servers may map an arena that a program brought: it has the stated shape, and its size cannot change. Its
/// content is never trusted anyway.
fn is_arena(arena: &OwnedFd, shape: &ArenaShape) -> bool {
    let geometry = geometry(shape);
    geometry.is_valid() && memory::is_usable(arena, geometry.arena_len())
}

impl Supervisor {
    /// Control messages and queues are read independently: a request of the domain, forwarded by sockets, could reach
    /// tcp before the domain does. So sockets learns of a domain only when all others have mapped it.
    pub(in crate::supervisor) fn new_domain(&mut self, connection: u64, brought: Option<Brought>) {
        let has_one = self.keeping.connections.get(&connection).is_some_and(|c| c.domain.is_some());
        if has_one || self.keeping.announced.iter().any(|a| a.connection == connection) {
            return;
        }
        let made = self.make_domain(brought).unwrap_or_else(|why| {
            say!("eft {}: a program is refused: {why}", self.config.name);
            None
        });
        let Some(domain) = made else {
            return self.tell_of_domain(connection, None);
        };
        // In this order: a domain of which nobody knows who asked for it would be there for good.
        let mut announced = Announced { domain, connection, missing: Vec::new() };
        if let (Some(kept), Some(made)) = (&mut self.kept, self.keeping.domains.get(&domain)) {
            announced.keep(kept);
            made.keep(domain, kept);
        }
        announced.missing = self.announce(domain);
        self.keeping.announced.push(announced);
        self.tell_of_mapped_domains();
    }

    /// What a predecessor had announced, and sockets was not told of.
    pub(in crate::supervisor) fn announce_again(&mut self) {
        let left = std::mem::take(&mut self.keeping.announced);
        for Announced { domain, connection, .. } in left {
            // If it was not made, what asked for it is heard again.
            if !self.keeping.domains.contains_key(&domain) {
                self.forget(Announced::name(connection));
                continue;
            }
            let missing = self.announce(domain);
            self.keeping.announced.push(Announced { domain, connection, missing });
        }
        self.tell_of_mapped_domains();
    }

    /// Gives a domain to every server that may map it. Those that sockets has to wait for.
    fn announce(&mut self, domain: DomainId) -> Vec<ComponentId> {
        let mappers = plan::domain_mappers(&self.config.topology, self.nics());
        let Supervisor { keeping, members, .. } = self;
        let Some(Domain { pool, arena, shape, bell }) = keeping.domains.get(&domain) else {
            return Vec::new();
        };
        let shown = memory::read_only(arena).ok();
        let mut missing = Vec::new();
        for (peer, writable) in mappers {
            // A server that is not running gets the domain when it is born.
            let Some(member) = members.iter_mut().find(|m| m.peer == peer && m.control.is_some()) else {
                continue;
            };
            let fds: Vec<&OwnedFd> = if writable { vec![arena, bell] } else { shown.iter().collect() };
            member.tell(&ToServer::Domain { domain, pool: *pool, shape: *shape, writable }, &fds);
            if peer != ComponentId::SOCKETS {
                missing.push(peer);
            }
        }
        missing
    }

    /// `peer` has mapped this domain. `None`: it is gone, and is not waited for any more.
    pub(in crate::supervisor) fn domain_mapped(&mut self, peer: ComponentId, domain: Option<DomainId>) {
        for announced in &mut self.keeping.announced {
            if domain.is_none_or(|f| f == announced.domain) {
                announced.missing.retain(|p| *p != peer);
            }
        }
        self.tell_of_mapped_domains();
    }

    /// Tells sockets of the domains that all others have mapped.
    pub(in crate::supervisor) fn tell_of_mapped_domains(&mut self) {
        // One that is being started is told when it is ready.
        if !self.index(ComponentId::SOCKETS).is_some_and(|i| self.members[i].life == Life::Running) {
            return;
        }
        let mapped: Vec<_> = self.keeping.announced.extract_if(.., |a| a.missing.is_empty()).collect();
        for Announced { domain, connection, .. } in mapped {
            self.tell_of_domain(connection, Some(domain));
        }
    }

    pub(in crate::supervisor) fn tell_of_domain(&mut self, connection: u64, domain: Option<DomainId>) {
        let Some(c) = self.keeping.connections.get_mut(&connection) else {
            // The program that asked has ended meanwhile.
            domain.into_iter().for_each(|f| self.close_domain(f));
            return self.forget(Announced::name(connection));
        };
        c.domain = domain;
        let answer = ToServer::Connection { id: connection, domain, role: c.role };
        self.tell(ComponentId::SOCKETS, &answer, &[]);
        if let (Some(kept), Some(c)) = (&mut self.kept, self.keeping.connections.get(&connection)) {
            c.keep(connection, kept);
        }
        self.forget(Announced::name(connection));
    }

    /// Makes an arena, or takes one from an earlier stack, for a new domain. `None`: the limit is reached, or what was brought is
    /// not an arena.
    fn make_domain(&mut self, brought: Option<Brought>) -> Result<Option<DomainId>> {
        let limits = &self.config.topology.limits;
        if self.keeping.domains.len() >= limits.domains {
            return Ok(None);
        }
        let is_sound = |(arena, shape, bell): &Brought| is_arena(arena, shape) && bell::is_bell(bell);
        if brought.as_ref().is_some_and(|brought| !is_sound(brought)) {
            return Ok(None);
        }
        let memory_spec = &self.config.topology.memory;
        let own = ArenaShape {
            slots: plan::domain_slots(&self.config.topology),
            send_len: memory_spec.send_ring_bytes,
            receive_len: memory_spec.receive_ring_bytes,
        };
        let domain = loop {
            self.keeping.next_domain = self.keeping.next_domain.wrapping_add(1).max(1);
            let id = DomainId(self.keeping.next_domain);
            if !self.keeping.domains.contains_key(&id) {
                break id;
            }
        };
        let (arena, shape, bell) = match brought {
            Some(brought) => brought,
            None => {
                let len = geometry(&own).arena_len();
                (memory::create(&format!("eft-domain-{}", domain.0), len)?, own, bell::create()?)
            }
        };
        let pool = self.next_pool_id();
        self.keeping.domains.insert(domain, Domain { pool, arena, shape, bell });
        Ok(Some(domain))
    }

    pub(in crate::supervisor) fn close_domain(&mut self, domain: DomainId) {
        if self.keeping.domains.remove(&domain).is_none() {
            return;
        }
        for i in 0..self.members.len() {
            self.tell_index(i, &ToServer::DomainClosed { domain }, &[]);
        }
        let mut names = Vec::new();
        let Keeping { far, loopback: beside, owners, connections, .. } = &mut self.keeping;
        names.extend(far.extract_if(|s, _| s.domain == domain).map(|(s, _)| name_of("far", s)));
        names.extend(owners.close_domain(domain));
        let ended = beside.extract_if(|(s, _), _| s.domain == domain);
        names.extend(ended.map(|((s, second), _)| name_of(loopback(second), s)));
        let ended = connections.extract_if(|_, c| c.domain == Some(domain));
        names.extend(ended.map(|(id, _)| format!("connection/{id}")));
        // The last to be forgotten: as long as it is there, a successor closes it again.
        names.push(format!("domain/{}", domain.0));
        names.into_iter().for_each(|name| self.forget(name));
    }
}
