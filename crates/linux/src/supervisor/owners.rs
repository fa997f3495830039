//! The owners of streams, who are signalled when urgent data come (`op::OWNER`).

use super::Supervisor;
use super::inheritance::Inheritance;
use super::kept::Kept;
use super::kept_ends::name_of;
use crate::protocol::ToServer;
use eft_base::{DomainId, SocketId};
use eft_messages::ComponentId;
use std::collections::HashMap;
use std::os::fd::OwnedFd;

const FOLDER: &str = "owner";

/// What has an owner, for each stream that has one, and the stream's transport.
#[derive(Default)]
pub struct Owners(HashMap<SocketId, (ComponentId, OwnedFd)>);

impl Owners {
    pub fn keep(&self, kept: &mut Kept) {
        self.0.iter().for_each(|(s, (transport, fd))| kept.put(name_of(FOLDER, *s), transport, &[fd]));
    }

    pub fn restore(inherited: &mut Inheritance) -> Owners {
        let mut owners = Owners::default();
        for (numbers, transport, fds) in inherited.numbered(FOLDER) {
            if let ([domain, slot], Some(fd)) = (&numbers[..], fds.into_iter().next()) {
                let socket = SocketId { domain: DomainId(*domain as u16), slot: *slot as u32 };
                owners.0.insert(socket, (transport, fd));
            }
        }
        owners
    }

    /// Those of a domain that is gone; returns the keeper's names for them.
    pub fn close_domain(&mut self, domain: DomainId) -> Vec<String> {
        self.0.extract_if(|s, _| s.domain == domain).map(|(s, _)| name_of(FOLDER, s)).collect()
    }
}

impl Supervisor {
    pub(super) fn keep_owner(&mut self, socket: SocketId, transport: ComponentId, fd: OwnedFd) {
        let SocketId { domain, slot } = socket;
        self.tell(transport, &ToServer::Owner { domain, slot, is_new: true }, &[&fd]);
        self.keep(FOLDER, socket, &transport, &fd);
        self.keeping.owners.0.insert(socket, (transport, fd));
    }

    /// The stream is gone.
    pub(super) fn drop_owner(&mut self, socket: SocketId) {
        if let Some((transport, _)) = self.keeping.owners.0.remove(&socket) {
            self.forget(name_of(FOLDER, socket));
            if let Some(i) = self.index(transport) {
                self.members[i].mention(&ToServer::DropFar { domain: socket.domain, slot: socket.slot });
            }
        }
    }

    /// Gives a newborn transport the owners of its streams.
    pub(super) fn give_owners(&mut self, i: usize) {
        let Supervisor { keeping, members, .. } = self;
        let member = &mut members[i];
        let peer = member.peer;
        for (socket, (_, fd)) in keeping.owners.0.iter().filter(|(_, (transport, _))| *transport == peer) {
            let SocketId { domain, slot } = *socket;
            member.tell(&ToServer::Owner { domain, slot, is_new: false }, &[fd]);
        }
    }
}
