//! A SYN with data from a Fast Open client whose cookie was made by an earlier owner of our address: the data are
//! neither taken before the handshake is done nor acknowledged, so that the client sends them again and the program
//! reads them once.

use crate::script::*;
use crate::syn_cookies::flood;
use std::time::Duration;

const LEN: usize = 700;
/// Kind of the Fast Open option.
const FAST_OPEN: u8 = 34;

/// An MSS of 1400 and a cookie of 8 bytes.
fn with_cookie() -> Vec<u8> {
    let mut options = vec![2, 4, 5, 120, 1, 1, FAST_OPEN, 10];
    options.extend([0x5a; 8]);
    options
}

/// Says a SYN with data. What is heard acknowledges the SYN alone and agrees on nothing; that is acknowledged next.
fn open(s: &mut Script) {
    let first = s.seq.wrapping_add(1);
    s.say_with(SYN, &stream_bytes(s.source_port, 0, LEN), &with_cookie());
    s.seq = first;
    let heard = s.hear();
    assert_eq!((heard.len(), heard[0].flags, heard[0].ack), (1, SYN | ACK, first));
    assert_eq!(find_option(&heard[0].options, FAST_OPEN), None);
    assert_eq!((s.counter("accepted_connections"), s.counter("received_bytes")), (0, 0));
    s.ack = heard[0].seq.wrapping_add(1);
}

/// The data are sent again, twice.
fn repeat_data(s: &mut Script) {
    let (port, first) = (s.source_port, s.seq);
    s.say(ACK, &stream_bytes(port, 0, LEN));
    s.say_at(first, ACK, &stream_bytes(port, 0, LEN));
    assert_eq!(s.hear().last().expect("an acknowledgment").ack, s.seq);
    expect_once(s);
    s.say(ACK, &stream_bytes(port, LEN as u64, 300));
    assert_eq!(s.world.sides[1].app.streams[0].received, LEN as u64 + 300);
    assert_eq!(s.counter("resets_sent"), 0);
}

fn expect_once(s: &Script) {
    let received: Vec<u64> = s.world.sides[1].app.streams.iter().map(|x| x.received).collect();
    assert_eq!((received, s.counter("received_bytes")), (vec![LEN as u64], LEN as u64));
}

#[test]
fn data_with_a_syn_are_read_once_when_they_come_again() {
    let mut s = Script::new(quiet_plan());
    open(&mut s);
    repeat_data(&mut s);
}

/// The answer is lost, and the client asks as if it had never heard of Fast Open.
#[test]
fn a_client_may_ask_again_without_data() {
    let mut s = Script::new(quiet_plan());
    open(&mut s);
    s.wait(Duration::from_millis(1500));
    let first = s.seq;
    s.seq = first.wrapping_sub(1);
    s.say_with(SYN, &[], &[2, 4, 5, 120]);
    let heard = s.hear();
    assert_eq!(heard.last().map(|h| (h.flags, h.ack)), Some((SYN | ACK, first)));
    repeat_data(&mut s);
}

/// The network repeats the SYN when its data were read already.
#[test]
fn a_late_copy_of_the_syn_brings_nothing() {
    let mut s = Script::new(quiet_plan());
    open(&mut s);
    let (port, first) = (s.source_port, s.seq);
    s.say(ACK, &stream_bytes(port, 0, LEN));
    let next = s.seq;
    s.seq = first.wrapping_sub(1);
    s.say_with(SYN, &stream_bytes(port, 0, LEN), &with_cookie());
    s.seq = next;
    let heard = s.wait(Duration::from_millis(500));
    assert!(heard.iter().all(|h| h.flags == ACK && h.ack == next), "{heard:?}");
    expect_once(&s);
    s.say(ACK, &stream_bytes(port, LEN as u64, 300));
    assert_eq!(s.world.sides[1].app.streams[0].received, LEN as u64 + 300);
}

#[test]
fn tcp_may_die_between_the_syn_and_its_data() {
    let mut s = Script::new(quiet_plan());
    open(&mut s);
    s.world.crash(1);
    s.hear();
    repeat_data(&mut s);
}

/// A listener without room answers with a SYN cookie, of which the data are no part either.
#[test]
fn a_flooded_listener_takes_no_data_with_a_syn() {
    let mut s = Script::new(quiet_plan());
    flood(&mut s, 1000);
    let sent = s.counter("syn_cookies_sent");
    open(&mut s);
    assert_eq!(s.counter("syn_cookies_sent"), sent + 1);
    repeat_data(&mut s);
    assert_eq!(s.counter("syn_cookies_received"), 1);
}
