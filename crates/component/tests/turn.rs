//! The order of calls in a turn, as engines rely on it.

use eft_base::{Instant, RequestId, protection};
use eft_channel::notify::{Doorbell, Wake};
use eft_channel::status::Status;
use eft_component::{Component, Configure, Context, Occasion, Outbox, Output, Server, World};
use eft_messages::{ComponentId, Encoded};
use std::cell::RefCell;
use std::rc::Rc;

type Log = Rc<RefCell<Vec<String>>>;

/// Notes every call and asks its world for something in each.
struct Engine(Log);

struct Wish(&'static str);

impl Output for Wish {
    type Effect = &'static str;

    fn peer(&self) -> Option<ComponentId> {
        None
    }

    fn encode(&self) -> Encoded {
        [0; 7]
    }

    fn into_effect(self) -> Option<&'static str> {
        Some(self.0)
    }
}

impl Engine {
    fn note(&self, what: impl Into<String>) {
        self.0.borrow_mut().push(what.into());
    }
}

impl Component for Engine {
    type In = RequestId;
    type Out = Wish;
    type Event = Configure;
    type Effect = &'static str;
    const COUNTERS: &'static [&'static str] = &[];

    fn decode(_: ComponentId, _: &Encoded) -> Option<RequestId> {
        None
    }

    fn begin(&mut self, occasion: Occasion<Configure>) {
        self.note(match occasion {
            Occasion::Message { from, .. } => format!("begin message of {from}"),
            Occasion::Event(event) => format!("begin event {}", event.key),
            Occasion::Poll => "begin poll".into(),
            Occasion::Expire => "begin expire".into(),
            Occasion::Reborn(peer) => format!("begin rebirth of {peer}"),
            Occasion::Flush => "begin flush".into(),
        });
    }

    fn check(&self) {
        self.note("check");
    }

    fn commit(&mut self, _: &mut Context) {
        self.note("commit");
    }

    fn receive(&mut self, _: &mut Context, _: ComponentId, _: RequestId, _: &mut Outbox<Wish>) {}

    fn event(&mut self, _: &mut Context, event: Configure, out: &mut Outbox<Wish>) {
        self.note(format!("event {}", event.key));
        out.push(Wish("of an event"));
    }

    fn expire(&mut self, _: &mut Context, out: &mut Outbox<Wish>) {
        self.note("expire");
        out.push(Wish("of a deadline"));
    }

    fn deadline(&self) -> Option<Instant> {
        Some(Instant(100))
    }

    fn peer_reborn(&mut self, _: &mut Context, _: ComponentId, _: &mut Outbox<Wish>) {}

    fn flush(&mut self, _: &mut Context, out: &mut Outbox<Wish>) {
        self.note("flush");
        out.push(Wish("of a flush"));
    }
}

struct Around(Log, Instant);

impl World for Around {
    type Effect = &'static str;

    fn now(&mut self) -> Instant {
        self.1
    }

    fn wake(&mut self, _: ComponentId, _: Wake, _: &Doorbell) {}

    fn accuse(&mut self, _: ComponentId) {}

    fn perform(&mut self, effect: &'static str) {
        self.0.borrow_mut().push(format!("perform {effect}"));
    }
}

#[test]
fn every_call_is_named_before_it_runs_and_nothing_leaves_before_the_commit() {
    let log = Log::default();
    let mut server = Server::new(Engine(log.clone()), Status::heap(), 1);
    let mut world = Around(log.clone(), Instant(1));
    let configure = |key: &str| Configure { key: key.into(), value: Vec::new() };
    server.event(Instant(1), configure("a"));
    server.event(Instant(1), configure("b"));
    assert!(!log.borrow().iter().any(|l| l == "commit"), "the turn goes on");
    server.step(&mut world, 8);
    let expected = [
        "begin event a",
        "event a",
        "begin event b",
        "event b",
        "check",
        "begin poll",
        "begin flush",
        "flush",
        "commit",
        "check",
        "perform of an event",
        "perform of an event",
        "perform of a flush",
    ];
    assert_eq!(*log.borrow(), expected);
    log.borrow_mut().clear();
    server.step(&mut world, 8);
    assert_eq!(*log.borrow(), ["check", "begin poll"], "nothing happened, so there is nothing to commit");
    log.borrow_mut().clear();
    world.1 = Instant(100);
    server.step(&mut world, 8);
    let expected = [
        "check",
        "begin poll",
        "begin expire",
        "expire",
        "begin flush",
        "flush",
        "commit",
        "check",
        "perform of a deadline",
        "perform of a flush",
    ];
    assert_eq!(*log.borrow(), expected);
    // This program has no other test.
    protection::switch_off();
    log.borrow_mut().clear();
    world.1 = Instant(101);
    server.step(&mut world, 8);
    assert!(!log.borrow().iter().any(|l| l == "check"), "an unprotected process asserts nothing");
    assert!(log.borrow().iter().any(|l| l == "commit"), "its turns end all the same");
}
