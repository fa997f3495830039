//! The slots of a neighbour's pools that messages have referred to already.
//!
//! An owner takes a slot anew for each message ([`Pool`](crate::Pool) counts that in the reference's generation). So a second
//! message about the same use of a slot is a repeated one, and by the time it is read the first may be answered and the slot
//! may hold something else. A reader has one record for each neighbour, so that no neighbour can invalidate another's
//! references.

use crate::memory::Memory;
use alloc::vec;
use alloc::vec::Vec;
use eft_base::{PacketRef, PoolId};

/// Generations before the last one that count as repeated. A reader hears of few uses of a slot: a NIC takes one for each poll
/// of its device, and many frames go to another reader. So a generation far from the last one may be older or newer, and must
/// not count as repeated: a message that is left out wrongly is sent again in a slot whose generation has hardly moved.
const WINDOW: u16 = 4;

#[derive(Default)]
pub struct Seen {
    /// For each slot of a pool, the generation of the last message about it, plus one; 0: there was none.
    pools: Vec<(PoolId, Vec<u32>)>,
}

impl Seen {
    /// Whether there was a message about this use of a slot, or about one shortly after; also records this message. A reference
    /// that names no slot of a mapped pool is not judged here.
    pub fn is_repeated(&mut self, memory: &Memory, r: PacketRef) -> bool {
        let Some(last) = self.slots(memory, r.pool).and_then(|slots| slots.get_mut(r.slot as usize)) else {
            return false;
        };
        let is_repeated = *last != 0 && ((*last - 1) as u16).wrapping_sub(r.generation) < WINDOW;
        if !is_repeated {
            *last = r.generation as u32 + 1;
        }
        is_repeated
    }

    fn slots(&mut self, memory: &Memory, id: PoolId) -> Option<&mut Vec<u32>> {
        if let Some(i) = self.pools.iter().position(|(pool, _)| *pool == id) {
            return Some(&mut self.pools[i].1);
        }
        let slots = memory.need(id)?.slots;
        // Pools of dead neighbours are not mapped any more.
        self.pools.retain(|(pool, _)| memory.view(*pool).is_some());
        self.pools.push((id, vec![0; slots]));
        self.pools.last_mut().map(|(_, slots)| slots)
    }

    /// The neighbour has a successor, which has pools of its own or repeats what its predecessor said.
    pub fn forget(&mut self) {
        self.pools.clear();
    }
}

#[cfg(test)]
mod tests;
