//! SO_TIMESTAMPING and MSG_ZEROCOPY of datagrams.

use crate::host::*;
use eft_base::SocketId;
use eft_channel::socket::{
    DatagramHeader, ErrorRecord, Opt, QUOTE_MAX, STAMPED, Stamp, datagram_record_len, stamped, stamping,
    wanted,
};
use eft_component::transport::{Effect, Event};
use eft_messages::sockets::reuse;
use std::time::Duration;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// The times of datagrams that wait in the error queue: number, kind and time. Takes so many records.
fn take(h: &Host, socket: SocketId, records: u64) -> Vec<(u32, u32, u64)> {
    let page = h.page(socket);
    let mut told = Vec::new();
    for _ in 0..records {
        let mut bytes = [0; QUOTE_MAX];
        let record: ErrorRecord = page.read_error(page.errors_taken(), &mut bytes);
        assert_eq!(record.errno, STAMPED);
        for stamp in bytes[..record.len as usize].chunks(size_of::<Stamp>()) {
            let stamp = Stamp::read_from_bytes(stamp).unwrap();
            told.push((stamp.end, stamp.kind, stamp.at));
        }
        page.set_errors_taken(page.errors_taken() + 1);
    }
    told
}

fn waiting(h: &Host, socket: SocketId) -> u64 {
    h.page(socket).errors_end() - h.page(socket).errors_taken()
}

fn bound(h: &mut Host) -> SocketId {
    let s = h.open();
    assert_eq!(h.bind(s, OWN, 99, reuse::ADDRESS), 0);
    s
}

/// A datagram of which both times are wanted, unsent.
fn put(h: &Host, socket: SocketId, number: u16, stamps: u8) {
    let page = h.page(socket);
    let header = DatagramHeader {
        len: 1,
        address: v4(PEER),
        port: 5,
        interface: number,
        stamps,
        ..Default::default()
    };
    page.write_send(page.send_end(), header.as_bytes());
    page.set_send_end(page.send_end() + datagram_record_len(1) as u64);
}

#[test]
fn a_datagram_tells_when_it_went() {
    let mut h = Host::new();
    let s = bound(&mut h);
    h.answer_sends = false;
    put(&h, s, 7, wanted::SCHEDULED | wanted::SENT);
    put(&h, s, 8, 0);
    put(&h, s, 9, wanted::SENT);
    h.event(Event::Dirty(s));
    h.effects.clear();
    h.flush();
    let scheduled = take(&h, s, 1);
    assert_eq!(scheduled.iter().map(|t| (t.0, t.1)).collect::<Vec<_>>(), [(7, stamped::SCHEDULED)]);
    assert!(h.effects.contains(&Effect::Readable(s)), "who waits is woken");
    h.host.pass(Duration::from_millis(3));
    h.answer_all(0);
    h.flush();
    let sent = take(&h, s, 1);
    assert_eq!(sent.iter().map(|t| (t.0, t.1)).collect::<Vec<_>>(), [(7, stamped::SENT), (9, stamped::SENT)]);
    assert_eq!(sent[0].2 - scheduled[0].2, 3_000_000);
    // One that could not be sent has no such time.
    put(&h, s, 10, wanted::SENT);
    h.event(Event::Dirty(s));
    h.flush();
    h.answer_all(eft_base::errno::ENETUNREACH);
    h.flush();
    assert_eq!(waiting(&h, s), 0);
}

#[test]
fn times_beyond_the_pages_room_wait_for_the_application() {
    let mut h = Host::new();
    let s = bound(&mut h);
    for number in 0..200 {
        put(&h, s, number, wanted::SCHEDULED);
        h.event(Event::Dirty(s));
        h.flush();
    }
    let mut told = Vec::new();
    while waiting(&h, s) > 0 {
        told.extend(take(&h, s, 1));
        // As the shim.
        h.event(Event::Dirty(s));
        h.flush();
    }
    assert_eq!(told.iter().map(|t| t.0).collect::<Vec<_>>(), (0..200).collect::<Vec<_>>());
    // It never asks: the rest is dropped, and nothing else suffers.
    for number in 0..1000 {
        put(&h, s, number, wanted::SCHEDULED);
        h.event(Event::Dirty(s));
        h.flush();
    }
    assert_eq!(h.sent.len(), 1200);
    assert_eq!(waiting(&h, s), eft_channel::socket::ERRORS_MAX);
}

#[test]
fn a_datagram_says_when_it_came() {
    let mut h = Host::new();
    let s = bound(&mut h);
    let page = h.page(s);
    page.set_option(Opt::Timestamping, stamping::RX_SOFTWARE);
    page.set_option(Opt::MergeReceived, 1);
    let bytes = datagram((PEER, 5), (OWN, 99), b"odd");
    let before = h.host.now;
    h.deliver_together(&[&bytes, &bytes], true);
    h.host.pass(Duration::from_secs(1));
    page.set_option(Opt::MergeReceived, 0);
    h.deliver(&bytes, true);
    page.set_option(Opt::Timestamping, 0);
    h.deliver(&bytes, true);
    let mut told = Vec::new();
    while page.receivable() > 0 {
        let at = page.receive_taken();
        let mut header = DatagramHeader::new_zeroed();
        page.read_receive(at, header.as_mut_bytes());
        let (mut payload, mut time) = (vec![0; header.len as usize], [0; 8]);
        page.read_receive(at + size_of::<DatagramHeader>() as u64, &mut payload);
        let end = at + header.received_len() as u64;
        page.read_receive(end - 8, &mut time);
        told.push((payload, if header.stamps == 0 { 0 } else { u64::from_ne_bytes(time) }));
        page.set_receive_taken(end);
    }
    let (first, second) = (before.as_nanos(), before.as_nanos() + 1_000_000_000);
    assert_eq!(told, [(b"oddodd".to_vec(), first), (b"odd".to_vec(), second), (b"odd".to_vec(), 0),]);
}

#[test]
fn a_completion_wakes_who_waits_for_it() {
    let mut h = Host::new();
    let s = bound(&mut h);
    h.page(s).set_option(Opt::ZeroCopySends, 1);
    h.event(Event::Dirty(s));
    h.effects.clear();
    h.flush();
    assert_eq!(h.effects, [Effect::Readable(s)]);
    h.effects.clear();
    h.event(Event::Dirty(s));
    h.flush();
    assert_eq!(h.effects, [], "once");
}
