//! Arenas of older versions of eft: converted, and back. They have no memberships.

use super::{Block, Blocks, Entries, Found, LAYOUT, check, examine, grow, open};
use crate::udp::UdpConfig;
use eft_arena::{self as arena, Arena, Fuse, Layout, Refused, Sums};
use eft_channel::Segment;

/// Without memberships.
pub(super) const LAYOUT_4: Layout = Layout { version: 4, sums: Sums::Second, ..LAYOUT_3 };

/// The same with checksums that do not tell which bit has changed.
pub(super) const LAYOUT_3: Layout =
    Layout { magic: LAYOUT.magic, version: 3, items: &[size_of::<Block>()], sums: Sums::First };

/// An older layout that has one table.
fn older(version: u32) -> Option<Layout> {
    [LAYOUT_4, LAYOUT_3].into_iter().find(|layout| layout.version == version)
}

/// Opens an arena of an older layout.
pub(super) fn open_older(
    layout: Layout,
    segment: Segment,
    config: &UdpConfig,
) -> Result<(Arena, Blocks, Found), Refused> {
    let arena = Arena::open(segment, layout, config.sockets, config.seed)?;
    let mut blocks: Blocks = arena.table(0);
    let mut found = Found::default();
    check(&mut blocks, &mut found);
    Ok((arena, blocks, found))
}

/// Converts the arena of an older eft into `new`, which is empty; `old` stays as it is.
pub fn convert(old: &Segment, new: Segment, config: &UdpConfig) -> Result<(), Refused> {
    match examine(old, config) {
        Err(Refused::Older { theirs, .. }) if older(theirs).is_some() => {
            let layout = older(theirs).ok_or(Refused::Foreign)?;
            let copy = arena::copy_of(old, &layout, config.sockets).ok_or(Refused::Foreign)?;
            let (arena, blocks, _) = open_older(layout, copy, config)?;
            make(arena.secret, (0..blocks.len() as u32).map(|i| blocks[i]), new, config)
        }
        Err(Refused::Older { .. }) => {
            let read = arena::read_v2::<Block>(old, LAYOUT.magic, config.sockets);
            let (secret, sockets) = read.ok_or(Refused::Foreign)?;
            make(secret, sockets, new, config)
        }
        Err(refused) => Err(refused),
        Ok(()) => Err(Refused::Foreign),
    }
}

/// Reverts a conversion: writes the sockets of `ours` into `to`, which is empty, in the layout of
/// `like`. Their memberships are lost.
pub fn revert(ours: &Segment, like: &Segment, to: Segment, config: &UdpConfig) -> Result<(), Refused> {
    let Err(Refused::Older { theirs, .. }) = examine(like, config) else {
        return Err(Refused::Foreign);
    };
    let copy = arena::copy_of(ours, &LAYOUT, config.sockets).ok_or(Refused::Foreign)?;
    let (arena, blocks, ..) = open(copy, config, Fuse::default())?;
    let sockets = (0..blocks.len() as u32).map(|i| blocks[i]);
    match older(theirs) {
        Some(layout) => make_older(layout, arena.secret, sockets, to, config),
        None if theirs == 2 => {
            // Layout 2 has all its blocks from the beginning.
            let free = core::iter::repeat(Block::free(0));
            arena::write_v2(&to, LAYOUT.magic, arena.secret, sockets.chain(free).take(config.sockets))
        }
        None => Err(Refused::Foreign),
    }
}

/// Makes an arena of these sockets.
fn make(
    secret: [u64; 2],
    sockets: impl Iterator<Item = Block>,
    to: Segment,
    config: &UdpConfig,
) -> Result<(), Refused> {
    let mut arena = Arena::open(to, LAYOUT, config.sockets, config.seed)?;
    if arena.reborn {
        return Err(Refused::Foreign);
    }
    let (mut blocks, mut entries): (Blocks, Entries) = (arena.table(0), arena.table(1));
    for (i, block) in sockets.enumerate() {
        if i == blocks.len() {
            grow(&mut arena, &mut blocks, &mut entries);
        }
        blocks.make(i as u32, block);
    }
    arena.secret = secret;
    arena.establish();
    Ok(())
}

/// The same in an older layout.
pub(super) fn make_older(
    layout: Layout,
    secret: [u64; 2],
    sockets: impl Iterator<Item = Block>,
    to: Segment,
    config: &UdpConfig,
) -> Result<(), Refused> {
    let mut arena = Arena::open(to, layout, config.sockets, config.seed)?;
    if arena.reborn {
        return Err(Refused::Foreign);
    }
    let mut blocks: Blocks = arena.table(0);
    for (i, block) in sockets.enumerate() {
        if i == blocks.len() {
            let more = arena.growth();
            blocks.grow(more.clone(), Block::free(0));
            arena.keep(more.end);
        }
        blocks.make(i as u32, block);
    }
    arena.secret = secret;
    arena.establish();
    Ok(())
}
