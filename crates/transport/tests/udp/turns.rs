//! The order in which programs are told, and how much is done in one turn.

use crate::host::*;
use eft_base::SocketId;
use eft_channel::socket::Geometry;
use eft_component::Component;
use eft_component::transport::{Effect, Event};
use eft_harness::{ARENA_POOL, DOMAIN, TransportHost};
use eft_messages::sockets::SocketsToTransport;
use eft_transport::Out;
use eft_transport::udp::UdpConfig;

/// Programs that come to look at their sockets have work done for these that is no input.
#[test]
fn who_rings_before_input_is_told_of_it_in_its_order() {
    const PORT: u16 = 4_000;
    let mut h = Host::new();
    let sockets: [_; 4] = [0, 1, 2, 3].map(|i| {
        let socket = h.open();
        assert_eq!(h.bind(socket, [0; 4], PORT + i, 0), 0);
        socket
    });
    for ringing in [&[][..], &[3], &[2, 3], &[0, 1, 2, 3]] {
        for order in [[1, 0, 3, 2], [3, 2, 1, 0], [2, 3, 0, 1]] {
            h.effects.clear();
            for i in ringing {
                h.event(Event::Dirty(sockets[*i]));
            }
            let packets = order.map(|i| datagram((PEER, 53), (OWN, PORT + i as u16), b"input"));
            h.deliver_together(&packets.each_ref().map(Vec::as_slice), true);
            let told: Vec<_> = h.effects.iter().filter(|e| matches!(e, Effect::Readable(_))).collect();
            let came = order.map(|i| Effect::Readable(sockets[i]));
            assert_eq!(told, came.iter().collect::<Vec<_>>(), "after {ringing:?} rang");
        }
    }
}

#[test]
fn a_domain_with_a_thousand_sockets_ends_in_many_turns() {
    const SOCKETS: u64 = 1_000;
    /// Sockets closed, and sockets served.
    const SHARE: u64 = 2 * 256;
    let config = UdpConfig { sockets: 1_024, sockets_per_domain: 1_024, seed: 1, ..UdpConfig::default() };
    for deaths_after in [None, Some(1), Some(3)] {
        let mut h = Host::of(config, Geometry { slots: 2_048, send_len: 4_096, receive_len: 4_096 });
        (0..SOCKETS).for_each(|_| _ = h.open());
        let socket = SocketId { domain: DOMAIN, slot: 0 };
        TransportHost::ask(&mut h, |request| SocketsToTransport::CloseDomain {
            request,
            socket,
            pool: ARENA_POOL,
        });
        let (mut turns, mut answers) = (0, Vec::new());
        while answers.is_empty() {
            let before = h.host.status.progress();
            h.end_turn();
            turns += 1;
            let done = h.host.status.progress() - before;
            assert!(done <= SHARE, "{done} in one turn");
            answers.extend(h.host.take().into_iter().filter(|out| matches!(out, Out::Sockets(_))));
            assert!(!answers.is_empty() || h.host.engine.deadline().is_some_and(|at| at <= h.host.now));
            if deaths_after == Some(turns) {
                h.restart();
            }
        }
        assert!((4..12).contains(&turns), "{turns} turns");
        assert_eq!(h.counter("blocks"), 0);
    }
}
