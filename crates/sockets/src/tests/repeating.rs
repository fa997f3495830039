//! What a transport does not answer, or answers with damage.

use super::*;
use std::time::Duration;

/// Lets time pass, and ends the turn; returns what is sent.
fn pass(b: &mut Bench, time: Duration) -> Vec<Out> {
    b.now += time;
    let (e, mut cx, out) = b.cx();
    if e.deadline().is_some_and(|at| at <= cx.now) {
        e.expire(&mut cx, out);
    }
    e.flush(&mut cx, out);
    b.out.drain().collect()
}

#[test]
fn what_a_transport_does_not_answer_is_repeated_until_it_does() {
    let mut b = Bench::new();
    b.open(2);
    let asked = b.request(Request { op: op::CONNECT, slot: 2, port: 80, ..Request::default() }, 0);
    let [Out::Transport(ComponentId::TCP, SocketsToTransport::Connect { request, .. })] = asked[..] else {
        panic!("{asked:?}")
    };
    assert!(pass(&mut b, Duration::ZERO).is_empty());
    assert!(pass(&mut b, Duration::from_millis(900)).is_empty(), "an answer may take that long");
    let mut again = pass(&mut b, Duration::from_millis(100));
    again.extend(pass(&mut b, Duration::from_secs(1)));
    assert_eq!(again, asked, "the same request");
    assert_eq!(pass(&mut b, Duration::from_secs(1)), asked, "until it is answered");
    assert_eq!(errno_of(&b.answer(ComponentId::TCP, request, 0, 2)), 0);
    assert!(b.answer(ComponentId::TCP, request, 0, 2).is_empty(), "the answer to the repeated one is stale");
    pass(&mut b, Duration::ZERO);
    assert_eq!(b.engine.deadline(), None, "nothing waits");
}

#[test]
fn a_close_that_is_lost_is_repeated() {
    let mut b = Bench::new();
    b.open(2);
    let [close, _] = b.event(Event::Closed(SocketId { domain: DOMAIN, slot: 2 })).try_into().unwrap();
    pass(&mut b, Duration::ZERO);
    pass(&mut b, Duration::from_secs(1));
    assert_eq!(pass(&mut b, Duration::from_secs(1)), [close]);
}

#[test]
fn an_answer_about_another_socket_is_not_believed() {
    let mut b = Bench::new();
    b.open(2);
    let asked = b.request(Request { op: op::CONNECT, slot: 2, port: 80, ..Request::default() }, 0);
    let [Out::Transport(_, SocketsToTransport::Connect { request, .. })] = asked[..] else { panic!() };
    assert!(b.answer(ComponentId::TCP, request, 0, 3).is_empty(), "of another slot");
    assert!(b.answer(ComponentId::UDP, request, 0, 2).is_empty(), "of another transport");
    assert!(b.answer(ComponentId::TCP, request, 1 << 20, 2).is_empty(), "no errno");
    assert!(b.answer(ComponentId::TCP, request, -1, 2).is_empty(), "no errno");
    assert_eq!(errno_of(&b.answer(ComponentId::TCP, request, ECONNREFUSED, 2)), ECONNREFUSED);
    let out = b.request(Request { op: op::OPEN, args: [1, 0, 0, 0], ..Request::default() }, 3);
    let [Out::Transport(_, SocketsToTransport::Open { request, .. })] = out[..] else { panic!() };
    assert!(b.answer(ComponentId::TCP, request, 0, 2).is_empty(), "a slot that has a socket");
    b.make(ComponentId::TCP, 6);
    let out = b.answer(ComponentId::TCP, request, 0, 6);
    assert!(matches!(out[0], Out::Effect(Effect::Keep { handle: Handle(3), .. })), "{out:?}");
}
