//! The request database: every request that expects a reply is kept by its sender until then.
//!
//! After a restart of the peer the sender walks the database in order of submission and resubmits
//! or gives up each entry, as the message type declares. Entries are private to their owner; a
//! [`RequestId`] that comes back from a peer is checked for index and generation. Each life of the owner numbers them in a
//! range of its own, so an answer to its predecessor answers nothing of its own.

use alloc::vec::Vec;
use eft_base::RequestId;

const NONE: u32 = u32::MAX;

struct Entry<T> {
    generation: u32,
    /// The round in which it was submitted, or before which it was last returned as overdue.
    round: u32,
    /// Neighbours in the order of submission while in use; `next` links the free list otherwise.
    previous: u32,
    next: u32,
    value: Option<T>,
}

/// Outstanding requests, bounded.
pub struct Requests<T> {
    entries: Vec<Entry<T>>,
    free: u32,
    oldest: u32,
    newest: u32,
    len: usize,
    limit: usize,
    /// The generation of entries that were never used.
    first_generation: u32,
    round: u32,
}

impl<T> Requests<T> {
    /// `life` differs in each life of the owner: counted, or random.
    pub fn new(limit: usize, life: u32) -> Self {
        Requests {
            entries: Vec::new(),
            free: NONE,
            oldest: NONE,
            newest: NONE,
            len: 0,
            limit,
            // Multiples of the golden ratio lie far apart: for any thousand lives in a row by two million uses of an entry.
            first_generation: life.wrapping_mul(0x9e37_79b1),
            round: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn room(&self) -> usize {
        self.limit - self.len
    }

    /// Remembers a request; gives it back if the database is full.
    pub fn insert(&mut self, value: T) -> Result<RequestId, T> {
        if self.len >= self.limit {
            return Err(value);
        }
        let index = if self.free != NONE {
            let index = self.free;
            self.free = self.entries[index as usize].next;
            index
        } else {
            self.entries.push(Entry {
                generation: self.first_generation,
                round: 0,
                previous: NONE,
                next: NONE,
                value: None,
            });
            (self.entries.len() - 1) as u32
        };
        let newest = self.newest;
        let entry = &mut self.entries[index as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.round = self.round;
        entry.value = Some(value);
        entry.previous = newest;
        entry.next = NONE;
        let id = RequestId { index, generation: entry.generation };
        if newest == NONE {
            self.oldest = index;
        } else {
            self.entries[newest as usize].next = index;
        }
        self.newest = index;
        self.len += 1;
        Ok(id)
    }

    fn find(&self, id: RequestId) -> Option<usize> {
        let entry = self.entries.get(id.index as usize)?;
        (entry.generation == id.generation && entry.value.is_some()).then_some(id.index as usize)
    }

    pub fn get(&self, id: RequestId) -> Option<&T> {
        self.find(id).and_then(|i| self.entries[i].value.as_ref())
    }

    pub fn get_mut(&mut self, id: RequestId) -> Option<&mut T> {
        self.find(id).and_then(|i| self.entries[i].value.as_mut())
    }

    /// Ends a request. `None` for an id that is unknown, stale or already answered.
    pub fn remove(&mut self, id: RequestId) -> Option<T> {
        let index = self.find(id)?;
        let entry = &mut self.entries[index];
        let (previous, next) = (entry.previous, entry.next);
        let value = entry.value.take();
        entry.next = self.free;
        self.free = index as u32;
        match previous {
            NONE => self.oldest = next,
            p => self.entries[p as usize].next = next,
        }
        match next {
            NONE => self.newest = previous,
            n => self.entries[n as usize].previous = previous,
        }
        self.len -= 1;
        value
    }

    /// The outstanding requests, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (RequestId, &T)> {
        let mut at = self.oldest;
        core::iter::from_fn(move || {
            let entry = self.entries.get(at as usize)?;
            let id = RequestId { index: at, generation: entry.generation };
            at = entry.next;
            entry.value.as_ref().map(|v| (id, v))
        })
    }

    /// Begins a round, whose length the owner chooses. Returns at most `limit` requests that have waited for a whole round since
    /// they were submitted or returned here, so that they or their answers may be lost: those that have waited longest first, so
    /// that none is left out for ever while others stay unanswered.
    pub fn next_round(&mut self, limit: usize) -> Vec<RequestId> {
        self.round += 1;
        let mut overdue = Vec::new();
        let mut at = self.oldest;
        while let Some(entry) = self.entries.get(at as usize)
            && entry.round + 1 < self.round
        {
            overdue.push((entry.round, RequestId { index: at, generation: entry.generation }));
            at = entry.next;
        }
        overdue.sort_by_key(|(round, _)| *round);
        overdue.truncate(limit);
        for (_, id) in &overdue {
            // It is overdue again in the next round.
            self.entries[id.index as usize].round = self.round - 1;
        }
        overdue.into_iter().map(|(_, id)| id).collect()
    }

    /// All requests are submitted again: their waiting time starts anew.
    pub fn renew(&mut self) {
        let mut at = self.oldest;
        while let Some(entry) = self.entries.get_mut(at as usize) {
            entry.round = self.round;
            at = entry.next;
        }
    }

    /// The ids, oldest first: for walks that change the database.
    pub fn ids(&self) -> Vec<RequestId> {
        self.iter().map(|(id, _)| id).collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
