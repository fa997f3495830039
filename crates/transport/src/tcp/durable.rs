//! The arena: a versioned header and the blocks. Here is what makes blocks of bytes, and what is
//! checked before a block from before a crash is believed.
//!
//! Promise: whatever the arena holds, opening it yields blocks that the engine may use without
//! further checks of their own consistency. A block that fails is quarantined: its connection is
//! reset, nobody else's suffers.

use super::TcpConfig;
use super::block::{Block, NONE, NOWHERE, State, bit};
use core::ops::{Index, IndexMut};
use eft_channel::Segment;
use eft_channel::dirty::DIRTY_SLOTS;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

const MAGIC: u64 = u64::from_le_bytes(*b"eft-tcp\0");
/// Version of [`Block`] and [`Header`].
const VERSION: u32 = 1;
/// Bytes before the first block.
const HEADER_LEN: usize = 4096;

/// Starts the arena.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Header {
    magic: u64,
    version: u32,
    block_len: u32,
    blocks: u64,
    /// Key of initial sequence numbers (RFC 6528) and of hash tables.
    pub secret: [u64; 2],
    /// Lives of the engine so far.
    pub lives: u64,
}

/// Bytes of the arena for `config`.
pub fn arena_len(config: &TcpConfig) -> usize {
    HEADER_LEN + config.connections * size_of::<Block>()
}

/// Copies of all blocks, for whoever may only read; `None` if this is no arena of this version.
pub(super) fn copies(arena: &Segment) -> Option<impl Iterator<Item = Block>> {
    let mut header = Header::new_zeroed();
    arena.read(0, header.as_mut_bytes()).ok()?;
    let known =
        header.magic == MAGIC && header.version == VERSION && header.block_len as usize == size_of::<Block>();
    let room = arena.len().saturating_sub(HEADER_LEN) / size_of::<Block>();
    let count = if known { (header.blocks as usize).min(room) } else { return None };
    Some((0..count).filter_map(|i| {
        let mut block = Block::free(0);
        arena.read(HEADER_LEN + i * size_of::<Block>(), block.as_mut_bytes()).ok()?;
        Some(block)
    }))
}

/// The blocks of an arena. Indexing is checked.
pub(super) struct Blocks {
    segment: Segment,
    count: usize,
}

impl Blocks {
    pub fn len(&self) -> usize {
        self.count
    }

    fn at(&self, index: u32) -> *mut Block {
        assert!((index as usize) < self.count, "block index");
        let offset = HEADER_LEN + index as usize * size_of::<Block>();
        // SAFETY: `open` checked that `count` blocks lie in the segment.
        unsafe { self.segment.as_ptr().add(offset).cast::<Block>() }
    }
}

impl Index<u32> for Blocks {
    type Output = Block;
    fn index(&self, index: u32) -> &Block {
        // SAFETY: in bounds; aligned, as the segment is to 64 bytes and Block's size is a multiple of
        // 8; any bit pattern is a Block; the arena is mapped writable by this server alone, and this
        // borrow is tied to that of `self`.
        unsafe { &*self.at(index) }
    }
}

impl IndexMut<u32> for Blocks {
    fn index_mut(&mut self, index: u32) -> &mut Block {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { &mut *self.at(index) }
    }
}

/// What opening an arena found.
pub(super) struct Opened {
    pub blocks: Blocks,
    pub secret: [u64; 2],
    /// The arena held a predecessor's state.
    pub reborn: bool,
    pub quarantined: u64,
}

/// Opens an arena: makes it new if it is empty or of another layout, else checks every block.
///
/// Panics if the segment is smaller than [`arena_len`] says or not writable, which is a mistake of
/// whoever set the server up.
pub(super) fn open(segment: Segment, config: &TcpConfig) -> Opened {
    segment.range_mut(0, arena_len(config)).expect("the arena has the length that arena_len gave");
    let mut header = Header::new_zeroed();
    segment.read(0, header.as_mut_bytes()).expect("length was checked");
    let known = header.magic == MAGIC
        && header.version == VERSION
        && header.block_len as usize == size_of::<Block>()
        && header.blocks as usize == config.connections;
    let mut blocks = Blocks { segment: segment.clone(), count: config.connections };
    let mut quarantined = 0;
    if known {
        header.lives = header.lives.wrapping_add(1);
        for i in 0..blocks.count as u32 {
            quarantined += !check(&mut blocks[i]) as u64;
        }
    } else {
        let mut random = eft_base::Random::new(config.seed);
        header = Header {
            magic: MAGIC,
            version: VERSION,
            block_len: size_of::<Block>() as u32,
            blocks: config.connections as u64,
            secret: [random.next_u64(), random.next_u64()],
            lives: 1,
        };
        for i in 0..blocks.count as u32 {
            blocks[i] = Block::free(0);
        }
    }
    segment.write(0, header.as_bytes()).expect("length was checked");
    Opened { blocks, secret: header.secret, reborn: known, quarantined }
}

/// Checks one block and makes it usable; a bad one becomes free. False if it was bad.
fn check(block: &mut Block) -> bool {
    if State::from_number(block.state).is_none() || !is_sane(block) {
        *block = Block::free(block.generation.wrapping_add(1));
        return false;
    }
    let mss = block.segment_size();
    block.congestion.sanitize(mss);
    block.rtt.sanitize();
    true
}

/// The invariants of a block.
fn is_sane(b: &Block) -> bool {
    let state = b.state();
    if state == State::Free {
        return true;
    }
    let sends = b.snd_una <= b.snd_nxt
        && b.snd_nxt <= b.snd_end.saturating_add(1)
        && b.snd_released <= b.snd_una
        && b.snd_end - b.snd_released.min(b.snd_end) <= 1 << 26
        && (b.fin_at == NOWHERE || b.fin_at == b.snd_end)
        && (b.fin_at != NOWHERE || b.snd_nxt <= b.snd_end);
    let receives = b.rcv_taken <= b.rcv_nxt
        && b.rcv_nxt - b.rcv_taken <= 1 << 26
        && b.rcv_adv <= b.rcv_taken.saturating_add(1 << 27)
        && b.rcv_acked <= b.rcv_nxt
        && b.reassembly.is_sane(b.rcv_nxt, b.rcv_taken.saturating_add(1 << 26));
    let socket = b.slot == NONE || (b.slot % 2 == 0 && (b.slot as usize) < DIRTY_SLOTS);
    let shape = b.send_scale <= super::options::SCALE_MAX
        && b.receive_scale <= super::options::SCALE_MAX
        && b.mss >= 64
        && (!b.has(bit::ROUTED) || b.mss <= b.path_mtu)
        && b.segment_max <= 65535;
    let home = match state {
        State::Listen | State::Closed => b.slot != NONE,
        State::TimeWait | State::SynReceived => true,
        _ => b.slot != NONE,
    };
    let connected = !state.is_synchronized() || b.has(bit::CONNECTED);
    sends && receives && socket && shape && home && connected
}
