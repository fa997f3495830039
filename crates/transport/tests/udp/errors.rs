//! ICMP errors: which socket gets them, and how.

use crate::host::*;
use eft_base::SocketId;
use eft_base::errno::*;
use eft_channel::socket::{ERRORS_MAX, ErrorRecord, Opt, QUOTE_MAX};
use eft_harness::Quote;

const ROUTER: [u8; 4] = [10, 0, 0, 254];

/// What ip says when a router answers `quote` with an error.
fn icmp_error(h: &mut Host, quote: &[u8], kind: u8, code: u8, info: u16) {
    let offender = v4(ROUTER);
    h.deliver_error(quote, Quote { offender, ttl: 61, tos: 0xc0, ..Quote::new(kind, code, info) });
}

/// Takes the next error as an application does: it, and the quoted bytes.
fn take_queued(h: &Host, s: SocketId) -> Option<(ErrorRecord, Vec<u8>)> {
    let page = h.page(s);
    page.has_errors().then(|| {
        let mut quote = [0; QUOTE_MAX];
        let record = page.read_error(page.errors_taken(), &mut quote);
        page.set_errors_taken(page.errors_taken().wrapping_add(1));
        (record, quote[..record.len as usize].to_vec())
    })
}

#[test]
fn errors_are_queued_for_sockets_that_ask_connected_or_not() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, OWN, 5000, 0);
    let quote = datagram((OWN, 5000), (PEER, 33434), b"probe");
    icmp_error(&mut h, &quote, 11, 0, 0);
    assert!(!h.page(s).has_errors(), "nobody asked");
    h.page(s).set_option(Opt::ReceiveErrors, 1);
    icmp_error(&mut h, &quote, 11, 0, 0);
    assert_eq!(h.page(s).take_error(), EHOSTUNREACH);
    let expected = ErrorRecord {
        destination: v4(PEER),
        offender: v4(ROUTER),
        local: v4(OWN),
        port: 33434,
        len: 5,
        errno: EHOSTUNREACH,
        info: 0,
        kind: 11,
        code: 0,
        ttl: 61,
        tos: 0xc0,
    };
    assert_eq!(take_queued(&h, s), Some((expected, b"probe".to_vec())));
    assert_eq!(take_queued(&h, s), None);
    // A router that quotes no more than it must; a datagram of another host.
    icmp_error(&mut h, &quote[..28], 3, 3, 0);
    icmp_error(&mut h, &datagram((OWN, 5001), (PEER, 33434), b"probe"), 11, 0, 0);
    let (record, bytes) = take_queued(&h, s).unwrap();
    assert_eq!((record.errno, bytes.len(), h.page(s).has_errors()), (ECONNREFUSED, 0, false));
    // The path's MTU matters to a socket that forbids fragments.
    icmp_error(&mut h, &quote, 3, 4, 1280);
    assert_eq!(take_queued(&h, s), None);
    h.page(s).set_option(Opt::DontFragment, 1);
    icmp_error(&mut h, &quote, 3, 4, 1280);
    let (record, _) = take_queued(&h, s).unwrap();
    assert_eq!((record.errno, record.info), (EMSGSIZE, 1280));
    for (kind, code, errno) in [(3, 0, 101), (3, 1, 113), (3, 2, 92), (3, 7, 112), (3, 13, 113), (12, 0, 71)]
    {
        icmp_error(&mut h, &quote, kind, code, 0);
        assert_eq!(take_queued(&h, s).unwrap().0.errno, errno, "{kind} {code}");
    }
}

#[test]
fn an_error_queue_is_bounded_and_survives_the_engine() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, OWN, 5000, 0);
    h.page(s).set_option(Opt::ReceiveErrors, 1);
    let quote = |n: u8| datagram((OWN, 5000), (PEER, 100), &[n; 400]);
    for n in 0..12 {
        icmp_error(&mut h, &quote(n), 11, 0, 0);
    }
    assert_eq!(h.counter("drop_icmp"), 12 - ERRORS_MAX);
    for n in 0..3 {
        assert_eq!(take_queued(&h, s).unwrap().1, [n; QUOTE_MAX]);
    }
    h.crash();
    icmp_error(&mut h, &quote(77), 11, 0, 0);
    let rest: Vec<u8> = std::iter::from_fn(|| take_queued(&h, s)).map(|(_, bytes)| bytes[0]).collect();
    assert_eq!(rest, [3, 4, 5, 6, 7, 77]);
    // An application that overwrites the queue hurts itself.
    for taken in [u64::MAX, 1 << 40, 0] {
        h.page(s).set_errors_taken(taken);
        icmp_error(&mut h, &quote(1), 11, 0, 0);
    }
    h.page(s).set_errors_end(u64::MAX);
    h.page(s).set_errors_taken(u64::MAX);
    h.crash();
    icmp_error(&mut h, &quote(9), 11, 0, 0);
    assert_eq!(take_queued(&h, s).unwrap().1[0], 9);
}

#[test]
fn errors_of_the_network_reach_the_connected_socket_only() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, OWN, 5000, 0);
    let quote = datagram((OWN, 5000), (PEER, 53), b"");
    let error = |h: &mut Host| icmp_error(h, &quote, 3, 3, 0);
    error(&mut h);
    assert_eq!(h.page(s).error(), 0);
    h.connect(s, PEER, 53);
    error(&mut h);
    assert_eq!(h.page(s).take_error(), ECONNREFUSED);
    assert_eq!((h.counter("icmp_applied"), h.counter("drop_icmp")), (1, 1));
}

#[test]
fn a_connected_socket_knows_what_fits_the_way_to_its_peer() {
    let mut h = Host::new();
    let (s, other) = (h.open(), h.open());
    for (socket, port) in [(s, 5000), (other, 5001)] {
        h.bind(socket, OWN, port, 0);
    }
    h.connect(s, PEER, 33434);
    let known = |h: &Host, socket| h.page(socket).info().mss;
    icmp_error(&mut h, &datagram((OWN, 5000), (PEER, 33434), b"long"), 3, 4, 1400);
    icmp_error(&mut h, &datagram((OWN, 5001), (PEER, 33434), b"long"), 3, 4, 1300);
    assert_eq!((known(&h, s), known(&h, other)), (1400, 0));
    icmp_error(&mut h, &datagram((OWN, 5000), (PEER, 33434), b"long"), 3, 3, 0);
    assert_eq!(known(&h, s), 1400, "another error says nothing of it");
    h.connect(s, ROUTER, 33434);
    assert_eq!(known(&h, s), 0, "another way");
}
