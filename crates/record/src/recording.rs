//! A server's recording: every call to its engine, with everything that the engine could read and every output.
//!
//! A fresh engine of the same make that gets the same calls, and reads the same memory, must do the same; a
//! [`Recording`] holds what is needed to check that ([`crate::replay`]).

use eft_base::{DomainId, Instant, PacketRef, PoolId, Random, SocketId};
use eft_channel::PoolView;
use eft_channel::socket::{ARENA_HEADER_LEN, Arena, Geometry};
use eft_component::{Configure, FromWorld, transport};
use eft_messages::{ComponentId, Encoded};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use std::fmt;

/// A call to an engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Input {
    Message(ComponentId, Encoded),
    Event(RecordedEvent),
    Poll(usize),
    Expire,
    Reborn(ComponentId),
    Flush,
    Commit,
}

/// The events that reach the engines that are recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RecordedEvent {
    Configure { key: String, value: ByteBuf },
    Dirty { domain: DomainId, slot: u32 },
    Domain { domain: DomainId, pool: PoolId, slots: usize, send_len: usize, receive_len: usize },
}

/// Events of an engine that is recorded.
pub trait Recorded: FromWorld {
    fn recorded(&self) -> RecordedEvent;

    /// The domain that is opened, its pool, and its arena.
    fn opened(&mut self) -> Option<(DomainId, PoolId, &mut Arena)> {
        None
    }

    /// The application has rung for `socket`. `None`: this engine has no such event.
    fn dirty(_socket: SocketId) -> Option<Self> {
        None
    }
}

impl Recorded for Configure {
    fn recorded(&self) -> RecordedEvent {
        RecordedEvent::Configure { key: self.key.clone(), value: self.value.clone().into() }
    }
}

impl Recorded for transport::Event {
    fn recorded(&self) -> RecordedEvent {
        match self {
            Self::Configure { key, value } => {
                RecordedEvent::Configure { key: key.clone(), value: value.clone().into() }
            }
            Self::Dirty(SocketId { domain, slot }) => RecordedEvent::Dirty { domain: *domain, slot: *slot },
            Self::DomainOpened { domain, pool, arena } => {
                let Geometry { slots, send_len, receive_len } = arena.geometry();
                RecordedEvent::Domain { domain: *domain, pool: *pool, slots, send_len, receive_len }
            }
        }
    }

    fn opened(&mut self) -> Option<(DomainId, PoolId, &mut Arena)> {
        match self {
            Self::DomainOpened { domain, pool, arena } => Some((*domain, *pool, arena)),
            _ => None,
        }
    }

    fn dirty(socket: SocketId) -> Option<Self> {
        Some(Self::Dirty(socket))
    }
}

/// An access of a transport to memory that an application can write. Offsets are in the domain's arena.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// The engine read this, once.
    Read {
        domain: DomainId,
        at: usize,
        bytes: ByteBuf,
    },
    Wrote {
        domain: DomainId,
        at: usize,
        what: Written,
    },
}

/// What was written: whole if it is short.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Written {
    Bytes(ByteBuf),
    Digest { len: usize, digest: u64 },
}

/// Longest write that is recorded whole.
const WHOLE_MAX: usize = 64;

impl Written {
    pub fn of(bytes: &[u8]) -> Written {
        match bytes.len() {
            0..=WHOLE_MAX => Written::Bytes(ByteBuf::from(bytes)),
            len => Written::Digest { len, digest: digest(bytes) },
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Access::Read { domain, at, bytes } => {
                write!(f, "domain {} read at {at}: {}", domain.0, hex(bytes))
            }
            Access::Wrote { domain, at, what: Written::Bytes(bytes) } => {
                write!(f, "domain {} wrote at {at}: {}", domain.0, hex(bytes))
            }
            Access::Wrote { domain, at, what: Written::Digest { len, digest } } => {
                write!(f, "domain {} wrote at {at}: {len} bytes of digest {digest:016x}", domain.0)
            }
        }
    }
}

/// An output of an engine.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordedOutput {
    Message {
        to: ComponentId,
        line: Encoded,
        /// The bytes of the engine's own memory that it names: the headers of a segment.
        shown: ByteBuf,
        /// Bytes of payload that these name in turn, and their digest.
        payload: (u64, u64),
    },
    Effect(String),
}

impl fmt::Debug for RecordedOutput {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            RecordedOutput::Effect(what) => write!(f, "effect {what}"),
            RecordedOutput::Message { to, line, shown, payload: (len, digest) } => {
                let words = line.map(|w| format!("{w:x}")).join(" ");
                write!(f, "to {to}: {words}")?;
                if !shown.is_empty() {
                    write!(f, "; segment {}, payload of {len} bytes, digest {digest:016x}", hex(shown))?;
                }
                Ok(())
            }
        }
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub struct Call {
    pub now: Instant,
    pub random: Random,
    /// Room in the queue to each peer.
    pub rooms: Vec<(ComponentId, usize)>,
    /// Bytes of other components that the message, or an output, names.
    pub memory: Vec<(PacketRef, ByteBuf)>,
    pub input: Input,
    pub accesses: Vec<Access>,
    pub outputs: Vec<RecordedOutput>,
}

/// How another component's memory is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    pub base: usize,
    pub slot_size: usize,
    pub slots: usize,
}

impl Cut {
    pub fn of(view: &PoolView) -> Cut {
        Cut { base: view.base, slot_size: view.slot_size, slots: view.slots }
    }

    /// The cut of a domain's arena.
    pub fn of_arena(g: Geometry) -> Cut {
        Cut { base: ARENA_HEADER_LEN, slot_size: g.stride(), slots: g.slots }
    }

    /// Bytes of all of it.
    pub fn total_len(&self) -> Option<usize> {
        self.slots.checked_mul(self.slot_size)?.checked_add(self.base)
    }
}

/// Parts of a memory, with their offsets.
pub type Image = Vec<(usize, ByteBuf)>;

/// What ended a life in the middle of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    Panic,
    /// A fault, by the number of its signal.
    Signal(i32),
    /// It did not return, and was ended.
    Hang,
}

/// What the server did then.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Cause::Panic => f.write_str("panicked"),
            Cause::Signal(number) => write!(f, "died of signal {number}"),
            Cause::Hang => f.write_str("hung"),
        }
    }
}

/// The call in which a server died after its recording was full, and what a successor needs to make it alone.
#[derive(Clone, Serialize, Deserialize)]
pub struct LastCall {
    pub cause: Cause,
    /// Its arena as it died, with what undoes the turn.
    pub arena: Image,
    /// How it was configured, and the domains that it had heard of.
    pub events: Vec<RecordedEvent>,
    pub peers: Vec<ComponentId>,
    /// Pools of other components that the call names.
    pub pools: Vec<(PoolId, Cut)>,
    /// Pages of programs that it had used.
    pub pages: Vec<(DomainId, Image)>,
    pub call: Call,
}

/// A line of a recording.
#[derive(Clone, Serialize, Deserialize)]
pub enum Entry {
    /// A pool of another component that later calls name; `None`: it is no longer mapped.
    Pool(PoolId, Option<Cut>),
    Call(Call),
    End(End),
    /// Comes after the end of a full recording.
    Last(Box<LastCall>),
}

impl Entry {
    /// The numbers of its variants in a file.
    pub(crate) const CALL: u32 = 1;
    pub(crate) const LAST: u32 = 3;
}

/// How a recording ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// The server ended in order.
    InOrder,
    /// The limit of bytes of calls was reached.
    Full(usize),
    /// The server died, and its last calls may be missing.
    #[default]
    Died,
    /// A part of the file is missing.
    CutShort,
    /// The server died in the last call.
    InCall(Cause),
}

/// After how many bytes of calls a recording in memory is full, and how many it has.
#[derive(Clone, Default)]
pub struct Limit {
    bytes_max: Option<usize>,
    bytes: usize,
}

/// A recording in memory.
#[derive(Clone, Default)]
pub struct Recording {
    /// Before which call a pool was mapped or given up.
    pub pools: Vec<(usize, PoolId, Option<Cut>)>,
    pub calls: Vec<Call>,
    pub end: End,
    pub last: Option<Box<LastCall>>,
    pub limit: Limit,
}

impl Recording {
    pub(crate) fn is_full(&self) -> bool {
        self.limit.bytes_max.is_some_and(|max| self.limit.bytes >= max)
    }

    /// One that is full after so many bytes of calls.
    pub fn limited(bytes_max: usize) -> Recording {
        Recording { limit: Limit { bytes_max: Some(bytes_max), bytes: 0 }, ..Recording::default() }
    }

    pub(crate) fn count(&mut self, call: &Call) {
        let Some(bytes_max) = self.limit.bytes_max else { return };
        self.limit.bytes += postcard::to_allocvec(call).map_or(0, |bytes| bytes.len());
        if self.limit.bytes >= bytes_max {
            self.end = End::Full(bytes_max);
        }
    }

    /// Everything that came out, in order.
    pub fn outputs(&self) -> impl Iterator<Item = &RecordedOutput> {
        self.calls.iter().flat_map(|c| &c.outputs)
    }

    /// Segments that came out, or frames, and their bytes of payload.
    pub fn segments(&self) -> (usize, u64) {
        let payloads = self.outputs().filter_map(|o| match o {
            RecordedOutput::Message { shown, payload, .. } if !shown.is_empty() => Some(payload.0),
            _ => None,
        });
        payloads.fold((0, 0), |(n, bytes), payload| (n + 1, bytes + payload))
    }
}

/// FNV-1a (draft-eastlake-fnv): detects accidents, not forgery.
pub fn digest(bytes: &[u8]) -> u64 {
    digest_on(0xcbf2_9ce4_8422_2325, bytes)
}

/// Continues the digest `before` with `bytes`.
pub fn digest_on(before: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(before, |h, b| (h ^ *b as u64).wrapping_mul(0x0100_0000_01b3))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
