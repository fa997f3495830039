//! Toward the wire.

use super::*;

#[test]
fn a_packet_waits_for_its_neighbour_and_then_leaves_whole() {
    let mut b = Bench::new(false);
    let bytes: Vec<u8> = (0..100).collect();
    let slot = b.payload.allocate().unwrap();
    b.payload.write(slot, 0, &bytes);
    b.send(ComponentId::UDP, 1, &datagram(THEM, 0, 51));
    b.send(ComponentId::UDP, 2, &datagram(FAR, 7, 30));
    let out = b.drain();
    // One question: the destination and the gateway are the same neighbour.
    assert_eq!(out.len(), 1);
    let arp = b.frame(&out[0]);
    assert_eq!(arp[..6], [0xff; 6]);
    assert_eq!(arp[12..14], [8, 6]);
    assert_eq!(arp[38..42], THEM.octets());
    b.confirm(&out);
    let reply = b.arp(ARP_REPLY, THEIR_MAC, THEM, US);
    let out = b.drain();
    assert_eq!(out.len(), 3);
    assert_eq!(out[2], done(reply));
    let first = b.frame(&out[0]);
    assert_eq!(first[..6], THEIR_MAC.0);
    assert_eq!(first[6..12], OUR_MAC.0);
    assert_eq!(first[42..], bytes[..51]);
    assert!(checksum_holds(&first));
    let second = b.frame(&out[1]);
    assert_eq!(second[30..34], FAR.octets());
    assert_eq!(second[42..], bytes[7..37]);
    b.confirm(&out);
    assert_eq!(b.drain(), [sent(ComponentId::UDP, 1, 0), sent(ComponentId::UDP, 2, 0)]);
    b.assert_idle();
}

#[test]
fn a_silent_neighbour_is_unreachable() {
    let mut b = Bench::new(false);
    b.send(ComponentId::TCP, 1, &segment(THEM, 10, 0));
    for _ in 0..6 {
        b.pass(Duration::from_secs(1));
        let out = b.drain();
        b.confirm(&out);
        if out.contains(&sent(ComponentId::TCP, 1, 113)) {
            b.assert_idle();
            return;
        }
    }
    panic!("never given up");
}

#[test]
fn without_offload_the_checksum_is_ours() {
    let mut b = Bench::met(false);
    b.link(false, 0);
    b.drain();
    // A payload in two pieces, the first of odd length, as a ring that wraps gives.
    let bytes: Vec<u8> = (0..1200u32).map(|i| (i * 7) as u8).collect();
    let slot = b.payload.allocate().unwrap();
    b.payload.write(slot, 0, &bytes);
    let mut d = segment(THEM, 1001, 0);
    d.payload_count = 2;
    d.payload[1] = PacketRef { offset: 333, len: 668, ..d.payload[0] };
    d.payload[0].len = 333;
    b.send(ComponentId::TCP, 1, &d);
    let out = b.drain();
    let f = b.frame(&out[0]);
    assert_eq!(f[54..], bytes[..1001]);
    assert!(checksum_holds(&f));
    assert_eq!(f[20] & 0x40, 0x40, "don't fragment");
    // It cannot be asked to segment.
    b.send(ComponentId::TCP, 2, &segment(THEM, 5000, 1000));
    assert_eq!(b.drain(), [sent(ComponentId::TCP, 2, 90)]);
}

#[test]
fn large_segments_pass_to_a_device_that_cuts_them() {
    let mut b = Bench::met(false);
    b.send(ComponentId::TCP, 1, &segment(THEM, 60000, 1460));
    let out = b.drain();
    let ToPeer::Nic(0, IpToNic::Send { descriptor, .. }) = out[0] else { panic!() };
    let d: FrameDescriptor = b.memory.read_value(descriptor).unwrap();
    assert_eq!((d.segment_size, d.flags), (1460, FRAME_CHECKSUM));
    assert_eq!(d.payload[0].len, 60000);
    // One segment needs no segmentation; a segment that is too large is the sender's mistake.
    b.send(ComponentId::TCP, 2, &segment(THEM, 1000, 1460));
    let out = b.drain();
    let ToPeer::Nic(0, IpToNic::Send { descriptor, .. }) = out[0] else { panic!() };
    let d: FrameDescriptor = b.memory.read_value(descriptor).unwrap();
    assert_eq!(d.segment_size, 0);
    b.send(ComponentId::TCP, 3, &segment(THEM, 60000, 1461));
    b.send(ComponentId::TCP, 4, &segment(THEM, 60001, 1460));
    b.send(ComponentId::TCP, 5, &segment(THEM, 1461, 0));
    let refused: Vec<ToPeer> = (3..6).map(|i| sent(ComponentId::TCP, i, 90)).collect();
    assert_eq!(b.drain(), refused);
}

#[test]
fn long_datagrams_are_cut_and_come_together_again() {
    let bytes: Vec<u8> = (0..65507u32).map(|i| (i * 31 / 7) as u8).collect();
    for len in [1473, 1480, 3000, 65507] {
        let mut b = Bench::met(false);
        let slot = b.payload.allocate().unwrap();
        b.payload.write(slot, 0, &bytes);
        let mut d = datagram(THEM, 0, len);
        // Pieces of unequal length.
        d.payload_count = 3;
        d.payload[1] = PacketRef { offset: 9, len: 1400, ..d.payload[0] };
        d.payload[2] = PacketRef { offset: 1409, len: len - 1409, ..d.payload[0] };
        d.payload[0].len = 9;
        b.send(ComponentId::UDP, 1, &d);
        let out = b.drain();
        let frames: Vec<Vec<u8>> = out.iter().map(|m| b.frame(m)).collect();
        assert!(frames.len() > 1 && frames.iter().all(|f| f.len() <= 1514));
        for (i, m) in out.iter().enumerate() {
            b.confirm(std::slice::from_ref(m));
            let expected = if i + 1 == out.len() { 1 } else { 0 };
            let answers = b.drain();
            assert_eq!(answers.len(), expected, "answered once, at the end");
        }
        b.assert_idle();
        // Back to us from the far side, in reverse order.
        for mut f in frames.into_iter().rev() {
            f[..6].copy_from_slice(&OUR_MAC.0);
            f[6..12].copy_from_slice(&THEIR_MAC.0);
            f[26..30].copy_from_slice(&THEM.octets());
            f[30..34].copy_from_slice(&US.octets());
            fix_header(&mut f);
            b.arrive(&f);
        }
        let out = b.drain();
        let Some(ToPeer::Transport(ComponentId::UDP, IpToTransport::Deliver { packet, header_len: 20, .. })) =
            out.iter().find(|m| matches!(m, ToPeer::Transport(..)))
        else {
            panic!("{len}: {out:?}")
        };
        let mut whole = vec![0; packet.len as usize];
        b.memory.read(*packet, &mut whole).unwrap();
        assert!(whole[28..] == bytes[..len as usize], "{len}");
        // The checksum survived (source and destination only changed places).
        assert!(checksum_holds(&ethernet(ETHERTYPE_IPV4, &whole)));
        b.transport_says(ComponentId::UDP, TransportToIp::Done { packet: *packet });
        b.assert_idle();
    }
}

#[test]
fn requests_are_checked() {
    let mut b = Bench::met(false);
    let good = datagram(THEM, 0, 100);
    let wild = PacketRef { slot: 7, ..good.payload[0] };
    let address = |s: &str| s.parse::<IpAddr>().unwrap().into();
    let cases: [(ComponentId, SendDescriptor, i32); 10] = [
        (ComponentId::TCP, good, 22),
        (ComponentId::UDP, SendDescriptor { header_len: 65, ..good }, 22),
        (ComponentId::UDP, SendDescriptor { header_len: 7, checksum_offset: 5, ..good }, 22),
        (ComponentId::UDP, SendDescriptor { checksum_offset: 7, ..good }, 22),
        (ComponentId::UDP, SendDescriptor { payload_count: 5, ..good }, 22),
        (ComponentId::UDP, SendDescriptor { payload: [wild; 4], ..good }, 22),
        (ComponentId::UDP, SendDescriptor { source: address("10.77.0.3"), ..good }, 99),
        (ComponentId::UDP, SendDescriptor { destination: address("2001:db8::1"), ..good }, 101),
        (ComponentId::UDP, SendDescriptor { destination: address("127.0.0.1"), ..good }, 101),
        (ComponentId::UDP, SendDescriptor { flags: 1, ..datagram(THEM, 0, 1473) }, 90),
    ];
    for (i, (peer, d, errno)) in cases.into_iter().enumerate() {
        b.send(peer, i as u32, &d);
        assert_eq!(b.drain(), [sent(peer, i as u32, errno)], "case {i}");
    }
    let mut long = datagram(THEM, 0, 65508);
    long.payload[0].len = 65508;
    b.send(ComponentId::UDP, 99, &long);
    assert_eq!(b.drain(), [sent(ComponentId::UDP, 99, 90)]);
    b.assert_idle();
}

#[test]
fn routes_are_answered() {
    let mut b = Bench::new(false);
    let mut ask = |source: &str, destination: &str| {
        let message = TransportToIp::Route {
            request: request(1),
            source: source.parse::<IpAddr>().unwrap().into(),
            destination: destination.parse::<IpAddr>().unwrap().into(),
        };
        b.transport_says(ComponentId::TCP, message);
        match b.drain()[..] {
            [
                ToPeer::Transport(
                    ComponentId::TCP,
                    IpToTransport::Routed { errno, source, mtu, segment_max, local, .. },
                ),
            ] => (errno, IpAddr::from(source).to_string(), mtu, segment_max, local),
            ref other => panic!("{other:?}"),
        }
    };
    let us = US.to_string();
    assert_eq!(ask("0.0.0.0", "8.8.8.8"), (0, us.clone(), 1500, 60000, false));
    assert_eq!(ask("10.77.0.2", "10.77.0.9"), (0, us.clone(), 1500, 60000, false));
    assert_eq!(ask("0.0.0.0", "10.77.0.2"), (0, us.clone(), 65535, 65455, true));
    assert_eq!(ask("10.77.0.9", "10.77.0.1").0, 99);
    assert_eq!(ask("::", "2001:db8::1").0, 101);
}

#[test]
fn packets_to_our_own_address_are_looped_back() {
    let mut b = Bench::new(false);
    let slot = b.payload.allocate().unwrap();
    let bytes: Vec<u8> = (0..60000u32).map(|i| (i / 3) as u8).collect();
    b.payload.write(slot, 0, &bytes);
    b.send(ComponentId::TCP, 1, &segment(US, 60000, 16384));
    let out = b.drain();
    assert_eq!(out[0], sent(ComponentId::TCP, 1, 0));
    let ToPeer::Transport(
        ComponentId::TCP,
        IpToTransport::Deliver {
            packet,
            header_len: 20,
            checksum_ok: true,
            segment_size: 16384,
            zone: 0,
            interface: crate::LOCAL_INTERFACE,
        },
    ) = out[1]
    else {
        panic!("{out:?}")
    };
    let mut whole = vec![0; packet.len as usize];
    b.memory.read(packet, &mut whole).unwrap();
    assert!(whole[40..] == bytes[..]);
    // Only the transport that has it may give it back, once.
    b.transport_says(ComponentId::UDP, TransportToIp::Done { packet });
    b.transport_says(ComponentId::TCP, TransportToIp::Done { packet });
    b.transport_says(ComponentId::TCP, TransportToIp::Done { packet });
    assert_eq!(b.count(Counter::BadDone), 2);
    b.assert_idle();
}

#[test]
fn local_packets_wait_for_slots_in_order() {
    let mut b = Bench::new(false);
    b.payload.allocate().unwrap();
    for i in 0..20 {
        b.send(ComponentId::UDP, i, &datagram(US, 0, 10 + i));
    }
    let mut got = Vec::new();
    loop {
        let out = b.drain();
        let packets: Vec<PacketRef> = out
            .iter()
            .filter_map(|m| match m {
                ToPeer::Transport(_, IpToTransport::Deliver { packet, .. }) => Some(*packet),
                _ => None,
            })
            .collect();
        if packets.is_empty() {
            break;
        }
        got.extend(packets.iter().map(|p| p.len - 38));
        for packet in packets {
            b.transport_says(ComponentId::UDP, TransportToIp::Done { packet });
        }
    }
    assert_eq!(got, (0..20).collect::<Vec<u32>>());
    b.assert_idle();
}

#[test]
fn local_packets_do_not_wait_for_slots_when_their_sender_has_died() {
    let mut b = Bench::new(false);
    b.payload.allocate().unwrap();
    for i in 0..20 {
        b.send(ComponentId::UDP, i, &datagram(US, 0, 10 + i));
    }
    b.drain();
    // It is checked before the turn's end.
    b.with(|ip, cx, out| {
        ip.peer_reborn(cx, ComponentId::UDP, out);
        ip.check();
    });
    b.drain();
    b.assert_idle();
}

#[test]
fn a_refused_local_datagram_comes_back_as_an_error() {
    let mut b = Bench::new(false);
    b.payload.allocate().unwrap();
    b.send(ComponentId::UDP, 1, &datagram(US, 0, 10));
    let out = b.drain();
    let ToPeer::Transport(_, IpToTransport::Deliver { packet, .. }) = out[1] else { panic!() };
    b.transport_says(ComponentId::UDP, TransportToIp::Refuse { packet });
    let out = b.drain();
    let [
        ToPeer::Transport(
            ComponentId::UDP,
            IpToTransport::Error { packet, header_len: 20, kind: 3, code: 3, info: 0, ttl: 64, .. },
        ),
    ] = out[..]
    else {
        panic!("{out:?}")
    };
    b.transport_says(ComponentId::UDP, TransportToIp::Done { packet });
    b.assert_idle();
}

#[test]
fn requests_wait_for_frame_slots_in_order() {
    let mut b = Bench::met(false);
    for i in 0..300 {
        b.send(ComponentId::UDP, i, &datagram(THEM, 0, 10));
    }
    let mut answered = Vec::new();
    while answered.len() < 300 {
        let out = b.drain();
        assert!(!out.is_empty());
        b.confirm(&out);
        answered.extend(out.iter().filter_map(|m| match m {
            ToPeer::Transport(_, IpToTransport::Sent { request, errno: 0 }) => Some(request.index),
            _ => None,
        }));
    }
    assert_eq!(answered, (0..300).collect::<Vec<u32>>());
    b.drain();
    b.assert_idle();
}

#[test]
fn a_transport_that_asks_again_gets_a_lost_answer_again() {
    let mut b = Bench::met(false);
    let descriptor = b.send(ComponentId::UDP, 1, &datagram(THEM, 0, 10));
    let again = TransportToIp::Send { request: request(1), descriptor };
    let out = b.drain();
    b.transport_says(ComponentId::UDP, again);
    assert_eq!(b.drain(), [], "the nic has it");
    b.confirm(&out);
    assert_eq!(b.drain(), [sent(ComponentId::UDP, 1, 0)]);
    b.transport_says(ComponentId::UDP, again);
    assert_eq!(b.drain(), [sent(ComponentId::UDP, 1, 0)], "and it is not sent again");
}

#[test]
fn a_frame_that_the_nic_does_not_answer_is_repeated() {
    let mut b = Bench::met(false);
    b.send(ComponentId::UDP, 1, &datagram(THEM, 0, 10));
    let out = b.drain();
    b.pass(Duration::from_secs(2));
    assert_eq!((b.drain(), b.count(Counter::Repeated)), (out.clone(), 1));
    b.confirm(&out);
    b.drain();
    b.assert_idle();
    b.pass(Duration::from_secs(5));
    assert_eq!(b.drain(), []);
}

#[test]
fn a_question_that_the_filter_does_not_answer_is_repeated() {
    let mut b = Bench::met(true);
    b.send(ComponentId::UDP, 1, &datagram(THEM, 0, 10));
    b.arrive(&packet(17, 0, 1, &udp(53, 1000, b"x")));
    let asked = b.drain();
    assert_eq!(asked.len(), 2);
    b.pass(Duration::from_secs(2));
    assert_eq!((b.drain(), b.count(Counter::FilterAsksAgain)), (asked, 2));
}

#[test]
fn what_is_not_as_it_was_sealed_is_neither_copied_nor_cut() {
    let mut b = Bench::met(false);
    let damage = |d: SendDescriptor| {
        let mut d = d.sealed();
        d.payload[0].offset ^= 64;
        d
    };
    // To this host itself, and longer than the link takes.
    for (n, to, len) in [(1, US, 100), (2, THEM, 3000)] {
        b.send(ComponentId::UDP, n, &damage(datagram(to, 0, len)));
        assert_eq!(b.drain(), [sent(ComponentId::UDP, n, 0)], "it counts as lost on its way");
        assert_eq!(b.count(Counter::DropDamaged), n as u64);
    }
    // What is sent as it is the NIC compares, that then sees the transport's seal.
    b.send(ComponentId::TCP, 3, &damage(segment(THEM, 100, 0)));
    let out = b.drain();
    let ToPeer::Nic(0, IpToNic::Send { descriptor, .. }) = out[0] else { panic!("{out:?}") };
    let d: FrameDescriptor = b.memory.read_value(descriptor).unwrap();
    assert!(d.seal != 0 && !d.is_as_sealed());
    b.confirm(&out);
    b.drain();
    b.assert_idle();
}
