//! The durable half of a socket, and the checks of a socket from before a crash.

use super::UdpConfig;
use crate::addresses::{ANY6, Reach, any4};
use crate::domains::NONE;
use crate::requests::POSITION_MAX;
use core::ops::Range;
use eft_arena::{self as arena, Arena, Layout, Refused, Soundness, Sums, Table};
use eft_base::{DomainId, Endpoint, WireAddress};
use eft_channel::Segment;
use eft_channel::dirty::DIRTY_SLOTS;
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
pub(super) const LAYOUT: Layout = Layout { version: 4, sums: Sums::Second, ..LAYOUT_3 };

/// The same with checksums that do not tell which bit has changed.
const LAYOUT_3: Layout =
    Layout { magic: *b"eft-udp\0", version: 3, items: &[size_of::<Block>()], sums: Sums::First };

/// The blocks of udp's arena.
pub(super) type Blocks = Table<Block>;

/// Whether the engine would take this arena. Changes nothing.
pub fn examine(arena: &Segment, config: &UdpConfig) -> Result<(), Refused> {
    arena::examine(arena, &LAYOUT, config.sockets)
}

/// Bytes of the arena for `config`.
pub fn arena_len(config: &UdpConfig) -> usize {
    LAYOUT.arena_len(config.sockets)
}

/// What became of the sockets in an arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Given up, since their state was invalid.
    pub quarantined: u64,
    /// A changed bit was changed back.
    pub mended: u64,
}

/// Opens an arena.
pub(super) fn open(segment: Segment, config: &UdpConfig) -> Result<(Arena, Blocks, Found), Refused> {
    open_as(LAYOUT, segment, config)
}

fn open_as(layout: Layout, segment: Segment, config: &UdpConfig) -> Result<(Arena, Blocks, Found), Refused> {
    let mut arena = Arena::open(segment, layout, config.sockets, config.seed)?;
    let mut blocks: Blocks = arena.table(0);
    let mut found = Found::default();
    let is_valid = |block: &Block| !block.has(bit::USED) || block.is_sane();
    for i in 0..blocks.len() as u32 {
        let soundness = blocks.mend(i, is_valid);
        found.mended += (soundness == Soundness::Mended) as u64;
        let block = blocks[i];
        if !soundness.is_sound() || !is_valid(&block) {
            blocks.make(i, Block::free(block.generation.wrapping_add(1)));
            found.quarantined += 1;
        }
    }
    if !arena.reborn {
        grow(&mut arena, &mut blocks);
    }
    arena.establish();
    Ok((arena, blocks, found))
}

/// Adds free blocks and returns which; none if there is no more room.
pub(super) fn grow(arena: &mut Arena, blocks: &mut Blocks) -> Range<u32> {
    let more = arena.growth();
    blocks.grow(more.clone(), Block::free(0));
    arena.keep(more.end);
    more
}

/// Converts the arena of an older eft into `new`, which is empty; `old` stays as it is.
pub fn convert(old: &Segment, new: Segment, config: &UdpConfig) -> Result<(), Refused> {
    match examine(old, config) {
        Err(Refused::Older { theirs: 3, .. }) => copy(&LAYOUT_3, old, LAYOUT, new, config),
        Err(Refused::Older { .. }) => {
            let read = arena::read_v2::<Block>(old, LAYOUT.magic, config.sockets);
            let (secret, sockets) = read.ok_or(Refused::Foreign)?;
            make(LAYOUT, secret, sockets, new, config)
        }
        Err(refused) => Err(refused),
        Ok(()) => Err(Refused::Foreign),
    }
}

/// Reverts a conversion: writes the sockets of `ours` into `to`, which is empty, in the layout of
/// `like`.
pub fn revert(ours: &Segment, like: &Segment, to: Segment, config: &UdpConfig) -> Result<(), Refused> {
    match examine(like, config) {
        Err(Refused::Older { theirs: 3, .. }) => copy(&LAYOUT, ours, LAYOUT_3, to, config),
        Err(Refused::Older { theirs: 2, .. }) => {
            let copy = arena::copy_of(ours, &LAYOUT, config.sockets).ok_or(Refused::Foreign)?;
            let (arena, blocks, _) = open(copy, config)?;
            // Layout 2 has all its blocks from the beginning.
            let free = core::iter::repeat(Block::free(0));
            let all = (0..blocks.len() as u32).map(|i| blocks[i]).chain(free).take(config.sockets);
            arena::write_v2(&to, LAYOUT.magic, arena.secret, all)
        }
        _ => Err(Refused::Foreign),
    }
}

/// Copies the sockets of one arena into another, which is empty, of another layout.
fn copy(
    theirs: &Layout,
    from: &Segment,
    ours: Layout,
    to: Segment,
    config: &UdpConfig,
) -> Result<(), Refused> {
    let copy = arena::copy_of(from, theirs, config.sockets).ok_or(Refused::Foreign)?;
    let (arena, blocks, _) = open_as(*theirs, copy, config)?;
    make(ours, arena.secret, (0..blocks.len() as u32).map(|i| blocks[i]), to, config)
}

/// Makes an arena of these sockets.
fn make(
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
            grow(&mut arena, &mut blocks);
        }
        blocks.make(i as u32, block);
    }
    arena.secret = secret;
    arena.establish();
    Ok(())
}

#[cfg(test)]
mod tests;
