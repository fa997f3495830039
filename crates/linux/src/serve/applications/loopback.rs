//! Kernel sockets on the loopback that stand beside eft sockets.
//!
//! A program brings a listener's with LISTEN and a datagram socket's with SHADOW, as the second one of a listener of both
//! IP versions. A duplicate is watched here: when something arrives there, the eft socket's token is posted, so that its
//! descriptor is readable. What must never happen: something arrives at a kernel socket and its program does not learn of
//! it.

use super::{Applications, Watched};
use crate::descriptors::shadow_ready;
use crate::protocol::FromServer;
use eft_base::SocketId;
use eft_base::errno::{EEXIST, EMFILE, ENOENT};
use eft_component::sockets::ConnectionId;
use eft_messages::control::{Reply, op};
use rustix::event::epoll;
use std::os::fd::{AsFd, OwnedFd};

impl Applications {
    pub(super) fn watch_loopback(&mut self, socket: SocketId, second: bool, fd: OwnedFd) {
        let events = epoll::EventFlags::IN | epoll::EventFlags::ET;
        let token = self.watch(fd.as_fd(), Watched::Loopback { socket, second }, events);
        if let Some((old, old_token)) = self.loopback.insert((socket, second), (fd, token)) {
            self.unwatch(&old, old_token);
        }
    }

    pub(super) fn keep_loopback(&mut self, socket: SocketId, second: bool, fd: OwnedFd) {
        let (domain, slot) = (socket.domain, socket.slot);
        super::super::tell(&self.control, &FromServer::KeepLoopback { domain, slot, second }, &[&fd]);
        self.watch_loopback(socket, second, fd);
    }

    /// Handles `op::SHADOW`. The first shadow stays, because other processes may hold it already.
    pub(super) fn shadow(
        &mut self,
        (socket, second): (SocketId, bool),
        brought: Option<OwnedFd>,
        connection: ConnectionId,
        reply: Reply,
    ) {
        let there = self.loopback.get(&(socket, second)).map(|(fd, _)| fd.try_clone());
        match (brought, there) {
            (Some(fd), None) => {
                self.keep_loopback(socket, second, fd);
                let args = [second.into(), 0, 0, 0];
                self.note(socket, Reply { sequence: 0, value: op::SHADOW as u64, args, ..reply });
                self.reply(connection, reply, &[]);
            }
            (None, Some(Ok(fd))) => self.reply(connection, reply, &[fd]),
            (Some(_), Some(_)) => self.reply(connection, Reply { errno: EEXIST, ..reply }, &[]),
            (None, Some(Err(_))) => self.reply(connection, Reply { errno: EMFILE, ..reply }, &[]),
            (None, None) => self.reply(connection, Reply { errno: ENOENT, ..reply }, &[]),
        }
    }

    /// Something arrived at the kernel's socket.
    pub(super) fn loopback_ready(&self, socket: SocketId, second: bool) {
        let page = self.domains.get(&socket.domain).and_then(|f| f.arena.socket(socket.slot));
        let (Some(page), Some(far), Some((beside, _))) =
            (page, self.far.get(&socket), self.loopback.get(&(socket, second)))
        else {
            return;
        };
        shadow_ready(&page, &far.fd, beside);
    }
}
