//! A stack's state between turns, for a world that charges for turns.

use super::Stack;
use eft_base::{Instant, PacketRef};
use eft_channel::queue::Inspection;
use eft_channel::status::Status;
use eft_messages::{ComponentId, Encoded, Role};

impl Stack {
    /// Messages that wait for a server, by sender.
    pub fn waiting(
        &self,
        reader: ComponentId,
    ) -> impl Iterator<Item = (ComponentId, impl Iterator<Item = Encoded>)> {
        let own = self.numbers.iter().filter(move |n| n.reader == reader);
        own.filter_map(|n| Some((n.writer, n.queue.as_ref()?.waiting())))
    }

    /// How many messages wait for a server.
    pub fn queued(&self, reader: ComponentId) -> usize {
        let own = self.numbers.iter().filter(|n| n.reader == reader);
        own.filter_map(|n| n.queue.as_ref()).map(Inspection::count).sum()
    }

    /// The queue from one server to another.
    pub fn queue(&self, writer: ComponentId, reader: ComponentId) -> Option<&Inspection> {
        let own = self.numbers.iter().filter(|n| (n.writer, n.reader) == (writer, reader));
        own.filter_map(|n| n.queue.as_ref()).next()
    }

    /// The first bytes of a packet in a server's pool. `None`: it has not so many.
    pub fn read(&self, packet: PacketRef, to: &mut [u8]) -> Option<()> {
        let pool = self.pools.iter().find(|pool| pool.id == packet.pool)?;
        let at = pool.view.locate(packet).filter(|_| packet.len as usize >= to.len())?;
        pool.view.segment.read(at, to).ok()
    }

    /// Whether a turn of this server would find something to do.
    pub fn has_work(&self, peer: ComponentId, now: Instant) -> bool {
        let has_frames = peer.role == Role::Nic && !self.end.borrow().incoming.is_empty();
        has_frames || self.has_work_but_frames(peer, now)
    }

    /// The same of a NIC that takes no frames at present.
    pub fn has_work_but_frames(&self, peer: ComponentId, now: Instant) -> bool {
        let Some(member) = self.index(peer).map(|i| &self.members[i]) else {
            return false;
        };
        let is_marked =
            peer.role.is_transport() && self.domains().any(|(_, _, arena)| arena.dirty(peer).any());
        let is_due = member.deadline.is_some_and(|deadline| deadline <= now);
        is_marked || is_due || member.node.as_ref().is_some_and(|node| node.has_message())
    }

    /// It announced that it sleeps, and its doorbell has not rung since.
    pub fn is_asleep(&self, peer: ComponentId) -> bool {
        self.index(peer).is_some_and(|i| self.members[i].asleep)
    }

    /// When this server wants to run again at the latest.
    pub fn deadline_of(&self, peer: ComponentId) -> Option<Instant> {
        self.index(peer).and_then(|i| self.members[i].deadline)
    }

    /// A server's page, which whoever observes it reads.
    pub fn status_of(&self, peer: ComponentId) -> Option<&Status> {
        self.index(peer).map(|i| &self.members[i].status)
    }
}
