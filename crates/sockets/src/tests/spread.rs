//! Several instances of a transport: which of them gets a socket.

use super::*;
use eft_base::{PortShare, ports};
use eft_channel::socket::Opt;
use eft_messages::sockets::{BESIDE, reuse};

const TCP1: ComponentId = ComponentId::new(Role::Tcp, 1);

/// Two instances of tcp and one of udp.
fn two_tcps() -> Bench {
    let mut b = Bench::new();
    b.out = Outbox::with_room(&[ComponentId::TCP, TCP1, ComponentId::UDP], 64);
    b.event(Event::Configure { key: PortShare::KEY.into(), value: b"tcp\ntcp1\nudp\n".to_vec() });
    let (e, mut cx, out) = b.cx();
    e.peer_reborn(&mut cx, TCP1, out);
    b.out.drain();
    b
}

impl Bench {
    /// Which transport is asked for a socket of this kind that will be bound to this port, and the request.
    fn opener(&mut self, kind: u32, port: u16) -> (ComponentId, RequestId) {
        let request = Request { op: op::OPEN, args: [kind, 0, 0, 0], port, ..Request::default() };
        match self.request(request, 3)[..] {
            [Out::Transport(peer, SocketsToTransport::Open { request, .. })] => (peer, request),
            ref other => panic!("{other:?}"),
        }
    }
}

fn port_of(instance: u8) -> u16 {
    (1024..).find(|port| ports::owner(*port, 2) == instance).unwrap()
}

#[test]
fn a_socket_is_opened_where_its_port_is() {
    let mut b = two_tcps();
    for port in 1..40 {
        let owner = ComponentId::new(Role::Tcp, ports::owner(port, 2));
        assert_eq!(b.opener(1, port).0, owner, "{port}");
        assert_eq!(b.opener(2, port).0, ComponentId::UDP, "there is one udp");
    }
}

#[test]
fn sockets_without_a_port_go_to_each_in_turn() {
    let mut b = two_tcps();
    let openers: Vec<ComponentId> = (0..6)
        .map(|_| {
            // Those of udp have turns of their own.
            b.opener(2, 0);
            b.opener(1, 0).0
        })
        .collect();
    assert_eq!(openers.iter().filter(|opener| **opener == TCP1).count(), 3, "{openers:?}");
    assert!(openers.windows(2).all(|pair| pair[0] != pair[1]), "{openers:?}");
}

#[test]
fn a_port_of_another_instance_is_refused_with_an_errno_of_its_own() {
    let mut b = two_tcps();
    let (opener, request) = b.opener(1, port_of(1));
    assert_eq!(opener, TCP1);
    b.make(TCP1, 2);
    b.answer(TCP1, request, 0, 2);
    let bind = |port| Request { op: op::BIND, slot: 2, port, ..Request::default() };
    assert_eq!(errno_of(&b.request(bind(port_of(0)), 0)), EXDEV);
    for port in [port_of(1), 0] {
        let out = b.request(bind(port), 0);
        let [Out::Transport(TCP1, SocketsToTransport::Bind { request, .. })] = out[..] else {
            panic!("{out:?}")
        };
        b.answer(TCP1, request, 0, 2);
    }
}

#[test]
fn with_one_instance_every_port_is_its_own() {
    let mut b = Bench::new();
    b.event(Event::Configure { key: PortShare::KEY.into(), value: b"tcp\nudp\n".to_vec() });
    for port in [0, 22, 80, 443, 8080, 60999] {
        assert_eq!(b.opener(1, port).0, ComponentId::TCP);
        assert_eq!(b.opener(2, port).0, ComponentId::UDP);
    }
}

impl Bench {
    /// What one transport is asked for, and nothing else.
    fn asked(out: &[Out], of: ComponentId) -> SocketsToTransport {
        match out {
            [Out::Transport(peer, message)] if *peer == of => *message,
            other => panic!("{other:?}"),
        }
    }

    /// Opens a stream of the first tcp and binds it.
    fn bound(&mut self, slot: u32, port: u16) {
        let (opener, request) = self.opener(1, port);
        self.make(opener, slot);
        self.answer(opener, request, 0, slot);
        let out = self.request(Request { op: op::BIND, slot, port, ..Request::default() }, 0);
        let SocketsToTransport::Bind { request, .. } = Bench::asked(&out, opener) else { panic!("{out:?}") };
        self.answer_at(opener, request, slot, port);
    }

    fn answer_at(&mut self, from: ComponentId, request: RequestId, slot: u32, port: u16) -> Vec<Out> {
        let (socket, address) = (SocketId { domain: DOMAIN, slot }, WireAddress::default());
        let (errno, incarnation, taken) = (0, INCARNATION, 0);
        self.hear(
            from,
            TransportToSockets::Reply { request, errno, socket, incarnation, address, port, taken },
        )
    }

    /// The program's socket listens; returns what sockets does then.
    fn listened(&mut self, slot: u32, port: u16) -> Vec<Out> {
        let out = self.request(Request { op: op::LISTEN, slot, args: [9, 1, 0, 0], ..Request::default() }, 0);
        let SocketsToTransport::Listen { request, backlog: 9, .. } = Bench::asked(&out, ComponentId::TCP)
        else {
            panic!("{out:?}")
        };
        let mut out = self.answer_at(ComponentId::TCP, request, slot, port);
        assert!(matches!(out.remove(0), Out::Effect(Effect::Note { .. })));
        out
    }

    /// tcp1 opens a socket beside it, which it is asked to bind.
    fn opened_beside(&mut self, asked: &[Out], slot: u32, port: u16) -> RequestId {
        let SocketsToTransport::Open { request, .. } = Bench::asked(asked, TCP1) else { panic!("{asked:?}") };
        self.make(TCP1, slot);
        match self.answer_at(TCP1, request, slot, 0)[..] {
            [
                Out::Effect(Effect::KeepBeside { socket, transport: TCP1, of }),
                Out::Transport(TCP1, SocketsToTransport::Bind { request, port: to, reuse, .. }),
            ] if (socket.slot, of.slot, to) == (slot, 2, port) => {
                assert_eq!(reuse & (reuse::ADDRESS | reuse::ELSEWHERE), reuse::ADDRESS | reuse::ELSEWHERE);
                request
            }
            ref other => panic!("{other:?}"),
        }
    }

    /// And is bound and listens; returns what the program is told.
    fn listens_beside(&mut self, bind: RequestId, slot: u32, port: u16) -> Vec<Out> {
        let out = self.answer_at(TCP1, bind, slot, port);
        let SocketsToTransport::Listen { request, backlog, .. } = Bench::asked(&out, TCP1) else {
            panic!("{out:?}")
        };
        assert_eq!(backlog, 9 | BESIDE);
        self.answer_at(TCP1, request, slot, port)
    }
}

#[test]
fn a_listener_of_a_spread_port_has_one_beside_it_at_each_instance() {
    let mut b = two_tcps();
    let port = port_of(0);
    b.bound(2, port);
    b.arena.socket(2).unwrap().set_option(Opt::DeferAccept, 3);
    let out = b.listened(2, port);
    let bind = b.opened_beside(&out, 3, port);
    let told = b.listens_beside(bind, 3, port);
    assert_eq!((errno_of(&told), told.len()), (0, 1));
    let [first, further] = [2, 3].map(|slot| b.arena.socket(slot).unwrap());
    assert_eq!((first.beside(), further.beside()), (Some(3), None));
    assert!(further.is_beside(&first));
    assert_eq!(further.option(Opt::DeferAccept), 3);
    // The program asks again: there is one already.
    let out = b.listened(2, port);
    let SocketsToTransport::Bind { request, .. } = Bench::asked(&out, TCP1) else { panic!("{out:?}") };
    assert_eq!(errno_of(&b.listens_beside(request, 3, port)), 0);
    // Both end with their descriptor, whichever end is noticed.
    let out = b.event(Event::Closed(SocketId { domain: DOMAIN, slot: 2 }));
    let closes = out.iter().filter(|out| matches!(out, Out::Transport(_, SocketsToTransport::Close { .. })));
    assert_eq!(closes.count(), 2, "{out:?}");
    assert_eq!(b.event(Event::Closed(SocketId { domain: DOMAIN, slot: 3 })), []);
}

#[test]
fn what_is_opened_beside_a_listener_that_is_gone_is_closed() {
    let mut b = two_tcps();
    let port = port_of(0);
    b.bound(2, port);
    let out = b.listened(2, port);
    let SocketsToTransport::Open { request, .. } = Bench::asked(&out, TCP1) else { panic!("{out:?}") };
    b.event(Event::Closed(SocketId { domain: DOMAIN, slot: 2 }));
    b.make(TCP1, 3);
    let out = b.answer_at(TCP1, request, 3, 0);
    assert!(matches!(out[0], Out::Transport(TCP1, SocketsToTransport::Close { .. })), "{out:?}");
}

#[test]
fn a_socket_that_only_a_programs_page_names_is_not_taken_for_one_beside_it() {
    let mut b = two_tcps();
    let port = port_of(0);
    b.bound(2, port);
    // The program's own socket at tcp1.
    let (opener, request) = b.opener(1, port_of(1));
    b.make(opener, 4);
    b.answer(opener, request, 0, 4);
    b.arena.socket(2).unwrap().set_beside(Some(4));
    let out = b.listened(2, port);
    b.opened_beside(&out, 3, port);
    assert_eq!(b.arena.socket(2).unwrap().beside(), Some(3));
}

#[test]
fn a_port_above_has_one_listener() {
    let mut b = two_tcps();
    let port = (40000..).find(|port| ports::owner(*port, 2) == 0).unwrap();
    b.bound(2, port);
    let told = b.listened(2, port);
    assert_eq!((errno_of(&told), told.len()), (0, 1));
}

#[test]
fn a_socket_that_is_to_be_connected_from_a_spread_port_is_opened_at_the_connections_owner() {
    let mut b = two_tcps();
    let address = WireAddress::from(core::net::IpAddr::from([10, 0, 0, 1]));
    let port = port_of(0);
    for to in 1..40 {
        let request = Request { op: op::OPEN, args: [1, to, 0, 0], port, address, ..Request::default() };
        let owner = ports::connection_owner(port, (address, to as u16), 2);
        match b.request(request, 3)[..] {
            [Out::Transport(peer, SocketsToTransport::Open { .. })] => assert_eq!(peer.instance, owner),
            ref other => panic!("{other:?}"),
        }
    }
    // It is bound there, if its program says what for.
    let (_, request) = b.opener(1, port_of(1));
    b.make(TCP1, 5);
    b.answer(TCP1, request, 0, 5);
    let elsewhere = [u32::from(reuse::ELSEWHERE), 0, 0, 0];
    let bind = |port| Request { op: op::BIND, slot: 5, port, args: elsewhere, ..Request::default() };
    let high = (40000..).find(|port| ports::owner(*port, 2) == 0).unwrap();
    assert_eq!(errno_of(&b.request(bind(high), 0)), EXDEV);
    let out = b.request(bind(port), 0);
    assert!(matches!(out[..], [Out::Transport(TCP1, SocketsToTransport::Bind { .. })]), "{out:?}");
}
