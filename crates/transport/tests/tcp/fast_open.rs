//! TCP Fast Open as a server (RFC 7413): a script asks for a cookie, uses it, and plays failures.

use crate::app::{App, Plan};
use crate::script::*;
use eft_base::SocketId;
use eft_channel::socket::{Opt, SocketInfo};
use std::time::Duration;

const LEN: usize = 700;
/// Kind of the option.
const FAST_OPEN: u8 = 34;
/// The bit of `TCP_INFO` for data taken with a SYN.
const SYN_DATA: u8 = 32;

/// An MSS of 1400, and the option with a cookie or without one.
pub fn with(cookie: &[u8]) -> Vec<u8> {
    let mut options = vec![2, 4, 5, 120, 1, 1, FAST_OPEN, 2 + cookie.len() as u8];
    options.extend(cookie);
    options.resize(options.len().next_multiple_of(4), 1);
    options
}

pub fn serving(queue: u32) -> Script {
    let mut s = Script::new(quiet_plan());
    s.world.at(1).configure("fastopen", "both");
    listen_early(&s, queue);
    s
}

fn listen_early(s: &Script, queue: u32) {
    let side = &s.world.sides[1];
    let listener = side.app.listener.expect("it listens");
    side.page(listener).set_option(Opt::FastOpenQueue, queue);
}

/// Says a SYN from another port; what is heard is acknowledged next.
pub fn syn(s: &mut Script, data: usize, options: &[u8]) -> Heard {
    s.source_port += 1;
    s.seq = 1_000_000;
    let first = s.seq.wrapping_add(1);
    s.hear();
    s.say_with(SYN, &stream_bytes(s.source_port, 0, data), options);
    let heard = s.hear();
    assert_eq!((heard.len(), heard[0].flags), (1, SYN | ACK), "{heard:?}");
    s.seq = heard[0].ack;
    assert!(s.seq == first || s.seq == first.wrapping_add(data as u32));
    s.ack = heard[0].seq.wrapping_add(1);
    heard[0].clone()
}

pub fn cookie_of(heard: &Heard) -> Option<Vec<u8>> {
    find_option(&heard.options, FAST_OPEN).map(<[u8]>::to_vec)
}

/// A cookie, from a handshake that asked for it.
pub fn cookie(s: &mut Script) -> Vec<u8> {
    let heard = syn(s, 0, &with(&[]));
    s.say(ACK, &[]);
    cookie_of(&heard).expect("a cookie")
}

pub fn is_early(s: &mut Script, cookie: &[u8]) -> bool {
    let before = s.counter("fast_opened");
    let heard = syn(s, LEN, &with(cookie));
    let early = s.counter("fast_opened") > before;
    assert_eq!(heard.ack == 1_000_001 + LEN as u32, early);
    early
}

fn newest(s: &Script) -> SocketId {
    s.world.sides[1].app.streams.last().expect("accepted").socket
}

pub fn received(s: &Script) -> u64 {
    s.world.sides[1].app.streams.last().expect("accepted").received
}

fn info(s: &Script) -> SocketInfo {
    s.world.sides[1].page(newest(s)).info()
}

#[test]
fn a_client_that_asks_gets_a_cookie() {
    let mut s = serving(10);
    let first = cookie(&mut s);
    assert_eq!(first.len(), 8);
    assert_eq!(s.counter("fast_open_asked"), 1);
    assert_eq!(cookie(&mut s), first, "the same for the same address");
    s.source = std::net::IpAddr::from([10, 0, 0, 77]).into();
    assert_ne!(cookie(&mut s), first, "another for another");
    assert_eq!((s.counter("accepted_connections"), s.counter("fast_opened")), (3, 0));
    assert_eq!(info(&s).options & SYN_DATA, 0);
}

#[test]
fn no_cookie_is_sent_if_it_is_off_or_the_listener_did_not_enable_it() {
    for (switch, queue) in [("client", 10), ("off", 10), ("both", 0)] {
        let mut s = serving(queue);
        s.world.at(1).configure("fastopen", switch);
        assert_eq!(cookie_of(&syn(&mut s, 0, &with(&[]))), None);
        assert_eq!(cookie_of(&syn(&mut s, LEN, &with(&[7; 8]))), None);
        assert_eq!(s.counter("received_bytes"), 0);
    }
}

#[test]
fn data_with_a_good_cookie_are_read_before_the_handshake_is_done() {
    let mut s = serving(10);
    let cookie = cookie(&mut s);
    let heard = syn(&mut s, LEN, &with(&cookie));
    assert_eq!((heard.ack, cookie_of(&heard)), (1_000_001 + LEN as u32, None));
    assert_eq!((s.counter("accepted_connections"), received(&s)), (2, LEN as u64));
    assert_eq!((info(&s).tcp_state, info(&s).options & SYN_DATA), (3, SYN_DATA));
    // More with the acknowledgement, which proves it.
    let port = s.source_port;
    s.say(ACK, &stream_bytes(port, LEN as u64, 300));
    assert_eq!(received(&s), LEN as u64 + 300);
    s.wait(Duration::from_secs(1));
    assert_eq!((info(&s).tcp_state, info(&s).options & SYN_DATA), (1, SYN_DATA));
    assert_eq!(s.counter("retransmitted_segments"), 0);
}

#[test]
fn a_bad_cookie_brings_a_new_one_and_the_data_come_again() {
    let mut s = serving(10);
    let good = cookie(&mut s);
    let mut bad = good.clone();
    bad[3] ^= 1;
    for shown in [&bad[..], &good[..4], &[9; 16]] {
        let accepted = s.counter("accepted_connections");
        let heard = syn(&mut s, LEN, &with(shown));
        assert_eq!((heard.ack, cookie_of(&heard)), (1_000_001, Some(good.clone())));
        assert_eq!(s.counter("accepted_connections"), accepted);
        let port = s.source_port;
        s.say(ACK, &stream_bytes(port, 0, LEN));
        assert_eq!(received(&s), LEN as u64);
        assert_eq!(info(&s).options & SYN_DATA, 0);
    }
    assert_eq!((s.counter("fast_open_refused"), s.counter("fast_opened")), (3, 0));
}

#[test]
fn an_old_cookie_is_good_for_a_while_and_brings_the_new_one() {
    let mut s = serving(10);
    let old = cookie(&mut s);
    s.wait(Duration::from_secs(24 * 3600));
    let heard = syn(&mut s, LEN, &with(&old));
    assert_eq!(heard.ack, 1_000_001 + LEN as u32);
    let new = cookie_of(&heard).expect("a new one");
    assert_ne!(new, old);
    s.say(ACK, &[]);
    s.wait(Duration::from_secs(24 * 3600));
    assert!(!is_early(&mut s, &old));
    assert!(is_early(&mut s, &new));
}

#[test]
fn an_answer_may_go_before_the_handshake_is_done() {
    let mut s = Script::new(Plan { send: 3000, ..quiet_plan() });
    s.world.at(1).configure("fastopen", "server");
    listen_early(&s, 1);
    let cookie = cookie(&mut s);
    s.ack = s.ack.wrapping_add(3000);
    s.say(ACK, &[]);
    s.hear();
    s.source_port += 1;
    s.seq = 1_000_000;
    s.say_with(SYN, &stream_bytes(s.source_port, 0, LEN), &with(&cookie));
    let heard = s.wait(Duration::from_millis(1));
    assert_eq!(heard[0].flags, SYN | ACK);
    assert_eq!(heard[1..].iter().map(|h| h.len).sum::<usize>(), 3000, "{heard:?}");
    assert!(heard[1..].iter().all(|h| h.flags & SYN == 0 && h.ack == heard[0].ack));
    // They are lost, with the SYN-ACK: that comes again alone, and they behind its acknowledgement.
    let again = s.wait(Duration::from_millis(1500));
    assert!(!again.is_empty() && again.iter().all(|h| h.flags == SYN | ACK && h.len == 0), "{again:?}");
    (s.seq, s.ack) = (heard[0].ack, heard[0].seq.wrapping_add(1));
    s.say(ACK, &[]);
    let end = s.ack.wrapping_add(3000);
    while s.ack != end {
        let data = s.hear();
        assert_eq!(
            data.first().map(|h| h.seq),
            Some(s.ack),
            "at once, as much as the window takes: {data:?}"
        );
        s.ack = data.last().map(|h| h.seq.wrapping_add(h.len as u32)).unwrap();
        s.say(ACK, &[]);
    }
    s.wait(Duration::from_millis(200));
    assert_eq!(info(&s).unacked_bytes, 0);
}

#[test]
fn a_lost_answer_comes_again_when_the_syn_does() {
    let mut s = serving(10);
    let cookie = cookie(&mut s);
    let heard = syn(&mut s, LEN, &with(&cookie));
    s.wait(Duration::from_millis(200));
    for options in [with(&cookie), vec![2, 4, 5, 120]] {
        let data = if options.len() > 4 { LEN } else { 0 };
        let port = s.source_port;
        let mine = std::mem::replace(&mut s.seq, 1_000_000);
        s.say_with(SYN, &stream_bytes(port, 0, data), &options);
        s.seq = mine;
        let again = s.wait(Duration::from_millis(100));
        assert_eq!(
            again.iter().map(|h| (h.flags, h.seq, h.ack)).collect::<Vec<_>>(),
            [(SYN | ACK, heard.seq, heard.ack)]
        );
    }
    s.say(ACK, &[]);
    assert_eq!((received(&s), s.counter("received_bytes")), (LEN as u64, LEN as u64));
    assert_eq!(info(&s).tcp_state, 1);
}

#[test]
fn as_many_as_the_queue_is_long_are_open_early() {
    let mut s = serving(2);
    let cookie = cookie(&mut s);
    assert!(is_early(&mut s, &cookie));
    assert!(is_early(&mut s, &cookie));
    let heard = syn(&mut s, LEN, &with(&cookie));
    assert_eq!((heard.ack, cookie_of(&heard)), (1_000_001, None), "as if it had none");
    // The second is proven, which makes room.
    s.source_port -= 1;
    s.seq = 1_000_001 + LEN as u32;
    s.hear();
    let port = s.source_port;
    let socket = s.world.sides[1].app.streams[2].socket;
    assert_eq!(s.world.sides[1].page(socket).remote().port, port);
    s.ack = s
        .world
        .capture
        .as_ref()
        .unwrap()
        .iter()
        .rev()
        .find(|(_, side, p)| {
            *side == 1 && p.flags() == SYN | ACK && u16::from_be_bytes([p.bytes[22], p.bytes[23]]) == port
        })
        .map(|(_, _, p)| p.seq().wrapping_add(1))
        .unwrap();
    s.say(ACK, &[]);
    s.source_port += 1;
    assert!(is_early(&mut s, &cookie));
    assert!(!is_early(&mut s, &cookie));
}

#[test]
fn a_reset_connection_still_counts_for_a_minute() {
    let mut s = serving(1);
    let cookie = cookie(&mut s);
    assert!(is_early(&mut s, &cookie));
    s.say(RST, &[]);
    assert_eq!(s.counter("resets_received"), 1);
    assert!(s.world.sides[1].app.streams.last().unwrap().hung_up);
    s.wait(Duration::from_secs(55));
    assert!(!is_early(&mut s, &cookie));
    s.say(RST, &[]);
    s.wait(Duration::from_secs(6));
    assert!(is_early(&mut s, &cookie));
}

#[test]
fn a_reset_elsewhere_in_the_window_is_challenged() {
    let mut s = serving(1);
    let cookie = cookie(&mut s);
    assert!(is_early(&mut s, &cookie));
    let seq = s.seq;
    s.say_at(seq.wrapping_add(5), RST, &[]);
    assert_eq!((s.counter("resets_received"), s.counter("challenge_acks")), (0, 1));
    // A segment that acknowledges unsent data is answered with a reset, and changes nothing.
    s.ack = s.ack.wrapping_sub(7);
    s.say(ACK, &[]);
    assert!(s.hear().iter().any(|h| h.flags == RST && h.seq == s.ack));
    s.ack = s.ack.wrapping_add(7);
    s.say(ACK, &[]);
    let port = s.source_port;
    s.say(ACK, &stream_bytes(port, LEN as u64, 100));
    assert_eq!(received(&s), LEN as u64 + 100);
}

#[test]
fn an_early_connection_without_acknowledgement_ends() {
    let mut s = serving(1);
    let cookie = cookie(&mut s);
    assert!(is_early(&mut s, &cookie));
    let heard = s.wait(Duration::from_secs(200));
    assert_eq!(heard.iter().filter(|h| h.flags == SYN | ACK).count(), 5);
    let stream = s.world.sides[1].app.streams.last().unwrap();
    assert_eq!((stream.error, stream.received), (eft_base::errno::ETIMEDOUT, LEN as u64));
    assert!(is_early(&mut s, &cookie), "its place is free");
}

#[test]
fn an_early_connection_may_be_closed_at_once() {
    let mut s = serving(1);
    let cookie = cookie(&mut s);
    assert!(is_early(&mut s, &cookie));
    let socket = newest(&s);
    App::close(&mut s.world, 1, socket);
    let heard = s.wait(Duration::from_millis(10));
    let fin = heard.iter().find(|h| h.flags & FIN != 0).expect("a FIN");
    s.ack = fin.seq.wrapping_add(1);
    s.say(ACK | FIN, &[]);
    assert_eq!(s.hear().last().unwrap().ack, s.seq);
    assert!(is_early(&mut s, &cookie), "its place is free");
}

#[test]
fn a_closed_listener_resets_connections_in_its_queue() {
    let mut s = serving(1);
    s.world.sides[1].app.idle = true;
    let cookie = cookie(&mut s);
    assert!(is_early(&mut s, &cookie));
    let listener = s.world.sides[1].app.listener.unwrap();
    App::close(&mut s.world, 1, listener);
    let heard = s.wait(Duration::from_millis(10));
    assert_eq!(heard.iter().filter(|h| h.flags & RST != 0).count(), 2, "{heard:?}");
    assert_eq!(s.counter("blocks"), 0);
}

#[test]
fn cookies_outlive_tcp() {
    let mut s = serving(10);
    let cookie = cookie(&mut s);
    s.world.crash(1);
    s.hear();
    assert!(is_early(&mut s, &cookie));
    assert_eq!(received(&s), LEN as u64);
}

#[test]
fn tcp_may_die_before_the_handshake_is_done() {
    let mut s = serving(1);
    let cookie = cookie(&mut s);
    assert!(is_early(&mut s, &cookie));
    s.world.crash(1);
    let heard = s.wait(Duration::from_millis(1));
    assert!(heard.iter().any(|h| h.flags == SYN | ACK && h.ack == s.seq), "{heard:?}");
    let (port, seq, ack) = (s.source_port, s.seq, s.ack);
    assert!(!is_early(&mut s, &cookie), "it counts as before");
    (s.source_port, s.seq, s.ack) = (port, seq, ack);
    s.say(ACK, &stream_bytes(port, LEN as u64, 300));
    let streams = &s.world.sides[1].app.streams;
    assert_eq!(streams.last().unwrap().received, LEN as u64 + 300);
    s.source_port += 1;
    assert!(is_early(&mut s, &cookie));
}
