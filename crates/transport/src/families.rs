//! Families and their socket slots. tcp owns the even slots of every arena, udp the odd ones.

use crate::hash::{Key, Map};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use eft_base::{FamilyId, PoolId, RequestId, SocketId};
use eft_channel::dirty::DIRTY_SLOTS;
use eft_channel::socket::{Arena, SocketPage};

/// No block, no slot.
pub(crate) const NONE: u32 = u32::MAX;

/// Slots of an arena that are ours.
const SLOTS: usize = DIRTY_SLOTS / 2;

pub(crate) struct Family {
    /// `None` until the world (again) says where it is.
    pub arena: Option<(Arena, PoolId)>,
    /// The block of each of our slots.
    blocks: Vec<u32>,
    /// Free slots, the one that was freed longest ago first, so that a late reference to a slot
    /// finds nobody rather than somebody else.
    free: VecDeque<u32>,
    /// 0 or 1: which slots are ours.
    parity: u32,
    pub sockets: usize,
    pub listeners: usize,
    /// `CloseFamily` to be answered when the last socket is gone.
    pub closing: Option<RequestId>,
}

impl Family {
    fn new(parity: u32) -> Family {
        Family {
            parity,
            arena: None,
            blocks: Vec::new(),
            free: VecDeque::new(),
            sockets: 0,
            listeners: 0,
            closing: None,
        }
    }

    /// Whether this is the life of the family whose arena is `pool`. Numbers of families are used
    /// again.
    pub fn is_life(&self, pool: PoolId) -> bool {
        self.arena.as_ref().is_none_or(|(_, known)| *known == pool)
    }

    /// Takes the arena, and every slot in it that no block has.
    fn open(&mut self, arena: Arena, pool: PoolId) {
        let all = arena.geometry().slots + 1 - self.parity as usize;
        let slots = (all / 2).min(SLOTS);
        self.blocks.resize(slots.max(self.blocks.len()), NONE);
        self.free =
            (0..slots).filter(|i| self.blocks[*i] == NONE).map(|i| i as u32 * 2 + self.parity).collect();
        self.arena = Some((arena, pool));
    }

    /// A block has a slot from before the crash. False if another has it already.
    pub fn claim(&mut self, slot: u32, block: u32) -> bool {
        let i = slot as usize / 2;
        if i >= SLOTS {
            return false;
        }
        if self.blocks.len() <= i {
            self.blocks.resize(i + 1, NONE);
        }
        if self.blocks[i] != NONE {
            return false;
        }
        self.blocks[i] = block;
        self.sockets += 1;
        true
    }

    pub fn allocate(&mut self, block: u32) -> Option<u32> {
        let slot = self.free.pop_front()?;
        self.blocks[slot as usize / 2] = block;
        self.sockets += 1;
        Some(slot)
    }

    pub fn free(&mut self, slot: u32) {
        let i = slot as usize / 2;
        if i < self.blocks.len() && self.blocks[i] != NONE {
            self.blocks[i] = NONE;
            self.sockets = self.sockets.saturating_sub(1);
            let in_arena = self.arena.as_ref().is_some_and(|(a, _)| (slot as usize) < a.geometry().slots);
            if in_arena {
                self.free.push_back(slot);
            }
        }
    }

    /// The blocks that have a slot.
    pub fn members(&self) -> Vec<u32> {
        self.blocks.iter().copied().filter(|b| *b != NONE).collect()
    }
}

/// All families, by id.
pub(crate) struct Families {
    map: Map<u16, Family>,
    parity: u32,
}

impl Families {
    /// `parity`: 0 for the even slots, 1 for the odd ones.
    pub fn new(key: Key, parity: u32) -> Families {
        Families { map: Map::with_hasher(key), parity }
    }

    pub fn get(&self, id: FamilyId) -> Option<&Family> {
        self.map.get(&id.0)
    }

    pub fn get_mut(&mut self, id: FamilyId) -> Option<&mut Family> {
        self.map.get_mut(&id.0)
    }

    pub fn enter(&mut self, id: FamilyId) -> &mut Family {
        let parity = self.parity;
        self.map.entry(id.0).or_insert_with(|| Family::new(parity))
    }

    /// A family's arena is mapped, for the first time or again. Returns the blocks that have a slot
    /// in it.
    pub fn open(&mut self, id: FamilyId, arena: Arena, pool: PoolId) -> Vec<u32> {
        let family = self.enter(id);
        family.open(arena, pool);
        family.members()
    }

    /// Forgets the families whose arena was never shown; returns the blocks that claimed a slot there.
    pub fn remove_unopened(&mut self) -> Vec<u32> {
        let mut blocks = Vec::new();
        self.map.retain(|_, f| {
            if f.arena.is_none() {
                blocks.extend(f.members());
            }
            f.arena.is_some()
        });
        blocks
    }

    /// Forgets a family that is to end and has no socket left. Returns the `CloseFamily` to be
    /// answered.
    pub fn finish(&mut self, id: FamilyId) -> Option<RequestId> {
        let request = self.map.get(&id.0).filter(|f| f.sockets == 0)?.closing?;
        self.map.remove(&id.0);
        Some(request)
    }

    /// The page of a socket and the pool that it lies in. `None` if its arena is not open or has no
    /// such slot.
    pub fn page(&self, socket: SocketId) -> Option<(SocketPage, PoolId)> {
        let (arena, pool) = self.map.get(&socket.family.0)?.arena.as_ref()?;
        Some((arena.socket(socket.slot)?, *pool))
    }

    /// The block of a socket.
    pub fn find(&self, socket: SocketId) -> Option<u32> {
        if socket.slot % 2 != self.parity {
            return None;
        }
        let family = self.map.get(&socket.family.0)?;
        let block = *family.blocks.get(socket.slot as usize / 2)?;
        (block != NONE).then_some(block)
    }
}
