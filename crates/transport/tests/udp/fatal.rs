//! Inputs that kill udp: each does so twice at most, and costs no other input.

use crate::host::*;
use eft_component::transport::{Effect, Event};
use eft_component::{Component, Occasion};
use eft_messages::ComponentId;
use eft_messages::sockets::SocketsToTransport;
use eft_transport::udp::running_input;
use eft_transport::{In, udp};

impl Host {
    /// Lets the engine die of what `input` does: at the first access of its arena or a page while this runs. False: it lives.
    fn dies_of(&mut self, what: &str, mut input: impl FnMut(&mut Host)) -> bool {
        for steps in 1.. {
            self.host.engine.fuse().light(steps);
            input(self);
            if !self.died {
                self.host.engine.fuse().light(0);
                return false;
            }
            // A death of something else is no part of the test.
            let is_it = running_input(&self.durable).is_some_and(|running| running.starts_with(what));
            self.pending.clear();
            self.host.take();
            match is_it {
                true => self.succeed(),
                false => self.restart(),
            };
            self.event(Event::Configure { key: "addresses".into(), value: b"10.0.0.1/24".to_vec() });
            if is_it {
                break;
            }
        }
        true
    }
}

/// The same datagram comes again, in another packet and another slot.
#[test]
fn a_datagram_that_kills_twice_is_dropped_and_others_come() {
    for checksum_ok in [true, false] {
        let mut h = Host::new();
        let s = h.open();
        h.bind(s, [0; 4], 53, 0);
        let mut identification = 0;
        let mut deadly = || {
            identification += 1;
            let mut bytes = datagram((PEER, 1), (OWN, 53), b"deadly");
            bytes[4] = identification;
            bytes
        };
        let deaths = (0..5).filter(|_| {
            let bytes = deadly();
            h.dies_of("a packet", |h| h.deliver(&bytes, checksum_ok))
        });
        assert_eq!(deaths.count(), 2);
        assert_eq!(h.counter("blamed_inputs"), 2);
        assert!(h.counter("drop_fatal") >= 3);
        h.deliver(&datagram((PEER, 1), (OWN, 53), b"lively"), checksum_ok);
        assert_eq!(h.receive(s).unwrap().1, b"lively");
        assert_eq!(h.receive(s), None);
        assert_eq!(h.packets_in_use(), 0, "every buffer is given back");
    }
}

#[test]
fn a_datagram_of_a_program_that_kills_twice_is_not_sent_and_others_are() {
    let mut h = Host::new();
    let (s, other) = (h.open(), h.open());
    h.connect(s, PEER, 99);
    h.connect(other, PEER, 99);
    h.send(s, None, b"before");
    let mut first = Some(b"deadly");
    let mut deaths = 0;
    while h.dies_of("a packet to be sent of the socket at 10.0.0.1:", |h| match first.take() {
        Some(payload) => h.send(s, None, payload),
        None => drop(h.flush()),
    }) {
        deaths += 1;
        assert!(deaths < 5);
    }
    h.flush();
    assert_eq!((deaths, h.counter("blamed_inputs")), (2, 2));
    assert!(h.counter("drop_fatal") > 0);
    h.send(s, None, b"after");
    h.send(other, None, b"beside");
    let sent: Vec<&[u8]> = h.sent.iter().map(|(_, payload)| &payload[..]).collect();
    assert_eq!(sent, [&b"before"[..], b"after", b"beside"]);
    assert_eq!(h.page(s).send_released(), h.page(s).send_end(), "the ring is the program's again");
}

#[test]
fn a_request_that_kills_twice_is_refused_and_its_socket_ends() {
    let mut h = Host::new();
    let (s, other) = (h.open(), h.open());
    let request = eft_base::RequestId { index: 900, generation: 1 };
    let (incarnation, address) = (h.page(s).incarnation(), v4(OWN));
    let bind = SocketsToTransport::Bind { request, socket: s, incarnation, address, port: 53, reuse: 0 };
    for life in 1..=3 {
        h.with(|udp, _, _| udp.begin(Occasion::Message { from: ComponentId::SOCKETS, line: &bind.encode() }));
        if life < 3 {
            h.succeed();
            h.flush();
        }
    }
    h.effects.clear();
    h.with(|udp, cx, out| udp.receive(cx, ComponentId::SOCKETS, In::Sockets(bind), out));
    let replies = h.flush();
    assert_eq!(replies.len(), 1, "{replies:?}");
    assert!(h.effects.contains(&Effect::HangUp(s)));
    assert_eq!(h.counter("drop_fatal"), 1);
    assert_eq!(h.bind(other, OWN, 53, 0), 0, "the request was not carried out");
    let rows = udp::inspect::list(&h.durable.read_only()).unwrap();
    assert_eq!(rows.len(), 2);
}
