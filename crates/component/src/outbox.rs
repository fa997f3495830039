//! Where an engine puts its outputs.

use crate::component::Output;
use alloc::vec::Vec;
use eft_messages::ComponentId;

/// The outputs of one batch. Published by the server after the batch.
pub struct Outbox<O> {
    items: Vec<O>,
    room: Vec<(ComponentId, usize, usize)>,
}

impl<O: Output> Outbox<O> {
    pub fn new() -> Self {
        Outbox { items: Vec::new(), room: Vec::new() }
    }

    /// An outbox for unit tests: `room` places toward each of `peers`.
    pub fn with_room(peers: &[ComponentId], room: usize) -> Self {
        Outbox { items: Vec::new(), room: peers.iter().map(|p| (*p, room, room)).collect() }
    }

    /// Server: how many messages to `peer` fit now, of a queue of `capacity`.
    pub fn set_room(&mut self, peer: ComponentId, room: usize, capacity: usize) {
        match self.room.iter_mut().find(|(p, ..)| *p == peer) {
            Some(entry) => *entry = (peer, room, capacity),
            None => self.room.push((peer, room, capacity)),
        }
    }

    /// Server: `peer` is dead.
    pub fn remove_peer(&mut self, peer: ComponentId) {
        self.room.retain(|(p, ..)| *p != peer);
    }

    /// Messages to `peer` that still fit into its queue: 0 while it is not connected. Pushing more
    /// is not an error (the server keeps them), but an engine that checks first keeps its memory
    /// bounded.
    pub fn room(&self, peer: ComponentId) -> usize {
        self.room.iter().find(|(p, ..)| *p == peer).map_or(0, |(_, room, _)| *room)
    }

    /// Messages that the queue to `peer` holds; `None` while it is not connected.
    pub fn capacity(&self, peer: ComponentId) -> Option<usize> {
        self.room.iter().find(|(p, ..)| *p == peer).map(|(.., capacity)| *capacity)
    }

    /// The peers that live, as far as we know.
    pub fn peers(&self) -> impl Iterator<Item = ComponentId> {
        self.room.iter().map(|(peer, ..)| *peer)
    }

    /// Whether `peer` lives, as far as we know.
    pub fn is_connected(&self, peer: ComponentId) -> bool {
        self.room.iter().any(|(p, ..)| *p == peer)
    }

    /// Whether a message that may be dropped should be sent: more than half of the queue is free,
    /// so that replies always find room.
    pub fn may_drop_in(&self, peer: ComponentId) -> bool {
        self.room.iter().find(|(p, ..)| *p == peer).is_some_and(|(_, room, capacity)| *room > capacity / 2)
    }

    pub fn push(&mut self, item: O) {
        if let Some(peer) = item.peer()
            && let Some((_, room, _)) = self.room.iter_mut().find(|(p, ..)| *p == peer)
        {
            *room = room.saturating_sub(1);
        }
        self.items.push(item);
    }

    /// Removes an output.
    pub(crate) fn remove(&mut self, index: usize) {
        self.items.remove(index);
    }

    pub fn items(&self) -> &[O] {
        &self.items
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn drain(&mut self) -> alloc::vec::Drain<'_, O> {
        self.items.drain(..)
    }
}

impl<O: Output> Default for Outbox<O> {
    fn default() -> Self {
        Self::new()
    }
}
