//! A listener under a flood of SYNs answers with cookies (RFC 4987 §3.6), and honest clients connect through it.

use crate::app::App;
use crate::script::*;
use crate::world::Conditions;
use eft_base::SocketId;
use std::time::Duration;

/// An MSS of 1400, window shift 7, SACK, and timestamps of 5000.
fn modern() -> Vec<u8> {
    let mut options = vec![2, 4, 5, 120, 1, 3, 3, 7, 1, 1, 4, 2];
    options.extend(timestamps(5000, 0));
    options
}

/// SYNs of so many addresses that never answer.
pub fn flood(s: &mut Script, count: u32) {
    let (source, port, seq) = (s.source, s.source_port, s.seq);
    for i in 0..count {
        let b = i.to_be_bytes();
        s.source = std::net::IpAddr::from([172, 16, b[2], b[3]]).into();
        s.source_port = 2000;
        s.seq = 500;
        s.say_with(SYN, &[], &modern());
        s.world.run_for(Duration::from_micros(20));
    }
    (s.source, s.source_port, s.seq) = (source, port, seq);
    s.hear();
}

fn flooded() -> Script {
    let mut s = Script::new(quiet_plan());
    flood(&mut s, 1000);
    assert!(s.counter("syn_cookies_sent") > 900);
    s
}

/// Says a SYN with `options`; what is heard is a cookie, and is acknowledged next.
fn ask(s: &mut Script, options: &[u8]) -> Heard {
    let before = s.counter("syn_cookies_sent");
    s.say_with(SYN, &[], options);
    assert_eq!(s.counter("syn_cookies_sent"), before + 1);
    let heard = s.hear();
    assert_eq!((heard.len(), heard[0].flags, heard[0].ack), (1, SYN | ACK, s.seq));
    s.ack = heard[0].seq.wrapping_add(1);
    heard[0].clone()
}

fn newest(s: &Script) -> SocketId {
    s.world.sides[1].app.streams.last().expect("accepted").socket
}

#[test]
fn a_client_with_timestamps_connects_through_a_flood_with_all_its_options() {
    let mut s = flooded();
    let answer = ask(&mut s, &modern());
    assert_eq!(find_option(&answer.options, 2), Some(&1460u16.to_be_bytes()[..]), "the path's");
    assert!(find_option(&answer.options, 3).is_some() && find_option(&answer.options, 4).is_some());
    s.timestamp = Some(5001);
    s.say(ACK, &[]);
    s.wait(Duration::from_millis(200));
    let info = s.world.sides[1].page(newest(&s)).info();
    assert_eq!((info.options, info.send_scale, info.mss), (7, 7, 1388), "1400 less timestamps");
    s.say(ACK, &stream_bytes(s.source_port, 0, 5000));
    assert_eq!(s.world.sides[1].app.streams[0].received, 5000);
    let heard = s.hear();
    assert_eq!(heard.last().expect("an acknowledgment").ack, s.seq);
    assert_eq!(s.counter("syn_cookies_received"), 1);
    assert_eq!(s.counter("resets_sent"), 0);
}

#[test]
fn a_cookie_remembers_who_asked_for_marks() {
    let mut s = flooded();
    s.say_with(SYN | ECE | CWR, &[], &modern());
    let heard = s.hear();
    assert_eq!((heard.len(), heard[0].flags), (1, SYN | ACK | ECE));
    s.ack = heard[0].seq.wrapping_add(1);
    s.timestamp = Some(5001);
    s.say(ACK, &[]);
    s.wait(Duration::from_millis(200));
    assert_eq!(s.counter("syn_cookies_received"), 1);
    assert_eq!(s.world.sides[1].page(newest(&s)).info().options, 15);
}

#[test]
fn a_client_without_timestamps_connects_with_its_segment_size_alone() {
    let mut s = flooded();
    let answer = ask(&mut s, &[2, 4, 4, 176, 1, 3, 3, 7, 1, 1, 4, 2]);
    assert_eq!(answer.options.len(), 4, "nothing may be agreed on that is forgotten");
    // Data comes with the acknowledgment.
    let port = s.source_port;
    s.say(ACK, &stream_bytes(port, 0, 700));
    let info = s.world.sides[1].page(newest(&s)).info();
    assert_eq!((info.options, info.send_scale, info.receive_scale, info.mss), (0, 0, 0, 536));
    s.wait(Duration::from_millis(500));
    assert_eq!(s.world.sides[1].app.streams[0].received, 700);
    assert_eq!(s.world.sides[1].page(newest(&s)).info().mss, 536, "1200 is remembered as this");
}

#[test]
fn a_peer_that_did_not_receive_the_cookie_is_reset() {
    let mut s = flooded();
    ask(&mut s, &modern());
    let right = s.ack;
    for wrong in [right.wrapping_add(8), right.wrapping_sub(8), 0] {
        s.ack = wrong;
        s.say(ACK, &[]);
    }
    s.ack = right;
    s.source_port += 1;
    s.say(ACK, &[]);
    s.source_port -= 1;
    s.seq += 1;
    s.say(ACK, &[]);
    assert!(s.hear().iter().all(|h| h.flags == RST));
    assert_eq!((s.counter("syn_cookies_failed"), s.counter("accepted_connections")), (5, 0));
    s.seq -= 1;
    s.say(ACK, &[]);
    assert_eq!(s.counter("accepted_connections"), 1);
}

#[test]
fn a_cookie_is_valid_for_a_while_and_for_a_successor() {
    let mut s = flooded();
    ask(&mut s, &modern());
    s.world.crash(1);
    s.wait(Duration::from_secs(40));
    s.say(ACK, &[]);
    assert_eq!(s.counter("accepted_connections"), 1);
    s.source_port += 1;
    ask(&mut s, &modern());
    s.wait(Duration::from_secs(130));
    s.say(ACK, &[]);
    assert_eq!(s.counter("accepted_connections"), 1, "too late");
    assert_eq!(s.hear().last().expect("an answer").flags, RST);
}

/// A client whose acknowledgment finds the accept queue full is not reset, and connects with its next segment.
#[test]
fn a_full_accept_queue_lets_the_client_ask_again() {
    let mut s = Script::under(Conditions::default(), quiet_plan(), 1);
    flood(&mut s, 1000);
    let clients = [41_000, 41_001, 41_002].map(|port| {
        s.source_port = port;
        ask(&mut s, &modern());
        (port, s.seq, s.ack)
    });
    // No connection is accepted for a while; a backlog of one lets two wait.
    let listener = s.world.sides[1].app.listener.take();
    for client in clients {
        (s.source_port, s.seq, s.ack) = client;
        s.say(ACK, &[]);
    }
    assert_eq!((s.counter("accepted_connections"), s.counter("resets_sent")), (2, 0));
    s.world.sides[1].app.listener = listener;
    App::accept(&mut s.world, 1);
    s.world.turn(1);
    let port = s.source_port;
    s.say(ACK, &stream_bytes(port, 0, 300));
    assert_eq!((s.counter("accepted_connections"), s.counter("resets_sent")), (3, 0));
    assert_eq!(s.world.sides[1].app.streams.last().expect("accepted").received, 300);
}

#[test]
fn an_old_cookie_takes_the_place_of_a_younger_handshake() {
    let mut s = flooded();
    ask(&mut s, &modern());
    let (cookie, seq) = (s.ack, s.seq);
    // One of the flood goes away, and the client's SYN is sent again before the first answer is there.
    let (source, port) = (s.source, s.source_port);
    s.source = std::net::IpAddr::from([172, 16, 0, 0]).into();
    (s.source_port, s.seq) = (2000, 501);
    s.say(RST, &[]);
    (s.source, s.source_port, s.seq) = (source, port, seq.wrapping_sub(1));
    let sent = s.counter("syn_cookies_sent");
    s.say_with(SYN, &[], &modern());
    assert_eq!(s.counter("syn_cookies_sent"), sent, "there was room");
    s.hear();
    s.ack = cookie;
    s.timestamp = Some(5001);
    s.say(ACK, &stream_bytes(port, 0, 100));
    assert_eq!(s.world.sides[1].app.streams[0].received, 100);
    assert_eq!(s.counter("resets_sent"), 0);
}

/// Without a flood no acknowledgment is checked for a cookie: one of no connection is reset.
#[test]
fn without_a_flood_there_are_no_cookies() {
    let mut s = Script::new(quiet_plan());
    s.say(ACK, &[]);
    s.handshake(&[]);
    let names = ["syn_cookies_sent", "syn_cookies_received", "syn_cookies_failed"];
    assert_eq!(names.map(|name| s.counter(name)), [0; 3]);
}
