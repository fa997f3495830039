//! The replay oracle: a server is a function of its inputs, and here that is checked.
//!
//! A [`Recorder`] wraps an engine in its server and writes down every call: time, randomness, room
//! in the queues, the message or event, the bytes of other components' memory that the message
//! points to, and everything that came out (with the bytes of the engine's own memory that it points
//! to). [`replay`] makes the same calls to a fresh engine of the same make, which must answer with
//! the same bytes. It works for engines whose view of shared memory follows from their messages:
//! ip and the filter; not for a transport, whose applications change their pages meanwhile.

use eft_base::{Instant, PacketRef, PoolId, Random};
use eft_channel::status::Status;
use eft_channel::{Memory, PoolView, Segment};
use eft_component::{Component, Context, Event, Outbox, Output};
use eft_messages::{Encoded, Peer};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::rc::Rc;

/// A call to an engine.
#[derive(Clone, Serialize, Deserialize)]
pub enum Input {
    Message(Peer, Encoded),
    #[serde(with = "crate::file::event")]
    Event(Event),
    Poll(usize),
    Expire,
    Reborn(Peer),
    Flush,
}

/// What an engine let out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Let {
    /// To whom, what, and the bytes of the engine's own memory that it names.
    Message(Peer, Encoded, #[serde(with = "serde_bytes")] Vec<u8>),
    Effect(String),
}

#[derive(Clone, Serialize, Deserialize)]
pub struct Call {
    pub now: Instant,
    random: Random,
    /// Room in the queue to each peer.
    rooms: Vec<(Peer, usize)>,
    /// Bytes of others that the message names.
    pub memory: Vec<(PacketRef, ByteBuf)>,
    pub input: Input,
    pub outputs: Vec<Let>,
}

/// How another component's memory is cut.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Cut {
    base: usize,
    slot_size: usize,
    slots: usize,
}

/// A line of a recording.
#[derive(Clone, Serialize, Deserialize)]
pub enum Entry {
    /// Memory of another component that later calls name.
    Pool(PoolId, Cut),
    Call(Call),
    /// The server ended as it was told. Without this line it died, and its last calls may be missing.
    End,
}

/// Where a recorder writes.
pub trait Log {
    fn note(&mut self, entry: Entry);

    /// Whether nothing more is written down.
    fn is_full(&self) -> bool;
}

/// A recording in memory.
#[derive(Clone, Default)]
pub struct Recording {
    pools: BTreeMap<PoolId, Cut>,
    pub calls: Vec<Call>,
    pub ended: bool,
}

impl Log for Recording {
    fn note(&mut self, entry: Entry) {
        match entry {
            Entry::Pool(id, cut) => drop(self.pools.insert(id, cut)),
            Entry::Call(call) => self.calls.push(call),
            Entry::End => self.ended = true,
        }
    }

    fn is_full(&self) -> bool {
        false
    }
}

impl<L: Log> Log for Rc<RefCell<L>> {
    fn note(&mut self, entry: Entry) {
        self.borrow_mut().note(entry);
    }

    fn is_full(&self) -> bool {
        self.borrow().is_full()
    }
}

/// What a recorder must know of the engine.
pub struct Make<C: Component> {
    pub peers: Vec<Peer>,
    /// Of the queues to them.
    pub capacity: usize,
    /// The engine's own pools.
    pub own: Memory,
    /// What a message names in others' memory.
    pub reads: fn(&Memory, &C::In) -> Vec<PacketRef>,
    /// What an output names in the engine's own memory.
    pub shows: fn(&C::Out) -> Option<PacketRef>,
}

/// An engine under observation.
pub struct Recorder<C: Component, L: Log> {
    component: C,
    make: Make<C>,
    log: L,
    /// Pools that the log knows.
    known: BTreeSet<PoolId>,
}

impl<C: Component, L: Log> Recorder<C, L>
where
    C::Out: Debug,
{
    pub fn new(component: C, make: Make<C>, log: L) -> Recorder<C, L> {
        Recorder { component, make, log, known: BTreeSet::new() }
    }

    /// Makes a call and writes it down.
    fn observe<T>(
        &mut self,
        cx: &mut Context,
        out: &mut Outbox<C::Out>,
        input: Input,
        names: Vec<PacketRef>,
        call: impl FnOnce(&mut C, &mut Context, &mut Outbox<C::Out>) -> T,
    ) -> T {
        if self.log.is_full() {
            return call(&mut self.component, cx, out);
        }
        let rooms = self.make.peers.iter().map(|p| (*p, out.room(*p))).collect();
        let random = cx.random.clone();
        let mut memory = Vec::new();
        for r in names {
            let mut bytes = vec![0; r.len as usize];
            let Some(view) = cx.memory.view(r.pool) else {
                continue;
            };
            if self.known.insert(r.pool) {
                let cut = Cut { base: view.base, slot_size: view.slot_size, slots: view.slots };
                self.log.note(Entry::Pool(r.pool, cut));
            }
            if cx.memory.read(r, &mut bytes).is_some() {
                memory.push((r, ByteBuf::from(bytes)));
            }
        }
        let before = out.items().len();
        let result = call(&mut self.component, cx, out);
        let outputs = lets(&self.make, &out.items()[before..]);
        self.log.note(Entry::Call(Call { now: cx.now, random, rooms, memory, input, outputs }));
        result
    }
}

fn lets<C: Component>(make: &Make<C>, items: &[C::Out]) -> Vec<Let>
where
    C::Out: Debug,
{
    let one = |o: &C::Out| match o.peer() {
        Some(peer) => {
            let shown = (make.shows)(o).and_then(|r| {
                let mut bytes = vec![0; r.len as usize];
                make.own.read(r, &mut bytes).map(|()| bytes)
            });
            Let::Message(peer, o.encode(), shown.unwrap_or_default())
        }
        None => Let::Effect(format!("{o:?}")),
    };
    items.iter().map(one).collect()
}

/// Dropped when its server ends as it was told.
impl<C: Component, L: Log> Drop for Recorder<C, L> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.log.note(Entry::End);
        }
    }
}

impl<C: Component, L: Log> Component for Recorder<C, L>
where
    C::Out: Debug,
{
    type In = (Encoded, C::In);
    type Out = C::Out;
    const COUNTERS: &'static [&'static str] = C::COUNTERS;

    fn decode(peer: Peer, line: &Encoded) -> Option<Self::In> {
        C::decode(peer, line).map(|m| (*line, m))
    }

    fn receive(&mut self, cx: &mut Context, from: Peer, (line, message): Self::In, out: &mut Outbox<C::Out>) {
        let names = (self.make.reads)(cx.memory, &message);
        self.observe(cx, out, Input::Message(from, line), names, |c, cx, out| {
            c.receive(cx, from, message, out)
        })
    }

    fn event(&mut self, cx: &mut Context, event: Event, out: &mut Outbox<C::Out>) {
        let copy = event.clone();
        self.observe(cx, out, Input::Event(copy), Vec::new(), |c, cx, out| c.event(cx, event, out))
    }

    fn poll(&mut self, cx: &mut Context, budget: usize, out: &mut Outbox<C::Out>) -> usize {
        self.observe(cx, out, Input::Poll(budget), Vec::new(), |c, cx, out| c.poll(cx, budget, out))
    }

    fn expire(&mut self, cx: &mut Context, out: &mut Outbox<C::Out>) {
        self.observe(cx, out, Input::Expire, Vec::new(), |c, cx, out| c.expire(cx, out))
    }

    fn deadline(&self) -> Option<Instant> {
        self.component.deadline()
    }

    fn peer_reborn(&mut self, cx: &mut Context, peer: Peer, out: &mut Outbox<C::Out>) {
        self.observe(cx, out, Input::Reborn(peer), Vec::new(), |c, cx, out| c.peer_reborn(cx, peer, out))
    }

    fn flush(&mut self, cx: &mut Context, out: &mut Outbox<C::Out>) {
        self.observe(cx, out, Input::Flush, Vec::new(), |c, cx, out| c.flush(cx, out))
    }
}

/// Where a replay answered differently.
#[derive(Debug, PartialEq, Eq)]
pub struct Divergence {
    pub call: usize,
    pub recorded: Vec<Let>,
    pub replayed: Vec<Let>,
}

/// Makes the recorded calls to a fresh engine. `make` is of the fresh engine; `segments` gives zeroed
/// memory of a length, which may be large and sparse.
pub fn replay<C: Component>(
    recording: &Recording,
    mut component: C,
    make: &Make<C>,
    segments: impl Fn(usize) -> Segment,
) -> Result<(), Box<Divergence>>
where
    C::Out: Debug,
{
    let mut memory = Memory::new();
    for (id, cut) in &recording.pools {
        let view = PoolView {
            segment: segments(cut.base + cut.slots * cut.slot_size),
            base: cut.base,
            slot_size: cut.slot_size,
            slots: cut.slots,
        };
        memory.insert(*id, view);
    }
    let status = Status::heap();
    let mut out = Outbox::new();
    for (i, call) in recording.calls.iter().enumerate() {
        for (r, bytes) in &call.memory {
            if let Some((segment, offset)) = memory.resolve(*r) {
                segment.write(offset, bytes).expect("heap");
            }
        }
        for (peer, room) in &call.rooms {
            out.set_room(*peer, *room, make.capacity);
        }
        let mut random = call.random.clone();
        let mut cx = Context { now: call.now, random: &mut random, memory: &memory, status: &status };
        match call.input.clone() {
            Input::Message(peer, line) => {
                if let Some(message) = C::decode(peer, &line) {
                    component.receive(&mut cx, peer, message, &mut out);
                }
            }
            Input::Event(event) => component.event(&mut cx, event, &mut out),
            Input::Poll(budget) => {
                component.poll(&mut cx, budget, &mut out);
            }
            Input::Expire => component.expire(&mut cx, &mut out),
            Input::Reborn(peer) => component.peer_reborn(&mut cx, peer, &mut out),
            Input::Flush => component.flush(&mut cx, &mut out),
        }
        let replayed = lets(make, out.items());
        out.drain();
        if replayed != call.outputs {
            return Err(Box::new(Divergence { call: i, recorded: call.outputs.clone(), replayed }));
        }
    }
    Ok(())
}

impl Recording {
    /// Everything that came out, in order.
    pub fn outputs(&self) -> impl Iterator<Item = &Let> {
        self.calls.iter().flat_map(|c| &c.outputs)
    }
}
