//! Requests that sockets repeats since their answer was lost.

use crate::control::Direct;
use crate::script::*;
use eft_base::errno::*;
use eft_base::{RequestId, SocketId, WireAddress};
use eft_harness::DOMAIN;
use eft_messages::ComponentId;
use eft_messages::sockets::SocketsToTransport;
use eft_messages::transport::TransportToIp;
use eft_transport::{In, Out};

const PEER: [u8; 4] = [10, 0, 0, 2];

fn open(request: RequestId) -> SocketsToTransport {
    SocketsToTransport::Open { request, socket: SocketId { domain: DOMAIN, slot: 0 } }
}

fn connect(socket: SocketId, incarnation: u32) -> impl Fn(RequestId) -> SocketsToTransport {
    let address: WireAddress = std::net::IpAddr::from(PEER).into();
    move |request| SocketsToTransport::Connect { request, socket, incarnation, address, port: 80 }
}

#[test]
fn an_open_that_is_repeated_has_the_same_answer_until_its_socket_is_used() {
    let mut d = Direct::new();
    let first = d.ask_as(500, open).socket;
    let again = d.ask_as(500, open);
    assert_eq!((again.errno, again.socket), (0, first), "the same socket");
    let other = d.ask_as(501, open).socket;
    assert_ne!(other, first);
    assert_eq!(d.ask_as(500, open).socket, first, "however often");
    assert_eq!(d.bind(first, [10, 0, 0, 1], 80, 0).errno, 0);
    assert_ne!(d.ask_as(500, open).socket, first, "sockets had its answer, or nobody would have bound it");
}

#[test]
fn a_connect_that_is_repeated_while_the_route_is_asked_for_is_answered_once() {
    let mut d = Direct::new();
    let socket = d.ask_as(500, open).socket;
    let incarnation = d.incarnation(socket);
    let request = RequestId { index: 501, generation: 9 };
    let side = d.world.at(0);
    for _ in 0..3 {
        side.receive(ComponentId::SOCKETS, In::Sockets(connect(socket, incarnation)(request)));
        side.end_turn();
    }
    let items = side.host.take();
    let routes = items.iter().filter(|o| matches!(o, Out::Ip(TransportToIp::Route { .. })));
    assert_eq!(routes.count(), 1, "{items:?}");
    assert!(!items.iter().any(|o| matches!(o, Out::Sockets(_))), "{items:?}");
}

#[test]
fn a_connect_that_is_repeated_after_its_attempt_ended_begins_no_other() {
    let mut d = Direct::new();
    let socket = d.ask_as(500, open).socket;
    let incarnation = d.incarnation(socket);
    assert_eq!(d.ask_as(501, connect(socket, incarnation)).errno, 0);
    // The peer refuses.
    let side = d.world.at(0);
    side.end_turn();
    let items = side.host.take();
    let syns = items.iter().filter_map(|o| match o {
        Out::Ip(TransportToIp::Send { descriptor, .. }) => Some(side.described(*descriptor).0.header),
        _ => None,
    });
    let header: Vec<_> = syns.collect();
    let [syn] = header[..] else { panic!("{items:?}") };
    let port = u16::from_be_bytes([syn[0], syn[1]]);
    let sequence = u32::from_be_bytes([syn[4], syn[5], syn[6], syn[7]]);
    let (from, to) = (std::net::IpAddr::from(PEER).into(), side.address);
    let reset = segment((from, 80), (to, port), (0, sequence.wrapping_add(1)), RST | ACK, 0, &[], &[]);
    d.world.deliver(0, &reset);
    d.world.at(0).end_turn();
    assert_eq!(d.world.at(0).page(socket).error(), ECONNREFUSED);
    d.world.at(0).host.take();
    let again = d.try_ask(501, connect(socket, incarnation)).expect("an answer");
    assert_eq!(again.errno, 0, "as the first one");
    let side = d.world.at(0);
    side.end_turn();
    assert_eq!(side.host.take(), [], "no other attempt");
    assert_eq!(side.page(socket).error(), ECONNREFUSED, "which the program still has to see");
}
