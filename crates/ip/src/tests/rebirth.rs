//! A crash of a neighbour loses nothing.

use super::*;
use eft_channel::rounds::REPEATED;

fn receive_udp(b: &mut Bench) -> PacketRef {
    b.arrive(&packet(PROTOCOL_UDP, 0, 1, &udp(5, 6, &[1; 10])))
}

#[test]
fn nothing_passes_without_a_verdict() {
    let mut b = Bench::met(true);
    b.send(ComponentId::UDP, 1, &datagram(THEM, 0, 10));
    receive_udp(&mut b);
    let out = b.drain();
    assert_eq!(out.len(), 2);
    let ToPeer::Filter(IpToFilter::Ask {
        source_port: 1000,
        destination_port: 53,
        protocol: 17,
        inbound: false,
        interface: 0,
        ..
    }) = out[0]
    else {
        panic!("{out:?}")
    };
    let ToPeer::Filter(IpToFilter::Ask {
        source_port: 5,
        destination_port: 6,
        protocol: 17,
        inbound: true,
        interface: 0,
        ..
    }) = out[1]
    else {
        panic!("{out:?}")
    };
    b.verdict(asked(&out[0]), false);
    b.verdict(asked(&out[1]), false);
    let answers = b.drain();
    assert_eq!(answers[0], sent(ComponentId::UDP, 1, 1));
    assert!(matches!(answers[1], ToPeer::Nic(0, IpToNic::Done { .. })));
    // A verdict counts once.
    b.verdict(asked(&out[0]), true);
    b.verdict(asked(&out[1]), true);
    assert_eq!(b.drain(), []);
    assert_eq!(b.count(Counter::StaleReply), 2);
    b.assert_idle();
}

#[test]
fn a_reborn_filter_is_asked_again_in_order() {
    let mut b = Bench::met(true);
    for i in 0..5 {
        b.send(ComponentId::TCP, i, &segment(THEM, 10 + i, 0));
        receive_udp(&mut b);
    }
    let first = b.drain();
    b.verdict(asked(&first[0]), true);
    let frames = b.drain();
    b.reborn(ComponentId::FILTER);
    let again = b.drain();
    let (outbound, inbound): (Vec<_>, Vec<_>) = first.iter().enumerate().partition(|(i, _)| i % 2 == 0);
    let expected: Vec<ToPeer> = outbound[1..].iter().chain(&inbound).map(|(_, m)| (*m).clone()).collect();
    assert_eq!(again, expected);
    for m in &again {
        b.verdict(asked(m), true);
    }
    let out = b.drain();
    let sends: Vec<ToPeer> =
        frames.into_iter().chain(out.iter().filter(|m| matches!(m, ToPeer::Nic(..))).cloned()).collect();
    let lens: Vec<usize> = sends.iter().map(|m| b.frame(m).len()).collect();
    assert_eq!(lens, [64, 65, 66, 67, 68]);
    assert_eq!(out.iter().filter(|m| matches!(m, ToPeer::Transport(..))).count(), 5);
}

#[test]
fn a_reborn_nic_gets_unanswered_frames_again_in_order() {
    let mut b = Bench::met(false);
    for i in 0..4 {
        b.send(ComponentId::TCP, i, &segment(THEM, 10 + i, 0));
    }
    let frames = b.drain();
    b.confirm(&frames[1..2]);
    assert_eq!(b.drain(), [sent(ComponentId::TCP, 1, 0)]);
    b.reborn(ComponentId::nic(0));
    b.link(true, 60000);
    let again = b.drain();
    assert_eq!(again, [0, 2, 3].map(|i: usize| frames[i].clone()));
    b.confirm(&again);
    let answers: Vec<ToPeer> = [0, 2, 3].map(|i| sent(ComponentId::TCP, i, 0)).into();
    assert_eq!(b.drain(), answers);
    b.assert_idle();
}

#[test]
fn a_dead_nics_packets_are_not_given_back() {
    let mut b = Bench::met(false);
    receive_udp(&mut b);
    let out = b.drain();
    let ToPeer::Transport(_, IpToTransport::Deliver { packet, .. }) = out[0] else { panic!() };
    assert!(b.ip.uses_pool(NIC));
    b.reborn(ComponentId::nic(0));
    b.transport_says(ComponentId::UDP, TransportToIp::Done { packet });
    assert_eq!(b.drain(), []);
    assert!(!b.ip.uses_pool(NIC));
}

#[test]
fn a_reborn_transport_starts_without_packets_and_requests() {
    let mut b = Bench::met(true);
    receive_udp(&mut b);
    let ask = b.drain();
    b.verdict(asked(&ask[0]), true);
    b.send(ComponentId::UDP, 1, &datagram(THEM, 0, 10));
    b.send(ComponentId::UDP, 2, &datagram(THEM, 0, 3000));
    b.send(ComponentId::UDP, 3, &datagram(THEM, 0, 10));
    b.send(ComponentId::TCP, 4, &segment(THEM, 10, 0));
    let out = b.drain();
    for m in &out[1..3] {
        b.verdict(asked(m), true);
    }
    let frames = b.drain();
    assert_eq!(frames.len(), 1 + 3);
    b.reborn(ComponentId::UDP);
    assert!(matches!(b.drain()[..], [ToPeer::Nic(0, IpToNic::Done { .. })]), "its packet went home");
    // Frames that the NIC has keep their slots until it answers; no transport is told.
    b.confirm(&frames);
    assert_eq!(b.drain(), []);
    b.verdict(asked(&out[3]), true);
    assert_eq!(b.drain(), [], "forgotten");
    b.verdict(asked(&out[4]), true);
    let frames = b.drain();
    b.confirm(&frames);
    assert_eq!(b.drain(), [sent(ComponentId::TCP, 4, 0)]);
    b.assert_idle();
}

fn receive_tcp(b: &mut Bench, port: u16) -> PacketRef {
    let mut segment = [0u8; 20];
    segment[..2].copy_from_slice(&port.to_be_bytes());
    segment[12] = 5 << 4;
    b.arrive(&packet(PROTOCOL_TCP, 0, 1, &segment))
}

fn delivered(out: &[ToPeer]) -> Vec<u32> {
    let packet = |m: &ToPeer| match m {
        ToPeer::Transport(ComponentId::TCP, IpToTransport::Deliver { packet, .. }) => Some(packet.slot),
        _ => None,
    };
    out.iter().filter_map(packet).collect()
}

#[test]
fn a_reborn_tcp_gets_its_predecessors_packets_in_order_and_once() {
    let mut b = Bench::met(false);
    let mut slots: Vec<u32> = (0..4).map(|i| receive_tcp(&mut b, 1000 + i).slot).collect();
    let out = b.drain();
    assert_eq!(delivered(&out), slots);
    // One is given back, in the middle; its slot is used again, and comes last.
    let ToPeer::Transport(_, IpToTransport::Deliver { packet, .. }) = out[1] else { panic!("{out:?}") };
    b.transport_says(ComponentId::TCP, TransportToIp::Done { packet });
    let home = b.drain();
    let [ToPeer::Nic(0, IpToNic::Done { packet })] = home[..] else { panic!("{home:?}") };
    b.nic.free(packet);
    slots.remove(1);
    slots.push(receive_tcp(&mut b, 2000).slot);
    assert_eq!(delivered(&b.drain()), slots[3..]);
    b.reborn(ComponentId::TCP);
    let out = b.drain();
    assert_eq!((delivered(&out), out.len()), (slots.clone(), 4));
    assert_eq!(b.count(Counter::GivenAgain), 4);
    for _ in 0..2 {
        b.reborn(ComponentId::TCP);
        assert_eq!(delivered(&b.drain()), slots);
    }
    // A packet that came later does not count for the fourth death; all others go back to the NIC.
    let late = receive_tcp(&mut b, 3000).slot;
    assert_eq!(delivered(&b.drain()), [late]);
    b.reborn(ComponentId::TCP);
    let out = b.drain();
    assert_eq!((delivered(&out), out.len()), (vec![late], 5));
    assert_eq!(b.count(Counter::DropFatal), 4);
    // And a packet that was given twice is taken back as any other.
    let given = out.iter().find_map(|m| match m {
        ToPeer::Transport(_, IpToTransport::Deliver { packet, .. }) => Some(*packet),
        _ => None,
    });
    b.transport_says(ComponentId::TCP, TransportToIp::Done { packet: given.unwrap() });
    assert!(matches!(b.drain()[..], [ToPeer::Nic(0, IpToNic::Done { .. })]));
    assert!(!b.ip.uses_pool(NIC));
}

#[test]
fn a_window_that_comes_while_tcp_is_dead_waits_for_it() {
    let mut b = Bench::met(false);
    let mut slots: Vec<u32> = (0..20).map(|i| receive_tcp(&mut b, 1000 + i).slot).collect();
    assert_eq!(delivered(&b.drain()), slots);
    b.out.remove_peer(ComponentId::TCP);
    slots.extend((0..120).map(|i| receive_tcp(&mut b, 2000 + i).slot));
    assert_eq!(b.drain(), []);
    b.out.remove_peer(ComponentId::TCP);
    // The rest of the pool is for other transports.
    receive_tcp(&mut b, 3000);
    assert!(matches!(b.drain()[..], [ToPeer::Nic(0, IpToNic::Done { .. })]));
    assert_eq!(b.count(Counter::DropTransportFull), 1);
    b.out.set_room(ComponentId::TCP, 1024, 1024);
    b.reborn(ComponentId::TCP);
    assert_eq!(delivered(&b.drain()), slots);
}

#[test]
fn a_window_that_comes_while_tcp_is_busy_waits_for_it() {
    let mut b = Bench::met(false);
    let mut slots = Vec::new();
    for i in 0..140 {
        b.out.set_room(ComponentId::TCP, 512, 1024);
        slots.push(receive_tcp(&mut b, 1000 + i).slot);
    }
    assert_eq!(b.drain(), [], "receipts fill half of its queue");
    // The rest of the pool is for other transports.
    b.out.set_room(ComponentId::TCP, 512, 1024);
    receive_tcp(&mut b, 3000);
    assert!(matches!(b.drain()[..], [ToPeer::Nic(0, IpToNic::Done { .. })]));
    assert_eq!(b.count(Counter::DropTransportFull), 1);
    // Room is found without a wake.
    b.out.set_room(ComponentId::TCP, 1024, 1024);
    b.pass(Duration::from_millis(25));
    assert_eq!(delivered(&b.drain()), slots);
}

#[test]
fn packets_for_a_dead_transport_are_not_refused_by_a_reborn_ip() {
    let mut b = Bench::raw(false);
    b.reborn(ComponentId::nic(0));
    b.configure(&format!("transports = [\"tcp\"]\n{CONFIG}"));
    b.link(true, 0);
    b.drain();
    b.out.remove_peer(ComponentId::TCP);
    let slot = receive_tcp(&mut b, 1000).slot;
    assert_eq!(b.drain(), [], "tcp is dead");
    b.reborn(ComponentId::TCP);
    assert_eq!(delivered(&b.drain()), [slot]);
    // udp is not configured.
    receive_udp(&mut b);
    assert_eq!(b.count(Counter::DropProtocol), 1);
}

#[test]
fn a_reborn_ip_holds_messages_until_it_is_configured() {
    let mut b = Bench::raw(false);
    b.reborn(ComponentId::TCP);
    b.reborn(ComponentId::UDP);
    b.reborn(ComponentId::nic(0));
    b.send(ComponentId::TCP, 1, &segment(THEM, 10, 0));
    receive_udp(&mut b);
    b.configure(CONFIG);
    assert_eq!(b.drain(), []);
    b.link(true, 0);
    let out = b.drain();
    // Announcement, question, delivery.
    assert_eq!(b.frame(&out[0])[28..32], US.octets());
    assert_eq!(b.frame(&out[1])[38..42], THEM.octets());
    assert!(matches!(out[2], ToPeer::Transport(ComponentId::UDP, IpToTransport::Deliver { .. })));
    assert_eq!(b.count(Counter::HeldEarly), 2);
}

#[test]
fn without_a_configuration_the_answer_comes_after_a_while() {
    let mut b = Bench::raw(false);
    b.reborn(ComponentId::TCP);
    b.send(ComponentId::TCP, 1, &segment(THEM, 10, 0));
    b.pass(Duration::from_millis(100));
    assert_eq!(b.drain(), []);
    b.pass(Duration::from_millis(100));
    assert_eq!(b.drain(), [sent(ComponentId::TCP, 1, 99)]);
}

#[test]
fn a_bad_configuration_changes_nothing() {
    let mut b = Bench::met(false);
    b.configure("[[interface]]\nindex = 0\n");
    assert!(b.ip.last_error().unwrap().starts_with("ip configuration: "));
    assert_eq!(b.count(Counter::ConfigRefused), 1);
    b.send(ComponentId::UDP, 1, &datagram(THEM, 0, 10));
    assert_eq!(b.drain().len(), 1);
    b.configure(&CONFIG.replace("10.77", "10.78"));
    assert_eq!(b.ip.last_error(), None);
    b.drain();
    b.send(ComponentId::UDP, 2, &datagram(THEM, 0, 10));
    assert_eq!(b.drain(), [sent(ComponentId::UDP, 2, 99)]);
}

#[test]
fn a_packet_that_a_transport_does_not_give_back_is_given_again() {
    let mut b = Bench::new(false);
    receive_udp(&mut b);
    let first = b.drain();
    let [ToPeer::Transport(ComponentId::UDP, IpToTransport::Deliver { packet, .. })] = first[..] else {
        panic!("{first:?}")
    };
    b.pass(Duration::from_millis(900));
    assert_eq!(b.drain(), [], "a transport may take that long");
    b.pass(Duration::from_secs(2));
    assert_eq!((b.drain(), b.count(Counter::Repeated)), (first.clone(), 1));
    // Both receipts come in the end: the second one counts for nothing.
    b.transport_says(ComponentId::UDP, TransportToIp::Done { packet });
    assert!(matches!(b.drain()[..], [ToPeer::Nic(0, IpToNic::Done { .. })]));
    b.transport_says(ComponentId::UDP, TransportToIp::Done { packet });
    assert_eq!(b.drain(), []);
    b.pass(Duration::from_secs(5));
    assert_eq!(b.drain(), []);
    b.assert_idle();
}

/// A packet that nobody gives back must not keep others from being repeated.
#[test]
fn all_packets_that_are_not_given_back_are_given_again_in_turn() {
    let mut b = Bench::new(false);
    let all = 3 * REPEATED / 2;
    for _ in 0..all {
        receive_udp(&mut b);
    }
    assert_eq!(b.drain().len(), all);
    b.pass(Duration::from_secs(1));
    assert_eq!(b.drain(), [], "none has waited for a whole round");
    for _ in 0..3 {
        let mut again = std::collections::BTreeSet::new();
        for _ in 0..2 {
            b.pass(Duration::from_secs(1));
            let round = b.drain();
            assert_eq!(round.len(), REPEATED);
            again.extend(round.iter().map(|message| match message {
                ToPeer::Transport(_, IpToTransport::Deliver { packet, .. }) => packet.slot,
                other => panic!("{other:?}"),
            }));
        }
        assert_eq!(again.len(), all);
    }
}

/// The receipt that ip sent was lost.
#[test]
fn a_nic_that_repeats_a_frame_gets_its_receipt_again() {
    let mut b = Bench::met(true);
    let packet = receive_udp(&mut b);
    let repeat = NicToIp::Received { packet, checksum_ok: true, segment_size: 0 };
    let asked = b.drain();
    let [ToPeer::Filter(IpToFilter::Ask { request, .. })] = asked[..] else { panic!("{asked:?}") };
    b.nic_says(repeat);
    assert_eq!(b.drain(), [], "the filter is being asked");
    b.verdict(request, true);
    let given = b.drain();
    let [ToPeer::Transport(ComponentId::UDP, IpToTransport::Deliver { packet: to_udp, .. })] = given[..]
    else {
        panic!("{given:?}")
    };
    b.nic_says(repeat);
    assert_eq!(b.drain(), [], "udp has it");
    b.transport_says(ComponentId::UDP, TransportToIp::Done { packet: to_udp });
    assert!(matches!(b.drain()[..], [ToPeer::Nic(0, IpToNic::Done { .. })]));
    b.nic_says(repeat);
    assert_eq!(b.drain(), [ToPeer::Nic(0, IpToNic::Done { packet })]);
    assert_eq!(b.count(Counter::DropRepeated), 3);
    b.assert_idle();
}
