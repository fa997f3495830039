//! Checks of a block from before a crash.
//!
//! Guarantee: a block that passes may be used in all arithmetic of the engine, and refers to no block but its
//! listener. [`super::rebirth`] checks that the listener is one.

use super::TcpConfig;
use super::asked::MTU_MIN;
use super::block::{Block, Cold, NONE, NOWHERE, State, bit};
use super::options::SCALE_MAX;
use super::reassembly::Reassembly;
use super::remains::Remains;
use super::rtt::RETRIES;
use crate::requests::POSITION_MAX;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use eft_arena::docket;
use eft_arena::{self as arena, Arena, Fuse, Layout, Refused, Soundness, Sums, Table};
use eft_channel::Segment;
use eft_channel::dirty::DIRTY_SLOTS;
use zerocopy::IntoBytes;

/// No ring is longer.
const RING_MAX: u64 = 1 << 26;
/// The largest window that there is (RFC 7323 §2.3).
const WINDOW_MAX: u64 = 65535 << SCALE_MAX;

/// The blocks of tcp's arena.
pub(super) type Blocks = Table<Block>;

/// Whether the engine would take this arena. Changes nothing.
pub fn examine(arena: &Segment, config: &TcpConfig) -> Result<(), Refused> {
    arena::examine(arena, &LAYOUT, config.connections)
}

/// The input that ran when the arena's last owner died, and its connection, for people.
pub fn running_input(arena: &Segment) -> Option<String> {
    docket::running_input(arena, |block| {
        let Block { tuple, .. } =
            arena::copies::<Block>(arena, LAYOUT, CURRENT.blocks)?.nth(block as usize)?;
        Some(format!("the connection of {} with {}", tuple.local_endpoint(), tuple.remote_endpoint()))
    })
}

/// Bytes of the arena for `config`.
pub fn arena_len(config: &TcpConfig) -> usize {
    LAYOUT.arena_len(config.connections)
}

/// A layout of tcp's arena with checksums, and the roles of its tables.
pub(super) struct Shape {
    pub layout: Layout,
    pub blocks: usize,
    pub cold: usize,
    pub notes: usize,
}

const MAGIC: [u8; 8] = *b"eft-tcp\0";

pub(super) const V3: Shape = Shape {
    layout: Layout {
        magic: MAGIC,
        version: 3,
        items: &[size_of::<Block>(), size_of::<Cold>(), size_of::<Reassembly>()],
        sums: Sums::First,
    },
    blocks: 0,
    cold: 1,
    notes: 2,
};

/// The same with checksums that tell which bit has changed.
pub(super) const V4: Shape = Shape { layout: Layout { version: 4, sums: Sums::Second, ..V3.layout }, ..V3 };

/// Part of no release: a later layout for tests of updates, with the same tables in another order.
#[cfg(any(test, feature = "next-layout"))]
pub(super) const NEXT: Shape = Shape {
    layout: Layout {
        magic: MAGIC,
        version: 5,
        items: &[size_of::<Reassembly>(), size_of::<Cold>(), size_of::<Block>()],
        sums: Sums::Second,
    },
    blocks: 2,
    cold: 1,
    notes: 0,
};

#[cfg(not(feature = "next-layout"))]
pub(super) const CURRENT: Shape = V4;
#[cfg(feature = "next-layout")]
pub(super) const CURRENT: Shape = NEXT;

/// The layout of tcp's arena.
pub(super) const LAYOUT: Layout = CURRENT.layout;

/// Whether a socket from before a crash fulfils its invariants; repairs what may be repaired.
pub(super) fn check(index: u32, b: &mut Block, c: &Cold, notes: &Reassembly) -> bool {
    let Some(state) = State::from_number(b.state) else {
        return false;
    };
    if state == State::Free {
        return true;
    }
    let in_order = |b: &Block| notes.is_sane(b.rcv_nxt, b.rcv_taken + RING_MAX);
    let sane = sends(b) && receives(b) && in_order(b) && shape(b, c) && numbers(b, c) && home(b, c, index);
    if sane {
        let mss = b.segment_size();
        b.congestion.sanitize(mss);
        b.rtt.sanitize();
    }
    sane
}

/// The tables of tcp's arena.
pub(super) struct Tables {
    pub arena: Arena,
    pub blocks: Blocks,
    pub cold: Table<Cold>,
    pub notes: Table<Reassembly>,
    /// Sockets that were given up, since their state in the arena was invalid.
    pub quarantined: u64,
    /// What is left of those that a program may wait for.
    pub lost: Vec<Remains>,
    /// Sockets of whose state a changed bit was changed back.
    pub mended: u64,
    /// Connections that were found. A table that grows with them would hash each several times.
    pub connections: usize,
}

impl Tables {
    /// Opens an arena: every block may be used without further checks of its own consistency. A damaged or invalid
    /// one becomes free: its socket is lost, all others stay.
    pub fn open(segment: Segment, config: &TcpConfig) -> Result<Tables, Refused> {
        Tables::open_with(segment, config, Fuse::default())
    }

    pub fn open_with(segment: Segment, config: &TcpConfig, fuse: Fuse) -> Result<Tables, Refused> {
        Ok(Tables::bare(&CURRENT, segment, config, fuse)?.checked())
    }

    /// The same for any layout.
    pub fn open_as(shape: &Shape, segment: Segment, config: &TcpConfig) -> Result<Tables, Refused> {
        Ok(Tables::bare(shape, segment, config, Fuse::default())?.checked())
    }

    fn checked(mut self) -> Tables {
        for i in 0..self.blocks.len() as u32 {
            if !self.check(i) {
                self.lost.extend(Remains::of(&self.blocks[i], &self.cold[i]));
                self.make(i, self.blocks[i].generation.wrapping_add(1));
                self.quarantined += 1;
            }
            self.connections += self.blocks[i].state().has_connection() as usize;
        }
        if !self.arena.reborn {
            self.grow();
        }
        self.arena.establish();
        self
    }

    fn bare(shape: &Shape, segment: Segment, config: &TcpConfig, fuse: Fuse) -> Result<Tables, Refused> {
        let arena = Arena::open_with(segment, shape.layout, config.connections, config.seed, fuse)?;
        let (blocks, cold, notes) =
            (arena.table(shape.blocks), arena.table(shape.cold), arena.table(shape.notes));
        Ok(Tables { arena, blocks, cold, notes, quarantined: 0, lost: Vec::new(), mended: 0, connections: 0 })
    }

    /// A new arena with the sockets of `predecessor`.
    pub fn make_as(
        shape: &Shape,
        predecessor: ([u64; 2], impl Iterator<Item = (Block, Cold, Reassembly)>),
        segment: Segment,
        config: &TcpConfig,
    ) -> Result<(), Refused> {
        let mut tables = Tables::bare(shape, segment, config, Fuse::default())?;
        if tables.arena.reborn {
            return Err(Refused::Foreign);
        }
        let (secret, sockets) = predecessor;
        for (i, (block, cold, notes)) in sockets.enumerate() {
            if i == tables.blocks.len() {
                tables.grow();
            }
            tables.blocks.make(i as u32, block);
            tables.cold.make(i as u32, cold);
            tables.notes.make(i as u32, notes);
        }
        tables.arena.secret = secret;
        tables.arena.establish();
        Ok(())
    }

    pub fn commit(&mut self) {
        self.blocks.seal();
        self.cold.seal();
        self.notes.seal();
        self.arena.commit();
    }

    pub fn grow(&mut self) -> Range<u32> {
        grow(&mut self.arena, &mut self.blocks, &mut self.cold, &mut self.notes)
    }

    fn make(&mut self, i: u32, generation: u32) {
        self.blocks.make(i, Block::free(generation));
        self.cold.make(i, Cold::free());
        self.notes.make(i, Reassembly::new());
    }

    fn check(&mut self, i: u32) -> bool {
        let Tables { blocks, cold, notes, mended, .. } = self;
        // What lies beside a damaged part is assumed to be whole: two damaged parts are not mended.
        let found = [
            cold.mend(i, |cold| check(i, &mut { blocks[i] }, cold, &notes[i])),
            notes.mend(i, |notes| check(i, &mut { blocks[i] }, &cold[i], notes)),
            blocks.mend(i, |block| check(i, &mut { *block }, &cold[i], &notes[i])),
        ];
        *mended += found.contains(&Soundness::Mended) as u64;
        let mut block = self.blocks[i];
        let sound = found.iter().all(|found| found.is_sound());
        let sane = sound && check(i, &mut block, &self.cold[i], &self.notes[i]);
        if sane && block.as_bytes() != self.blocks[i].as_bytes() {
            self.blocks[i] = block;
        }
        sane
    }
}

/// Adds free blocks and returns which; none if there is no more room.
pub(super) fn grow(
    arena: &mut Arena,
    blocks: &mut Blocks,
    cold: &mut Table<Cold>,
    notes: &mut Table<Reassembly>,
) -> Range<u32> {
    let more = arena.growth();
    notes.grow(more.clone(), Reassembly::new());
    cold.grow(more.clone(), Cold::free());
    blocks.grow(more.clone(), Block::free(0));
    arena.keep(more.end);
    more
}

/// For tests: changes a block as a bug of ours would, not a stray write. The engine must be dead.
pub fn forge(arena: &Segment, config: &TcpConfig, i: u32, change: impl FnOnce(&mut Block, &mut Cold)) {
    let mut t = Tables::open(arena.clone(), config).expect("an arena of ours");
    change(&mut t.blocks[i], &mut t.cold[i]);
    t.commit();
}

/// The send sequence space.
fn sends(b: &Block) -> bool {
    let closes = matches!(
        b.state(),
        State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck | State::TimeWait
    );
    let open = matches!(b.state(), State::Established | State::CloseWait);
    b.snd_released <= b.snd_una
        && b.snd_una <= b.snd_nxt
        && b.snd_nxt <= b.snd_end.saturating_add(1)
        && b.snd_end <= POSITION_MAX
        && b.snd_end.saturating_sub(b.snd_released) <= RING_MAX
        && (b.fin_at == b.snd_end || (b.fin_at == NOWHERE && b.snd_nxt <= b.snd_end))
        && (!closes || b.fin_at != NOWHERE)
        && (!open || b.fin_at == NOWHERE)
        && b.snd_edge <= b.snd_nxt + WINDOW_MAX
        && b.snd_small <= b.snd_end
        && b.snd_wl1 <= POSITION_MAX
        && b.snd_wl2 <= b.snd_end + 1
}

/// The receive sequence space; for a listener, its ring of records.
fn receives(b: &Block) -> bool {
    b.rcv_taken <= b.rcv_nxt
        && b.rcv_nxt <= POSITION_MAX
        && b.rcv_nxt - b.rcv_taken <= RING_MAX
        && b.rcv_adv <= b.rcv_taken + 2 * RING_MAX
        && b.rcv_acked <= b.rcv_nxt
        && b.rcv_fin_at >= b.rcv_nxt
}

/// Sizes of segments and shifts of windows.
fn shape(b: &Block, c: &Cold) -> bool {
    let routed = c.path_mtu >= MTU_MIN && b.mss <= c.path_mtu;
    b.send_scale <= SCALE_MAX
        && b.receive_scale <= SCALE_MAX
        && b.mss >= 64
        && c.peer_mss >= 64
        && c.segment_max <= 65535
        && (routed || (c.path_mtu == 0 && !b.has(bit::ROUTED)))
}

/// Counts and codes.
fn numbers(b: &Block, c: &Cold) -> bool {
    b.backoff <= RETRIES && (0..4096).contains(&c.soft_error)
}

/// Where the block belongs: its slot, its listener, its port.
fn home(b: &Block, c: &Cold, index: u32) -> bool {
    let state = b.state();
    // `Domains::claim` checks whether we own it.
    let slot = b.slot == NONE || (b.slot as usize) < DIRTY_SLOTS;
    let housed = b.slot != NONE || matches!(state, State::TimeWait | State::SynReceived);
    let connected = !state.is_synchronized() || b.has(bit::CONNECTED);
    let dead = !b.has(bit::DEAD) || state == State::Closed;
    let draining = !b.has(bit::DRAINING) || b.has(bit::DEAD);
    let proven = !b.has(bit::UNPROVEN) || (b.has(bit::PASSIVE) && state.is_synchronized());
    let passive = !b.has(bit::PASSIVE) || !matches!(state, State::Listen | State::SynSent);
    let listener = c.listener == NONE || (c.listener != index && state != State::Listen);
    let queued = !b.has(bit::QUEUED) || (b.has(bit::PASSIVE) && b.slot != NONE && c.listener != NONE);
    let bound = !(b.has(bit::BOUND) || state.has_connection()) || b.tuple.local_port != 0;
    let listens = state != State::Listen || b.has(bit::BOUND);
    slot && housed
        && connected
        && dead
        && draining
        && proven
        && passive
        && listener
        && queued
        && bound
        && listens
        && c.accept_at <= POSITION_MAX
}

#[cfg(test)]
mod tests;
