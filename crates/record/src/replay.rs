//! The replay oracle: checks that a server is a function of its inputs.
//!
//! [`replay`] makes the calls of a [`Recording`] to a fresh engine of the same make. In its applications'
//! pages the engine reads the recorded values, in the same order; it must write the recorded values there
//! and answer with the same bytes. The first difference ends the replay and is reported with both versions. An engine
//! without protection, which is replayed to see what that costs, answers as often, and need not read everything.
//!
//! Invariant: a damaged recording is refused or differs, and does no other harm.
//!
//! A [`Conductor`] may count or time the calls. What an engine reads and writes in pages passes a `Prompter` there, by whose
//! name a profiler leaves it out.

pub mod last;

use crate::recorder::{Make, contents, lets, lock};
use crate::recording::{
    Access, Call, Cause, Cut, End, Input, Recorded, RecordedEvent, RecordedOutput, Recording, Written,
};
use eft_base::{DomainId, Instant, SocketId, protection};
use eft_channel::access::AccessObserver;
use eft_channel::socket::{Arena, Geometry};
use eft_channel::status::Status;
use eft_channel::{Memory, PoolView, Segment};
use eft_component::{Component, Context, Occasion, Outbox};
use serde_bytes::ByteBuf;
use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// Where a replay differs. `None`: one side did nothing more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    Output { number: usize, recorded: Option<RecordedOutput>, replayed: Option<RecordedOutput> },
    Access { recorded: Option<Access>, replayed: Option<Access> },
}

/// Why a replay failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    Differs {
        call: usize,
        difference: Box<Difference>,
    },
    /// The last call, in which it died, ended well.
    Survived {
        call: usize,
        cause: Cause,
    },
    /// The last call alone ended well.
    Outlived(Cause),
    /// It is invalid; one line says why.
    Unusable(String),
}

impl core::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fn both<T: Debug>(f: &mut fmt::Formatter, versions: [&Option<T>; 2]) -> fmt::Result {
            for (who, what) in ["recorded", "replayed"].into_iter().zip(versions) {
                match what {
                    Some(what) => write!(f, "\n  {who}: {what:?}")?,
                    None => write!(f, "\n  {who}: nothing")?,
                }
            }
            Ok(())
        }
        let (call, difference) = match self {
            Failure::Unusable(why) => return f.write_str(why),
            Failure::Outlived(cause) => {
                return write!(
                    f,
                    "the call in which the server {cause} ends well for a successor: what it died of is in \
                     its own memory, not in its arena, the pages and the input",
                );
            }
            Failure::Survived { call, cause } => {
                return write!(f, "call {call}, in which the server {cause}, ends well here");
            }
            Failure::Differs { call, difference } => (call, &**difference),
        };
        match difference {
            Difference::Output { number, recorded, replayed } => {
                write!(f, "call {call} answers differently, in its output {number}:")?;
                both(f, [recorded, replayed])
            }
            Difference::Access { recorded, replayed } => {
                write!(f, "call {call} reads or writes something else in a program's page:")?;
                both(f, [recorded, replayed])
            }
        }
    }
}

/// Makes the call of a number when it likes, once; what surrounds the call is no part of the engine.
pub type Conductor<'a> = &'a mut dyn FnMut(usize, &mut dyn FnMut());

/// The reads and writes expected in a call.
#[derive(Default)]
struct Script {
    left: VecDeque<Access>,
    difference: Option<Difference>,
}

impl Script {
    /// The next one. An engine without protection looks fewer times, so those that it leaves out are passed over.
    fn next(&mut self, is_it: impl Fn(&Access) -> bool) -> Option<Access> {
        let skipped = if protection::is_on() { None } else { self.left.iter().position(is_it) };
        self.left.drain(..skipped.unwrap_or(0));
        self.left.pop_front()
    }

    fn differ(&mut self, recorded: Option<Access>, replayed: Option<Access>) {
        self.difference.get_or_insert(Difference::Access { recorded, replayed });
    }
}

/// Gives the engine the recorded values of one domain's pages.
struct Prompter {
    domain: DomainId,
    script: Arc<Mutex<Script>>,
}

impl AccessObserver for Prompter {
    fn read(&self, at: usize, bytes: &mut [u8]) {
        let mut script = lock(&self.script);
        let is_it = |access: &Access| {
            matches!(access, Access::Read { domain, at: then, bytes: value }
                if (*domain, *then, value.len()) == (self.domain, at, bytes.len()))
        };
        match script.next(is_it) {
            Some(Access::Read { domain, at: then, bytes: value })
                if (domain, then, value.len()) == (self.domain, at, bytes.len()) =>
            {
                bytes.copy_from_slice(&value)
            }
            other => {
                let bytes = ByteBuf::from(&*bytes);
                script.differ(other, Some(Access::Read { domain: self.domain, at, bytes }));
            }
        }
    }

    fn wrote(&self, at: usize, bytes: &[u8]) {
        let now = Access::Wrote { domain: self.domain, at, what: Written::of(bytes) };
        let mut script = lock(&self.script);
        let then = script.next(|access| *access == now);
        if then.as_ref() != Some(&now) {
            script.differ(then, Some(now));
        }
    }
}

/// The surroundings of the replayed engine.
struct Stage<S, W> {
    memory: Memory,
    segments: S,
    /// Prepares a domain's pages.
    watch: W,
}

impl<S, W> Stage<S, W>
where
    S: Fn(usize) -> Option<Segment>,
    W: Fn(DomainId, Arena) -> Result<Arena, Failure>,
{
    fn segment(&self, len: Option<usize>) -> Result<Segment, Failure> {
        let unusable = || Failure::Unusable("the recording asks for more memory than there is".into());
        len.and_then(|len| (self.segments)(len)).ok_or_else(unusable)
    }

    fn map(&mut self, id: eft_base::PoolId, cut: Option<Cut>) -> Result<(), Failure> {
        let Some(cut) = cut else {
            self.memory.remove(id);
            return Ok(());
        };
        let Cut { base, slot_size, slots } = cut;
        let segment = self.segment(cut.total_len())?;
        self.memory.insert(id, PoolView::new(segment, base, slot_size, slots));
        Ok(())
    }

    /// Puts the recorded bytes of other components in their places.
    fn fill(&self, call: &Call) -> Result<(), Failure> {
        for (r, bytes) in &call.memory {
            let place = self.memory.resolve(*r).filter(|_| r.len as usize == bytes.len());
            if !place.is_some_and(|(segment, offset)| segment.write(offset, bytes).is_ok()) {
                return Err(Failure::Unusable(format!("the recording is damaged: {r:?} lies nowhere")));
            }
        }
        Ok(())
    }

    fn event<E: Recorded>(&mut self, recorded: &RecordedEvent) -> Result<E, Failure> {
        let event = match recorded {
            RecordedEvent::Configure { key, value } => E::configure(key.clone(), value.clone().into_vec()),
            RecordedEvent::Dirty { domain, slot } => E::dirty(SocketId { domain: *domain, slot: *slot }),
            &RecordedEvent::Domain { domain, pool, slots, send_len, receive_len } => {
                let geometry = Geometry { slots, send_len, receive_len };
                let segment = self.segment(geometry.is_valid().then(|| geometry.arena_len()))?;
                let arena =
                    Arena::new(segment, geometry).map_err(|_| Failure::Unusable("a bad arena".into()))?;
                self.memory.insert(pool, arena.view());
                E::domain_opened(domain, pool, (self.watch)(domain, arena)?)
            }
        };
        event.ok_or_else(|| {
            Failure::Unusable("the recording is damaged: this engine hears no such event".into())
        })
    }
}

/// Checks that time goes forward, and does not overflow.
fn check_times(calls: &[Call]) -> Result<(), Failure> {
    let end = Instant(1 << 63);
    match calls.is_sorted_by_key(|c| c.now) && calls.last().is_none_or(|c| c.now < end) {
        true => Ok(()),
        false => Err(Failure::Unusable("the recording is damaged: time goes backwards".into())),
    }
}

/// Makes the recorded calls to a fresh engine. `make` describes the fresh engine; `segments` returns zeroed
/// memory of a given length, which may be large and sparse.
pub fn replay<C: Component<Event: Recorded>>(
    recording: &Recording,
    mut component: C,
    make: &Make<C>,
    segments: impl Fn(usize) -> Option<Segment>,
    conductor: Conductor,
) -> Result<(), Failure>
where
    C::Out: Debug,
{
    check_times(&recording.calls)?;
    let script: Arc<Mutex<Script>> = Arc::default();
    let watch = |domain, arena: Arena| {
        let script = script.clone();
        Ok(arena.observed_by(Arc::new(Prompter { domain, script })))
    };
    let mut stage = Stage { memory: Memory::new(), segments, watch };
    let mut pools = recording.pools.iter().peekable();
    let status = Status::heap();
    let mut out = Outbox::new();
    for (i, call) in recording.calls.iter().enumerate() {
        while let Some((_, id, cut)) = pools.next_if(|(before, ..)| *before <= i) {
            stage.map(*id, *cut)?;
        }
        stage.fill(call)?;
        lock(&script).left = call.accesses.iter().cloned().collect();
        for (peer, room) in &call.rooms {
            out.set_room(*peer, (*room).min(make.capacity), make.capacity);
        }
        let mut event = match &call.input {
            Input::Event(recorded) => Some(stage.event(recorded)?),
            _ => None,
        };
        let mut random = call.random.clone();
        let mut cx = Context { now: call.now, random: &mut random, memory: &stage.memory, status: &status };
        let mut again = || repeat(&mut component, &mut cx, &call.input, event.take(), &mut out);
        if let End::InCall(cause) = recording.end
            && i + 1 == recording.calls.len()
        {
            return if panics(conductor, i, again) {
                Ok(())
            } else {
                Err(Failure::Survived { call: i, cause })
            };
        }
        conductor(i, &mut again);
        let replayed = lets(make, out.items(), |r| contents(&stage.memory, r));
        out.drain();
        let mut script = lock(&script);
        if !protection::is_on() {
            // It seals nothing that it sends, and leaves looks out behind the last that it makes.
            script.left.clear();
            if script.difference.is_none() && call.outputs.len() == replayed.len() {
                continue;
            }
        }
        if let Some(difference) = difference(call, &replayed, &mut script) {
            return Err(Failure::Differs { call: i, difference: Box::new(difference) });
        }
    }
    Ok(())
}

/// Makes the call in which a server died. The panic has printed its reason by then; what does not unwind ends this process, too,
/// and is the conductor's to tell.
fn panics(conductor: Conductor, number: usize, mut again: impl FnMut()) -> bool {
    let mut panics = false;
    conductor(number, &mut || panics |= catch_unwind(AssertUnwindSafe(&mut again)).is_err());
    panics
}

/// Makes a call again.
fn repeat<C: Component>(
    component: &mut C,
    cx: &mut Context,
    input: &Input,
    event: Option<C::Event>,
    out: &mut Outbox<C::Out>,
) {
    match input {
        Input::Message(peer, line) => {
            if let Some(message) = C::decode(*peer, line) {
                component.begin(Occasion::Message { from: *peer, line });
                component.receive(cx, *peer, message, out);
            }
        }
        Input::Event(_) => {
            if let Some(event) = event {
                component.begin(Occasion::Event(&event));
                component.event(cx, event, out);
            }
        }
        Input::Poll(budget) => {
            component.begin(Occasion::Poll);
            component.poll(cx, *budget, out);
        }
        Input::Expire => {
            component.begin(Occasion::Expire);
            component.expire(cx, out);
        }
        Input::Reborn(peer) => {
            component.begin(Occasion::Reborn(*peer));
            component.peer_reborn(cx, *peer, out);
        }
        Input::Flush => {
            component.begin(Occasion::Flush);
            component.flush(cx, out);
        }
        Input::Commit => component.commit(cx),
    }
}

/// The first difference of a call that was made again.
fn difference(call: &Call, replayed: &[RecordedOutput], script: &mut Script) -> Option<Difference> {
    if let Some(difference) = script.difference.take() {
        return Some(difference);
    }
    if let Some(undone) = script.left.pop_front() {
        return Some(Difference::Access { recorded: Some(undone), replayed: None });
    }
    let all = call.outputs.len().max(replayed.len());
    let number = (0..all).find(|n| call.outputs.get(*n) != replayed.get(*n))?;
    let [recorded, replayed] = [&call.outputs[..], replayed].map(|o| o.get(number).cloned());
    Some(Difference::Output { number, recorded, replayed })
}

#[cfg(test)]
mod tests;
