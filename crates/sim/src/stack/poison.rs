//! Servers that die of what they handle.

use super::POISONED;
use eft_arena::docket;
use eft_base::{Instant, PacketRef};
use eft_channel::{Memory, Segment};
use eft_component::server::FRAME_COUNTERS;
use eft_component::{Component, Context, Occasion, Outbox};
use eft_messages::{ComponentId, Encoded};
use std::sync::{Arc, Mutex};

/// Bytes that kill a server.
#[derive(Clone, Default)]
pub(super) struct Poison(Arc<Mutex<Vec<u8>>>);

impl Poison {
    pub fn set(&self, bytes: Vec<u8>) {
        *self.0.lock().expect("nobody dies while it has it") = bytes;
    }

    pub fn is_there(&self) -> bool {
        self.0.lock().is_ok_and(|poison| !poison.is_empty())
    }

    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.0.lock().is_ok_and(|p| !p.is_empty() && bytes.windows(p.len()).any(|w| w == &p[..]))
    }
}

/// An engine that dies of messages with the poison in them or in the memory that they name, as soon as it has handled one, and of
/// timers whose name it is, as the last one that ran. What it refuses to handle, or keeps for later, does no harm.
pub(super) struct Poisonable<C: Component> {
    engine: C,
    /// The memory that a message names.
    reads: fn(&Memory, &C::In) -> Vec<PacketRef>,
    poison: Poison,
    line: Encoded,
    /// Where it names what it handles.
    arena: Segment,
    /// What runs by that, for people.
    running: fn(&Segment) -> Option<String>,
    /// The counter of refused inputs.
    refused: usize,
}

impl<C: Component> Poisonable<C> {
    pub fn new(
        engine: C,
        reads: fn(&Memory, &C::In) -> Vec<PacketRef>,
        poison: Poison,
        (arena, running): (Segment, fn(&Segment) -> Option<String>),
    ) -> Poisonable<C> {
        let own = C::COUNTERS.iter().position(|name| *name == "drop_fatal").expect("it names its inputs");
        let refused = FRAME_COUNTERS.len() + own;
        Poisonable { engine, reads, poison, line: Encoded::default(), arena, running, refused }
    }

    fn handles_something(&self) -> bool {
        let mut head = [0; docket::END];
        self.arena.read(0, &mut head).is_ok_and(|()| docket::has_running(&head))
    }

    fn is_poisonous(&self, memory: &Memory, message: &C::In) -> bool {
        let line = self.line.iter().flat_map(|word| word.to_le_bytes()).collect();
        let read = |packet: PacketRef| {
            let mut bytes = vec![0; packet.len as usize];
            memory.read(packet, &mut bytes).map_or(Vec::new(), |_| bytes)
        };
        let named = (self.reads)(memory, message).into_iter().map(read);
        core::iter::once(line).chain(named).any(|bytes: Vec<u8>| self.poison.is_in(&bytes))
    }
}

impl<C: Component> Component for Poisonable<C> {
    type In = C::In;
    type Out = C::Out;
    type Event = C::Event;
    type Effect = C::Effect;
    const COUNTERS: &'static [&'static str] = C::COUNTERS;

    fn decode(peer: ComponentId, line: &Encoded) -> Option<C::In> {
        C::decode(peer, line)
    }

    fn begin(&mut self, occasion: Occasion<C::Event>) {
        if let Occasion::Message { line, .. } = occasion {
            self.line = *line;
        }
        self.engine.begin(occasion);
    }

    fn check(&self) {
        self.engine.check();
    }

    fn commit(&mut self, cx: &mut Context) {
        self.engine.commit(cx);
    }

    fn receive(&mut self, cx: &mut Context, from: ComponentId, message: C::In, out: &mut Outbox<C::Out>) {
        let kills = self.poison.is_there() && self.is_poisonous(cx.memory, &message);
        let before = cx.status.get(self.refused);
        self.engine.receive(cx, from, message, out);
        let survives = !kills || cx.status.get(self.refused) != before || !self.handles_something();
        assert!(survives, "{POISONED}");
    }

    fn event(&mut self, cx: &mut Context, event: C::Event, out: &mut Outbox<C::Out>) {
        self.engine.event(cx, event, out);
    }

    fn poll(&mut self, cx: &mut Context, budget: usize, out: &mut Outbox<C::Out>) -> usize {
        self.engine.poll(cx, budget, out)
    }

    fn wants_device(&self) -> bool {
        self.engine.wants_device()
    }

    fn expire(&mut self, cx: &mut Context, out: &mut Outbox<C::Out>) {
        self.engine.expire(cx, out);
        let kills = |name: String| self.poison.is_in(name.as_bytes());
        let survives = !self.poison.is_there() || !(self.running)(&self.arena).is_some_and(kills);
        assert!(survives, "{POISONED}");
    }

    fn deadline(&self) -> Option<Instant> {
        self.engine.deadline()
    }

    fn peer_reborn(&mut self, cx: &mut Context, peer: ComponentId, out: &mut Outbox<C::Out>) {
        self.engine.peer_reborn(cx, peer, out);
    }

    fn flush(&mut self, cx: &mut Context, out: &mut Outbox<C::Out>) {
        self.engine.flush(cx, out);
    }
}
