//! What is written of the call in which a server dies, as a [`Call`](crate::recording::Call) or a
//! [`LastCall`](crate::recording::LastCall) is, but straight from where it lies.
//!
//! A fatal signal may come in the middle of an allocation, or while a lock is held. So nothing here allocates or locks.

use crate::durable::Durable;
use crate::recording::{Access, Cause, Cut, Entry, Input, RecordedEvent, RecordedOutput};
use crate::surroundings::{PAGES_MAX, Surroundings, UsedPages};
use eft_base::{DomainId, Instant, PacketRef, PoolId, Random};
use eft_channel::Memory;
use eft_channel::socket::SOCKET_HEADER_LEN;
use eft_messages::ComponentId;
use serde::ser::{Error, SerializeSeq, SerializeTuple};
use serde::{Serialize, Serializer};
use serde_bytes::{ByteBuf, Bytes};

/// Most bytes of a packet that are written.
const PACKET_MAX: usize = 80 << 10;

/// Bytes of an entry beside its packets, its arena and the pages of programs: more than configurations have.
const OTHERS_MAX: usize = 4 << 20;

/// The most bytes of an entry about a server with so many bytes of durable state.
pub fn entry_max(durable: usize) -> usize {
    durable + PAGES_MAX * (SOCKET_HEADER_LEN + 16) + OTHERS_MAX
}

/// The entry of a call in which a server dies.
pub enum LastWords<'a> {
    /// The recording goes on until there.
    Call(CallRef<'a>, Cause),
    /// The recording was full before.
    Alone(LastRef<'a>),
}

impl Serialize for LastWords<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            LastWords::Call(call, _) => s.serialize_newtype_variant("Entry", Entry::CALL, "Call", call),
            LastWords::Alone(last) => s.serialize_newtype_variant("Entry", Entry::LAST, "Last", last),
        }
    }
}

/// A [`Call`](crate::recording::Call) without outputs.
#[derive(Serialize)]
pub struct CallRef<'a> {
    pub now: Instant,
    pub random: &'a Random,
    pub rooms: &'a [(ComponentId, usize)],
    pub memory: Named<'a>,
    pub input: &'a Input,
    pub accesses: &'a [Access],
    pub outputs: &'a [RecordedOutput],
}

/// A [`LastCall`](crate::recording::LastCall).
#[derive(Serialize)]
pub struct LastRef<'a> {
    cause: Cause,
    arena: ArenaRef<'a>,
    events: Events<'a>,
    peers: &'a [ComponentId],
    pools: Pools<'a>,
    pages: Domains<'a>,
    call: CallRef<'a>,
}

impl<'a> LastRef<'a> {
    /// Of a call that names memory.
    pub(crate) fn of(
        cause: Cause,
        call: CallRef<'a>,
        (memory, names): (&'a Memory, &'a [PacketRef]),
        surroundings: &'a Surroundings,
        used: Option<&'a UsedPages>,
    ) -> LastRef<'a> {
        let events = Events(surroundings, memory);
        LastRef {
            cause,
            arena: ArenaRef(surroundings.arena.as_ref()),
            events,
            peers: &surroundings.peers,
            pools: Pools(memory, names),
            pages: Domains(events, used),
            call,
        }
    }
}

/// Writes as many items as were counted.
fn sequence<S: Serializer, T: Serialize>(
    s: S,
    items: impl Iterator<Item = T> + Clone,
) -> Result<S::Ok, S::Error> {
    let mut seq = s.serialize_seq(Some(items.clone().count()))?;
    for item in items {
        seq.serialize_element(&item)?;
    }
    seq.end()
}

/// A pair whose second part is made of the first when it is written.
struct Pair<A, B>(A, B);

impl<A: Serialize, B: Serialize> Serialize for Pair<A, B> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut pair = s.serialize_tuple(2)?;
        pair.serialize_element(&self.0)?;
        pair.serialize_element(&self.1)?;
        pair.end()
    }
}

/// The memory of other components that a call names.
pub enum Named<'a> {
    /// As it was before the call.
    Kept(&'a [(PacketRef, ByteBuf)]),
    /// As it is.
    Now(&'a Memory, &'a [PacketRef]),
}

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match *self {
            Named::Kept(kept) => kept.serialize(s),
            Named::Now(memory, names) => {
                let is_first = |(i, r): &(usize, &PacketRef)| !names[..*i].contains(*r);
                let is_here = |(_, r): &(usize, &PacketRef)| Contents(memory, **r).is_here();
                let first = names.iter().enumerate().filter(is_first).filter(is_here);
                sequence(s, first.map(|(_, r)| Pair(r, Contents(memory, *r))))
            }
        }
    }
}

/// The bytes that a reference names.
struct Contents<'a>(&'a Memory, PacketRef);

impl Contents<'_> {
    fn is_here(&self) -> bool {
        self.1.len as usize <= PACKET_MAX && self.0.resolve(self.1).is_some()
    }
}

impl Serialize for Contents<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut room = [0; PACKET_MAX];
        let bytes = &mut room[..self.1.len as usize];
        if let Some((segment, at)) = self.0.resolve(self.1) {
            segment.read(at, bytes).map_err(|_| S::Error::custom("it lies nowhere"))?;
        }
        Bytes::new(bytes).serialize(s)
    }
}

/// The pools that a call names.
struct Pools<'a>(&'a Memory, &'a [PacketRef]);

impl Serialize for Pools<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let cut = |r: &PacketRef| -> Option<(PoolId, Cut)> { Some((r.pool, Cut::of(self.0.view(r.pool)?))) };
        sequence(s, self.1.iter().filter_map(cut))
    }
}

/// The pages of an arena that are not empty.
struct ArenaRef<'a>(Option<&'a Durable>);

impl Serialize for ArenaRef<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut count = 0;
        if let Some(durable) = self.0 {
            durable.each_page(&mut |_, _| count += 1);
        }
        let mut seq = s.serialize_seq(Some(count))?;
        let mut left = count;
        let mut done = Ok(());
        if let Some(durable) = self.0 {
            durable.each_page(&mut |at, page| {
                if done.is_ok() && left > 0 {
                    left -= 1;
                    done = seq.serialize_element(&Pair(at, Bytes::new(page)));
                }
            });
        }
        done?;
        if left > 0 {
            return Err(S::Error::custom("the arena changes"));
        }
        seq.end()
    }
}

/// What the server was told, but for domains that have ended.
#[derive(Clone, Copy)]
struct Events<'a>(&'a Surroundings, &'a Memory);

impl<'a> Events<'a> {
    fn all(self) -> impl Iterator<Item = &'a RecordedEvent> + Clone {
        self.0.events.iter().filter(move |event| match event {
            RecordedEvent::Domain { pool, .. } => self.1.view(*pool).is_some(),
            _ => true,
        })
    }
}

impl Serialize for Events<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        sequence(s, self.all())
    }
}

/// The pages of programs that the server has used, by domain.
struct Domains<'a>(Events<'a>, Option<&'a UsedPages>);

impl Serialize for Domains<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let memory = self.0.1;
        let pages = |event: &RecordedEvent| match event {
            RecordedEvent::Domain { domain, pool, .. } => {
                Some(Pair(*domain, Pages { memory, domain: *domain, pool: *pool, used: self.1 }))
            }
            _ => None,
        };
        sequence(s, self.0.all().filter_map(pages))
    }
}

/// Those of one domain.
struct Pages<'a> {
    memory: &'a Memory,
    domain: DomainId,
    pool: PoolId,
    used: Option<&'a UsedPages>,
}

impl Serialize for Pages<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let view = self.memory.view(self.pool);
        let is_here = |at: &usize| {
            view.is_some_and(|view| {
                at.checked_add(SOCKET_HEADER_LEN).is_some_and(|end| end <= view.segment.len())
            })
        };
        let of_it = self.used.into_iter().flat_map(UsedPages::kept).filter(|(of, _)| *of == self.domain);
        let read = |at: usize| {
            let mut bytes = [0; SOCKET_HEADER_LEN];
            let _ = view.map(|view| view.segment.read(at, &mut bytes));
            Pair(at, PageBytes(bytes))
        };
        sequence(s, of_it.map(|(_, at)| at).filter(is_here).map(read))
    }
}

struct PageBytes([u8; SOCKET_HEADER_LEN]);

impl Serialize for PageBytes {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        Bytes::new(&self.0).serialize(s)
    }
}
