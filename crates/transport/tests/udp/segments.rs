//! UDP_SEGMENT and UDP_GRO: several datagrams in one record.

use crate::host::*;
use eft_base::errno::EINVAL;
use eft_channel::socket::{Opt, datagram_record_len};

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31) as u8).collect()
}

#[test]
fn a_record_goes_out_as_datagrams_of_its_segment() {
    let mut h = Host::new();
    let s = h.open();
    let payload = bytes(2500);
    h.send_segments(s, Some((PEER, 9)), &payload, 1000);
    let sent: Vec<_> = std::mem::take(&mut h.sent);
    let lengths: Vec<usize> = sent.iter().map(|(_, p)| p.len()).collect();
    assert_eq!(lengths, [1000, 1000, 500]);
    assert!(sent.iter().flat_map(|(_, p)| p.clone()).collect::<Vec<u8>>() == payload);
    for (d, p) in &sent {
        assert_eq!(d.header[4..6], (8 + p.len() as u16).to_be_bytes(), "its own length");
        assert_eq!(d.flags, 1, "none is fragmented");
    }
    assert_eq!(h.counter("sent_datagrams"), 3);
    h.send_segments(s, Some((PEER, 9)), b"small", 1000);
    h.send_segments(s, Some((PEER, 9)), b"", 1000);
    assert_eq!(h.sent.iter().map(|(_, p)| p.len()).collect::<Vec<_>>(), [5, 0]);
}

#[test]
fn a_record_goes_out_in_as_few_packets_as_ip_takes() {
    let mut h = Host::new();
    h.segment_max = 3500;
    let s = h.open();
    let payload = bytes(7500);
    h.send_segments(s, Some((PEER, 9)), &payload, 1000);
    let sent: Vec<_> = std::mem::take(&mut h.sent);
    let shapes: Vec<_> = sent.iter().map(|(d, p)| (p.len(), d.segment_size)).collect();
    assert_eq!(shapes, [(3000, 1000), (3000, 1000), (1500, 1000)]);
    assert!(sent.iter().flat_map(|(_, p)| p.clone()).collect::<Vec<u8>>() == payload);
    for (d, p) in &sent {
        assert_eq!(d.header[4..6], (8 + p.len() as u16).to_be_bytes(), "the length of all of them");
        assert_eq!(d.flags, 1, "none is fragmented");
    }
    assert_eq!(h.counter("sent_datagrams"), 8);
    // One datagram is no segment of anything.
    h.send_segments(s, Some((PEER, 9)), &bytes(1000), 1000);
    h.send_segments(s, Some((PEER, 9)), &bytes(3600), 1800);
    let shapes: Vec<_> = h.sent.iter().map(|(d, p)| (p.len(), d.segment_size)).collect();
    assert_eq!(shapes, [(1000, 0), (1800, 0), (1800, 0)]);
}

#[test]
fn merged_datagrams_are_received_one_by_one_or_as_the_socket_asks() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, [0; 4], 53, 0);
    let merged = datagram((PEER, 4000), (OWN, 53), b"firstseconend");
    for checksum_ok in [true, false] {
        h.page(s).set_option(Opt::MergeReceived, 0);
        h.deliver_merged(&merged, 5, checksum_ok);
        for expected in [&b"first"[..], b"secon", b"end"] {
            let (header, payload) = h.receive(s).unwrap();
            assert_eq!((&payload[..], header.segment, header.port), (expected, 0, 4000));
        }
        h.page(s).set_option(Opt::MergeReceived, 1);
        h.deliver_merged(&merged, 5, checksum_ok);
        let (header, payload) = h.receive(s).unwrap();
        assert_eq!((&payload[..], header.segment), (&b"firstseconend"[..], 5));
        assert!(h.receive(s).is_none());
    }
    assert_eq!(h.counter("received_datagrams"), 12);
    // An empty one, and more than any sender puts together.
    h.deliver_merged(&datagram((PEER, 4000), (OWN, 53), b""), 5, true);
    assert_eq!(h.receive(s).unwrap().1, b"");
    h.deliver_merged(&datagram((PEER, 4000), (OWN, 53), &bytes(129)), 1, true);
    assert!(h.receive(s).is_none());
    h.deliver_merged(&datagram((PEER, 4000), (OWN, 54), b"firstsecon"), 5, true);
    assert_eq!((h.refused, h.packets_in_use()), (1, 0));
}

#[test]
fn the_record_stays_until_its_last_datagram_is_gone() {
    let mut h = Host::new();
    let s = h.open();
    h.answer_sends = false;
    // More than there are slots for headers.
    h.send_segments(s, Some((PEER, 9)), &bytes(100 * 128), 100);
    assert_eq!(h.sent.len(), 64);
    assert_eq!(h.page(s).send_released(), 0);
    h.answer_all(0);
    h.flush();
    assert_eq!((h.sent.len(), h.page(s).send_released()), (128, 0));
    let all: Vec<u8> = h.sent.iter().flat_map(|(_, p)| p.clone()).collect();
    assert!(all == bytes(100 * 128), "{} bytes", all.len());
    h.answer_all(0);
    h.flush();
    assert_eq!(h.page(s).send_released(), datagram_record_len(100 * 128) as u64);
}

#[test]
fn more_datagrams_than_linux_takes_are_refused() {
    let mut h = Host::new();
    let s = h.open();
    h.send_segments(s, Some((PEER, 9)), &bytes(129), 1);
    assert!(h.sent.is_empty());
    assert_eq!(h.page(s).take_error(), EINVAL);
    h.send_segments(s, Some((PEER, 9)), &bytes(128), 1);
    assert_eq!(h.sent.len(), 128);
}

#[test]
fn a_successor_sends_a_record_from_its_begin() {
    let mut h = Host::new();
    let s = h.open();
    h.answer_sends = false;
    h.send_segments(s, Some((PEER, 9)), &bytes(100 * 70), 100);
    assert_eq!(h.sent.len(), 64);
    (h.answer_sends, h.sent) = (true, Vec::new());
    h.crash();
    let all: Vec<u8> = h.sent.iter().flat_map(|(_, p)| p.clone()).collect();
    assert!(all == bytes(100 * 70), "{} bytes", all.len());
}

#[test]
fn what_arrives_together_lies_in_one_record_if_the_socket_asks() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, [0; 4], 53, 0);
    let of = |payload: &[u8]| datagram((PEER, 4000), (OWN, 53), payload);
    let (a, b, c) = (of(b"first"), of(b"secon"), of(b"end"));
    h.deliver_together(&[&a, &b], false);
    assert_eq!(h.receive(s).unwrap().1, b"first", "it did not ask");
    assert_eq!(h.receive(s).unwrap().1, b"secon");

    h.page(s).set_option(Opt::MergeReceived, 1);
    // Verified in a buffer or vouched for: it is all the same.
    for checksum_ok in [false, true] {
        h.deliver_together(&[&a, &b, &c, &a], checksum_ok);
        let (header, payload) = h.receive(s).unwrap();
        assert_eq!((&payload[..], header.segment), (&b"firstseconend"[..], 5));
        let (header, payload) = h.receive(s).unwrap();
        assert_eq!((&payload[..], header.segment), (&b"first"[..], 0), "it is one datagram");
        assert!(h.receive(s).is_none());
    }
    // What was published is the application's.
    h.deliver(&a, true);
    h.deliver(&b, true);
    assert_eq!(h.receive(s).unwrap().1, b"first");
    assert_eq!(h.receive(s).unwrap().1, b"secon");
    assert_eq!(h.counter("merged_datagrams"), 4);
    assert_eq!(h.packets_in_use(), 0);
}

#[test]
fn senders_are_not_mixed_and_a_full_ring_drops_single_datagrams() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, [0; 4], 53, 0);
    h.page(s).set_option(Opt::MergeReceived, 1);
    let (one, other) = (datagram((PEER, 1), (OWN, 53), b"one"), datagram((PEER, 2), (OWN, 53), b"two"));
    h.deliver_together(&[&one, &other, &one], true);
    for (port, expected) in [(1, b"one"), (2, b"two"), (1, b"one")] {
        let (header, payload) = h.receive(s).unwrap();
        assert_eq!((header.port, &payload[..]), (port, &expected[..]));
    }
    let large = datagram((PEER, 1), (OWN, 53), &bytes(9000));
    let mut received = 0;
    for _ in 0..5 {
        h.deliver_together(&[&large[..]; 7], true);
    }
    while let Some((header, payload)) = h.receive(s) {
        assert!(payload == bytes(9000).repeat(payload.len() / 9000));
        assert!(payload.len() == 9000 || header.segment == 9000);
        received += payload.len() / 9000;
    }
    assert_eq!(received as u64 + h.counter("drop_ring_full"), 35);
    assert!((27..30).contains(&received), "{received} fit into the ring");
}
