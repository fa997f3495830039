//! The far ends of programs' descriptors, by which their last close is noticed.

use super::{Applications, Far, UNWATCHED, WATCHED_PER_TURN, Watched};
use crate::descriptors::is_closed;
use crate::protocol::FromServer;
use eft_base::{ComponentId, SocketId};
use rustix::event::epoll;
use std::os::fd::{AsFd, OwnedFd};

impl Applications {
    /// Takes a far end, and gives the supervisor a duplicate, which it passes on to the transport.
    pub(super) fn keep(&mut self, socket: SocketId, transport: ComponentId, fd: OwnedFd) {
        let keep = FromServer::Keep { domain: socket.domain, slot: socket.slot, transport };
        crate::serve::tell(&self.control, &keep, &[&fd]);
        self.survivors.forget(socket);
        self.insert(socket, transport, fd);
        self.watch_far(socket);
    }

    /// Takes another socket of the same descriptor as `of`, as soon as the far end of that is here.
    pub(super) fn keep_beside(&mut self, socket: SocketId, transport: ComponentId, of: SocketId) {
        let far = self.far.get(&of).and_then(|far| far.fd.try_clone().ok());
        match far {
            Some(fd) => self.keep(socket, transport, fd),
            None => self.survivors.keep_later(socket, transport, of),
        }
    }

    /// Gives the supervisor another duplicate of a far end, which its transport has not got.
    pub(super) fn keep_again(&self, socket: SocketId) {
        if let Some(Far { fd, transport, .. }) = self.far.get(&socket) {
            let SocketId { domain, slot } = socket;
            crate::serve::tell(
                &self.control,
                &FromServer::Keep { domain, slot, transport: *transport },
                &[fd],
            );
        }
    }

    pub(super) fn insert(&mut self, socket: SocketId, transport: ComponentId, fd: OwnedFd) {
        if let Some(old) = self.far.insert(socket, Far { fd, token: UNWATCHED, transport }) {
            self.unwatch(&old.fd, old.token);
        }
    }

    /// Watches some of the far ends from before a crash.
    pub(super) fn watch_some(&mut self) {
        for _ in 0..self.unwatched.len().min(WATCHED_PER_TURN) {
            let Some(socket) = self.unwatched.pop_front() else { return };
            match self.unread.iter().any(|(_, domain)| *domain == Some(socket.domain)) {
                true => self.unwatched.push_back(socket),
                false => self.watch_far(socket),
            }
        }
    }

    /// Waits for the close of a socket's descriptor. One that is closed already is an event, too.
    pub(super) fn watch_far(&mut self, socket: SocketId) {
        let Some(mut far) = self.far.remove(&socket) else { return };
        // Only the last close matters here: the transport handles messages, and shuts the far end down.
        let events = epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        if far.token == UNWATCHED {
            far.token = self.watch(far.fd.as_fd(), Watched::Far(socket), events);
        }
        self.far.insert(socket, far);
    }

    pub(super) fn is_closed(&self, socket: SocketId) -> bool {
        self.far.get(&socket).is_some_and(|far| is_closed(&far.fd))
    }

    /// A far end has hung up, and its descriptor seems to be open. Perhaps a transport was just sending there, or took
    /// its error away: then the end of that message is an event, too.
    pub(super) fn watch_again(&mut self, socket: SocketId, token: u64) {
        let events = epoll::EventFlags::RDHUP | epoll::EventFlags::OUT | epoll::EventFlags::ET;
        if let Some(far) = self.far.get(&socket) {
            let _ = epoll::modify(&self.set, &far.fd, epoll::EventData::new_u64(token), events);
            self.watched.insert(token, Watched::HungUp(socket));
        }
    }

    pub(super) fn drop_socket(&mut self, socket: SocketId) {
        self.survivors.forget(socket);
        let far = self.far.remove(&socket);
        if let Some(Far { fd, token, .. }) = &far {
            self.unwatch(fd, *token);
        }
        for second in [false, true] {
            let Some((fd, token)) = self.loopback.remove(&(socket, second)) else { continue };
            self.unwatch(&fd, token);
            if far.as_ref().is_some_and(|far| far.transport.role == eft_messages::Role::Tcp) {
                // A listener. The supervisor and the custodian hold it a little longer, but it accepts nothing any
                // more.
                let _ = rustix::net::shutdown(&fd, rustix::net::Shutdown::Both);
            }
        }
    }
}
