//! The last call alone: a successor makes the call in which its predecessor died.

use super::{Conductor, Failure, Stage, panics, repeat};
use crate::recorder::Make;
use crate::recording::{Input, LastCall, Recorded};
use eft_base::{DomainId, Random};
use eft_channel::access::AccessObserver;
use eft_channel::socket::Arena;
use eft_channel::status::Status;
use eft_channel::{Memory, Segment};
use eft_component::{Component, Context, Outbox};
use std::fmt::Debug;
use std::sync::Arc;

/// Makes the call to an engine that was opened with the dead server's arena, in the surroundings that it had. It must die, too.
pub(crate) fn repeat_alone<C: Component<Event: Recorded>>(
    last: &LastCall,
    mut component: C,
    make: &Make<C>,
    segments: impl Fn(usize) -> Option<Segment>,
    observer: Option<Arc<dyn AccessObserver>>,
    conductor: Conductor,
) -> Result<(), Failure>
where
    C::Out: Debug,
{
    let watch = |domain, arena: Arena| {
        restore(last, domain, &arena)?;
        Ok(match &observer {
            Some(observer) => arena.observed_by(observer.clone()),
            None => arena,
        })
    };
    let mut stage = Stage { memory: Memory::new(), segments, watch };
    let status = Status::heap();
    let mut out = Outbox::new();
    let call = &last.call;
    for peer in make.peers.iter().chain(&last.peers) {
        out.set_room(*peer, make.capacity, make.capacity);
    }
    let events = last.events.iter().cloned().map(Input::Event);
    let inputs: Vec<Input> = events.chain(last.peers.iter().copied().map(Input::Reborn)).collect();
    for input in &inputs {
        let event = match input {
            Input::Event(recorded) => Some(stage.event(recorded)?),
            _ => None,
        };
        let mut random = call.random.clone();
        let mut cx = Context { now: call.now, random: &mut random, memory: &stage.memory, status: &status };
        repeat(&mut component, &mut cx, input, event, &mut out);
        component.commit(&mut cx);
        out.drain();
    }
    for (id, cut) in &last.pools {
        if stage.memory.view(*id).is_none() {
            stage.map(*id, Some(*cut))?;
        }
    }
    stage.fill(call)?;
    for (peer, room) in &call.rooms {
        out.set_room(*peer, (*room).min(make.capacity), make.capacity);
    }
    let mut event = match &call.input {
        Input::Event(recorded) => Some(stage.event(recorded)?),
        _ => None,
    };
    // What was due is due again some time after a revival.
    let due = component.deadline().filter(|_| matches!(call.input, Input::Expire));
    let now = due.map_or(call.now, |due| due.max(call.now));
    let mut random: Random = call.random.clone();
    let mut cx = Context { now, random: &mut random, memory: &stage.memory, status: &status };
    let again = || repeat(&mut component, &mut cx, &call.input, event.take(), &mut out);
    if panics(conductor, 0, again) { Ok(()) } else { Err(Failure::Outlived(last.cause)) }
}

/// Writes the pages that the programs of a domain had.
fn restore(last: &LastCall, domain: DomainId, arena: &Arena) -> Result<(), Failure> {
    let pages = last.pages.iter().filter(|(of, _)| *of == domain).flat_map(|(_, pages)| pages);
    for (at, bytes) in pages {
        let unusable = |_| Failure::Unusable("the recording is damaged: a page lies nowhere".into());
        arena.segment().write(*at, bytes).map_err(unusable)?;
    }
    Ok(())
}
