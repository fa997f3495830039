//! Several instances of a transport: which of them gets a socket.

use super::*;
use eft_base::{PortShare, ports};

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
