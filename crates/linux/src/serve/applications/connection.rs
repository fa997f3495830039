//! What is known of a program's connection.

use crate::protocol::Role;
use eft_base::DomainId;
use eft_channel::socket::LAYOUT_VERSION;
use rustix::event::epoll;
use std::os::fd::OwnedFd;

pub(super) struct Connection {
    pub(super) fd: OwnedFd,
    pub(super) domain: Option<DomainId>,
    pub(super) role: Role,
    /// The sequence number of an unanswered NEW_DOMAIN.
    pub(super) asked: u64,
    /// The version of the layout that the process uses.
    pub(super) version: u32,
    /// It may hold connections without descriptors.
    pub(super) may_hold: bool,
}

impl Connection {
    pub(super) fn new(fd: OwnedFd, domain: Option<DomainId>, role: Role) -> Connection {
        Connection { fd, domain, role, asked: 0, version: LAYOUT_VERSION, may_hold: false }
    }

    /// The packets of a process are read until none is left, since some stay in the socket.
    pub(super) fn events(&self) -> epoll::EventFlags {
        match self.role {
            Role::Process => epoll::EventFlags::IN | epoll::EventFlags::ET,
            _ => epoll::EventFlags::IN,
        }
    }
}
