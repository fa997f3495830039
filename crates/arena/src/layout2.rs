//! Arenas of layout 2: a header and blocks in a row, without checksums.

use eft_channel::Segment;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::layout::{HEADER_LEN, Refused};
use crate::Plain;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct HeaderV2 {
    magic: u64,
    version: u32,
    block_len: u32,
    blocks: u64,
    secret: [u64; 2],
    lives: u64,
}

/// The secret and the blocks of an arena of layout 2; `None` if it is not one.
pub fn read_v2<T: Plain>(
    old: &Segment,
    magic: [u8; 8],
    count: usize,
) -> Option<([u64; 2], impl Iterator<Item = T>)> {
    let mut header = HeaderV2::new_zeroed();
    old.read(0, header.as_mut_bytes()).ok()?;
    let known = header.magic == u64::from_le_bytes(magic)
        && header.version == 2
        && header.block_len as usize == size_of::<T>()
        && header.blocks == count as u64
        && old.len() >= HEADER_LEN + count * size_of::<T>();
    let block = move |i: usize| {
        let mut block = T::new_zeroed();
        old.read(HEADER_LEN + i * size_of::<T>(), block.as_mut_bytes()).ok()?;
        Some(block)
    };
    known.then(|| (header.secret, (0..count).filter_map(block)))
}

/// Makes an empty segment an arena of layout 2.
pub fn write_v2<T: Plain>(
    to: &Segment,
    magic: [u8; 8],
    secret: [u64; 2],
    blocks: impl Iterator<Item = T>,
) -> Result<(), Refused> {
    let mut count = 0;
    for block in blocks {
        let at = HEADER_LEN + count * size_of::<T>();
        to.write(at, block.as_bytes()).map_err(|_| Refused::Foreign)?;
        count += 1;
    }
    let header = HeaderV2 {
        magic: u64::from_le_bytes(magic),
        version: 2,
        block_len: size_of::<T>() as u32,
        blocks: count as u64,
        secret,
        lives: 1,
    };
    to.write(0, header.as_bytes()).map_err(|_| Refused::Foreign)
}

/// An arena of layout 2, for tests of conversion.
pub fn new_v2<T: Plain>(magic: [u8; 8], secret: [u64; 2], blocks: &[T]) -> Segment {
    let segment = Segment::heap(HEADER_LEN + size_of_val(blocks));
    write_v2(&segment, magic, secret, blocks.iter().copied()).expect("it has the length");
    segment
}
