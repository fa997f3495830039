//! Domains and their socket slots. Each transport has its share of every arena's slots.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use eft_base::errno::{EINVAL, EMFILE};
use eft_base::hash::{Key, Map};
use eft_base::{DomainId, PoolId, RequestId, SlotShare, SocketId};
use eft_channel::dirty::DIRTY_SLOTS;
use eft_channel::socket::{Arena, SocketPage};

/// No block, no slot.
pub(crate) const NONE: u32 = u32::MAX;

/// Requests to open that are remembered. sockets has fewer under way at a time.
const OPENED_MAX: usize = 1 << 17;

/// Freed slots that wait before they are reused.
const FRESH_MAX: usize = 8;

pub(crate) struct Domain {
    /// `None` until the world has mapped it (again).
    pub arena: Option<(Arena, PoolId)>,
    /// The block of each of our slots.
    blocks: Vec<u32>,
    /// Free slots that were used before. The lowest is taken first: programs map those that they use, and their address
    /// space may be limited.
    free: BTreeSet<u32>,
    /// The first slot of the share that was never used; all behind it were not used either.
    untouched: usize,
    slots: usize,
    /// Slots that were just freed, the last one last. They wait, so that a late reference to one finds no socket rather than
    /// a wrong one.
    fresh: VecDeque<u32>,
    /// The slots that we own.
    share: SlotShare,
    pub sockets: usize,
    pub listeners: usize,
    /// `CloseDomain` to be answered when the last socket is gone.
    pub closing: Option<RequestId>,
    /// Of a domain that ends: the sockets before this place of `blocks` are closed. It gets no further ones.
    closed: usize,
}

impl Domain {
    fn new(share: SlotShare) -> Domain {
        Domain {
            share,
            arena: None,
            blocks: Vec::new(),
            free: BTreeSet::new(),
            untouched: 0,
            slots: 0,
            fresh: VecDeque::new(),
            sockets: 0,
            listeners: 0,
            closing: None,
            closed: 0,
        }
    }

    /// Whether this is the life of the domain whose arena is `pool`. Domain numbers are reused.
    fn is_life(&self, pool: PoolId) -> bool {
        self.arena.as_ref().is_none_or(|(_, known)| *known == pool)
    }

    /// Takes the arena, and every slot in it that no block has.
    fn open(&mut self, arena: Arena, pool: PoolId) {
        self.slots = self.share.len(arena.geometry().slots.min(DIRTY_SLOTS));
        self.fresh.clear();
        self.untouched = self.blocks.len().min(self.slots);
        let unused = (0..self.untouched).filter(|i| self.blocks[*i] == NONE);
        self.free = unused.map(|i| self.share.slot(i)).collect();
        self.arena = Some((arena, pool));
        self.say_touched();
    }

    /// A block claims its slot from before the crash. False if another block has it already, or if it is not ours.
    pub fn claim(&mut self, slot: u32, block: u32) -> bool {
        let Some(i) = self.share.index(slot).filter(|_| (slot as usize) < DIRTY_SLOTS) else {
            return false;
        };
        if self.blocks.get(i).is_some_and(|b| *b != NONE) {
            return false;
        }
        self.enter(i, block);
        true
    }

    /// Records that the slot at `i` of the share has this block.
    fn enter(&mut self, i: usize, block: u32) {
        if self.blocks.len() <= i {
            self.blocks.resize(i + 1, NONE);
        }
        self.blocks[i] = block;
        self.sockets += 1;
    }

    pub fn allocate(&mut self, block: u32) -> Option<u32> {
        let slot = self.free.pop_first().or_else(|| self.touch()).or_else(|| self.fresh.pop_front())?;
        self.enter(self.share.index(slot)?, block);
        Some(slot)
    }

    /// The next slot that was never used.
    fn touch(&mut self) -> Option<u32> {
        let i = self.untouched;
        (i < self.slots).then(|| {
            self.untouched = i + 1;
            self.say_touched();
            self.share.slot(i)
        })
    }

    fn say_touched(&self) {
        if let (Some((arena, _)), Some(last)) = (&self.arena, self.untouched.checked_sub(1)) {
            arena.touch(self.share.owner, self.share.slot(last) + 1);
        }
    }

    /// Takes this slot, if it is free.
    pub fn allocate_at(&mut self, slot: u32, block: u32) -> bool {
        let Some(i) = self.share.index(slot).filter(|i| *i < self.slots) else { return false };
        while self.untouched <= i {
            let lower = self.touch();
            self.free.extend(lower);
        }
        let is_free = self.free.remove(&slot);
        if is_free {
            self.enter(i, block);
        }
        is_free
    }

    fn free(&mut self, slot: u32) {
        let Some(i) = self.share.index(slot) else { return };
        if i < self.blocks.len() && self.blocks[i] != NONE {
            self.blocks[i] = NONE;
            self.sockets = self.sockets.saturating_sub(1);
            let in_arena = self.arena.as_ref().is_some_and(|(a, _)| (slot as usize) < a.geometry().slots);
            if in_arena {
                self.fresh.push_back(slot);
                if self.fresh.len() > FRESH_MAX {
                    self.free.extend(self.fresh.pop_front());
                }
            }
        }
    }

    /// The pages that a socket of ours has or had, and that no block has.
    fn unclaimed(&self) -> Vec<(u32, SocketPage)> {
        let Some((arena, _)) = &self.arena else { return Vec::new() };
        let touched =
            (0..self.slots).map(|i| (i, self.share.slot(i))).take_while(|(_, s)| *s < arena.touched());
        let free = touched.filter(|(i, _)| self.blocks.get(*i).is_none_or(|b| *b == NONE));
        let pages = free.filter_map(|(_, slot)| Some((slot, arena.socket(slot)?)));
        pages.filter(|(_, page)| page.kind() != 0 && page.owner() == Some(self.share.owner)).collect()
    }

    /// The next socket to be closed of a domain that ends.
    fn next_to_close(&mut self) -> Option<u32> {
        let at = self.blocks.iter().skip(self.closed).position(|b| *b != NONE)?;
        self.closed += at + 1;
        self.blocks.get(self.closed - 1).copied()
    }

    /// The blocks that have a slot.
    fn members(&self) -> Vec<u32> {
        self.blocks.iter().copied().filter(|b| *b != NONE).collect()
    }
}

/// All domains, by id.
pub(crate) struct Domains {
    map: Map<u16, Domain>,
    share: SlotShare,
    /// The blocks of sockets that a predecessor opened, and that were not used since, by request.
    inherited: Map<u64, u32>,
    /// The blocks of sockets that were opened in this life, with their request, by the request's index. sockets gives an index
    /// to another request only once it has its answer: until then it may repeat the request.
    opened: Map<u32, (RequestId, u32)>,
    /// Domains that end and may have sockets that are not closed yet.
    ending: VecDeque<DomainId>,
    /// Domains whose last socket may be gone.
    emptied: Vec<DomainId>,
    /// sockets was connected before in this life.
    sockets_seen: bool,
}

impl Domains {
    /// `share`: the slots of every arena that we own.
    pub fn new(key: Key, share: SlotShare) -> Domains {
        Domains {
            map: Map::with_hasher(key),
            share,
            inherited: Map::with_hasher(key),
            opened: Map::with_hasher(key),
            ending: VecDeque::new(),
            emptied: Vec::new(),
            sockets_seen: false,
        }
    }

    pub fn get(&self, id: DomainId) -> Option<&Domain> {
        self.map.get(&id.0)
    }

    pub fn get_mut(&mut self, id: DomainId) -> Option<&mut Domain> {
        self.map.get_mut(&id.0)
    }

    pub fn enter(&mut self, id: DomainId) -> &mut Domain {
        let share = self.share;
        self.map.entry(id.0).or_insert_with(|| Domain::new(share))
    }

    /// A domain's arena is mapped, for the first time or again. Returns the blocks that have a slot
    /// in it.
    pub fn open(&mut self, id: DomainId, arena: Arena, pool: PoolId) -> Vec<u32> {
        let domain = self.enter(id);
        domain.open(arena, pool);
        domain.members()
    }

    /// sockets is connected. Its request numbers begin anew with its life: an old one must not be taken for a new one. The
    /// first connection of our own life is not a rebirth of sockets, but by then every domain's arena was opened: returns
    /// the blocks that claim a slot in any other domain.
    pub fn sockets_connected(&mut self) -> Vec<u32> {
        if core::mem::replace(&mut self.sockets_seen, true) {
            self.inherited.clear();
            self.opened.clear();
            return Vec::new();
        }
        let mut homeless = Vec::new();
        self.map.retain(|_, f| {
            if f.arena.is_none() {
                homeless.extend(f.members());
            }
            f.arena.is_some()
        });
        homeless
    }

    /// The sockets whose pages say that they are ours and in use, and that have no block.
    pub fn unclaimed(&self) -> Vec<(SocketId, SocketPage)> {
        let of = |(id, domain): (&u16, &Domain)| {
            let domain_id = DomainId(*id);
            domain
                .unclaimed()
                .into_iter()
                .map(move |(slot, page)| (SocketId { domain: domain_id, slot }, page))
        };
        self.map.iter().flat_map(of).collect()
    }

    /// Remembers a socket that a predecessor opened, and that was not used since.
    pub fn inherit_opened(&mut self, request: u64, block: u32) {
        self.inherited.insert(request, block);
    }

    /// Remembers which socket was opened for this request.
    pub fn remember_opened(&mut self, request: RequestId, block: u32) {
        if self.opened.len() >= OPENED_MAX && !self.opened.contains_key(&request.index) {
            self.opened.clear();
        }
        self.opened.insert(request.index, (request, block));
    }

    /// The block of the socket that was opened for this request. It may have been used, or freed, since.
    /// A predecessor's is found once.
    pub fn find_opened(&mut self, request: RequestId) -> Option<u32> {
        let own = self.opened.get(&request.index).filter(|(opened, _)| *opened == request);
        own.map(|(_, block)| *block).or_else(|| self.inherited.remove(&request.to_u64()))
    }

    /// Whether a domain with at most `limit` sockets may open one more.
    pub fn may_open(&self, id: DomainId, limit: usize) -> Result<(), i32> {
        match self.map.get(&id.0) {
            Some(f) if f.arena.is_some() && f.closing.is_none() => {
                if f.sockets < limit {
                    Ok(())
                } else {
                    Err(EMFILE)
                }
            }
            _ => Err(EINVAL),
        }
    }

    /// A socket gives its slot back.
    pub fn free(&mut self, socket: SocketId) {
        if let Some(f) = self.map.get_mut(&socket.domain.0) {
            f.free(socket.slot);
            if f.closing.is_some() && f.sockets == 0 {
                self.emptied.push(socket.domain);
            }
        }
    }

    /// A domain ends, if this is its life. The request may be repeated.
    pub fn end(&mut self, id: DomainId, pool: PoolId, request: RequestId) -> bool {
        let Some(f) = self.map.get_mut(&id.0).filter(|f| f.is_life(pool)) else { return false };
        if f.closing.replace(request).is_none() {
            self.ending.push_back(id);
        }
        if f.sockets == 0 {
            self.emptied.push(id);
        }
        true
    }

    /// The next socket that is to be closed since its domain ends.
    pub fn next_to_close(&mut self) -> Option<u32> {
        loop {
            let id = self.ending.front()?;
            let ending = self.map.get_mut(&id.0).filter(|f| f.closing.is_some());
            if let Some(i) = ending.and_then(Domain::next_to_close) {
                return Some(i);
            }
            self.ending.pop_front();
        }
    }

    /// Whether sockets of domains that end are still to be closed.
    pub fn are_ending(&self) -> bool {
        !self.ending.is_empty()
    }

    /// Whether a domain's arena is not mapped yet, since a predecessor died.
    pub fn is_awaited(&self, id: DomainId) -> bool {
        self.get(id).is_some_and(|f| f.arena.is_none())
    }

    /// Forgets a domain that was to end and has no socket left. Returns the `CloseDomain` to be
    /// answered.
    pub fn take_ended(&mut self) -> Option<(DomainId, RequestId)> {
        loop {
            let id = self.emptied.pop()?;
            let ended = self.map.get(&id.0).filter(|f| f.sockets == 0).and_then(|f| f.closing);
            if let Some(request) = ended {
                self.map.remove(&id.0);
                return Some((id, request));
            }
        }
    }

    /// The page of a socket and the pool that it lies in. `None` if its arena is not open or has no
    /// such slot.
    pub fn page(&self, socket: SocketId) -> Option<(SocketPage, PoolId)> {
        let (arena, pool) = self.map.get(&socket.domain.0)?.arena.as_ref()?;
        Some((arena.socket(socket.slot)?, *pool))
    }

    /// The block of a socket.
    pub fn find(&self, socket: SocketId) -> Option<u32> {
        let i = self.share.index(socket.slot)?;
        let block = *self.map.get(&socket.domain.0)?.blocks.get(i)?;
        (block != NONE).then_some(block)
    }
}

#[cfg(test)]
mod tests;
