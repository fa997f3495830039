use super::*;
use crate::log::Log;
use crate::recorder::Recorder;
use crate::recording::{Cause, Entry};
use eft_base::Random;
use eft_component::{Configure, Output};
use eft_messages::{ComponentId, Encoded};
use std::cell::RefCell;
use std::rc::Rc;

/// An engine that an event may kill.
struct Brittle {
    mended: bool,
}

#[derive(Debug)]
enum Nothing {}

impl Output for Nothing {
    type Effect = std::convert::Infallible;

    fn peer(&self) -> Option<ComponentId> {
        match *self {}
    }

    fn encode(&self) -> Encoded {
        match *self {}
    }

    fn into_effect(self) -> Option<Self::Effect> {
        match self {}
    }
}

impl Component for Brittle {
    type In = ();
    type Out = Nothing;
    type Event = Configure;
    type Effect = std::convert::Infallible;
    const COUNTERS: &'static [&'static str] = &[];

    fn decode(_: ComponentId, _: &Encoded) -> Option<()> {
        None
    }

    fn receive(&mut self, _: &mut Context, _: ComponentId, (): (), _: &mut Outbox<Nothing>) {}

    fn event(&mut self, _: &mut Context, event: Configure, _: &mut Outbox<Nothing>) {
        assert!(self.mended || event.key != "deadly", "killed by what it was told");
    }

    fn expire(&mut self, _: &mut Context, _: &mut Outbox<Nothing>) {}

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn peer_reborn(&mut self, _: &mut Context, _: ComponentId, _: &mut Outbox<Nothing>) {}
}

fn make() -> Make<Brittle> {
    Make {
        peers: Vec::new(),
        capacity: 8,
        own: Memory::new(),
        reads: |_, _| Vec::new(),
        shows: |_| None,
        payload: |_| Vec::new(),
    }
}

/// A life with events of these keys.
fn live(keys: &[&str]) -> Recording {
    let log = Rc::new(RefCell::new(Recording::default()));
    let mut recorder = Recorder::new(Brittle { mended: false }, make(), log.clone());
    let (mut random, memory, status) = (Random::new(1), Memory::new(), Status::heap());
    for key in keys {
        let mut cx = Context { now: Instant(1), random: &mut random, memory: &memory, status: &status };
        let event = Configure { key: (*key).into(), value: Vec::new() };
        let recorded = || recorder.event(&mut cx, event, &mut Outbox::new());
        if catch_unwind(AssertUnwindSafe(recorded)).is_err() {
            break;
        }
    }
    // It panicked: the part recorded before its end counts.
    log.borrow().clone()
}

#[test]
fn a_panic_is_recorded_with_its_call_and_comes_again() {
    let recording = live(&["harmless", "deadly", "never told"]);
    assert_eq!((recording.calls.len(), recording.end), (2, End::InCall(Cause::Panic)));
    let again = |mended| replay(&recording, Brittle { mended }, &make(), |_| None, &mut |_, call| call());
    assert_eq!(again(false), Ok(()));
    assert_eq!(again(true), Err(Failure::Survived { call: 1, cause: Cause::Panic }));
    assert!(again(true).unwrap_err().to_string().contains("call 1, in which the server panicked, ends well"));
}

#[test]
fn a_life_without_a_panic_ends_otherwise() {
    let mut recording = live(&["harmless"]);
    assert_eq!((recording.calls.len(), recording.end), (1, End::Died));
    recording.note(Entry::End(End::InCall(Cause::Panic)));
    assert!(replay(&recording, Brittle { mended: false }, &make(), |_| None, &mut |_, call| call()).is_err());
}
