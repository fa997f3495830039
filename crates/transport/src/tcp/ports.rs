//! The users of local ports, and the listeners (RFC 9293 §3.9.1, RFC 6056 for choosing a port).

use super::block::{Block, NONE, State, Tuple, bit};
use super::durable::Blocks;
use crate::addresses::{ANY6, Reach, any4, overlap};
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_base::hash::{Key, Map};
use eft_base::{PortShare, WireAddress};

/// Range of ephemeral ports, as on Linux.
pub use eft_base::ports::EPHEMERAL_FIRST;
pub const EPHEMERAL_LAST: u16 = 60999;
pub const EPHEMERAL_COUNT: u32 = (EPHEMERAL_LAST - EPHEMERAL_FIRST) as u32 + 1;

/// Connections on a port that are not bound sockets of their own.
struct Users {
    address: WireAddress,
    count: u32,
    /// Those whose socket did not set SO_REUSEADDR.
    unshared: u32,
}

#[derive(Default)]
struct Port {
    /// Blocks that are bound to it.
    bound: Vec<u32>,
    users: Vec<Users>,
}

/// Derived tables of ports and listeners.
pub(super) struct Ports {
    ports: Map<u16, Port>,
    /// By address, whether that is the wildcard of IPv6 alone, and port.
    listeners: Map<(WireAddress, bool, u16), Vec<u32>>,
    key: Key,
    /// The ports that are ours.
    pub share: PortShare,
}

/// `bit::REUSE_ADDRESS | bit::REUSE_PORT` of a socket, and its domain.
#[derive(Clone, Copy)]
pub(super) struct Sharing {
    pub flags: u32,
    pub domain: u16,
}

fn reach(block: &Block) -> Reach {
    Reach { address: block.tuple.local, v6only: block.has(bit::V6ONLY) }
}

/// Where a listener is found.
fn place(block: &Block) -> (WireAddress, bool, u16) {
    let Tuple { local, local_port, .. } = block.tuple;
    (local, local == ANY6 && block.has(bit::V6ONLY), local_port)
}

impl Ports {
    pub fn new(key: Key) -> Ports {
        Ports { ports: Map::with_hasher(key), listeners: Map::with_hasher(key), key, share: PortShare::ALL }
    }

    /// Whether a socket `me` may be bound to `address` and `port`.
    pub fn may_bind(
        &self,
        blocks: &Blocks,
        me: u32,
        address: WireAddress,
        port: u16,
        sharing: Sharing,
    ) -> bool {
        let wanted = Reach { address, v6only: sharing.flags & bit::V6ONLY != 0 };
        let Some(p) = self.ports.get(&port) else {
            return true;
        };
        let reuse = sharing.flags & bit::REUSE_ADDRESS != 0;
        let with_bound = p.bound.iter().filter(|i| **i != me).all(|i| {
            let other = &blocks[*i];
            let both = other.flags & sharing.flags;
            !overlap(reach(other), wanted)
                || (both & bit::REUSE_PORT != 0 && other.domain.0 == sharing.domain)
                || (both & bit::REUSE_ADDRESS != 0 && other.state() != State::Listen)
        });
        with_bound && p.users.iter().all(|u| !wanted.covers(u.address) || (reuse && u.unshared == 0))
    }

    /// Whether a bound socket `me` may begin to listen.
    pub fn may_listen(&self, blocks: &Blocks, me: u32) -> bool {
        let block = &blocks[me];
        let Some(p) = self.ports.get(&block.tuple.local_port) else {
            return true;
        };
        p.bound.iter().filter(|i| **i != me).all(|i| {
            let other = &blocks[*i];
            other.state() != State::Listen
                || !overlap(reach(other), reach(block))
                || (other.flags & block.flags & bit::REUSE_PORT != 0 && other.domain == block.domain)
        })
    }

    /// Whether `port` is ours, and nothing at all uses it.
    pub fn is_unused(&self, port: u16) -> bool {
        self.share.has(port) && !self.ports.contains_key(&port)
    }

    /// Whether `port` is ours, and no socket is bound to it, so that connections may share it.
    pub fn is_unbound(&self, port: u16) -> bool {
        self.share.has(port) && self.ports.get(&port).is_none_or(|p| p.bound.is_empty())
    }

    pub fn bind(&mut self, me: u32, port: u16) {
        let bound = &mut self.ports.entry(port).or_default().bound;
        if !bound.contains(&me) {
            bound.push(me);
        }
    }

    pub fn unbind(&mut self, me: u32, port: u16) {
        if let Some(p) = self.ports.get_mut(&port) {
            p.bound.retain(|i| *i != me);
            self.tidy(port);
        }
    }

    /// A connection that is not bound itself uses `port`.
    pub fn add_user(&mut self, address: WireAddress, port: u16, shared: bool) {
        let users = &mut self.ports.entry(port).or_default().users;
        match users.iter_mut().find(|u| u.address == address) {
            Some(u) => {
                u.count += 1;
                u.unshared += !shared as u32;
            }
            None => users.push(Users { address, count: 1, unshared: !shared as u32 }),
        }
    }

    pub fn remove_user(&mut self, address: WireAddress, port: u16, shared: bool) {
        let Some(p) = self.ports.get_mut(&port) else {
            return;
        };
        if let Some(u) = p.users.iter_mut().find(|u| u.address == address) {
            u.count = u.count.saturating_sub(1);
            u.unshared = u.unshared.saturating_sub(!shared as u32);
        }
        p.users.retain(|u| u.count > 0);
        self.tidy(port);
    }

    fn tidy(&mut self, port: u16) {
        if let Some(p) = self.ports.get(&port)
            && p.bound.is_empty()
            && p.users.is_empty()
        {
            self.ports.remove(&port);
        }
    }

    pub fn listen(&mut self, me: u32, block: &Block) {
        let listeners = self.listeners.entry(place(block)).or_default();
        if !listeners.contains(&me) {
            listeners.push(me);
        }
    }

    pub fn unlisten(&mut self, me: u32, block: &Block) {
        let place = place(block);
        if let Some(listeners) = self.listeners.get_mut(&place) {
            listeners.retain(|i| *i != me);
            if listeners.is_empty() {
                self.listeners.remove(&place);
            }
        }
    }

    /// The listener for a connection: the specific address before the wildcards; among several that
    /// share (SO_REUSEPORT) the connection's hash decides.
    pub fn listener(&self, tuple: &Tuple) -> Option<u32> {
        let among = match IpAddr::from(tuple.local) {
            IpAddr::V4(_) => [(tuple.local, false), (any4(), false), (ANY6, false)],
            IpAddr::V6(_) => [(tuple.local, false), (ANY6, true), (ANY6, false)],
        };
        let port = tuple.local_port;
        let among =
            among.into_iter().find_map(|(address, v6only)| self.listeners.get(&(address, v6only, port)))?;
        let index = match among.len() {
            1 => 0,
            n => (self.key.hash(b'L', &tuple.parts()) % n as u64) as usize,
        };
        among.get(index).copied().filter(|i| *i != NONE)
    }
}
