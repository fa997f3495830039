//! Toward the applications.

use super::*;

fn delivered(out: &[ToPeer]) -> Option<(ComponentId, PacketRef)> {
    out.iter().find_map(|m| match m {
        ToPeer::Transport(peer, IpToTransport::Deliver { packet, .. }) => Some((*peer, *packet)),
        _ => None,
    })
}

/// A changed bit makes a message about a frame one about a link, whose address is what the other message held.
#[test]
fn a_device_has_no_address_of_a_group() {
    let mut b = Bench::new(true);
    b.nic_says(NicToIp::Link {
        mac: MacAddress([7, 0, 1, 0, 1, 0]),
        mtu: 1500,
        up: true,
        checksum: false,
        segment_max: 0,
    });
    assert_eq!(b.count(Counter::DropMalformed), 1);
    assert_eq!(b.ip.link(0).map(|l| l.mac), Some(OUR_MAC));
}

#[test]
fn a_datagram_is_delivered_without_its_padding_and_given_back() {
    let mut b = Bench::new(false);
    let mut f = packet(PROTOCOL_UDP, 0, 1, &udp(5, 6, &[7; 3]));
    f.extend([0; 20]);
    let frame = b.arrive(&f);
    let (peer, p) = delivered(&b.drain()).unwrap();
    assert_eq!((peer, p.slot, p.offset, p.len), (ComponentId::UDP, frame.slot, 14, 31));
    b.transport_says(ComponentId::UDP, TransportToIp::Done { packet: p });
    assert_eq!(b.drain(), [done(p)]);
    b.assert_idle();
}

/// The second message about a slot comes after the first has been answered, when the slot may hold another frame.
#[test]
fn a_frame_that_is_handed_over_twice_is_delivered_once() {
    let mut b = Bench::new(false);
    let frame = b.arrive(&packet(PROTOCOL_UDP, 0, 1, &udp(5, 6, &[7; 3])));
    let (_, p) = delivered(&b.drain()).unwrap();
    b.transport_says(ComponentId::UDP, TransportToIp::Done { packet: p });
    assert_eq!(b.drain(), [done(p)]);
    b.nic_says(NicToIp::Received { packet: frame, checksum_ok: true, segment_size: 0 });
    assert_eq!(
        b.drain(),
        [ToPeer::Nic(0, IpToNic::Done { packet: frame })],
        "the receipt may have been lost"
    );
    b.assert_idle();
}

#[test]
fn a_full_transport_loses_only_what_exceeds_a_burst() {
    let mut b = Bench::new(false);
    let full = |b: &mut Bench| b.out.set_room(ComponentId::UDP, 512, 1024);
    let mut frames = Vec::new();
    for i in 0..64u16 {
        full(&mut b);
        frames.push(b.arrive(&packet(PROTOCOL_UDP, 0, i, &udp(5, 6, &[]))));
    }
    assert_eq!(b.drain(), [], "a burst waits");
    assert!(b.ip.uses_pool(NIC));
    let again = b.nic.free(frames[63]).then(|| b.nic.allocate()).flatten().unwrap();
    assert!(b.nic.write(again, 0, &packet(PROTOCOL_UDP, 0, 99, &udp(5, 6, &[]))));
    full(&mut b);
    let excess = PacketRef { len: 42, ..again };
    b.nic_says(NicToIp::Received { packet: excess, checksum_ok: true, segment_size: 0 });
    assert!(matches!(b.drain()[..], [ToPeer::Nic(0, IpToNic::Done { .. })]));
    assert_eq!(b.count(Counter::DropTransportFull), 1);
    // Room is found without a wake, and they are delivered in order.
    b.pass(Duration::from_millis(25));
    let given = b.drain();
    let slots: Vec<u32> = given
        .iter()
        .map(|m| match m {
            ToPeer::Transport(ComponentId::UDP, IpToTransport::Deliver { packet, .. }) => packet.slot,
            m => panic!("{m:?}"),
        })
        .collect();
    assert_eq!(slots, frames.iter().map(|f| f.slot).collect::<Vec<u32>>());
    b.give_back(&given);
    b.pass(Duration::from_secs(2));
    assert_eq!(b.ip.deadline(), None);
}

#[test]
fn what_is_wrong_is_dropped_and_counted() {
    let good = packet(PROTOCOL_UDP, 0, 1, &udp(5, 6, &[7; 30]));
    let change = |at: usize, bytes: &[u8], fix: bool| {
        let mut f = good.clone();
        f[at..at + bytes.len()].copy_from_slice(bytes);
        if fix {
            fix_header(&mut f);
        }
        f
    };
    let mut routed = good.clone();
    routed.splice(34..34, [131, 7, 4, 10, 0, 0, 1, 0]);
    routed[14] = 0x47;
    routed[17] += 8;
    fix_header(&mut routed);
    let cases: Vec<(&str, Vec<u8>, Counter)> = vec![
        ("checksum", change(22, &[63], false), Counter::DropHeaderChecksum),
        ("version", change(14, &[0x65], true), Counter::DropMalformed),
        ("short header", change(14, &[0x44], true), Counter::DropMalformed),
        ("longer than the frame", change(16, &[0, 200], true), Counter::DropMalformed),
        ("shorter than its header", change(16, &[0, 19], true), Counter::DropMalformed),
        ("half a udp header", change(16, &[0, 27], true), Counter::DropMalformed),
        ("truncated", good[..30].to_vec(), Counter::DropMalformed),
        ("no ethernet", good[..10].to_vec(), Counter::DropMalformed),
        ("for another", change(30, &[10, 77, 0, 3], true), Counter::DropNotOurs),
        ("another's mac", change(0, &[2, 9], false), Counter::DropNotOurs),
        ("one host, many macs", change(0, &[0xff; 6], false), Counter::DropNotOurs),
        ("from ourselves", change(26, &US.octets(), true), Counter::DropMartian),
        ("from many", change(26, &[224, 0, 0, 1], true), Counter::DropMartian),
        ("from all", change(26, &[255; 4], true), Counter::DropMartian),
        ("from all here", change(26, &[10, 77, 0, 255], true), Counter::DropMartian),
        ("from nobody", change(26, &[0; 4], true), Counter::DropMartian),
        ("from loopback", change(26, &[127, 0, 0, 1], true), Counter::DropMartian),
        ("source route", routed, Counter::DropSourceRouted),
        ("ipv6", change(12, &[0x86, 0xdd], false), Counter::DropIpv6),
        ("unknown", change(12, &[0x88, 0xcc], false), Counter::DropEthertype),
    ];
    for (name, f, why) in cases {
        let mut b = Bench::new(false);
        b.arrive(&f);
        assert_eq!(b.count(why), 1, "{name}");
        let out = b.drain();
        assert!(matches!(out[..], [ToPeer::Nic(0, IpToNic::Done { .. })]), "{name}: {out:?}");
        b.assert_idle();
    }
}

#[test]
fn broadcasts_reach_udp_alone_and_are_not_answered() {
    for to in [[255; 4], [10, 77, 0, 255]] {
        let mut b = Bench::met(false);
        let broadcast = |protocol, body: &[u8]| {
            let mut f = packet(protocol, 0, 1, body);
            f[..6].fill(0xff);
            f[30..34].copy_from_slice(&to);
            fix_header(&mut f);
            f
        };
        b.arrive(&broadcast(PROTOCOL_UDP, &udp(5, 6, &[])));
        let (_, p) = delivered(&b.drain()).unwrap();
        b.transport_says(ComponentId::UDP, TransportToIp::Refuse { packet: p });
        assert_eq!(b.drain(), [done(p)]);
        for f in [
            broadcast(PROTOCOL_ICMP, &icmp(8, 0, [0; 4], &[])),
            broadcast(PROTOCOL_TCP, &[0x50; 20]),
            broadcast(99, &[0; 20]),
        ] {
            b.arrive(&f);
            assert!(matches!(b.drain()[..], [ToPeer::Nic(0, IpToNic::Done { .. })]));
        }
    }
}

#[test]
fn echo_is_replied_to() {
    for len in [0usize, 1, 56, 1472, 5000] {
        let mut b = Bench::met(false);
        let data: Vec<u8> = (0..len).map(|i| (i * 3) as u8).collect();
        let message = icmp(ICMP_ECHO_REQUEST, 0, [1, 2, 3, 4], &data);
        b.arrive(&packet(PROTOCOL_ICMP, 0, 1, &message));
        let out = b.drain();
        let mut body: Vec<u8> = Vec::new();
        for m in out.iter().filter(|m| matches!(m, ToPeer::Nic(0, IpToNic::Send { .. }))) {
            let f = b.frame(m);
            assert_eq!((&f[26..30], &f[30..34]), (&US.octets()[..], &THEM.octets()[..]));
            body.extend(&f[34..]);
        }
        assert_eq!(body, icmp(ICMP_ECHO_REPLY, 0, [1, 2, 3, 4], &data), "{len}");
        b.confirm(&out);
        b.drain();
        b.assert_idle();
    }
}

#[test]
fn a_corrupted_echo_is_dropped() {
    let mut b = Bench::met(false);
    let mut message = icmp(ICMP_ECHO_REQUEST, 0, [0; 4], &[1; 9]);
    message[12] ^= 1;
    b.arrive(&packet(PROTOCOL_ICMP, 0, 1, &message));
    assert_eq!(b.count(Counter::DropIcmp), 1);
    assert_eq!(b.drain().len(), 1);
}

#[test]
fn refusals_become_errors_within_limits() {
    let mut b = Bench::met(false);
    let body = udp(5, 6, &[9; 600]);
    let mut errors = 0;
    for _ in 0..60 {
        let f = packet(PROTOCOL_UDP, 0, 1, &body);
        b.arrive(&f);
        let (_, p) = delivered(&b.drain()).unwrap();
        b.transport_says(ComponentId::UDP, TransportToIp::Refuse { packet: p });
        let out = b.drain();
        assert!(out.contains(&done(p)));
        if let ToPeer::Nic(0, IpToNic::Send { .. }) = out[0] {
            errors += 1;
            let e = b.frame(&out[0]);
            assert_eq!(e.len(), 14 + 576);
            assert_eq!(e[34..36], [3, 3]);
            assert_eq!(Checksum::new().add_bytes(&e[34..]).finish(), 0);
            assert_eq!(e[42..], f[14..14 + 548]);
        }
        b.confirm(&out);
        b.drain();
    }
    assert_eq!(errors, 50);
    assert_eq!(b.count(Counter::IcmpRateLimited), 10);
    b.assert_idle();
}

#[test]
fn unknown_protocols_are_refused() {
    let mut b = Bench::met(false);
    b.arrive(&packet(99, 0, 1, &[1; 40]));
    let out = b.drain();
    assert_eq!(b.frame(&out[0])[34..36], [3, 2]);
    assert_eq!(b.count(Counter::DropProtocol), 1);
}

#[test]
fn errors_about_our_packets_reach_their_transport() {
    let quoted = |source: Ipv4Addr, protocol: u8, len: usize| {
        let mut f = packet(protocol, 0, 3, &[5; 100]);
        f[26..30].copy_from_slice(&source.octets());
        f[30..34].copy_from_slice(&THEM.octets());
        fix_header(&mut f);
        f[14..14 + len].to_vec()
    };
    let mut b = Bench::met(false);
    let mut try_error = |kind, code, rest, quote: &[u8]| {
        b.arrive(&packet(PROTOCOL_ICMP, 0, 1, &icmp(kind, code, rest, quote)));
        match b.drain()[..] {
            [
                ToPeer::Transport(
                    peer,
                    IpToTransport::Error {
                        packet,
                        header_len: 20,
                        kind,
                        code,
                        info,
                        offender,
                        ttl,
                        tos,
                        zone: 0,
                    },
                ),
            ] => {
                assert_eq!((offender, ttl, tos), (IpAddr::V4(THEM).into(), 64, 0));
                let mut q = vec![0; packet.len as usize];
                b.memory.read(packet, &mut q).unwrap();
                assert_eq!(q, quote);
                b.transport_says(peer, TransportToIp::Done { packet });
                assert!(matches!(b.drain()[..], [ToPeer::Nic(0, IpToNic::Done { .. })]));
                Some((peer, kind, code, info))
            }
            [ToPeer::Nic(0, IpToNic::Done { .. })] => None,
            ref other => panic!("{other:?}"),
        }
    };
    let ours = quoted(US, PROTOCOL_TCP, 28);
    assert_eq!(try_error(3, 1, [0; 4], &ours), Some((ComponentId::TCP, 3, 1, 0)));
    assert_eq!(try_error(3, 4, [0, 0, 5, 0], &ours), Some((ComponentId::TCP, 3, 4, 1280)));
    assert_eq!(try_error(11, 0, [0; 4], &quoted(US, PROTOCOL_UDP, 60)), Some((ComponentId::UDP, 11, 0, 0)));
    assert_eq!(try_error(12, 0, [20, 0, 0, 0], &ours), Some((ComponentId::TCP, 12, 0, 20)));
    assert_eq!(try_error(3, 4, [0, 0, 0, 40], &ours), None, "no such MTU");
    assert_eq!(try_error(3, 1, [0; 4], &ours[..27]), None, "too little quoted");
    assert_eq!(try_error(3, 1, [0; 4], &quoted(FAR, PROTOCOL_TCP, 28)), None, "not ours");
    assert_eq!(try_error(3, 1, [0; 4], &quoted(US, 99, 28)), None);
}

#[test]
fn arp_is_answered_and_learned_only_from_plausible_senders() {
    let mut b = Bench::new(false);
    b.arp(ARP_REQUEST, THEIR_MAC, THEM, US);
    let out = b.drain();
    let reply = b.frame(&out[0]);
    assert_eq!((&reply[..6], &reply[20..22]), (&THEIR_MAC.0[..], &[0, 2][..]));
    assert_eq!((&reply[22..28], &reply[28..32]), (&OUR_MAC.0[..], &US.octets()[..]));
    b.confirm(&out);
    assert!(b.ip.neighbours.knows(0, THEM.into()));

    let other = Ipv4Addr::new(10, 77, 0, 50);
    // A probe is answered but not learned; a question to another is neither.
    b.arp(ARP_REQUEST, THEIR_MAC, Ipv4Addr::UNSPECIFIED, US);
    assert_eq!(b.drain().len(), 2);
    b.arp(ARP_REQUEST, THEIR_MAC, other, THEM);
    b.arp(ARP_REPLY, THEIR_MAC, other, US);
    b.arp(ARP_REPLY, THEIR_MAC, other, other);
    assert!(!b.ip.neighbours.knows(0, other.into()));
    // Claims to our address, to an address of another network, and for another host are ignored.
    b.arp(ARP_REPLY, THEIR_MAC, US, US);
    assert_eq!(b.count(Counter::AddressConflicts), 1);
    b.arp(ARP_REQUEST, THEIR_MAC, FAR, US);
    b.arp(ARP_REQUEST, MacAddress([2, 6, 6, 6, 6, 6]), other, US);
    b.arp(ARP_REQUEST, THEIR_MAC, Ipv4Addr::new(10, 77, 0, 255), US);
    assert_eq!(b.count(Counter::DropArpSpoofed), 3);
    assert!(b.drain().iter().all(|m| matches!(m, ToPeer::Nic(0, IpToNic::Done { .. }))));
}

/// Fragments as (start, len, more).
fn fragments(b: &mut Bench, protocol: u8, id: u16, list: &[(usize, usize, bool)]) {
    let body: Vec<u8> = (0..70000u32).map(|i| (i / 5) as u8).collect();
    for (start, len, more) in list {
        let field = (*start / 8) as u16 | if *more { IPV4_MORE_FRAGMENTS } else { 0 };
        b.arrive(&packet(protocol, field, id, &body[*start..start + len]));
    }
}

#[test]
fn fragments_in_any_order_with_duplicates() {
    let mut b = Bench::new(false);
    fragments(&mut b, PROTOCOL_UDP, 7, &[(16, 8, true), (24, 5, false), (16, 8, true), (0, 16, true)]);
    let out = b.drain();
    let (_, p) = delivered(&out).unwrap();
    assert_eq!(p.len, 20 + 29);
    // Another datagram of the same host meanwhile is another datagram.
    fragments(&mut b, PROTOCOL_UDP, 8, &[(0, 16, true)]);
    fragments(&mut b, PROTOCOL_UDP, 9, &[(16, 8, false)]);
    assert_eq!(delivered(&b.drain()), None);
}

#[test]
fn a_mark_of_congestion_on_any_fragment_is_one_of_the_whole() {
    // Marks of the fragments, and of the whole: none if it is dropped (RFC 3168 §5.3).
    let cases =
        [([0, 0], Some(0)), ([2, 2], Some(2)), ([2, 3], Some(3)), ([3, 2], Some(3)), ([1, 2], Some(1))];
    for (marks, expected) in cases.into_iter().chain([([0, 3], None), ([3, 0], None)]) {
        let mut b = Bench::new(false);
        for (i, (mark, field)) in marks.iter().zip([IPV4_MORE_FRAGMENTS, 2]).enumerate() {
            let mut fragment = packet(PROTOCOL_UDP, field, 7, &[i as u8; 16]);
            fragment[15] = *mark;
            fix_header(&mut fragment);
            b.arrive(&fragment);
        }
        let found = delivered(&b.drain()).map(|(_, p)| {
            let mut header = [0; 20];
            b.ip.read(&b.memory, p, &mut header).unwrap();
            assert_eq!(Checksum::new().add_bytes(&header).finish(), 0, "{marks:?}");
            header[1]
        });
        assert_eq!(
            (found, b.count(Counter::DropFragment)),
            (expected, expected.is_none() as u64),
            "{marks:?}"
        );
    }
}

#[test]
fn bad_fragments_spoil_their_datagram() {
    type Case = (&'static str, &'static [(usize, usize, bool)]);
    let cases: [Case; 7] = [
        ("overlap", &[(0, 16, true), (8, 16, true), (24, 8, false)]),
        ("two ends", &[(0, 16, true), (32, 8, false), (16, 8, false), (24, 8, true)]),
        ("beyond the end", &[(16, 8, false), (24, 8, true), (0, 16, true)]),
        ("end before what came", &[(32, 8, true), (16, 8, false), (0, 16, true)]),
        ("odd length", &[(0, 15, true), (15, 8, false)]),
        ("empty", &[(0, 0, true), (0, 16, true)]),
        ("too long", &[(65512, 100, false), (0, 65512, true)]),
    ];
    for (name, list) in cases {
        let mut b = Bench::new(false);
        fragments(&mut b, PROTOCOL_UDP, 7, list);
        assert_eq!(delivered(&b.drain()), None, "{name}");
        let dropped = b.count(Counter::DropFragment) + b.count(Counter::DropFragmentOverlap);
        assert!(dropped > 0, "{name}");
        b.pass(Duration::from_secs(31));
        let out = b.drain();
        b.confirm(&out);
        b.pass(Duration::from_secs(5));
        b.drain();
    }
    // Half a TCP header, and one that rewrites its flags.
    for list in [&[(0, 16, true), (16, 16, false)], &[(0, 24, true), (8, 16, false)]] {
        let mut b = Bench::new(false);
        fragments(&mut b, PROTOCOL_TCP, 7, list);
        assert_eq!(b.count(Counter::DropFragment), 1);
        assert_eq!(delivered(&b.drain()), None);
    }
}

#[test]
fn reassembly_times_out_with_an_error_about_the_first_fragment() {
    let mut b = Bench::met(false);
    fragments(&mut b, PROTOCOL_UDP, 7, &[(0, 16, true)]);
    fragments(&mut b, PROTOCOL_UDP, 8, &[(16, 16, true)]);
    b.drain();
    b.pass(Duration::from_secs(29));
    assert_eq!(b.drain(), []);
    b.pass(Duration::from_secs(2));
    let out = b.drain();
    let errors: Vec<Vec<u8>> = out.iter().map(|m| b.frame(m)).collect();
    assert_eq!(errors[0][34..36], [11, 1]);
    assert_eq!(b.count(Counter::IcmpErrorsOut), 1);
    b.confirm(&out);
    b.assert_idle();
}

#[test]
fn a_flood_of_fragments_is_bounded_and_blocks_no_other_datagram() {
    let mut b = Bench::new(false);
    for id in 0..500 {
        fragments(&mut b, PROTOCOL_UDP, id, &[(0, 16, true)]);
        for m in b.drain() {
            if let ToPeer::Nic(0, IpToNic::Done { packet }) = m {
                b.nic.free(packet);
            }
        }
        assert!(b.ip.packets.available() >= 4);
    }
    fragments(&mut b, PROTOCOL_UDP, 1000, &[(0, 16, true), (16, 8, false)]);
    assert!(delivered(&b.drain()).is_some());
}
