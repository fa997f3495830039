//! The far ends of descriptors, for newborn servers.

use super::Supervisor;
use crate::protocol::ToServer;
use crate::scm::FDS_MAX;
use eft_base::DomainId;
use eft_messages::{ComponentId, Role};
use std::os::fd::OwnedFd;

/// Slots in one message: far below what fits a packet.
const SLOTS_MAX: usize = 16_384;

impl Supervisor {
    /// Whether a server begins without far ends. A transport tells a program what it has to tell when it has the far end, and
    /// looks at the socket then. sockets must know which there are, or it refuses what programs ask about them: an eft that was
    /// not made with this one may not understand being told without.
    fn begins_without(&self, i: usize) -> bool {
        self.members[i].peer.role != Role::Sockets || self.members[i].program.is_none()
    }

    /// What a newborn must have before it begins.
    pub(super) fn give_far_ends_ahead(&mut self, i: usize) {
        match self.members[i].peer.role {
            Role::Sockets if self.begins_without(i) => self.announce_far_ends(i),
            Role::Sockets => self.give_far_ends(i),
            _ => {}
        }
    }

    /// It has begun.
    pub(super) fn give_other_far_ends(&mut self, i: usize) {
        if self.begins_without(i) {
            self.give_far_ends(i);
        }
        self.give_owners(i);
    }

    /// A transport misses a far end: sockets gives it once more.
    pub(super) fn repeat_far_end(&mut self, domain: DomainId, slot: u32) {
        self.tell(ComponentId::SOCKETS, &ToServer::Repeat { domain, slot }, &[]);
    }

    fn announce_far_ends(&mut self, i: usize) {
        let Supervisor { keeping, members, .. } = self;
        let member = &mut members[i];
        for (domain, transport, ends) in keeping.far_of(member.peer) {
            for some in ends.chunks(SLOTS_MAX) {
                let slots = some.iter().map(|(s, _)| s.slot).collect();
                member.tell(&ToServer::Far { domain, slots, transport }, &[]);
            }
        }
    }

    fn give_far_ends(&mut self, i: usize) {
        let Supervisor { keeping, members, .. } = self;
        let member = &mut members[i];
        for (domain, transport, ends) in keeping.far_of(member.peer) {
            for some in ends.chunks(FDS_MAX) {
                let slots = some.iter().map(|(s, _)| s.slot).collect();
                let fds: Vec<&OwnedFd> = some.iter().map(|(_, far)| &far.fd).collect();
                member.tell(&ToServer::Far { domain, slots, transport }, &fds);
            }
        }
    }
}
