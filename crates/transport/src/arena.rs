//! The durable arena of a transport: a versioned header and blocks of one kind, plain data without
//! pointers.
//!
//! Promise: whatever the arena holds, opening it yields blocks that the engine may use without
//! further checks of their own consistency. A block that fails its check becomes free: its socket is
//! lost, nobody else's suffers.

use core::marker::PhantomData;
use core::ops::{Index, IndexMut};
use eft_channel::Segment;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Bytes before the first block.
const HEADER_LEN: usize = 4096;

/// What lies in an arena, one per socket.
pub(crate) trait Durable: FromBytes + IntoBytes + Immutable + KnownLayout + Copy {
    /// Which transport's arena it is.
    const MAGIC: [u8; 8];
    /// Version of the block's layout.
    const VERSION: u32;

    /// An unused block that has had `generation` uses.
    fn free(generation: u32) -> Self;

    fn generation(&self) -> u32;

    /// Whether the block at `index` keeps its invariants; repairs what may be repaired.
    fn check(&mut self, index: u32) -> bool;
}

/// Starts the arena.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    magic: u64,
    version: u32,
    block_len: u32,
    blocks: u64,
    /// Key of initial sequence numbers (RFC 6528) and of hash tables.
    secret: [u64; 2],
    /// Lives of the engine so far.
    lives: u64,
}

impl Header {
    fn read<B: Durable>(arena: &Segment) -> Option<Header> {
        let mut header = Header::new_zeroed();
        arena.read(0, header.as_mut_bytes()).ok()?;
        let known = header.magic == u64::from_le_bytes(B::MAGIC)
            && header.version == B::VERSION
            && header.block_len as usize == size_of::<B>();
        known.then_some(header)
    }
}

/// Bytes of an arena of `count` blocks.
pub(crate) const fn arena_len<B>(count: usize) -> usize {
    HEADER_LEN + count * size_of::<B>()
}

/// Copies of all blocks, for whoever may only read; `None` if this is no arena of this version.
pub(crate) fn copies<B: Durable>(arena: &Segment) -> Option<impl Iterator<Item = B>> {
    let header = Header::read::<B>(arena)?;
    let room = arena.len().saturating_sub(HEADER_LEN) / size_of::<B>();
    let count = (header.blocks as usize).min(room);
    Some((0..count).filter_map(|i| {
        let mut block = B::new_zeroed();
        arena.read(arena_len::<B>(i), block.as_mut_bytes()).ok()?;
        Some(block)
    }))
}

/// The blocks of an arena. Indexing is checked.
pub(crate) struct Blocks<B> {
    segment: Segment,
    count: usize,
    kind: PhantomData<B>,
}

impl<B: Durable> Blocks<B> {
    pub fn len(&self) -> usize {
        self.count
    }

    fn at(&self, index: u32) -> *mut B {
        assert!((index as usize) < self.count, "block index");
        let offset = arena_len::<B>(index as usize);
        // SAFETY: `open` checked that `count` blocks lie in the segment.
        unsafe { self.segment.as_ptr().add(offset).cast::<B>() }
    }
}

impl<B: Durable> Index<u32> for Blocks<B> {
    type Output = B;
    fn index(&self, index: u32) -> &B {
        // SAFETY: in bounds; aligned, as the segment is to 64 bytes and a block's size is a multiple
        // of its alignment, which is 8 at most; any bit pattern is a block; the arena is mapped
        // writable by this server alone, and this borrow is tied to that of `self`.
        unsafe { &*self.at(index) }
    }
}

impl<B: Durable> IndexMut<u32> for Blocks<B> {
    fn index_mut(&mut self, index: u32) -> &mut B {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { &mut *self.at(index) }
    }
}

/// What opening an arena found.
pub(crate) struct Opened<B> {
    pub blocks: Blocks<B>,
    pub secret: [u64; 2],
    /// The arena held a predecessor's state.
    pub reborn: bool,
    pub quarantined: u64,
}

/// Opens an arena of `count` blocks: makes it new, with secrets from `seed`, if it is empty or of
/// another layout, else checks every block.
///
/// Panics if the segment is smaller than [`arena_len`] says or not writable, which is a mistake of
/// whoever set the server up.
pub(crate) fn open<B: Durable>(segment: Segment, count: usize, seed: u64) -> Opened<B> {
    const { assert!(align_of::<B>() <= 8) };
    segment.range_mut(0, arena_len::<B>(count)).expect("the arena has the length that arena_len gave");
    let mut blocks = Blocks { segment: segment.clone(), count, kind: PhantomData };
    let found = Header::read::<B>(&segment).filter(|h| h.blocks as usize == count);
    let mut quarantined = 0;
    let header = match found {
        Some(header) => {
            for i in 0..count as u32 {
                let block: &mut B = &mut blocks[i];
                if !block.check(i) {
                    *block = B::free(block.generation().wrapping_add(1));
                    quarantined += 1;
                }
            }
            Header { lives: header.lives.wrapping_add(1), ..header }
        }
        None => {
            for i in 0..count as u32 {
                blocks[i] = B::free(0);
            }
            let mut random = eft_base::Random::new(seed);
            Header {
                magic: u64::from_le_bytes(B::MAGIC),
                version: B::VERSION,
                block_len: size_of::<B>() as u32,
                blocks: count as u64,
                secret: [random.next_u64(), random.next_u64()],
                lives: 1,
            }
        }
    };
    segment.write(0, header.as_bytes()).expect("length was checked");
    Opened { blocks, secret: header.secret, reborn: found.is_some(), quarantined }
}
