//! Datagrams go out and come in.

use crate::host::*;
use eft_base::checksum::Checksum;
use eft_base::errno::*;
use eft_base::{ComponentId, Endpoint, Instant, PortShare, Random};
use eft_channel::socket::{Opt, datagram_record_len, flow, fragment};
use eft_component::transport::{Effect, Event};
use eft_messages::transport::{SEND_DONT_FRAGMENT, Wish};
use std::net::IpAddr;

#[test]
fn a_datagram_goes_out_by_reference_and_its_space_comes_back() {
    let mut h = Host::new();
    let s = h.open();
    h.answer_sends = false;
    h.send(s, Some((PEER, 53)), b"question");
    let (d, payload) = h.sent.pop().unwrap();
    assert_eq!(payload, b"question");
    assert_eq!((d.source, d.destination, d.protocol), (v4(OWN), v4(PEER), 17));
    assert_eq!(&d.header[2..4], &53u16.to_be_bytes());
    assert_eq!(&d.header[4..6], &16u16.to_be_bytes());
    let sum = Checksum::new().add_pseudo_header(OWN.into(), PEER.into(), 17, 16).partial();
    assert_eq!(&d.header[6..8], &sum.to_be_bytes());
    assert_eq!(h.page(s).send_released(), 0, "ip still refers to it");
    assert!(h.page(s).local().port >= 32768);
    h.answer_all(0);
    h.flush();
    assert_eq!(h.page(s).send_released(), h.page(s).send_end());
}

#[test]
fn the_largest_datagram_passes_and_a_larger_one_does_not() {
    let mut h = Host::new();
    let s = h.open();
    let bytes: Vec<u8> = (0..65507u32).map(|i| (i * 7) as u8).collect();
    for round in 0..10 {
        h.send(s, Some((PEER, 9)), &bytes);
        assert_eq!(h.sent.pop().unwrap().1, bytes, "round {round}");
    }
    h.send(s, Some((PEER, 9)), &[&bytes[..], &[1]].concat());
    assert!(h.sent.is_empty());
    assert_eq!(h.page(s).take_error(), EMSGSIZE);
    h.send(s, Some((PEER, 9)), b"after");
    assert_eq!(h.sent.len(), 1);
}

#[test]
fn what_arrives_is_recorded_whole_and_in_order() {
    let mut h = Host::new();
    let s = h.open();
    assert_eq!(h.bind(s, [0; 4], 53, 0), 0);
    let mut random = Random::new(5);
    for round in 0..500u32 {
        let payload: Vec<u8> = (0..random.below(3000)).map(|_| random.next_u32() as u8).collect();
        h.deliver(&datagram((PEER, 4000), (OWN, 53), &payload), round % 2 == 0);
        let (header, got) = h.receive(s).expect("a datagram");
        assert_eq!(got, payload);
        assert_eq!((header.address, header.port), (v4(PEER), 4000));
        assert_eq!((header.local, header.local_port, header.ttl), (v4(OWN), 53, 61));
    }
    assert!(h.effects.contains(&Effect::Readable(s)));
    assert_eq!(h.packets_in_use(), 0);
}

#[test]
fn bad_datagrams_are_counted_and_dropped() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, [0; 4], 53, 0);
    let good = datagram((PEER, 4000), (OWN, 53), b"payload");
    let mut flipped = good.clone();
    flipped[30] ^= 1;
    h.deliver(&flipped, false);
    assert_eq!(h.counter("drop_checksum"), 1);
    let mut unsummed = flipped.clone();
    unsummed[26..28].fill(0);
    h.deliver(&unsummed, false);
    assert!(h.receive(s).is_some(), "no checksum is no wrong checksum");
    let mut long = good.clone();
    long[25] = 200;
    h.deliver(&long, true);
    h.deliver(&good[..24], true);
    assert_eq!(h.counter("drop_malformed"), 2);
    assert!(h.receive(s).is_none());
    // Padding behind the datagram is not part of it.
    h.deliver(&[&good[..], &[0; 11]].concat(), true);
    assert_eq!(h.receive(s).unwrap().1, b"payload");
    h.deliver(&datagram((PEER, 4000), (OWN, 54), b"x"), true);
    assert_eq!((h.counter("drop_no_socket"), h.refused), (1, 1));
    let mut random = Random::new(1);
    for _ in 0..5000 {
        let mut b = good.clone();
        for _ in 0..1 + random.below(6) {
            let at = random.below(b.len() as u64) as usize;
            b[at] = random.next_u32() as u8;
        }
        b.truncate(random.below(b.len() as u64 + 1) as usize);
        h.deliver(&b, random.below(2) == 0);
        while h.receive(s).is_some() {}
    }
    assert_eq!(h.packets_in_use(), 0);
}

#[test]
fn a_full_ring_drops_and_goes_on() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, [0; 4], 53, 0);
    let payload = vec![7; 10_000];
    for _ in 0..100 {
        h.deliver(&datagram((PEER, 1), (OWN, 53), &payload), true);
    }
    let kept = (1 << 18) / datagram_record_len(10_000);
    assert_eq!(h.counter("drop_ring_full"), 100 - kept as u64);
    for _ in 0..kept {
        assert_eq!(h.receive(s).unwrap().1.len(), 10_000);
    }
    h.deliver(&datagram((PEER, 1), (OWN, 53), b"again"), true);
    assert_eq!(h.receive(s).unwrap().1, b"again");
}

#[test]
fn the_best_fitting_socket_gets_it() {
    let mut h = Host::new();
    let (any, own, connected) = (h.open(), h.open(), h.open());
    for s in [any, own, connected] {
        assert_eq!(h.bind(s, if s == any { [0; 4] } else { OWN }, 53, 1), 0);
    }
    assert_eq!(h.connect(connected, PEER, 4000), 0);
    h.deliver(&datagram((PEER, 4000), (OWN, 53), b"c"), true);
    h.deliver(&datagram((PEER, 4001), (OWN, 53), b"o"), true);
    h.deliver(&datagram((PEER, 4001), ([10, 0, 0, 255], 53), b"b"), true);
    assert_eq!(h.receive(connected).unwrap().1, b"c");
    assert_eq!(h.receive(own).unwrap().1, b"o");
    assert_eq!(h.receive(any).unwrap().1, b"b");
    assert!(h.receive(connected).is_none() && h.receive(own).is_none());
}

#[test]
fn connect_chooses_the_source_and_disconnect_forgets_it() {
    let mut h = Host::new();
    let s = h.open();
    h.send(s, None, b"nowhere");
    assert_eq!(h.page(s).take_error(), EDESTADDRREQ);
    assert_eq!(h.connect(s, PEER, 53), 0);
    assert_eq!(h.page(s).local().address, IpAddr::from(OWN));
    assert_eq!(h.page(s).remote().port, 53);
    h.send(s, None, b"there");
    assert_eq!(h.sent.pop().unwrap().0.destination, v4(PEER));
    assert_eq!(h.connect(s, [0; 4], 0), 0);
    assert!(h.page(s).local().address.is_unspecified());
    h.route_errno = ENETUNREACH;
    h.host.now = Instant::from_millis(60_000);
    assert_eq!(h.connect(s, [99, 0, 0, 1], 53), ENETUNREACH);
    h.send(s, Some(([99, 0, 0, 1], 53)), b"x");
    assert_eq!(h.page(s).take_error(), ENETUNREACH);
    h.route_errno = 0;
    assert_eq!(h.connect(s, [10, 0, 0, 255], 53), EACCES);
    h.page(s).set_option(Opt::Broadcast, 1);
    assert_eq!(h.connect(s, [10, 0, 0, 255], 53), 0);
}

#[test]
fn a_peer_on_the_loopback_needs_no_route_and_blocks_all_others() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, [0; 4], 53, 0);
    h.route_errno = ENETUNREACH;
    assert_eq!(h.connect(s, [127, 0, 0, 53], 4000), 0);
    for _ in 0..2 {
        assert_eq!(h.page(s).local(), Endpoint::new([127, 0, 0, 1].into(), 53));
        assert_eq!(h.page(s).remote(), Endpoint::new([127, 0, 0, 53].into(), 4000));
        let refused = h.refused;
        h.deliver(&datagram((PEER, 4000), (OWN, 53), b"no"), true);
        assert_eq!((h.receive(s).is_none(), h.refused), (true, refused + 1));
        h.crash();
    }
    h.route_errno = 0;
    assert_eq!(h.connect(s, PEER, 4000), 0);
    assert_eq!(h.page(s).local(), Endpoint::new(OWN.into(), 53));
    assert_eq!(h.connect(s, [127, 0, 0, 1], 4000), 0);
    assert_eq!(h.connect(s, [0; 4], 0), 0);
    h.deliver(&datagram((PEER, 9), (OWN, 53), b"yes"), true);
    assert_eq!(h.receive(s).unwrap().1, b"yes");
}

#[test]
fn datagrams_to_groups_go_one_hop_unless_told_otherwise() {
    let mut h = Host::new();
    let s = h.open();
    let group = [224, 0, 0, 251];
    h.page(s).set_option(Opt::Ttl, 30);
    // One more than the option's value; a page may hold any.
    for (word, hops) in
        [(0, Some(1)), (2, Some(1)), (10, Some(9)), (256, Some(255)), (u32::MAX, Some(255)), (1, None)]
    {
        h.page(s).set_option(Opt::MulticastHops, word);
        h.send(s, Some((group, 5353)), b"who?");
        assert_eq!(h.sent.pop().map(|(d, _)| d.ttl), hops, "{word}");
        h.send(s, Some((PEER, 53)), b"one host");
        assert_eq!(h.sent.pop().unwrap().0.ttl, 30);
    }
    assert_eq!(h.page(s).error(), 0, "as on Linux nobody is told");
    assert_eq!(h.page(s).send_released(), h.page(s).send_end());
}

#[test]
fn what_a_program_wants_of_ipv6_packets_goes_with_them() {
    let mut h = Host::new();
    let s = h.open();
    assert_eq!(h.bind(s, OWN, 99, 0), 0);
    let mut wish = |label: u32, largest: u32, fragment: u32| {
        h.page(s).set_option(Opt::FlowLabel, label);
        h.page(s).set_option(Opt::LargestPacket, largest);
        h.page(s).set_option(Opt::DontFragment, fragment);
        h.send(s, Some((PEER, 5)), b"x");
        let d = h.sent.pop().unwrap().0;
        (Wish::of_word(d.wish), d.flags & SEND_DONT_FRAGMENT != 0)
    };
    assert_eq!(wish(0, 0, 0), (Wish::default(), false));
    assert_eq!(wish(flow::NOT_BY_ITSELF, 1280, 0), (Wish { label: Some(0), largest: 160 }, false));
    // A page may say anything.
    let most = Wish { label: Some(0xf_ffff), largest: Wish::LARGEST_MAX };
    assert_eq!(wish(u32::MAX, u32::MAX, fragment::NEVER), (most, true));
    // This packet is of IPv4.
    assert!(!wish(0, 0, fragment::NEVER_IPV6).1);
}

#[test]
fn an_instance_takes_only_ports_of_its_own() {
    let share = PortShare::among(ComponentId::UDP, b"udp\nudp1\n");
    let mut h = Host::new();
    h.event(Event::Configure { key: PortShare::KEY.into(), value: b"udp\nudp1\n".to_vec() });
    for _ in 0..10 {
        let s = h.open();
        assert_eq!(h.bind(s, [0; 4], 0, 0), 0);
        assert!(share.has(h.page(s).local().port));
    }
    let theirs = (2000..).find(|port| !share.has(*port)).unwrap();
    let s = h.open();
    assert_eq!(h.bind(s, [0; 4], theirs, 0), EADDRNOTAVAIL);
    assert_eq!(h.connect(s, PEER, 53), 0);
    assert!(share.has(h.page(s).local().port), "a connect binds, too");
}
