//! Far ends that a successor is given. A thousand descriptors take most of a millisecond, so it begins as soon as it knows
//! which sockets there are, and gets their descriptors afterwards.

use super::Applications;
use eft_base::{ComponentId, DomainId, SocketId};
use eft_component::sockets::Event;
use eft_messages::control::Reply;
use std::collections::HashSet;
use std::os::fd::OwnedFd;

/// What is known of sockets whose far ends are still to come.
#[derive(Default)]
pub struct Survivors {
    expected: HashSet<SocketId>,
    /// What custodians are to be told then, in order.
    notes: Vec<(SocketId, Reply)>,
    /// Sockets, and their transports, that are to have the same far end as another.
    beside: Vec<(SocketId, ComponentId, SocketId)>,
}

impl Survivors {
    /// Keeps a note for the time when the socket's far end is here. False: it is not awaited.
    pub fn hold(&mut self, socket: SocketId, note: Reply) -> bool {
        let waits = self.expected.contains(&socket);
        if waits {
            self.notes.push((socket, note));
        }
        waits
    }

    /// Another socket gets the far end of `of` when it is here.
    pub fn keep_later(&mut self, socket: SocketId, transport: ComponentId, of: SocketId) {
        if self.expected.contains(&of) {
            self.beside.push((socket, transport, of));
        }
    }

    pub fn forget(&mut self, socket: SocketId) {
        self.beside.retain(|(further, _, of)| *further != socket && *of != socket);
        if self.expected.remove(&socket) {
            self.notes.retain(|(of, _)| *of != socket);
        }
    }

    pub fn forget_domain(&mut self, domain: DomainId) {
        self.expected.retain(|socket| socket.domain != domain);
        self.notes.retain(|(socket, _)| socket.domain != domain);
        self.beside.retain(|(socket, ..)| socket.domain != domain);
    }
}

impl Applications {
    /// Takes the far ends of a predecessor's sockets; without descriptors, they come later.
    pub(super) fn take_far_ends(
        &mut self,
        sockets: impl Iterator<Item = SocketId>,
        transport: ComponentId,
        fds: Vec<OwnedFd>,
        emit: &mut dyn FnMut(Event),
    ) {
        if fds.is_empty() {
            for socket in sockets {
                self.survivors.expected.insert(socket);
                emit(Event::Survivor { socket, transport });
            }
            return;
        }
        for (socket, fd) in sockets.zip(fds) {
            // A slot that was dropped meanwhile may have its next socket.
            if self.far.contains_key(&socket) {
                continue;
            }
            if !self.survivors.expected.remove(&socket) {
                emit(Event::Survivor { socket, transport });
            }
            self.insert(socket, transport, fd);
            self.unwatched.push_back(socket);
        }
        let ready = |(socket, _): &mut (SocketId, Reply)| self.far.contains_key(socket);
        let ready: Vec<_> = self.survivors.notes.extract_if(.., ready).collect();
        ready.into_iter().for_each(|(socket, note)| self.note(socket, note));
        let ready = |(.., of): &mut (SocketId, ComponentId, SocketId)| self.far.contains_key(of);
        let ready: Vec<_> = self.survivors.beside.extract_if(.., ready).collect();
        ready.into_iter().for_each(|(socket, transport, of)| self.keep_beside(socket, transport, of));
    }
}
