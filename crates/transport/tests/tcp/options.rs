//! Options that change what is sent: TCP_MAXSEG, TCP_NOTSENT_LOWAT, TCP_NODELAY under TCP_CORK.

use crate::app::{App, Plan};
use crate::script::*;
use eft_base::SocketId;
use eft_channel::socket::{Opt, STAMPS_MAX, SocketPage, Stamp, cork, stamped, stamping};
use eft_component::transport::Effect;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn announced(h: &Heard) -> u16 {
    let mss = find_option(&h.options, 2).expect("an MSS");
    u16::from_be_bytes([mss[0], mss[1]])
}

#[test]
fn a_listener_s_maximum_segment_is_announced_and_kept() {
    let mut s = Script::new(Plan { send: 3000, ..quiet_plan() });
    let listener = s.world.sides[1].app.listener.unwrap();
    s.world.sides[1].page(listener).set_option(Opt::MaxSegment, 700);
    let socket = s.handshake(&[4, 2, 1, 1]);
    let heard = s.hear();
    let capture = s.world.capture.as_ref().unwrap();
    assert_eq!(find_option(&capture[0].2.bytes[40..], 2), Some(&700u16.to_be_bytes()[..]));
    // The peer would take 1000.
    let page = s.world.sides[1].page(socket);
    assert_eq!((page.option(Opt::MaxSegment), page.info().mss), (700, 700));
    let sizes: Vec<u16> = capture.iter().map(|(_, _, p)| p.segment_size).filter(|n| *n > 0).collect();
    assert_eq!(sizes, [700], "{heard:?}");
}

#[test]
fn a_connecting_socket_s_maximum_segment_is_announced_and_kept() {
    let mut s = Script::new(quiet_plan());
    s.world.sides[1].app.options = vec![(Opt::MaxSegment, 900)];
    App::connect(&mut s.world, 1, 5555, Plan { send: 1800, ..quiet_plan() });
    let syn = s.hear().pop().unwrap();
    assert_eq!(announced(&syn), 900);
    let socket = s.world.sides[1].app.streams[0].socket;
    let local = s.world.sides[1].page(socket).local().port;
    let (from, to) = ((s.source, 5555), (s.world.sides[1].address, local));
    let answer = segment(from, to, (77, syn.seq.wrapping_add(1)), SYN | ACK, 60_000, &[2, 4, 5, 180], &[]);
    s.world.deliver(1, &answer);
    s.world.turn(1);
    assert_eq!(s.world.sides[1].page(socket).info().mss, 900, "the peer would take 1460");
}

/// The application can write anything into its page: segments stay sane.
#[test]
fn a_senseless_maximum_segment_is_bounded() {
    for (set, said) in [(1, 88), (100_000, 1460), (u32::MAX, 1460)] {
        let mut s = Script::new(quiet_plan());
        s.world.sides[1].app.options = vec![(Opt::MaxSegment, set)];
        App::connect(&mut s.world, 1, 5555, quiet_plan());
        assert_eq!(announced(&s.hear()[0]), said);
    }
}

/// TCP_SYNCNT, also more often than the timeout doubles; a page may say anything.
#[test]
fn a_syn_is_sent_again_as_often_as_the_application_says() {
    for (set, again) in [(0, 6), (1, 1), (20, 20), (u32::MAX, 127)] {
        let mut s = Script::new(quiet_plan());
        s.world.sides[1].app.options = vec![(Opt::SynCount, set)];
        App::connect(&mut s.world, 1, 5555, quiet_plan());
        let mut sent = s.hear().len();
        sent += s.wait(Duration::from_secs(5 * 3600)).len();
        assert_eq!(sent, 1 + again, "TCP_SYNCNT {set}");
        assert_eq!(s.world.sides[1].app.streams[0].error, eft_base::errno::ETIMEDOUT);
    }
}

fn writable(s: &Script) -> usize {
    s.world.sides[1].app.effects.iter().filter(|e| matches!(e, Effect::Writable(_))).count()
}

/// As on Linux: whatever happens to it, a listener does not become writable.
#[test]
fn a_listener_is_never_writable() {
    let mut s = Script::new(quiet_plan());
    let listener = s.world.sides[1].app.listener.unwrap();
    s.world.sides[1].page(listener).write_plug().set();
    s.world.sides[1].page(listener).set_option(Opt::NoDelay, 1);
    s.world.dirty(1, listener);
    s.world.turn(1);
    s.handshake(&[]);
    assert!(s.world.sides[1].page(listener).write_plug().is_set());
    assert_eq!(writable(&s), 0);
}

/// TCP_NOTSENT_LOWAT: few bytes wait to be sent, and the writer is woken when half of them are left.
#[test]
fn a_writer_waits_while_much_is_not_sent() {
    let (mut s, socket) = Script::connected(quiet_plan());
    let page = s.world.sides[1].page(socket);
    page.set_option(Opt::NotSentLowWater, 20_000);
    s.world.dirty(1, socket);
    s.world.sides[1].app.streams[0].plan = Plan { send: 500_000, write_max: 4000, ..quiet_plan() };
    App::progress(&mut s.world, 1, socket);
    let base = s.ack;
    let mut acked = 0;
    for _ in 0..20 {
        let end = s.hear().iter().map(|h| h.seq.wrapping_sub(base) as u64 + h.len as u64).max();
        let sent = end.unwrap_or(acked).max(acked);
        let stream = &s.world.sides[1].app.streams[0];
        assert!(stream.sent < sent + 24_000, "{} bytes wait", stream.sent - sent);
        assert!(stream.sent == 500_000 || stream.sent >= sent + 10_000, "nothing left to send");
        acked = sent;
        s.ack = base.wrapping_add(acked as u32);
        s.say(ACK, &[]);
        s.world.run_for(20 * MS);
    }
    assert!(acked > 300_000, "{acked}");
    assert!((3..=50).contains(&writable(&s)), "woken {} times", writable(&s));
}

#[test]
fn without_the_option_the_ring_is_filled() {
    let (mut s, socket) = Script::connected(quiet_plan());
    s.world.sides[1].app.streams[0].plan = Plan { send: 500_000, write_max: 4000, ..quiet_plan() };
    App::progress(&mut s.world, 1, socket);
    assert_eq!(s.world.sides[1].app.streams[0].sent, 500_000);
}

/// Writes bytes and rings, as a program does.
fn write(s: &mut Script, socket: SocketId, page: &SocketPage, len: u64) {
    page.write_send(page.send_end(), &vec![0; len as usize]);
    page.set_send_end(page.send_end() + len);
    s.world.dirty(1, socket);
}

/// tcp(7): setting TCP_NODELAY flushes what a cork holds back, once.
#[test]
fn a_flush_goes_through_a_cork() {
    let (mut s, socket) = Script::connected(quiet_plan());
    let page = s.world.sides[1].page(socket);
    page.set_option(Opt::Cork, 1);
    write(&mut s, socket, &page, 2500);
    let sent = |heard: Vec<Heard>| heard.iter().map(|h| h.len).sum::<usize>();
    assert_eq!(sent(s.hear()), 2000, "full segments");
    page.set_option(Opt::Flush, page.send_end() as u32);
    s.world.dirty(1, socket);
    assert_eq!(sent(s.hear()), 500);
    s.ack = s.ack.wrapping_add(2500);
    s.say(ACK, &[]);
    write(&mut s, socket, &page, 300);
    assert_eq!(sent(s.wait(190 * MS)), 0, "corked again");
    assert_eq!(sent(s.wait(20 * MS)), 300, "but not for ever");
    s.ack = s.ack.wrapping_add(300);
    s.say(ACK, &[]);
    // Bytes written after the flush stay.
    write(&mut s, socket, &page, 100);
    page.set_option(Opt::Flush, page.send_end() as u32);
    write(&mut s, socket, &page, 50);
    assert_eq!(sent(s.wait(10 * MS)), 100);
}

/// SYN options take no more room than they need in whole words (RFC 9293 §3.1), and the handshake has announced the
/// window: no segment follows it until the program reads.
#[test]
fn a_handshake_is_as_short_as_it_can_be() {
    const SCALE: [u8; 4] = [1, 3, 3, 7];
    const SACK: [u8; 2] = [4, 2];
    let timestamps = [8, 10, 0, 0, 0, 1, 0, 0, 0, 0];
    let offers: [(Vec<u8>, usize); 3] = [
        ([&SCALE[..], &SACK, &[1, 1]].concat(), 12),
        ([&SCALE[..], &SACK, &timestamps].concat(), 20),
        (SCALE.to_vec(), 8),
    ];
    for (offer, needed) in offers {
        let mut s = Script::new(quiet_plan());
        s.timestamp = offer.ends_with(&timestamps).then_some(1);
        s.handshake(&offer);
        let capture = s.world.capture.as_ref().unwrap();
        let (_, _, syn_ack) =
            capture.iter().find(|(_, side, p)| *side == 1 && p.flags() == SYN | ACK).unwrap();
        assert_eq!(syn_ack.header_len() - 20, needed, "{offer:?}");
        let after = s.wait(500 * MS);
        assert!(after.is_empty(), "{offer:?}: {after:?}");
    }
}

/// MSG_MORE says that a write is no end; what a device cuts has one, whatever follows it.
#[test]
fn a_push_stands_where_a_write_or_a_large_segment_ends() {
    const PSH: u8 = 8;
    let (mut s, socket) = Script::connected(quiet_plan());
    let page = s.world.sides[1].page(socket);
    let mut said = |more: u32, len: u64, time: Duration| {
        page.set_option(Opt::Cork, more);
        write(&mut s, socket, &page, len);
        let heard: Vec<(usize, bool)> = s.wait(time).iter().map(|h| (h.len, h.flags & PSH != 0)).collect();
        s.ack = s.ack.wrapping_add(heard.iter().map(|(len, _)| *len as u32).sum());
        s.say(ACK, &[]);
        s.hear();
        heard
    };
    assert_eq!(said(0, 700, MS), [(700, true)]);
    assert_eq!(said(0, 1000, MS), [(1000, true)]);
    // Held back for 200 ms; after that the data are sent.
    assert_eq!(said(cork::MORE, 700, 201 * MS), [(700, true)]);
    assert_eq!(said(cork::OPTION, 700, 201 * MS), [(700, true)]);
    assert_eq!(said(cork::OPTION, 2700, MS), [(2000, true)]);
    page.set_option(Opt::Flush, page.send_end() as u32);
    s.world.dirty(1, socket);
    let flushed: Vec<(usize, bool)> = s.hear().iter().map(|h| (h.len, h.flags & PSH != 0)).collect();
    assert_eq!(flushed, [(700, true)]);
}

/// As on Linux: what MSG_MORE holds back goes when something is acknowledged, and says that more follows.
#[test]
fn an_acknowledgment_ends_the_wait_for_more_but_not_a_cork() {
    const PSH: u8 = 8;
    for (word, goes) in [(cork::MORE, true), (cork::OPTION, false)] {
        let (mut s, socket) = Script::connected(quiet_plan());
        let page = s.world.sides[1].page(socket);
        page.set_option(Opt::Cork, word);
        write(&mut s, socket, &page, 1700);
        assert_eq!(s.hear().iter().map(|h| h.len).sum::<usize>(), 1000);
        write(&mut s, socket, &page, 50);
        assert_eq!(s.hear().len(), 0);
        s.ack = s.ack.wrapping_add(1000);
        s.say(ACK, &[]);
        let heard: Vec<(usize, bool)> = s.hear().iter().map(|h| (h.len, h.flags & PSH != 0)).collect();
        let expected: &[(usize, bool)] = if goes { &[(750, false)] } else { &[] };
        assert_eq!(heard, expected);
        // What is written later waits again.
        write(&mut s, socket, &page, 10);
        assert_eq!(s.hear().len(), 0);
    }
}

/// SO_TIMESTAMPING: the times of a send's last byte, those of one send before those of the next; and of what was received.
#[test]
fn times_of_sends_and_receives_are_told() {
    let (mut s, socket) = Script::connected(quiet_plan());
    let page = s.world.sides[1].page(socket);
    page.clear_stamp_requests();
    page.set_option(Opt::Timestamping, stamping::TX_SCHED | stamping::TX_ACK | stamping::RX_SOFTWARE);
    let all = stamping::TX_SCHED | stamping::TX_SOFTWARE | stamping::TX_ACK;
    s.wait(MS);
    let sent_at = s.world.now;
    page.request_stamps(1500, all);
    page.request_stamps(2000, stamping::TX_ACK);
    write(&mut s, socket, &page, 2000);
    s.hear();
    s.wait(7 * MS);
    let acknowledged_at = s.world.now;
    s.ack = s.ack.wrapping_add(2000);
    s.say(ACK, &stream_bytes(s.source_port, 0, 1));
    let told: Vec<Stamp> = (0..page.errors_end()).map(|n| page.read_stamp(n)).collect();
    let kinds: Vec<(u32, u32)> = told.iter().map(|stamp| (stamp.end, stamp.kind)).collect();
    let (scheduled, sent, acknowledged) = (stamped::SCHEDULED, stamped::SENT, stamped::ACKNOWLEDGED);
    assert_eq!(kinds, [(1500, scheduled), (1500, sent), (1500, acknowledged), (2000, acknowledged)]);
    assert!(told[0].at >= sent_at.as_nanos() && told[0].at <= told[1].at, "{told:?}");
    assert!(told[1].at < acknowledged_at.as_nanos() && told[2].at >= acknowledged_at.as_nanos(), "{told:?}");
    assert!(page.received_at() >= acknowledged_at.as_nanos());
}

/// A program can write anything there: it misleads itself.
#[test]
fn senseless_requests_for_times_harm_nobody() {
    let (mut s, socket) = Script::connected(quiet_plan());
    let page = s.world.sides[1].page(socket);
    page.set_option(Opt::Timestamping, u32::MAX);
    page.set_option(Opt::NoDelay, 1);
    for n in 0..1000u64 {
        page.request_stamps(n.wrapping_mul(0x9e37_79b9_7f4a_7c15), u32::MAX);
        if n % 20 == 0 {
            write(&mut s, socket, &page, 100);
            s.hear();
        }
    }
    s.ack = s.ack.wrapping_add(page.send_end() as u32);
    s.say(ACK, &[]);
    assert!(page.errors_end() <= STAMPS_MAX);
    write(&mut s, socket, &page, 100);
    assert_eq!(s.hear().iter().map(|h| h.len).sum::<usize>(), 100, "it goes on");
}

#[test]
fn timestamps_are_neither_offered_nor_taken_if_they_are_off() {
    let offer = timestamps(7, 0);
    for (switch, there) in [("on", true), ("off", false)] {
        let mut s = Script::new(quiet_plan());
        s.world.at(1).configure("timestamps", switch);
        s.say_with(SYN, &[], &offer);
        let heard = s.hear();
        assert_eq!((heard[0].flags, tsval(&heard[0].options).is_some()), (SYN | ACK, there));
        App::connect(&mut s.world, 1, 4711, quiet_plan());
        let heard = s.wait(10 * MS);
        let syn = heard.iter().find(|h| h.flags == SYN).expect("a SYN");
        assert_eq!(tsval(&syn.options).is_some(), there);
    }
}

/// MSG_EOR: what one record holds goes in no segment with the next one, not even when it is sent again.
#[test]
fn segments_end_where_records_do() {
    let (mut s, socket) = Script::connected(quiet_plan());
    let base = s.ack;
    let page = s.world.sides[1].page(socket);
    for len in [400, 400, 2300] {
        page.end_record(page.send_end() + len);
        page.set_send_end(page.send_end() + len);
    }
    page.set_send_end(page.send_end() + 2000);
    s.world.dirty(1, socket);
    let places = |heard: &[Heard]| -> Vec<_> {
        heard.iter().filter(|h| h.len > 0).map(|h| (h.seq.wrapping_sub(base), h.len)).collect()
    };
    assert_eq!(places(&s.hear()), [(0, 400), (400, 400), (800, 2300), (3100, 2000)]);
    // All but the last record is lost.
    s.wait(20 * MS);
    s.say_with(ACK, &[], &crate::loss::sack(base, &[(3100, 5100)]));
    let again = s.wait(20 * MS);
    // Of the third, what the window takes (RFC 9937).
    assert_eq!(places(&again), [(0, 400), (400, 400), (800, 1000)]);
}

/// TCP_QUICKACK: without it every other segment waits, after the first ones.
#[test]
fn quick_acknowledgments_are_sent_on_request() {
    for (wish, delayed) in [(0, 12), (1, 0), (2, 12)] {
        let mut s = Script::new(quiet_plan());
        let socket = s.handshake(&[4, 2, 1, 1]);
        s.world.sides[1].page(socket).set_option(Opt::QuickAck, wish);
        s.world.run_for(50 * MS);
        let silent = (0..40).filter(|n| {
            s.say(ACK, &stream_bytes(40_000, n * 100, 100));
            s.hear().is_empty()
        });
        assert_eq!(silent.count(), delayed, "{wish}");
    }
}

/// As on Linux, whose sockets are interactive once they have answered: the first request is acknowledged at once, since nobody
/// knows yet, and those after it by their answers.
#[test]
fn who_answers_acknowledges_requests_by_the_answers() {
    let mut s = Script::new(quiet_plan());
    let socket = s.handshake(&[4, 2, 1, 1]);
    let page = s.world.sides[1].page(socket);
    let mut alone = Vec::new();
    for n in 0..5 {
        s.say(ACK, &stream_bytes(40_000, n * 100, 100));
        alone.push(s.hear().len());
        page.set_send_end(page.send_end() + 50);
        s.world.dirty(1, socket);
        let answer = s.hear();
        assert_eq!(answer.iter().map(|h| (h.len, h.ack)).collect::<Vec<_>>(), [(50, s.seq)]);
        s.ack = s.ack.wrapping_add(50);
        s.wait(5 * MS);
    }
    assert_eq!(alone, [1, 0, 0, 0, 0]);
    // A request without an answer is acknowledged after a moment.
    s.say(ACK, &stream_bytes(40_000, 500, 100));
    assert!(s.hear().is_empty());
    assert_eq!(s.wait(50 * MS).len(), 1);
}
