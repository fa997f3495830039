//! Older layouts of tcp's arena, and how each becomes the next.
//!
//! The definition of a layout stays here for as long as releases that wrote it may be updated from. Layout 3 has the
//! parts of layout 2, each in a table of its own, and layout 4 other checksums; a change of a part must keep a copy of its old
//! definition here.

use super::TcpConfig;
use super::block::{Block, Cold};
use super::durable::{CURRENT, LAYOUT, Shape, Tables, V3 as LAYOUT_3, V4 as LAYOUT_4, examine};
use super::reassembly::Reassembly;
use alloc::boxed::Box;
use alloc::vec::Vec;
use eft_arena::{Refused, copy_of, read_v2, write_v2};
use eft_channel::Segment;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A socket of layout 2.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct V2 {
    hot: Block,
    cold: Cold,
    notes: Reassembly,
}

const _: () = assert!(size_of::<V2>() == 856);

/// A socket of layout 3.
type V3 = (Block, Cold, Reassembly);

impl From<V2> for V3 {
    fn from(V2 { hot, cold, notes }: V2) -> V3 {
        (hot, cold, notes)
    }
}

impl From<V3> for V2 {
    fn from((hot, cold, notes): V3) -> V2 {
        V2 { hot, cold, notes }
    }
}

/// What an arena holds: its secret and its sockets.
type Contents = ([u64; 2], Box<dyn Iterator<Item = V3>>);

/// Reads an arena with checksums, without changing it. Damaged items count as free.
fn read(shape: &Shape, arena: &Segment, config: &TcpConfig) -> Option<Contents> {
    let copy = copy_of(arena, &shape.layout, config.connections)?;
    let t = Tables::open_as(shape, copy, config).ok()?;
    let secret = t.arena.secret;
    Some((secret, Box::new((0..t.blocks.len() as u32).map(move |i| (t.blocks[i], t.cold[i], t.notes[i])))))
}

/// Converts the arena of an older eft into `new`, which is empty; `old` stays as it is, so that its own version can use
/// it again.
pub fn convert(old: &Segment, new: Segment, config: &TcpConfig) -> Result<(), Refused> {
    let contents = match examine(old, config) {
        Err(Refused::Older { theirs: 4, .. }) => read(&LAYOUT_4, old, config),
        Err(Refused::Older { theirs: 3, .. }) => read(&LAYOUT_3, old, config),
        Err(Refused::Older { .. }) => {
            let read = read_v2::<V2>(old, LAYOUT.magic, config.connections);
            read.map(|(secret, sockets)| -> Contents {
                let sockets: Vec<V2> = sockets.collect();
                (secret, Box::new(sockets.into_iter().map(V3::from)))
            })
        }
        Err(refused) => return Err(refused),
        Ok(()) => None,
    };
    Tables::make_as(&CURRENT, contents.ok_or(Refused::Foreign)?, new, config)
}

/// Reverts a conversion: writes the sockets of `ours` into `to`, which is empty, in the layout of `like`.
pub fn revert(ours: &Segment, like: &Segment, to: Segment, config: &TcpConfig) -> Result<(), Refused> {
    let Err(Refused::Older { theirs, .. }) = examine(like, config) else { return Err(Refused::Foreign) };
    let (secret, sockets) = read(&CURRENT, ours, config).ok_or(Refused::Foreign)?;
    match theirs {
        4 => Tables::make_as(&LAYOUT_4, (secret, sockets), to, config),
        3 => Tables::make_as(&LAYOUT_3, (secret, sockets), to, config),
        _ => {
            // Layout 2 has all its blocks from the beginning.
            let free = core::iter::repeat((Block::free(0), Cold::free(), Reassembly::new()));
            let all = sockets.chain(free).take(config.connections);
            write_v2(&to, LAYOUT.magic, secret, all.map(V2::from))
        }
    }
}

#[cfg(test)]
mod tests;
