//! Far ends that are here, and not in line with their sockets yet: a successor is given all at once, and each costs a look at a page.
//!
//! Where input came before the far end, its token is posted when it is the far end's turn. A program that finds tokens finds them in
//! the order in which they were posted, so those ends have their turns in the order of their input.

use super::FarEnds;
use eft_base::{DomainId, SocketId};
use eft_channel::socket::Arena;
use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;

#[derive(Default)]
pub struct Newcomers {
    ends: HashMap<SocketId, (OwnedFd, Arena)>,
    /// In the order of their turns, if that was made since the last one came.
    waiting: VecDeque<SocketId>,
    in_order: bool,
}

impl Newcomers {
    pub fn insert(&mut self, socket: SocketId, fd: OwnedFd, arena: &Arena) {
        self.ends.insert(socket, (fd, arena.clone()));
        self.waiting.push_back(socket);
        self.in_order = false;
    }

    pub fn remove(&mut self, socket: SocketId) -> Option<(OwnedFd, Arena)> {
        self.ends.remove(&socket)
    }

    pub fn remove_domain(&mut self, domain: DomainId) {
        self.ends.retain(|socket, _| socket.domain != domain);
    }

    /// Whether any waits for its turn.
    pub fn has_some(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whose turn it is: of those whose input was `heard` of, the first, and then the others as they came.
    pub fn next(&mut self, heard: impl Fn(&SocketId) -> Option<u64>) -> Option<SocketId> {
        if !self.in_order {
            self.waiting.make_contiguous().sort_by_cached_key(|socket| heard(socket).unwrap_or(u64::MAX));
            self.in_order = true;
        }
        self.waiting.pop_front()
    }
}

impl FarEnds {
    /// Takes a far end. Its descriptor is brought in line with the socket when there is something to tell there, or it is
    /// [its turn](Self::take_up).
    pub fn insert(&mut self, socket: SocketId, fd: OwnedFd, arena: &Arena) {
        // What is known of a socket without one tells when its input came.
        if self.ends.get(&socket).is_some_and(|far| far.fd.is_some()) {
            self.ends.remove(&socket);
        }
        self.new.insert(socket, fd, arena);
    }

    /// Whether far ends wait for their turn.
    pub fn has_new(&self) -> bool {
        self.new.has_some()
    }

    /// Brings a few descriptors in line with their sockets, and says which.
    pub fn take_up(&mut self, most: usize, mut taken: impl FnMut(SocketId)) {
        for _ in 0..most {
            let heard = |socket: &SocketId| self.ends.get(socket).and_then(|far| far.heard);
            let Some(socket) = self.new.next(heard) else { return };
            self.take_up_one(socket);
            taken(socket);
        }
    }
}
