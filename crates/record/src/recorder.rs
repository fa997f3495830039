//! An engine under observation, live or simulated.
//!
//! A [`Recorder`] stands between a server and its engine and writes down every call: time, randomness, room in the
//! queues, the message or event, the bytes of other components' memory that it names, what the engine read in its
//! applications' pages and wrote there, and everything that came out. Neither side notices it: to the server it is
//! the engine, and the engine cannot see the observer of its pages ([`eft_channel::access`]).
//!
//! Invariant: recording does not change what the engine does.

use crate::durable::Durable;
use crate::last_words::{CallRef, LastRef, LastWords, Named};
use crate::log::Log;
use crate::recording::{
    Access, Call, Cause, Cut, End, Entry, Input, Recorded, RecordedOutput, Written, digest, digest_on,
};
use crate::surroundings::{Surroundings, UsedPages, page_of};
use eft_base::{DomainId, Instant, PacketRef, PoolId};
use eft_channel::Memory;
use eft_channel::access::AccessObserver;
use eft_channel::socket::Geometry;
use eft_component::{Component, Context, Occasion, Outbox, Output};
use eft_messages::{ComponentId, Encoded};
use serde_bytes::ByteBuf;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// What a recorder must know of the engine.
pub struct Make<C: Component> {
    /// Those whose queues are recorded; others are as soon as they are connected.
    pub peers: Vec<ComponentId>,
    /// Capacity of the queues to the peers.
    pub capacity: usize,
    /// The engine's own pools.
    pub own: Memory,
    /// The memory of other components that a message names.
    pub reads: fn(&Memory, &C::In) -> Vec<PacketRef>,
    /// The engine's own memory that an output names.
    pub shows: fn(&C::Out) -> Option<PacketRef>,
    /// The payload that these bytes name in turn, in the memory of applications.
    pub payload: fn(&[u8]) -> Vec<PacketRef>,
}

/// What was read and written in a call.
struct Transcript {
    open: bool,
    accesses: Vec<Access>,
    used: UsedPages,
}

impl Transcript {
    fn note(&mut self, domain: DomainId, page: Option<usize>, access: impl FnOnce() -> Access) {
        if let Some(page) = page {
            self.used.note(domain, page);
        }
        if self.open {
            self.accesses.push(access());
        }
    }
}

/// Writes down what passes between the engine and the pages of one domain.
struct Scribe {
    domain: DomainId,
    geometry: Geometry,
    transcript: Arc<Mutex<Transcript>>,
    beside: Option<Arc<dyn AccessObserver>>,
}

/// Locks a mutex, even if an engine panicked while it held it: the content stays valid.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`lock`], but whoever holds it may have been interrupted.
fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Makes a call, the second one, and may make the first one in the middle of it, if the process dies there of something that
/// does not unwind: then in a signal's handler, where nothing may be allocated or waited for.
pub type During = fn(&mut dyn FnMut(Cause), &mut dyn FnMut());

impl AccessObserver for Scribe {
    fn read(&self, at: usize, bytes: &mut [u8]) {
        let (domain, page) = (self.domain, page_of(&self.geometry, at));
        let access = || Access::Read { domain, at, bytes: ByteBuf::from(&*bytes) };
        lock(&self.transcript).note(domain, page, access);
    }

    fn wrote(&self, at: usize, bytes: &[u8]) {
        let (domain, page) = (self.domain, page_of(&self.geometry, at));
        let access = || Access::Wrote { domain, at, what: Written::of(bytes) };
        lock(&self.transcript).note(domain, page, access);
        if let Some(observer) = &self.beside {
            observer.wrote(at, bytes);
        }
    }
}

/// An engine under observation.
pub struct Recorder<C: Component, L: Log> {
    component: C,
    make: Make<C>,
    log: L,
    /// Pools that the log knows.
    known: BTreeMap<PoolId, Cut>,
    surroundings: Surroundings,
    transcript: Arc<Mutex<Transcript>>,
    beside: Option<Arc<dyn AccessObserver>>,
    during: During,
}

impl<C: Component<Event: Recorded>, L: Log> Recorder<C, L>
where
    C::Out: Debug,
{
    pub fn new(component: C, make: Make<C>, log: L) -> Recorder<C, L> {
        let transcript = Transcript { open: true, accesses: Vec::new(), used: UsedPages::default() };
        let transcript = Arc::new(Mutex::new(transcript));
        let surroundings = Surroundings::default();
        let during: During = |_, call| call();
        Recorder {
            component,
            make,
            log,
            known: BTreeMap::new(),
            surroundings,
            transcript,
            beside: None,
            during,
        }
    }

    /// The engine's arena, which is read when it dies.
    pub fn with_arena(mut self, arena: Option<Durable>) -> Self {
        self.surroundings.arena = arena;
        self
    }

    /// How calls are made, so that a signal in the middle of one is noted.
    pub fn with_calls(mut self, during: During) -> Self {
        self.during = during;
        self
    }

    /// Another observer that hears of what the engine writes.
    pub fn beside(mut self, observer: Arc<dyn AccessObserver>) -> Self {
        self.beside = Some(observer);
        self
    }

    /// Makes a call and writes it down; if the recording is full, only if the server dies in it.
    fn observe<T>(
        &mut self,
        cx: &mut Context,
        out: &mut Outbox<C::Out>,
        input: Input,
        names: Vec<PacketRef>,
        call: impl FnOnce(&mut C, &mut Context, &mut Outbox<C::Out>) -> T,
    ) -> T {
        for peer in out.peers() {
            if !self.make.peers.contains(&peer) {
                self.make.peers.push(peer);
            }
        }
        let rooms: Vec<_> = self.make.peers.iter().map(|p| (*p, out.room(*p))).collect();
        let random = cx.random.clone();
        let is_full = self.log.is_full();
        let mut memory = Vec::new();
        if !is_full {
            for r in &names {
                note_pool(&mut self.known, &mut self.log, cx.memory, r.pool);
                keep(cx.memory, &mut memory, *r);
            }
        }
        let before = out.items().len();
        self.open_transcript(!is_full);
        let (now, all_memory) = (cx.now, cx.memory);
        let (log, surroundings, transcript) = (&mut self.log, &self.surroundings, &self.transcript);
        let mut die = |cause: Cause| {
            let seen = try_lock(transcript);
            let accesses = seen.as_ref().map_or(&[][..], |seen| &seen.accesses);
            let memory = if is_full { Named::Now(all_memory, &names) } else { Named::Kept(&memory) };
            let (random, rooms, input, outputs) = (&random, &rooms, &input, &[]);
            let call = CallRef { now, random, rooms, memory, input, accesses, outputs };
            log.note_last(&if is_full {
                let used = seen.as_ref().map(|seen| &seen.used);
                LastWords::Alone(LastRef::of(cause, call, (all_memory, &names), surroundings, used))
            } else {
                LastWords::Call(call, cause)
            });
        };
        let (mut call, mut result) = (Some(call), None);
        let component = &mut self.component;
        (self.during)(&mut die, &mut || {
            if let Some(call) = call.take() {
                result = Some(catch_unwind(AssertUnwindSafe(|| call(component, cx, out))));
            }
        });
        let result = match result.expect("it was called") {
            Ok(result) => result,
            // A call that dies is the one that matters most.
            Err(why) => {
                die(Cause::Panic);
                resume_unwind(why);
            }
        };
        if is_full {
            return result;
        }
        let outputs = lets(&self.make, &out.items()[before..], |r| {
            note_pool(&mut self.known, &mut self.log, cx.memory, r.pool);
            keep(cx.memory, &mut memory, r)
        });
        let accesses = std::mem::take(&mut lock(&self.transcript).accesses);
        self.log.note(Entry::Call(Call { now, random, rooms, memory, input, accesses, outputs }));
        result
    }

    /// Whether reads and writes are noted. Which pages are used is noted always.
    fn open_transcript(&self, open: bool) {
        let mut transcript = lock(&self.transcript);
        if transcript.open && !open {
            transcript.accesses = Vec::new();
        }
        transcript.open = open;
    }

    /// Attaches an observer to a domain's arena, which records reads and writes.
    fn watch(&mut self, event: &mut C::Event) {
        if let Some((domain, pool, arena)) = event.opened() {
            self.known.insert(pool, Cut::of_arena(arena.geometry()));
            let geometry = arena.geometry();
            let (transcript, beside) = (self.transcript.clone(), self.beside.clone());
            let scribe = Scribe { domain, geometry, transcript, beside };
            *arena = arena.clone().observed_by(Arc::new(scribe));
        }
    }
}

/// Tells the log the size of `pool`, if it does not know it yet.
fn note_pool(known: &mut BTreeMap<PoolId, Cut>, log: &mut impl Log, memory: &Memory, pool: PoolId) {
    let now = memory.view(pool).map(Cut::of);
    let before = match now {
        Some(cut) => known.insert(pool, cut),
        None => known.remove(&pool),
    };
    if now != before {
        log.note(Entry::Pool(pool, now));
    }
}

/// The bytes that `r` names; the first time they are kept.
fn keep(memory: &Memory, kept: &mut Vec<(PacketRef, ByteBuf)>, r: PacketRef) -> Option<Vec<u8>> {
    if let Some((_, bytes)) = kept.iter().find(|(k, _)| *k == r) {
        return Some(bytes.to_vec());
    }
    let bytes = contents(memory, r)?;
    kept.push((r, ByteBuf::from(bytes.clone())));
    Some(bytes)
}

/// The bytes that `r` names, if it is valid.
pub(crate) fn contents(memory: &Memory, r: PacketRef) -> Option<Vec<u8>> {
    let (segment, offset) = memory.resolve(r)?;
    let mut bytes = vec![0; r.len as usize];
    segment.read(offset, &mut bytes).ok()?;
    Some(bytes)
}

/// The outputs, with the bytes that they name. `payload` reads the memory of applications.
pub(crate) fn lets<C: Component>(
    make: &Make<C>,
    items: &[C::Out],
    mut payload: impl FnMut(PacketRef) -> Option<Vec<u8>>,
) -> Vec<RecordedOutput>
where
    C::Out: Debug,
{
    let mut one = |o: &C::Out| {
        let Some(to) = o.peer() else {
            return RecordedOutput::Effect(format!("{o:?}"));
        };
        let shown = (make.shows)(o).and_then(|r| contents(&make.own, r)).unwrap_or_default();
        let mut whole = (0, digest(&[]));
        for r in (make.payload)(&shown) {
            let bytes = payload(r).unwrap_or_default();
            whole = (whole.0 + bytes.len() as u64, digest_on(whole.1, &bytes));
        }
        RecordedOutput::Message { to, line: o.encode(), shown: shown.into(), payload: whole }
    };
    items.iter().map(&mut one).collect()
}

/// Dropped when its server ends in order.
impl<C: Component, L: Log> Drop for Recorder<C, L> {
    fn drop(&mut self) {
        if !std::thread::panicking() && !self.log.is_full() {
            self.log.note(Entry::End(End::InOrder));
        }
    }
}

impl<C: Component<Event: Recorded>, L: Log> Component for Recorder<C, L>
where
    C::Out: Debug,
{
    type In = (Encoded, C::In);
    type Out = C::Out;
    type Event = C::Event;
    type Effect = C::Effect;
    const COUNTERS: &'static [&'static str] = C::COUNTERS;

    fn decode(peer: ComponentId, line: &Encoded) -> Option<Self::In> {
        C::decode(peer, line).map(|m| (*line, m))
    }

    fn receive(
        &mut self,
        cx: &mut Context,
        from: ComponentId,
        (line, message): Self::In,
        out: &mut Outbox<C::Out>,
    ) {
        let names = (self.make.reads)(cx.memory, &message);
        self.observe(cx, out, Input::Message(from, line), names, |c, cx, out| {
            c.begin(Occasion::Message { from, line: &line });
            c.receive(cx, from, message, out)
        })
    }

    fn begin(&mut self, _occasion: Occasion<C::Event>) {
        // Each call below begins with it. What a recorder dies of before is not to be laid to the input.
    }

    fn commit(&mut self, cx: &mut Context) {
        self.observe(cx, &mut Outbox::new(), Input::Commit, Vec::new(), |c, cx, _| c.commit(cx))
    }

    fn event(&mut self, cx: &mut Context, mut event: C::Event, out: &mut Outbox<C::Out>) {
        let recorded = event.recorded();
        self.watch(&mut event);
        let input = Input::Event(recorded.clone());
        self.observe(cx, out, input, Vec::new(), |c, cx, out| {
            c.begin(Occasion::Event(&event));
            c.event(cx, event, out);
        });
        self.surroundings.hear(recorded);
    }

    fn poll(&mut self, cx: &mut Context, budget: usize, out: &mut Outbox<C::Out>) -> usize {
        self.observe(cx, out, Input::Poll(budget), Vec::new(), |c, cx, out| {
            c.begin(Occasion::Poll);
            c.poll(cx, budget, out)
        })
    }

    fn wants_device(&self) -> bool {
        self.component.wants_device()
    }

    fn expire(&mut self, cx: &mut Context, out: &mut Outbox<C::Out>) {
        self.observe(cx, out, Input::Expire, Vec::new(), |c, cx, out| {
            c.begin(Occasion::Expire);
            c.expire(cx, out);
        })
    }

    fn deadline(&self) -> Option<Instant> {
        self.component.deadline()
    }

    fn peer_reborn(&mut self, cx: &mut Context, peer: ComponentId, out: &mut Outbox<C::Out>) {
        self.observe(cx, out, Input::Reborn(peer), Vec::new(), |c, cx, out| {
            c.begin(Occasion::Reborn(peer));
            c.peer_reborn(cx, peer, out);
        });
        self.surroundings.meet(peer);
    }

    fn flush(&mut self, cx: &mut Context, out: &mut Outbox<C::Out>) {
        self.observe(cx, out, Input::Flush, Vec::new(), |c, cx, out| {
            c.begin(Occasion::Flush);
            c.flush(cx, out);
        })
    }
}
