//! Memory files for the next successor of each server, made while nobody waits for them: making one takes five system calls.

use super::Supervisor;
use super::member::Life;
use crate::Result;
use crate::memory::Both;
use crate::serve::queue_len;
use eft_control::plan;
use std::collections::BTreeMap;

/// Edges and pools that are made at a tick.
const PER_TICK: usize = 8;
/// Bytes of a segment that holds one position.
const POSITION_LEN: usize = 4096;

/// One direction between two neighbours.
pub struct Way {
    pub lines: Both,
    /// How far the reader is.
    pub position: Both,
}

/// The segments that are made ahead, by the numbers of their members.
#[derive(Default)]
pub struct Spares {
    /// From the first to the second.
    ways: BTreeMap<(usize, usize), Way>,
    /// The nth pool of a member.
    pools: BTreeMap<(usize, usize), Both>,
}

impl Supervisor {
    /// Fresh memory for a queue between two members.
    pub(super) fn take_way(&mut self, from: usize, to: usize, capacity: usize) -> Result<Way> {
        match self.spares.ways.remove(&(from, to)) {
            Some(way) => Ok(way),
            None => self.make_way(from, to, capacity),
        }
    }

    fn make_way(&self, from: usize, to: usize, capacity: usize) -> Result<Way> {
        let name = format!("eft-queue-{}-{}", self.members[from].name, self.members[to].name);
        Ok(Way {
            lines: Both::make(&name, queue_len(capacity))?,
            position: Both::make("eft-position", POSITION_LEN)?,
        })
    }

    /// Fresh memory for the nth pool of a member.
    pub(super) fn take_pool(&mut self, i: usize, nth: usize, len: usize) -> Result<Both> {
        match self.spares.pools.remove(&(i, nth)) {
            Some(pool) => Ok(pool),
            None => self.make_pool(i, len),
        }
    }

    fn make_pool(&self, i: usize, len: usize) -> Result<Both> {
        Both::make(&format!("eft-pool-{}", self.members[i].name), len)
    }

    /// Makes some of what is missing. What cannot be made now is made when it is needed.
    pub(super) fn renew_spares(&mut self) {
        let mut left = PER_TICK;
        for i in 0..self.members.len() {
            if self.members[i].life == Life::Running && self.renew_spares_of(i, &mut left).is_err()
                || left == 0
            {
                return;
            }
        }
    }

    fn renew_spares_of(&mut self, i: usize, left: &mut usize) -> Result<()> {
        let peer = self.members[i].peer;
        for (other, capacity) in plan::neighbours(&self.config.topology, self.nics(), peer) {
            let Some(j) = self.index(other) else { continue };
            if *left > 0 && !self.spares.ways.contains_key(&(i, j)) {
                let way = self.make_way(i, j, capacity)?;
                self.spares.ways.insert((i, j), way);
                *left -= 1;
            }
        }
        let pools = plan::pools(&self.config.topology, self.nics(), peer);
        for (nth, pool) in pools.into_iter().enumerate() {
            if *left > 0 && !self.spares.pools.contains_key(&(i, nth)) {
                let both = self.make_pool(i, pool.bytes())?;
                self.spares.pools.insert((i, nth), both);
                *left -= 1;
            }
        }
        Ok(())
    }
}
