//! The far ends of programs' descriptors, by which their last close is noticed.

use super::{Applications, Far, UNWATCHED, WATCHED_PER_TURN, Watched};
use crate::descriptors::is_closed;
use eft_base::{ComponentId, SocketId};
use rustix::event::epoll;
use std::os::fd::{AsFd, OwnedFd};

impl Applications {
    pub(super) fn keep(&mut self, socket: SocketId, transport: ComponentId, fd: OwnedFd, may_wait: bool) {
        // Others have the far end of the slot's last socket until they get another one.
        let is_known = self.left.remove(&socket)
            || self.far.get(&socket).is_some_and(|far| far.kept)
            || self.survivors.expects(socket);
        self.survivors.forget(socket);
        self.insert(socket, transport, fd, false);
        self.watch_far(socket);
        if !may_wait || is_known {
            self.hand_over(socket);
        }
    }

    pub(super) fn insert(&mut self, socket: SocketId, transport: ComponentId, fd: OwnedFd, kept: bool) {
        if let Some(old) = self.far.insert(socket, Far { fd, token: UNWATCHED, transport, kept }) {
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

    /// The same after an event. Nobody else shuts down a far end that only this server has.
    pub(super) fn has_closed(&self, socket: SocketId, event: epoll::EventFlags) -> bool {
        match self.far.get(&socket) {
            Some(far) if !far.kept => event.contains(epoll::EventFlags::HUP),
            _ => self.is_closed(socket),
        }
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

    /// The descriptor is closed, and its transport has not said yet that it knows. A far end that nobody else has stays: if this
    /// server and the transport die now, a successor must hear of it again.
    pub(super) fn leave(&mut self, socket: SocketId) {
        match self.far.remove(&socket) {
            Some(far) if !far.kept => {
                self.unwatch(&far.fd, far.token);
                self.far.insert(socket, Far { token: UNWATCHED, ..far });
            }
            far => {
                self.far.extend(far.map(|far| (socket, far)));
                self.drop_socket(socket);
                self.left.insert(socket);
            }
        }
    }

    /// True: others may know of it.
    pub(super) fn drop_socket(&mut self, socket: SocketId) -> bool {
        self.survivors.forget(socket);
        let far = self.far.remove(&socket);
        let is_owned = self.owned.remove(&socket);
        let is_known = is_owned || far.as_ref().is_none_or(|far| far.kept);
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
        is_known
    }
}
