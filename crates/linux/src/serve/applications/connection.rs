//! What is known of a program's connection.

use crate::protocol::Role;
use crate::scm;
use eft_base::{DomainId, SocketId};
use eft_channel::socket::LAYOUT_VERSION;
use rustix::event::epoll;
use std::collections::VecDeque;
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
    /// Packets can be looked at one behind the other.
    pub(super) looks_on: bool,
    /// Sockets that it has told of in packets that were read and are still in the socket.
    pub(super) staying: VecDeque<SocketId>,
}

impl Connection {
    pub(super) fn new(fd: OwnedFd, domain: Option<DomainId>, role: Role) -> Connection {
        // From the first packet on: a predecessor may have looked further.
        let looks_on = scm::look_on(&fd).is_ok();
        Connection {
            fd,
            domain,
            role,
            asked: 0,
            version: LAYOUT_VERSION,
            may_hold: false,
            looks_on,
            staying: VecDeque::new(),
        }
    }

    /// The packets of a process are read until none is left, since some stay in the socket.
    pub(super) fn events(&self) -> epoll::EventFlags {
        match self.role {
            Role::Process => epoll::EventFlags::IN | epoll::EventFlags::ET,
            _ => epoll::EventFlags::IN,
        }
    }
}
