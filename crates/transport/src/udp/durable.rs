//! The arena: a versioned header and the sockets. Opening it checks every socket before it is
//! believed; a bad one is dropped, the others live on.

use super::UdpConfig;
use crate::families::NONE;
use core::ops::{Index, IndexMut};
use eft_base::{Endpoint, FamilyId, WireAddress};
use eft_channel::Segment;
use eft_channel::dirty::DIRTY_SLOTS;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

const MAGIC: u64 = u64::from_le_bytes(*b"eft-udp\0");
const VERSION: u32 = 1;
const HEADER_LEN: usize = 4096;

/// Bits of [`Block::flags`].
pub mod bit {
    /// In use.
    pub const USED: u32 = 1;
    pub const BOUND: u32 = 2;
    /// The port was chosen by us.
    pub const ANY_PORT: u32 = 4;
    /// The local address was chosen with the peer, and goes with it.
    pub const ANY_ADDRESS: u32 = 8;
    pub const CONNECTED: u32 = 16;
    pub const REUSE_ADDRESS: u32 = 32;
    pub const REUSE_PORT: u32 = 64;
    /// The application's last descriptor is gone; what it sent is still sent.
    pub const ORPHAN: u32 = 128;
    /// Its page lied.
    pub const DEAD: u32 = 256;
}

/// One socket.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Block {
    pub flags: u32,
    pub slot: u32,
    pub generation: u32,
    pub family: FamilyId,
    pub local_port: u16,
    pub local: WireAddress,
    pub remote: WireAddress,
    pub remote_port: u16,
    pub reserved: [u16; 3],
    /// Ring bytes whose datagrams were handed to ip or given up.
    pub sent: u64,
    pub released: u64,
    pub receive_end: u64,
    pub receive_taken: u64,
    /// The request that opened it, for its resubmission.
    pub open_request: u64,
}

impl Block {
    pub fn free(generation: u32) -> Block {
        Block { slot: NONE, generation, ..Block::new_zeroed() }
    }

    pub fn has(&self, bits: u32) -> bool {
        self.flags & bits == bits
    }

    pub fn local_endpoint(&self) -> Endpoint {
        Endpoint::new(self.local.into(), self.local_port)
    }

    pub fn remote_endpoint(&self) -> Endpoint {
        Endpoint::new(self.remote.into(), self.remote_port)
    }

    fn is_sane(&self) -> bool {
        let bound = self.has(bit::BOUND) == (self.local_port != 0);
        let cursors = self.released <= self.sent
            && self.receive_taken <= self.receive_end
            && self.receive_end - self.receive_taken <= 1 << 26;
        self.slot % 2 == 1 && (self.slot as usize) < DIRTY_SLOTS && bound && cursors
    }
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    magic: u64,
    version: u32,
    block_len: u32,
    blocks: u64,
    secret: [u64; 2],
    lives: u64,
}

/// Bytes of the arena for `config`.
pub fn arena_len(config: &UdpConfig) -> usize {
    HEADER_LEN + config.sockets * size_of::<Block>()
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
        // 8; any bit pattern is a Block; this server alone maps the arena writable, and the borrow is
        // tied to that of `self`.
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
    pub reborn: bool,
    pub quarantined: u64,
}

/// Opens an arena: makes it new if it is empty or of another layout, else checks every socket.
///
/// Panics if the segment is smaller than [`arena_len`] says or not writable, which is a mistake of
/// whoever set the server up.
pub(super) fn open(segment: Segment, config: &UdpConfig) -> Opened {
    segment.range_mut(0, arena_len(config)).expect("the arena has the length that arena_len gave");
    let mut header = Header::new_zeroed();
    segment.read(0, header.as_mut_bytes()).expect("length was checked");
    let reborn = header.magic == MAGIC
        && header.version == VERSION
        && header.block_len as usize == size_of::<Block>()
        && header.blocks as usize == config.sockets;
    let mut blocks = Blocks { segment: segment.clone(), count: config.sockets };
    let mut quarantined = 0;
    if reborn {
        header.lives = header.lives.wrapping_add(1);
        for i in 0..blocks.count as u32 {
            let block = &mut blocks[i];
            if block.has(bit::USED) && !block.is_sane() {
                *block = Block::free(block.generation.wrapping_add(1));
                quarantined += 1;
            }
        }
    } else {
        let mut random = eft_base::Random::new(config.seed);
        header = Header {
            magic: MAGIC,
            version: VERSION,
            block_len: size_of::<Block>() as u32,
            blocks: config.sockets as u64,
            secret: [random.next_u64(), random.next_u64()],
            lives: 1,
        };
        for i in 0..blocks.count as u32 {
            blocks[i] = Block::free(0);
        }
    }
    segment.write(0, header.as_bytes()).expect("length was checked");
    Opened { blocks, secret: header.secret, reborn, quarantined }
}
