//! Small identifiers that travel in messages. All are plain integers: a receiver checks each
//! against its own tables before use.

use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A domain: a program started by `eft run` and its fork and exec descendants. The unit of sharing.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(transparent)]
pub struct DomainId(pub u16);

/// A socket: the page `slot` in the arena of `domain`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId {
    pub domain: DomainId,
    pub slot: u32,
}

/// A memory segment that packet references may point into. Given out by the supervisor; a reborn
/// owner's pool gets a new id (its epoch), the old id dies with the old mapping.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(transparent)]
pub struct PoolId(pub u16);

/// Bytes in a pool: `len` bytes at `offset` in `slot`. 16 bytes on the wire.
///
/// `generation` is that of the slot when it was allocated; the owner refuses to free a slot for a
/// reference of another generation.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(C)]
pub struct PacketRef {
    pub pool: PoolId,
    pub generation: u16,
    pub slot: u32,
    pub offset: u32,
    pub len: u32,
}

impl PacketRef {
    /// The same bytes without the first `n`; empty if there are fewer.
    pub fn skip(self, n: u32) -> PacketRef {
        let n = n.min(self.len);
        PacketRef { offset: self.offset + n, len: self.len - n, ..self }
    }
}

/// Names an entry of the sender's request database. A reply with a stale generation is ignored.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(C)]
pub struct RequestId {
    pub index: u32,
    pub generation: u32,
}

impl RequestId {
    pub fn to_u64(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    pub fn from_u64(v: u64) -> Self {
        RequestId { index: v as u32, generation: (v >> 32) as u32 }
    }
}
