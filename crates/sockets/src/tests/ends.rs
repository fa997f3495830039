//! Deaths between the steps by which a socket ends.

use super::*;

const SOCKET: SocketId = SocketId { domain: DOMAIN, slot: 4 };

fn is_close(out: &Out, of: u32) -> bool {
    matches!(out, Out::Transport(_, SocketsToTransport::Close { incarnation, .. }) if *incarnation == of)
}

/// A successor that is given what its predecessor had not dropped, of this arena.
fn successor(before: Bench) -> Bench {
    let mut b = Bench::new();
    b.arena = before.arena.clone();
    b.event(Event::DomainOpened { domain: DOMAIN, pool: eft_base::PoolId(9), arena: before.arena });
    b.event(Event::Survivor { socket: SOCKET, transport: ComponentId::TCP });
    b
}

/// A program has a socket in slot 4, whose page says another incarnation than its transport did.
fn opened() -> Bench {
    let mut b = Bench::new();
    b.open(4);
    let page = b.arena.socket(4).unwrap();
    page.reset_as(ComponentId::TCP, 1);
    page.set_inode(77);
    b
}

/// The descriptor is closed: the request that follows from it.
fn close(b: &mut Bench) -> RequestId {
    let out = b.event(Event::Closed(SOCKET));
    let [Out::Transport(_, close), ref rest @ ..] = out[..] else { panic!("{out:?}") };
    assert_eq!(rest, [Out::Effect(Effect::Leave(SOCKET))]);
    close.asks().0
}

/// The transport answers that it has closed this incarnation.
fn ended(b: &mut Bench, request: RequestId, incarnation: u32) -> Vec<Out> {
    let (socket, address) = (SOCKET, WireAddress::default());
    b.hear(
        ComponentId::TCP,
        TransportToSockets::Reply { request, errno: 0, socket, incarnation, address, port: 0, taken: 0 },
    )
}

#[test]
fn a_socket_is_dropped_when_its_close_is_answered() {
    let mut b = opened();
    let request = close(&mut b);
    assert!(b.event(Event::Closed(SOCKET)).is_empty());
    assert_eq!(b.answer(ComponentId::TCP, request, 0, 4), [Out::Effect(Effect::Drop(SOCKET))]);
    assert!(b.answer(ComponentId::TCP, request, 0, 4).is_empty());
}

/// A bit of the request was changed on its way: the transport knows no such incarnation, and closes nothing.
#[test]
fn the_end_of_another_incarnation_is_not_believed() {
    let mut b = opened();
    let request = close(&mut b);
    assert!(ended(&mut b, request, INCARNATION ^ 0x100).is_empty());
    assert_eq!(ended(&mut b, request, INCARNATION), [Out::Effect(Effect::Drop(SOCKET))]);
}

#[test]
fn a_close_that_dies_with_its_reader_and_its_writer_is_sent_by_the_successor() {
    let mut b = opened();
    close(&mut b);
    // tcp dies and has not read it; this server dies before tcp's successor is connected.
    b.out.remove_peer(ComponentId::TCP);
    let mut b = successor(b);
    let request = close(&mut b);
    // The incarnation stands in the socket's page.
    assert_eq!(ended(&mut b, request, 1), [Out::Effect(Effect::Drop(SOCKET))]);
}

#[test]
fn a_late_answer_does_not_drop_the_next_socket_of_the_slot() {
    let mut b = opened();
    let first = close(&mut b);
    // The transport has freed the slot, a connection is in it, and a program takes that before the answer is read.
    b.arena.socket(4).unwrap().reset(ComponentId::TCP);
    let r = Request { op: op::ACCEPTED, slot: 4, value: 78, args: [7, 0, 0, 0], ..Request::default() };
    b.request(r, 9);
    assert!(b.answer(ComponentId::TCP, first, 0, 4).is_empty());
    // Nor if that is closed, too, by then.
    b.request(r, 9);
    let second = close(&mut b);
    assert!(b.answer(ComponentId::TCP, first, 0, 4).is_empty());
    assert_eq!(ended(&mut b, second, 7), [Out::Effect(Effect::Drop(SOCKET))]);
}

#[test]
fn who_dies_between_close_and_drop_has_a_successor_that_does_both() {
    let mut b = opened();
    // The death: neither was published, or the close alone.
    b.event(Event::Closed(SOCKET));
    let mut b = successor(b);
    let out = b.event(Event::Closed(SOCKET));
    assert!(is_close(&out[0], 1), "{out:?}");
    assert_eq!(out[1..], [Out::Effect(Effect::Leave(SOCKET))]);
}

#[test]
fn the_next_socket_of_the_slot_is_not_closed_for_its_predecessor() {
    let mut b = opened();
    b.event(Event::Closed(SOCKET));
    // The transport has heard that, and a connection has arrived for a listener.
    b.arena.socket(4).unwrap().reset(ComponentId::TCP);
    let mut b = successor(b);
    assert_eq!(b.event(Event::Closed(SOCKET)), [Out::Effect(Effect::Drop(SOCKET))]);
    assert!(b.event(Event::Closed(SOCKET)).is_empty());
    // A program takes it.
    let r = Request { op: op::ACCEPTED, slot: 4, value: 78, args: [2, 0, 0, 0], ..Request::default() };
    b.request(r, 9);
    assert!(is_close(&b.event(Event::Closed(SOCKET))[0], 2));
}

#[test]
fn nothing_is_dropped_while_the_transport_is_dead() {
    let mut b = opened();
    b.out.remove_peer(ComponentId::TCP);
    assert!(b.event(Event::Closed(SOCKET)).is_empty());
    assert!(b.event(Event::Closed(SOCKET)).is_empty());
    // Its successor hears it, and once.
    b.out.set_room(ComponentId::TCP, 64, 64);
    let (e, mut cx, out) = b.cx();
    e.peer_reborn(&mut cx, ComponentId::TCP, out);
    e.flush(&mut cx, out);
    let out: Vec<Out> = b.out.drain().collect();
    assert!(is_close(&out[0], INCARNATION), "{out:?}");
    assert_eq!(out[1..], [Out::Effect(Effect::Leave(SOCKET))]);
}

#[test]
fn a_socket_whose_domain_ends_while_the_transport_is_dead_is_closed_once() {
    let mut b = opened();
    b.out.remove_peer(ComponentId::TCP);
    b.event(Event::Closed(SOCKET));
    let out = b.event(Event::DomainClosed(DOMAIN));
    assert_eq!(out.iter().filter(|out| is_close(out, INCARNATION)).count(), 1);
    b.out.set_room(ComponentId::TCP, 64, 64);
    let (e, mut cx, out) = b.cx();
    e.flush(&mut cx, out);
    e.check();
    assert!(out.is_empty());
}

#[test]
fn a_full_queue_is_waited_for() {
    let mut b = opened();
    b.out.set_room(ComponentId::TCP, 0, 64);
    assert!(b.event(Event::Closed(SOCKET)).is_empty());
    let (e, mut cx, out) = b.cx();
    e.flush(&mut cx, out);
    assert!(b.out.is_empty());
    b.out.set_room(ComponentId::TCP, 1, 64);
    let (e, mut cx, out) = b.cx();
    e.flush(&mut cx, out);
    assert_eq!(b.out.drain().count(), 2);
}

#[test]
fn what_a_process_held_without_a_descriptor_is_closed_when_it_is_gone() {
    let mut b = Bench::new();
    let page = b.arena.socket(4).unwrap();
    // The page names a transport that this stack does not have, as a program may write there.
    page.reset(ComponentId::new(Role::Tcp, 3));
    assert!(b.event(Event::Released(SOCKET)).is_empty());
    page.reset(ComponentId::TCP);
    let out = b.event(Event::Released(SOCKET));
    assert!(is_close(&out[0], 2), "{out:?}");
    let Out::Transport(_, close) = out[0] else { panic!("{out:?}") };
    b.answer(ComponentId::TCP, close.asks().0, 0, 4);
    // Once.
    assert!(b.event(Event::Closed(SOCKET)).is_empty());
}

#[test]
fn what_has_a_descriptor_is_closed_with_it() {
    let mut b = opened();
    assert!(b.event(Event::Released(SOCKET)).is_empty());
    close(&mut b);
}
