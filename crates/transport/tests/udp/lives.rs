//! Sockets outlive the engine and its neighbours, and faults stay within one socket.

use crate::host::*;
use eft_base::errno::*;
use eft_base::{PoolId, Random, RequestId, SocketId};
use eft_channel::socket::{Geometry, Opt, wish};
use eft_component::Component;
use eft_component::transport::{Effect, Event};
use eft_harness::DOMAIN;
use eft_messages::ComponentId;
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};
use eft_transport::Out;
use eft_transport::udp::{UdpConfig, inspect};

#[test]
fn sockets_survive_the_engine() {
    let mut h = Host::new();
    let (a, b) = (h.open(), h.open());
    h.bind(a, [0; 4], 53, 0);
    h.connect(b, PEER, 99);
    h.deliver(&datagram((PEER, 1), (OWN, 53), b"before"), true);
    for round in 0..20u8 {
        h.answer_sends = round % 2 == 0;
        h.send(b, None, &[round]);
        h.crash();
        h.deliver(&datagram((PEER, 1), (OWN, 53), &[round]), true);
    }
    assert_eq!(h.receive(a).unwrap().1, b"before");
    for round in 0..20u8 {
        assert_eq!(h.receive(a).unwrap().1, [round]);
    }
    assert_eq!(h.page(b).send_released(), h.page(b).send_end());
    assert_eq!(h.page(b).remote().port, 99);
    assert!(h.effects.iter().filter(|e| **e == Effect::Readable(a)).count() >= 20);
    assert_eq!(inspect::list(&h.durable.read_only()).unwrap().len(), 2);
    assert_eq!(h.counter("rebirths"), 20);
    // Nothing was given away.
    let c = h.open();
    assert_eq!(h.bind(c, [0; 4], 53, 0), EADDRINUSE);
}

#[test]
fn a_reborn_ip_gets_everything_again() {
    let mut h = Host::new();
    let s = h.open();
    h.answer_sends = false;
    for i in 0..10u8 {
        h.send(s, Some((PEER, 9)), &[i]);
    }
    h.sent.clear();
    h.pending.clear();
    h.with(|udp, cx, out| udp.peer_reborn(cx, ComponentId::IP, out));
    h.flush();
    let again: Vec<Vec<u8>> = h.sent.iter().map(|s| s.1.clone()).collect();
    assert_eq!(again, (0..10u8).map(|i| vec![i]).collect::<Vec<_>>());
    h.answer_all(0);
    h.flush();
    assert_eq!(h.page(s).send_released(), h.page(s).send_end());
}

#[test]
fn a_closed_socket_sends_what_it_was_given_and_frees_its_slot_after() {
    let mut h = Host::new();
    let s = h.open();
    h.connect(s, PEER, 9);
    h.answer_sends = false;
    h.send(s, None, b"last words");
    h.close(s);
    assert_eq!(h.sent.len(), 1);
    assert_eq!(h.counter("blocks"), 1, "ip still refers to the ring");
    h.answer_all(0);
    h.flush();
    assert_eq!(h.counter("blocks"), 0);
}

#[test]
fn quotas_and_domains() {
    let mut h = Host::new();
    let sockets: Vec<SocketId> = (0..12).map(|_| h.open()).collect();
    let socket = SocketId { domain: DOMAIN, slot: 0 };
    assert_eq!(h.ask(|request| SocketsToTransport::Open { request, socket }).0, EMFILE);
    assert_eq!(
        h.ask(|request| SocketsToTransport::Listen {
            request,
            socket: sockets[0],
            incarnation: 1,
            backlog: 1
        })
        .0,
        EOPNOTSUPP
    );
    assert_eq!(h.ask(|request| SocketsToTransport::CloseDomain { request, socket, pool: PoolId(2) }).0, 0);
    assert_eq!(h.counter("blocks"), 0);
    assert_eq!(h.ask(|request| SocketsToTransport::Open { request, socket }).0, EINVAL);
}

#[test]
fn a_scribbled_page_costs_its_own_socket_only() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let mut h = Host::new();
        let (mad, sane) = (h.open(), h.open());
        h.bind(mad, [0; 4], 52, 0);
        h.bind(sane, [0; 4], 53, 0);
        for _ in 0..20 {
            let page = h.page(mad);
            match random.below(4) {
                0 => page.set_send_end(random.next_u64() >> random.below(64)),
                1 => page.set_receive_taken(random.next_u64() >> random.below(64)),
                2 => {
                    let noise: Vec<u8> = (0..4096).map(|_| random.next_u32() as u8).collect();
                    page.write_send(0, &noise);
                    page.set_send_end(random.below(4096) / 8 * 8);
                }
                _ => page.set_option(Opt::ReceiveBuffer, random.next_u32()),
            }
            h.event(Event::Dirty(mad));
            h.flush();
            h.deliver(&datagram((PEER, 1), (OWN, 52), b"mad"), true);
            h.deliver(&datagram((PEER, 1), (OWN, 53), b"sane"), true);
            assert_eq!(h.receive(sane).unwrap().1, b"sane", "seed {seed}");
            h.sent.clear();
            h.send(sane, Some((PEER, 7)), b"still here");
            assert!(h.sent.iter().any(|s| s.1 == b"still here"), "seed {seed}");
        }
    }
}

#[test]
fn a_socket_of_an_earlier_stack_goes_on_where_its_rings_are() {
    let mut h = Host::new();
    let page = h.arena.socket(5).unwrap();
    page.reset(ComponentId::UDP);
    let incarnation = page.incarnation();
    let restore = |h: &mut Host, incarnation| {
        let socket = SocketId { domain: DOMAIN, slot: 5 };
        h.ask(|request| SocketsToTransport::Restore { request, socket, incarnation })
    };
    for (taken, end, sent) in [(8, 0, 0), (0, u64::MAX, 0), (0, 0, u64::MAX), (0, 0, 4), (0, 4, 0)] {
        page.set_receive_end(end);
        page.set_receive_taken(taken);
        page.set_send_end(sent);
        assert_eq!(restore(&mut h, incarnation).0, EINVAL, "{taken} {end} {sent}");
    }
    // Two datagrams were received, of which one was read; one was never sent.
    page.set_receive_end(112);
    page.set_receive_taken(56);
    page.set_send_end(56);
    assert_eq!(restore(&mut h, incarnation + 1).0, EINVAL);
    let (errno, socket, _) = restore(&mut h, incarnation);
    assert_eq!((errno, socket.slot, page.incarnation()), (0, 5, incarnation));
    assert_eq!(restore(&mut h, incarnation).0, 0, "asked again");
    assert_eq!((page.receivable(), page.send_released()), (56, 56));
    assert_eq!(h.bind(socket, [0; 4], 9, 0), 0);
    assert!((0..6).all(|_| h.open() != socket));
    h.deliver(&datagram(([10, 0, 0, 2], 7), ([10, 0, 0, 1], 9), b"after"), true);
    page.set_receive_taken(112);
    assert_eq!(h.receive(socket).unwrap().1, b"after");
    let before = h.counter("sent_datagrams");
    h.send(socket, Some(([10, 0, 0, 2], 7)), b"and back");
    assert_eq!(h.counter("sent_datagrams"), before + 1, "what was not sent then is not sent now");
}

#[test]
fn a_late_request_does_not_find_the_slots_next_socket() {
    let mut h = Host::new();
    let old = h.open();
    let incarnation = h.page(old).incarnation();
    h.close(old);
    h.crash();
    let new = h.open();
    assert_eq!(new, old, "a reborn engine gives out the lowest slots first");
    let (address, port) = (v4(OWN), 53);
    let bind =
        |request| SocketsToTransport::Bind { request, socket: old, incarnation, address, port, reuse: 0 };
    assert_eq!(h.ask(bind).0, EINVAL);
    let connect = |request| SocketsToTransport::Connect { request, socket: old, incarnation, address, port };
    assert_eq!(h.ask(connect).0, EINVAL);
    h.ask(|request| SocketsToTransport::Close { request, socket: old, incarnation });
    let socket = old;
    h.ask(|request| SocketsToTransport::CloseDomain { request, socket, pool: PoolId(77) });
    assert_eq!(h.bind(new, OWN, 53, 0), 0, "the new socket is untouched");
}

/// Wishes, and what the descriptor is to show of them.
#[test]
fn a_shutdown_shows_in_the_descriptor_also_after_a_crash() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, OWN, 5000, 0);
    let dirty = |h: &mut Host, wish: u32| {
        h.page(s).add_wish(wish);
        h.effects.clear();
        h.event(Event::Dirty(s));
        h.flush();
        h.effects.clone()
    };
    assert!(!dirty(&mut h, 0).contains(&Effect::EndOfStream(s)));
    assert!(dirty(&mut h, wish::SHUT_READ).contains(&Effect::EndOfStream(s)));
    let over = dirty(&mut h, wish::SHUT_WRITE);
    assert!(over.contains(&Effect::HangUp(s)) && !over.contains(&Effect::EndOfStream(s)), "{over:?}");
    h.crash();
    assert!(dirty(&mut h, 0).contains(&Effect::HangUp(s)));
    let other = h.open();
    h.bind(other, OWN, 5001, 0);
    h.page(other).add_wish(wish::SHUT_WRITE);
    h.effects.clear();
    h.event(Event::Dirty(other));
    h.flush();
    let ends = |e: &&Effect| matches!(e, Effect::HangUp(_) | Effect::EndOfStream(_));
    assert_eq!(h.effects.iter().filter(ends).count(), 0, "sending alone is over");
}

#[test]
fn a_turn_serves_so_many_sockets_and_no_more() {
    const SOCKETS: usize = 1000;
    let config =
        UdpConfig { sockets: SOCKETS + 24, sockets_per_domain: SOCKETS, seed: 1, ..UdpConfig::default() };
    let geometry = Geometry { slots: 4 * SOCKETS, send_len: 1 << 12, receive_len: 1 << 12 };
    let mut h = Host::of(config, geometry);
    let sockets: Vec<SocketId> = (0..SOCKETS).map(|_| h.open()).collect();
    for s in sockets {
        h.page(s).add_wish(wish::SHUT_READ | wish::SHUT_WRITE);
        h.event(Event::Dirty(s));
    }
    let (mut turns, mut most, mut all) = (0, 0, 0);
    loop {
        h.with(|udp, cx, out| {
            udp.flush(cx, out);
            udp.commit(cx);
        });
        let served = h.host.out.drain().filter(|item| matches!(item, Out::Effect(Effect::HangUp(_)))).count();
        if served == 0 {
            break;
        }
        // Those whose turn did not come have it at once.
        let waits = all + served < SOCKETS;
        assert_eq!(h.with(|udp, cx, _| udp.deadline().is_some_and(|at| at <= cx.now)), waits);
        (turns, most, all) = (turns + 1, most.max(served), all + served);
    }
    assert_eq!(all, SOCKETS, "everybody has a turn");
    assert!(most <= 256 && turns >= 4, "{turns} turns, {most} in one");
}

#[test]
fn what_ip_does_not_answer_is_repeated_until_it_does() {
    let mut h = Host::new();
    let s = h.open();
    h.answer_sends = false;
    h.send(s, Some((PEER, 9)), b"lost answer");
    let lost = std::mem::take(&mut h.pending);
    // Later ones are answered: the ring is held all the same.
    h.answer_sends = true;
    h.send(s, Some((PEER, 9)), b"later");
    assert_eq!((h.page(s).send_released(), h.sent.len()), (0, 2));
    h.answer_sends = false;
    h.host.pass(std::time::Duration::from_secs(2));
    h.with(|udp, cx, out| udp.expire(cx, out));
    h.flush();
    assert_eq!((h.pending.clone(), h.counter("repeated_requests")), (lost, 1), "the same request");
    assert_eq!(h.sent[2].1, b"lost answer");
    h.answer_all(0);
    h.flush();
    assert_eq!(h.page(s).send_released(), h.page(s).send_end());
}

#[test]
fn requests_of_sockets_that_are_repeated_have_the_same_answer() {
    let mut h = Host::new();
    let socket = SocketId { domain: DOMAIN, slot: 0 };
    let opened = |h: &mut Host, index| {
        let request = RequestId { index, generation: 7 };
        h.hear_from_sockets(SocketsToTransport::Open { request, socket });
        let replies = h.flush();
        let [TransportToSockets::Reply { errno: 0, socket, .. }] = replies[..] else { panic!("{replies:?}") };
        socket
    };
    let (first, second) = (opened(&mut h, 500), opened(&mut h, 501));
    assert_ne!(first, second);
    assert_eq!((opened(&mut h, 500), opened(&mut h, 501)), (first, second));
    // A connect that is repeated while the route is asked for is answered once.
    let request = RequestId { index: 502, generation: 7 };
    let (incarnation, address) = (h.page(first).incarnation(), v4(PEER));
    let connect = SocketsToTransport::Connect { request, socket: first, incarnation, address, port: 9 };
    h.hear_from_sockets(connect);
    h.hear_from_sockets(connect);
    assert_eq!(h.flush().len(), 1);
    h.hear_from_sockets(connect);
    assert_eq!(h.flush().len(), 1, "its answer was lost");
}
