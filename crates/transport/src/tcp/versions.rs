//! Older layouts of tcp's arena, and how each becomes the next.
//!
//! What a layout was is kept here for as long as a release that wrote it may be updated from. Layout 3 has the parts of
//! layout 2, each in a table of its own; whoever changes a part keeps a copy of it as it is now.

use super::TcpConfig;
use super::block::{Block, Cold};
use super::durable::{LAYOUT, Tables, examine};
use super::reassembly::Reassembly;
use crate::arena::{Refused, read_v2};
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

/// Converts the arena of an older eft into `new`, which is empty; `old` stays as it is, so that who wrote it can go on.
pub fn convert(old: &Segment, new: Segment, config: &TcpConfig) -> Result<(), Refused> {
    match read_v2::<V2>(old, LAYOUT.magic, config.connections) {
        Some((secret, sockets)) => Tables::of((secret, sockets.map(V3::from)), new, config),
        None => Err(examine(old, config).err().unwrap_or(Refused::Foreign)),
    }
}

#[cfg(test)]
mod tests;
