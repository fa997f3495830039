//! Servers of one thread: which messages are worth a turn.

use eft_base::{Instant, RequestId};
use eft_channel::notify::{Doorbell, Wake};
use eft_channel::queue::{Line, Position, queue};
use eft_channel::status::Status;
use eft_channel::{Consumer, Producer, Segment, Shared};
use eft_component::server::Port;
use eft_component::{Component, Configure, Context, Outbox, Output, Server, World};
use eft_messages::{ComponentId, Encoded};
use std::convert::Infallible;

const SENDER: ComponentId = ComponentId::IP;
const RECEIVER: ComponentId = ComponentId::TCP;

/// Sends what it is told to, and counts what it gets.
struct Engine {
    peer: ComponentId,
    /// Messages of the next turn: whether each is urgent.
    sends: Vec<bool>,
    got: usize,
}

struct Message {
    to: ComponentId,
    is_urgent: bool,
}

impl Output for Message {
    type Effect = Infallible;

    fn peer(&self) -> Option<ComponentId> {
        Some(self.to)
    }

    fn encode(&self) -> Encoded {
        [0; 7]
    }

    fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    fn into_effect(self) -> Option<Infallible> {
        None
    }
}

impl Component for Engine {
    type In = RequestId;
    type Out = Message;
    type Event = Configure;
    type Effect = Infallible;
    const COUNTERS: &'static [&'static str] = &[];

    fn decode(_: ComponentId, _: &Encoded) -> Option<RequestId> {
        Some(RequestId::from_u64(0))
    }

    fn receive(&mut self, _: &mut Context, _: ComponentId, _: RequestId, _: &mut Outbox<Message>) {
        self.got += 1;
    }

    fn event(&mut self, _: &mut Context, _: Configure, out: &mut Outbox<Message>) {
        for is_urgent in self.sends.drain(..) {
            out.push(Message { to: self.peer, is_urgent });
        }
    }

    fn expire(&mut self, _: &mut Context, _: &mut Outbox<Message>) {}

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn peer_reborn(&mut self, _: &mut Context, _: ComponentId, _: &mut Outbox<Message>) {}
}

struct Alone;

impl World for Alone {
    type Effect = Infallible;

    fn now(&mut self) -> Instant {
        Instant(1)
    }

    fn wake(&mut self, peer: ComponentId, how: Wake, _: &Doorbell) {
        assert_eq!(how, Wake::None, "{peer} is of the same thread");
    }

    fn accuse(&mut self, _: ComponentId) {}

    fn perform(&mut self, effect: Infallible) {
        match effect {}
    }
}

fn direction() -> (Producer, Consumer) {
    let (lines, position) = (Segment::heap(64 * size_of::<Line>()), Segment::heap(size_of::<Position>()));
    // SAFETY: both are made of atomics.
    unsafe { queue(lines.shared_slice(0, 64).unwrap(), position.shared(0).unwrap()) }
}

/// Two servers of one thread, whose state words say that they sleep, as while another server of the thread runs.
fn servers() -> (Server<Engine>, Server<Engine>) {
    let (there, back) = (direction(), direction());
    let bells = [Shared::heap(Doorbell::new()), Shared::heap(Doorbell::new())];
    let port = |peer, (producer, consumer), doorbell: &Shared<Doorbell>, incoming: &Shared<Doorbell>| Port {
        peer,
        consumer,
        producer,
        doorbell: doorbell.clone(),
        peer_state: Status::heap().state(),
        incoming: incoming.clone(),
        same_thread: true,
    };
    let server = |peer| Server::new(Engine { peer, sends: Vec::new(), got: 0 }, Status::heap(), 1);
    let (mut sender, mut receiver) = (server(RECEIVER), server(SENDER));
    sender.connect(&mut Alone, port(RECEIVER, (there.0, back.1), &bells[1], &bells[0]));
    receiver.connect(&mut Alone, port(SENDER, (back.0, there.1), &bells[0], &bells[1]));
    sender.step(&mut Alone, 64);
    receiver.step(&mut Alone, 64);
    (sender, receiver)
}

fn send(sender: &mut Server<Engine>, sends: Vec<bool>) {
    sender.component_mut().sends = sends;
    sender.event(Instant(1), Configure { key: String::new(), value: Vec::new() });
    sender.step(&mut Alone, 64);
}

#[test]
fn receipts_wait_for_a_turn_that_has_other_work() {
    let (mut sender, mut receiver) = servers();
    assert!(!receiver.has_urgent_message() && !receiver.has_message());
    send(&mut sender, vec![false; 3]);
    assert!(!receiver.has_urgent_message(), "receipts alone are worth no turn");
    assert!(receiver.has_message(), "the thread does not sleep before they are taken");
    send(&mut sender, vec![true]);
    assert!(receiver.has_urgent_message());
    receiver.step(&mut Alone, 64);
    assert_eq!(receiver.component().got, 4, "a turn takes all");
    assert!(!receiver.has_urgent_message() && !receiver.has_message());
}

#[test]
fn many_receipts_are_worth_a_turn() {
    let (mut sender, mut receiver) = servers();
    for sent in 1..32 {
        send(&mut sender, vec![false]);
        assert!(!receiver.has_urgent_message(), "after {sent}");
    }
    send(&mut sender, vec![false]);
    assert!(receiver.has_urgent_message(), "pools and rings would run dry");
    receiver.step(&mut Alone, 64);
    assert!(!receiver.has_urgent_message());
}

#[test]
fn what_a_turn_leaves_stays_urgent() {
    let (mut sender, mut receiver) = servers();
    send(&mut sender, vec![true; 5]);
    receiver.step(&mut Alone, 4);
    assert!(receiver.has_urgent_message(), "one is left");
    receiver.step(&mut Alone, 4);
    assert_eq!(receiver.component().got, 5);
    assert!(!receiver.has_urgent_message());
}

#[test]
fn receipts_of_the_same_thread_set_no_timer() {
    let (mut sender, _receiver) = servers();
    send(&mut sender, vec![false]);
    assert_eq!(sender.step(&mut Alone, 64).deadline, None, "the thread takes them before it sleeps");
}
