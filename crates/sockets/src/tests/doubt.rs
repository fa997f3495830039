//! Answers to requests that were damaged on their way, and damaged answers.

use super::*;

const SOCKET: SocketId = SocketId { domain: DOMAIN, slot: 4 };

fn reply(request: RequestId, errno: i32, slot: u32, incarnation: u32) -> TransportToSockets {
    let (socket, address) = (SocketId { domain: DOMAIN, slot }, WireAddress::default());
    TransportToSockets::Reply { request, errno, socket, incarnation, address, port: 0, taken: 0 }
}

fn is_close(out: &[Out], slot: u32, of: u32) -> bool {
    matches!(out, [Out::Transport(ComponentId::TCP, SocketsToTransport::Close { socket, incarnation, .. }), ..]
        if socket.slot == slot && *incarnation == of)
}

fn open_request(b: &mut Bench) -> (RequestId, Vec<Out>) {
    let out = b.request(Request { op: op::OPEN, args: [1, 0, 0, 0], ..Request::default() }, 3);
    let [Out::Transport(_, asked)] = out[..] else { panic!("{out:?}") };
    (asked.asks().0, out)
}

/// A bit of its incarnation was changed on the way, and the transport knows no such connection.
#[test]
fn an_attach_that_is_refused_is_asked_once_more() {
    let mut b = Bench::new();
    let request = accepted(&mut b, 7);
    let again = b.hear(ComponentId::TCP, reply(request, EINVAL, 4, 0));
    let attached = SocketsToTransport::Attached { request, socket: SOCKET, incarnation: 7 };
    assert_eq!(again, [Out::Transport(ComponentId::TCP, attached)]);
    assert!(b.hear(ComponentId::TCP, reply(request, 0, 4, 7)).is_empty(), "the program has its connection");
    assert!(is_close(&b.event(Event::Closed(SOCKET)), 4, 7));
}

/// It may have refused another request, or its answer was changed: the connection must not stay behind.
#[test]
fn what_is_refused_twice_is_closed() {
    let mut b = Bench::new();
    let request = accepted(&mut b, 7);
    b.hear(ComponentId::TCP, reply(request, EINVAL, 4, 0));
    assert!(is_close(&b.hear(ComponentId::TCP, reply(request, EINVAL, 4, 7)), 4, 7));
}

/// The request was a `Connect` when it came.
#[test]
fn nobody_refuses_a_close() {
    let mut b = Bench::new();
    b.open(4);
    let out = b.event(Event::Closed(SOCKET));
    let [Out::Transport(_, close), _] = out[..] else { panic!("{out:?}") };
    let (request, _) = close.asks();
    assert!(b.hear(ComponentId::TCP, reply(request, EISCONN, 4, INCARNATION)).is_empty());
    let closed = b.hear(ComponentId::TCP, reply(request, 0, 4, INCARNATION));
    assert_eq!(closed, [Out::Effect(Effect::Drop(SOCKET))]);
}

#[test]
fn a_refusal_of_another_incarnation_is_asked_once_more() {
    let mut b = Bench::new();
    b.open(4);
    let asked = b.request(Request { op: op::CONNECT, slot: 4, port: 80, ..Request::default() }, 0);
    let [Out::Transport(_, connect)] = asked[..] else { panic!("{asked:?}") };
    let (request, _) = connect.asks();
    assert_eq!(b.hear(ComponentId::TCP, reply(request, EINVAL, 4, 0)), asked);
    // The transport has lost the socket.
    assert_eq!(errno_of(&b.hear(ComponentId::TCP, reply(request, EINVAL, 4, 0))), EINVAL);
}

/// A bit of the slot or of the incarnation was changed in the answer, or the request was a `Close` when it came.
#[test]
fn a_new_socket_that_its_page_does_not_know_is_asked_for_once_more() {
    let mut b = Bench::new();
    b.make(ComponentId::TCP, 4);
    for (slot, incarnation) in [(6, INCARNATION), (4, INCARNATION ^ 0x100), (0, 0), (1000, INCARNATION)] {
        let (request, asked) = open_request(&mut b);
        assert_eq!(b.hear(ComponentId::TCP, reply(request, 0, slot, incarnation)), asked, "{slot}");
        let out = b.hear(ComponentId::TCP, reply(request, 0, 4, INCARNATION));
        assert!(matches!(out[0], Out::Effect(Effect::Keep { socket: SOCKET, .. })), "{out:?}");
        b.event(Event::Closed(SOCKET));
        b.make(ComponentId::TCP, 4);
    }
}

/// The number of the request was changed on the way: the answer fits none, and the request is made again.
#[test]
fn what_was_opened_for_nobody_is_closed() {
    let mut b = Bench::new();
    let (request, _) = open_request(&mut b);
    b.make(ComponentId::TCP, 6);
    let other = RequestId { index: request.index ^ 0x100, ..request };
    assert!(is_close(&b.hear(ComponentId::TCP, reply(other, 0, 6, INCARNATION)), 6, INCARNATION));
    // The request was a `Close` of another socket before.
    b.open(4);
    let out = b.event(Event::Closed(SOCKET));
    let [Out::Transport(_, close), _] = out[..] else { panic!("{out:?}") };
    let out = b.hear(ComponentId::TCP, reply(close.asks().0, 0, 6, INCARNATION));
    assert!(is_close(&out, 6, INCARNATION));
}

#[test]
fn an_answer_that_fits_no_request_closes_nothing_that_somebody_has() {
    let mut b = Bench::new();
    b.open(4);
    let other = RequestId { index: 1000, generation: 1 };
    assert!(b.hear(ComponentId::TCP, reply(other, 0, 4, INCARNATION)).is_empty(), "it has a descriptor");
    let out = b.event(Event::Closed(SOCKET));
    assert!(is_close(&out, 4, INCARNATION));
    assert!(b.hear(ComponentId::TCP, reply(other, 0, 4, INCARNATION)).is_empty(), "it is being closed");
    // A connection that waits to be accepted.
    b.make(ComponentId::TCP, 6);
    b.arena.socket(6).unwrap().set_flags(eft_channel::socket::flag::CONNECTED);
    assert!(b.hear(ComponentId::TCP, reply(other, 0, 6, INCARNATION)).is_empty());
    // The slot has had another socket since.
    b.make(ComponentId::TCP, 2);
    assert!(b.hear(ComponentId::TCP, reply(other, 0, 2, INCARNATION - 1)).is_empty());
}
