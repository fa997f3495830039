//! Which transport has which packet: a `Done` is accepted only from the transport that has it, and no packet of a dead
//! transport is forgotten.

use crate::lane::Undelivered;
use alloc::vec::Vec;
use eft_base::{PacketRef, PoolId};
use eft_channel::{Memory, Pool, Seen};
use eft_messages::ComponentId;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Us,
    Nic(u8),
    /// The NIC died, and its pool with it; readers may still have packets.
    Dead,
}

#[derive(Clone, Copy)]
struct Entry {
    what: Undelivered,
    to: ComponentId,
    /// Grows with every packet that is given.
    order: u64,
    /// The round in which it was given, or before which it was last returned as overdue.
    round: u32,
}

struct Table {
    owner: Owner,
    slots: Vec<Option<Entry>>,
    given: usize,
    seen: Seen,
}

/// What a NIC's message about a frame is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    New,
    /// There was one about this use of the slot.
    Repeated,
    /// No NIC says that of a pool of its own.
    Malformed,
}

/// Which transport has which slot of which pool.
pub(crate) struct Given {
    /// By pool id.
    pools: Vec<Option<Table>>,
    next: u64,
    round: u32,
}

impl Given {
    pub fn new(packets: &Pool) -> Given {
        let mut given = Given { pools: Vec::new(), next: 0, round: 0 };
        given.insert_table(packets.id(), Owner::Us, packets.slots());
        given
    }

    fn insert_table(&mut self, id: PoolId, owner: Owner, slots: usize) {
        let i = id.0 as usize;
        if self.pools.len() <= i {
            self.pools.resize_with(i + 1, || None);
        }
        self.pools[i] =
            Some(Table { owner, slots: alloc::vec![None; slots], given: 0, seen: Seen::default() });
    }

    fn table(&mut self, id: PoolId) -> Option<&mut Table> {
        self.pools.get_mut(id.0 as usize)?.as_mut()
    }

    /// Judges a message of NIC `n`. A packet is new if the pool is the NIC's, the slot exists, no transport has it, and it was
    /// not delivered before.
    pub fn admit(&mut self, memory: &Memory, n: u8, packet: PacketRef) -> Admission {
        if self.table(packet.pool).is_none() {
            let Some(view) = memory.need(packet.pool) else {
                return Admission::Malformed;
            };
            self.insert_table(packet.pool, Owner::Nic(n), view.slots);
        }
        let Some(table) = self.table(packet.pool).filter(|t| t.owner == Owner::Nic(n)) else {
            return Admission::Malformed;
        };
        match table.slots.get(packet.slot as usize) {
            Some(Some(entry)) if entry.what.packet.generation == packet.generation => Admission::Repeated,
            Some(None) if table.seen.is_repeated(memory, packet) => Admission::Repeated,
            Some(None) => Admission::New,
            _ => Admission::Malformed,
        }
    }

    /// Whether a transport has this packet.
    pub fn has(&self, packet: PacketRef) -> bool {
        let table = self.pools.get(packet.pool.0 as usize).and_then(Option::as_ref);
        let entry = table.and_then(|t| t.slots.get(packet.slot as usize)?.as_ref());
        entry.is_some_and(|entry| entry.what.packet.generation == packet.generation)
    }

    pub fn give(&mut self, what: Undelivered, to: ComponentId) {
        self.next += 1;
        let (order, round) = (self.next, self.round);
        if let Some(t) = self.table(what.packet.pool)
            && let Some(slot @ None) = t.slots.get_mut(what.packet.slot as usize)
        {
            *slot = Some(Entry { what, to, order, round });
            t.given += 1;
        }
    }

    /// `from` gives a packet back.
    pub fn take(&mut self, packet: PacketRef, from: ComponentId) -> Option<Undelivered> {
        let t = self.table(packet.pool)?;
        let slot = t.slots.get_mut(packet.slot as usize)?;
        let entry = slot.filter(|e| e.to == from && e.what.packet.generation == packet.generation)?;
        *slot = None;
        t.given -= 1;
        Some(entry.what)
    }

    /// Whether one more packet of this pool may wait for a transport when `waiting` already do: an eighth of the pool
    /// stays free for the others.
    pub fn may_wait(&self, id: PoolId, waiting: usize) -> bool {
        let table = self.pools.get(id.0 as usize).and_then(Option::as_ref);
        table.is_some_and(|t| t.given + waiting < t.slots.len() - t.slots.len() / 8)
    }

    /// All packets that `from` has, in the order in which it got them.
    pub fn take_all(&mut self, from: ComponentId) -> Vec<Undelivered> {
        let mut all = Vec::new();
        for t in self.pools.iter_mut().flatten() {
            for slot in &mut t.slots {
                if let Some(entry) = slot.filter(|e| e.to == from) {
                    all.push(entry);
                    *slot = None;
                    t.given -= 1;
                }
            }
        }
        all.sort_by_key(|entry| entry.order);
        all.into_iter().map(|entry| entry.what).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.pools.iter().flatten().all(|t| t.given == 0)
    }

    /// Begins a round. Returns at most `limit` packets that transports have had for a whole one since they got them or were
    /// returned here, and which have them: the message about one, or the receipt, may be lost. Those that have waited longest
    /// come first, so that packets that are never given back do not keep others from being repeated.
    pub fn next_round(&mut self, limit: usize) -> Vec<(ComponentId, Undelivered)> {
        self.round = self.round.wrapping_add(1);
        let round = self.round;
        let given = self.pools.iter_mut().flatten().filter(|t| t.given > 0);
        let entries = given.flat_map(|t| t.slots.iter_mut().flatten());
        let mut overdue: Vec<&mut Entry> = entries.filter(|e| round.wrapping_sub(e.round) > 1).collect();
        overdue.sort_by_key(|entry| (core::cmp::Reverse(round.wrapping_sub(entry.round)), entry.order));
        overdue.truncate(limit);
        let again = overdue.into_iter().map(|entry| {
            // It is overdue again in the next round.
            entry.round = round.wrapping_sub(1);
            (entry.to, entry.what)
        });
        again.collect()
    }

    /// NIC `n` has a successor with a fresh pool.
    pub fn owner_reborn(&mut self, n: u8) {
        for table in &mut self.pools {
            if let Some(t) = table
                && t.owner == Owner::Nic(n)
            {
                t.owner = Owner::Dead;
            }
        }
        self.forget_dead();
    }

    pub fn forget_dead(&mut self) {
        for table in &mut self.pools {
            if table.as_ref().is_some_and(|t| t.owner == Owner::Dead && t.given == 0) {
                *table = None;
            }
        }
    }

    pub fn owner(&self, id: PoolId) -> Option<Owner> {
        self.pools.get(id.0 as usize)?.as_ref().map(|t| t.owner)
    }

    pub fn uses(&self, id: PoolId) -> bool {
        let table = self.pools.get(id.0 as usize).and_then(Option::as_ref);
        table.is_some_and(|t| t.given > 0)
    }
}
