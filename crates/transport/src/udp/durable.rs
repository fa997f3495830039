//! The durable half of a socket, and the checks of a socket from before a crash. Arenas of older versions of eft are in
//! [`versions`].

mod versions;

use super::UdpConfig;
use super::memberships::entry::{Entry, kind};
use crate::addresses::{ANY6, Reach, any4};
use crate::domains::NONE;
use crate::requests::POSITION_MAX;
use alloc::format;
use alloc::string::String;
use core::ops::Range;
use eft_arena::docket;
use eft_arena::{self as arena, Arena, Fuse, Layout, Refused, Soundness, Sums, Table};
use eft_base::{DomainId, Endpoint, WireAddress};
use eft_channel::Segment;
use eft_channel::dirty::DIRTY_SLOTS;
pub use versions::{convert, revert};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Bits of [`Block::flags`].
pub mod bit {
    /// In use.
    pub const USED: u32 = 1;
    pub const BOUND: u32 = 2;
    /// The port was chosen by us.
    pub const ANY_PORT: u32 = 4;
    /// The local address was chosen at connect, and is forgotten at disconnect.
    pub const ANY_ADDRESS: u32 = 8;
    pub const CONNECTED: u32 = 16;
    pub const REUSE_ADDRESS: u32 = 32;
    pub const REUSE_PORT: u32 = 64;
    /// The application's last descriptor is gone; what it sent is still sent.
    pub const ORPHAN: u32 = 128;
    /// Its page held impossible words.
    pub const DEAD: u32 = 256;
    /// Bound as IPV6_V6ONLY.
    pub const V6ONLY: u32 = 512;
    /// Bound to the wildcard of IPv6, whatever address was chosen with the peer.
    pub const ANY6: u32 = 1024;
    /// Not in use: the image of a socket whose block was damaged beyond mending ([`super::lost`](super::super::lost)).
    pub const LOST: u32 = 2048;
}

/// One socket.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Block {
    pub flags: u32,
    pub slot: u32,
    pub generation: u32,
    pub domain: DomainId,
    pub local_port: u16,
    pub local: WireAddress,
    pub remote: WireAddress,
    pub remote_port: u16,
    pub reserved: u16,
    /// The incarnation of its slot, as requests name it.
    pub incarnation: u32,
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

    pub(crate) fn reach(&self) -> Reach {
        Reach { address: self.local, v6only: self.has(bit::V6ONLY) }
    }

    /// The wildcard to which it is bound without an address.
    pub(crate) fn wildcard(&self) -> WireAddress {
        if self.has(bit::ANY6) { ANY6 } else { any4() }
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
            && self.sent <= POSITION_MAX
            && self.receive_end <= POSITION_MAX
            && self.receive_taken <= self.receive_end
            && self.receive_end - self.receive_taken <= 1 << 26;
        // `Domains::claim` checks whether we own it.
        (self.slot as usize) < DIRTY_SLOTS && bound && cursors
    }
}

/// The layout of udp's arena.
pub(super) const LAYOUT: Layout = Layout {
    magic: *b"eft-udp\0",
    version: 5,
    items: &[size_of::<Block>(), size_of::<Entry>()],
    sums: Sums::Second,
};

/// The blocks of udp's arena.
pub(super) type Blocks = Table<Block>;
/// The memberships: as many entries as there are blocks, which belong to any of them.
pub(super) type Entries = Table<Entry>;

/// Whether the engine would take this arena. Changes nothing.
pub fn examine(arena: &Segment, config: &UdpConfig) -> Result<(), Refused> {
    arena::examine(arena, &LAYOUT, config.sockets)
}

/// The input that ran when the arena's last owner died, and its socket, for people.
pub fn running_input(arena: &Segment) -> Option<String> {
    docket::running_input(arena, |block| {
        let block = arena::copies::<Block>(arena, LAYOUT, 0)?.nth(block as usize)?;
        Some(format!("the socket at {}", block.local_endpoint()))
    })
}

/// Bytes of the arena for `config`.
pub fn arena_len(config: &UdpConfig) -> usize {
    LAYOUT.arena_len(config.sockets)
}

/// What became of the sockets in an arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Their state was invalid.
    pub lost: u64,
    /// A changed bit was changed back.
    pub mended: u64,
}

/// Opens an arena.
pub(super) fn open(
    segment: Segment,
    config: &UdpConfig,
    fuse: Fuse,
) -> Result<(Arena, Blocks, Entries, Found), Refused> {
    let mut arena = Arena::open_with(segment, LAYOUT, config.sockets, config.seed, fuse)?;
    let mut blocks: Blocks = arena.table(0);
    let mut entries: Entries = arena.table(1);
    let mut found = Found::default();
    check(&mut blocks, &mut found);
    for i in 0..entries.len() as u32 {
        let soundness = entries.mend(i, |e| e.kind <= kind::ANSWER);
        found.mended += (soundness == Soundness::Mended) as u64;
        if !soundness.is_sound() {
            entries.make(i, Entry::free());
        }
    }
    if !arena.reborn {
        grow(&mut arena, &mut blocks, &mut entries);
    }
    arena.establish();
    Ok((arena, blocks, entries, found))
}

/// Marks the sockets whose state is invalid as lost.
fn check(blocks: &mut Blocks, found: &mut Found) {
    let is_valid = |block: &Block| !block.has(bit::USED) || block.is_sane();
    for i in 0..blocks.len() as u32 {
        let soundness = blocks.mend(i, is_valid);
        found.mended += (soundness == Soundness::Mended) as u64;
        let block = blocks[i];
        if !soundness.is_sound() || !is_valid(&block) {
            blocks.make(i, Block { flags: block.flags & !bit::USED | bit::LOST, ..block });
            found.lost += 1;
        }
    }
}

/// Adds free blocks and entries and returns which; none if there is no more room.
pub(super) fn grow(arena: &mut Arena, blocks: &mut Blocks, entries: &mut Entries) -> Range<u32> {
    let more = arena.growth();
    entries.grow(more.clone(), Entry::free());
    blocks.grow(more.clone(), Block::free(0));
    arena.keep(more.end);
    more
}

#[cfg(test)]
mod tests;
