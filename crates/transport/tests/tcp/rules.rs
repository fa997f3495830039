//! RFC 9293's rules, RFC 5961, RFC 7323, RFC 5681 §4.2: the answer to each segment.

use crate::app::{App, Plan};
use crate::script::*;
use crate::world::Conditions;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_syn_is_answered_with_what_was_agreed() {
    let mut s = Script::new(quiet_plan());
    let mut options = vec![2, 4, 0x05, 0xb4, 1, 3, 3, 7, 4, 2];
    options.extend(timestamps(77, 0));
    options.resize(options.len().next_multiple_of(4), 0);
    s.say_with(SYN, &[], &options);
    let heard = s.hear();
    assert_eq!(heard.len(), 1);
    let h = &heard[0];
    assert_eq!((h.flags, h.ack), (SYN | ACK, 1_000_001));
    assert_eq!(find_option(&h.options, 2), Some(&1460u16.to_be_bytes()[..]));
    assert_eq!(find_option(&h.options, 3), Some(&[4u8][..]), "1 MiB needs a shift of 4");
    assert_eq!(find_option(&h.options, 4), Some(&[][..]));
    assert_eq!(find_option(&h.options, 8).map(|o| o[4..].to_vec()), Some(77u32.to_be_bytes().to_vec()));
}

/// 20 bytes of options, as usual, and no needless segment.
#[test]
fn a_handshake_has_no_byte_and_no_segment_too_many() {
    let mut s = Script::new(quiet_plan());
    let mut options = vec![1, 3, 3, 7, 4, 2];
    options.extend(&timestamps(77, 0)[2..]);
    s.timestamp = Some(77);
    s.handshake(&options);
    assert!(s.wait(100 * MS).is_empty(), "no window update before there is data");
    let capture = s.world.capture.as_ref().unwrap();
    assert_eq!(capture.iter().map(|(_, _, p)| p.header_len()).collect::<Vec<_>>(), [40]);
    // Later data are acknowledged with the whole window.
    s.say(ACK, &stream_bytes(40_000, 0, 1000));
    assert!((s.hear()[0].window as usize) << 4 > 1_000_000);
    App::connect(&mut s.world, 1, 5555, quiet_plan());
    assert_eq!(s.hear()[0].options.len(), 20);
}

/// RFC 7323 §3.2.
#[test]
fn a_reset_carries_timestamps() {
    let mut s = Script::new(quiet_plan());
    s.timestamp = Some(10);
    let socket = s.handshake(&timestamps(10, 0));
    s.hear();
    let last = s.echo;
    s.world.run_for(5 * MS);
    s.world.sides[1].page(socket).set_option(eft_channel::socket::Opt::Linger, 1);
    App::close(&mut s.world, 1, socket);
    let reset = s.hear().pop().unwrap();
    assert!(reset.flags & RST != 0);
    assert_eq!(tsval(&reset.options), Some(last.wrapping_add(5)));
    assert_eq!(find_option(&reset.options, 8).unwrap()[4..], 10u32.to_be_bytes());
}

/// The numbers of TCP_INFO are written at intervals, but the last ones always are.
#[test]
fn tcp_info_shows_the_latest_before_long() {
    let (mut s, socket) = Script::connected(quiet_plan());
    s.wait(250 * MS);
    s.world.sides[1].app.streams[0].plan.send = 8000;
    App::progress(&mut s.world, 1, socket);
    s.hear();
    assert_eq!(s.world.sides[1].page(socket).info().unacked_bytes, 8000);
    s.ack = s.ack.wrapping_add(8000);
    s.say(ACK, &[]);
    s.world.run_for(101 * MS);
    assert_eq!(s.world.sides[1].page(socket).info().unacked_bytes, 0);
}

#[test]
fn options_that_were_not_offered_are_not_used() {
    let mut s = Script::new(quiet_plan());
    s.say_with(SYN, &[], &[]);
    let h = s.hear().remove(0);
    assert_eq!(find_option(&h.options, 3), None);
    assert_eq!(find_option(&h.options, 4), None);
    assert_eq!(find_option(&h.options, 8), None);
    assert_eq!(h.window, 65535);
}

#[test]
fn a_lone_small_segment_is_acknowledged_late_two_at_once() {
    let (mut s, _) = Script::connected(quiet_plan());
    // The first segments of a connection are acknowledged at once.
    let mut offset = 0;
    for _ in 0..20 {
        let bytes = stream_bytes(40_000, offset, 100);
        offset += 100;
        s.say_batch(&[&bytes]);
    }
    s.wait(100 * MS);
    let one = stream_bytes(40_000, offset, 1000);
    s.say_batch(&[&one]);
    assert!(s.hear().is_empty(), "acknowledged at once");
    let sent = s.world.now;
    let heard = s.wait(100 * MS);
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].at.saturating_since(sent).as_millis(), 40);
    offset += 1000;
    let (a, b) = (stream_bytes(40_000, offset, 1000), stream_bytes(40_000, offset + 1000, 1000));
    s.say_batch(&[&a]);
    assert!(s.hear().is_empty());
    s.say_batch(&[&b]);
    assert_eq!(s.hear().len(), 1);
    // A batch is answered once.
    offset += 2000;
    let many: Vec<Vec<u8>> = (0..6).map(|i| stream_bytes(40_000, offset + i * 1000, 1000)).collect();
    let many: Vec<&[u8]> = many.iter().map(|v| &v[..]).collect();
    s.say_batch(&many);
    let heard = s.hear();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].ack, s.seq);
}

#[test]
fn without_sack_every_segment_out_of_order_gets_its_duplicate_acknowledgement() {
    let mut s = Script::new(quiet_plan());
    s.handshake(&[]);
    let first = s.seq;
    s.seq = s.seq.wrapping_add(1000);
    let many: Vec<Vec<u8>> = (1..5).map(|i| stream_bytes(40_000, i * 1000, 1000)).collect();
    let many: Vec<&[u8]> = many.iter().map(|v| &v[..]).collect();
    s.say_batch(&many);
    let heard = s.hear();
    assert_eq!(heard.len(), 4);
    assert!(heard.iter().all(|h| h.ack == first && h.len == 0));
}

#[test]
fn with_sack_the_ranges_are_reported() {
    let (mut s, socket) = Script::connected(quiet_plan());
    let base = s.seq;
    for start in [1000u64, 3000, 5000] {
        s.say_at(base.wrapping_add(start as u32), ACK, &stream_bytes(40_000, start, 1000));
    }
    let h = s.hear().pop().unwrap();
    assert_eq!(h.ack, base);
    let sack = find_option(&h.options, 5).expect("SACK");
    let latest = u32::from_be_bytes(sack[..4].try_into().unwrap());
    assert_eq!(latest, base.wrapping_add(5000), "the latest comes first");
    assert_eq!(sack.len(), 24);
    // The holes are filled: everything is there.
    for start in [0u64, 2000, 4000] {
        s.say_at(base.wrapping_add(start as u32), ACK, &stream_bytes(40_000, start, 1000));
    }
    let h = s.hear().pop().unwrap();
    assert_eq!(h.ack, base.wrapping_add(6000));
    assert_eq!(find_option(&h.options, 5), None);
    let stream = s.world.sides[1].app.streams.iter().find(|x| x.socket == socket).unwrap();
    assert_eq!(stream.received, 6000);
}

#[test]
fn a_duplicate_is_reported_as_one() {
    let (mut s, _) = Script::connected(quiet_plan());
    let base = s.seq;
    s.say(ACK, &stream_bytes(40_000, 0, 500));
    s.hear();
    s.say_at(base, ACK, &stream_bytes(40_000, 0, 500));
    let h = s.hear().pop().unwrap();
    let sack = find_option(&h.options, 5).expect("a duplicate SACK");
    assert_eq!(sack[..4], base.to_be_bytes());
    assert_eq!(sack[4..8], base.wrapping_add(500).to_be_bytes());
}

#[test]
fn what_paws_drops_after_its_repetition_came_is_reported_as_a_duplicate() {
    let mut s = Script::new(quiet_plan());
    s.timestamp = Some(1000);
    let with_sack = [&timestamps(1000, 0)[..], &[4, 2, 1, 1]].concat();
    s.handshake(&with_sack);
    let (base, bytes) = (s.seq, stream_bytes(40_000, 0, 100));
    s.timestamp = Some(2000);
    s.say(ACK, &bytes);
    s.hear();
    s.timestamp = Some(1500);
    s.say_at(base, ACK, &bytes);
    let h = s.hear().pop().unwrap();
    assert_eq!((s.counter("drop_paws"), h.ack), (1, base.wrapping_add(100)));
    let sack = find_option(&h.options, 5).expect("a duplicate SACK");
    assert_eq!(sack[..4], base.to_be_bytes());
    assert_eq!(sack[4..8], base.wrapping_add(100).to_be_bytes());
}

#[test]
fn paws_drops_what_is_old_but_acknowledges() {
    let mut s = Script::new(quiet_plan());
    s.timestamp = Some(1000);
    s.handshake(&timestamps(1000, 0));
    s.timestamp = Some(2000);
    s.say(ACK, &stream_bytes(40_000, 0, 100));
    s.hear();
    let expected = s.seq;
    s.timestamp = Some(1500);
    let bytes = stream_bytes(40_000, 100, 100);
    s.say_at(expected, ACK, &bytes);
    let h = s.hear();
    assert_eq!(h.len(), 1);
    assert_eq!(h[0].ack, expected);
    assert_eq!(s.counter("drop_paws"), 1);
    s.timestamp = Some(2000);
    s.say(ACK, &bytes);
    assert_eq!(s.hear().pop().unwrap().ack, expected.wrapping_add(100));
}

#[test]
fn only_the_exact_sequence_number_resets() {
    let (mut s, _) = Script::connected(quiet_plan());
    let right = s.seq;
    s.say_at(right.wrapping_add(5000), RST, &[]);
    let h = s.hear();
    assert_eq!(h.len(), 1, "a challenge");
    assert_eq!((h[0].flags, h[0].ack), (ACK, right));
    // Outside the window it is not even answered.
    s.say_at(right.wrapping_sub(100_000), RST, &[]);
    assert!(s.hear().is_empty());
    s.say(ACK, &stream_bytes(40_000, 0, 10));
    assert!(!s.world.sides[1].app.streams[0].hung_up);
    let right = s.seq;
    s.say_at(right, RST, &[]);
    assert!(s.world.sides[1].app.streams[0].hung_up);
    assert_eq!(s.world.sides[1].app.streams[0].error, eft_base::errno::ECONNRESET);
    assert_eq!(s.counter("resets_received"), 1);
}

#[test]
fn an_acknowledgment_of_what_was_never_sent_is_refused() {
    let (mut s, _) = Script::connected(quiet_plan());
    let right = s.ack;
    s.ack = right.wrapping_add(1);
    s.say_at(s.seq, ACK, &stream_bytes(40_000, 0, 10));
    assert_eq!(s.counter("drop_bad_ack"), 1);
    assert_eq!(s.world.sides[1].app.streams[0].received, 0);
    s.ack = right;
    s.say(ACK, &stream_bytes(40_000, 0, 10));
    assert_eq!(s.world.sides[1].app.streams[0].received, 10);
}

#[test]
fn a_segment_of_no_connection_is_reset_and_resets_are_limited() {
    let mut s = Script::new(quiet_plan());
    s.ack = 4242;
    s.say(ACK, &[1, 2, 3]);
    let h = s.hear();
    assert_eq!((h[0].flags, h[0].seq), (RST, 4242));
    s.say(0, &[1, 2, 3]);
    let h = s.hear();
    assert_eq!((h[0].flags, h[0].ack), (RST | ACK, s.seq));
    s.say(RST, &[]);
    assert!(s.hear().is_empty(), "a reset is not answered");
    for _ in 0..5000 {
        s.say(ACK, &[]);
    }
    assert!(s.hear().len() <= 1000);
}

#[test]
fn overlapping_segments_give_each_byte_once() {
    let (mut s, _) = Script::connected(quiet_plan());
    let base = s.seq;
    for (start, len) in [(500u64, 300), (0, 100), (50, 600), (790, 50), (0, 1000)] {
        s.say_at(base.wrapping_add(start as u32), ACK, &stream_bytes(40_000, start, len));
    }
    assert_eq!(s.world.sides[1].app.streams[0].received, 1000);
}

#[test]
fn timestamps_are_echoed_in_order() {
    let mut s = Script::new(quiet_plan());
    s.timestamp = Some(10);
    s.handshake(&timestamps(10, 0));
    s.timestamp = Some(20);
    s.say(ACK, &stream_bytes(40_000, 0, 10));
    let h = s.hear().pop().unwrap();
    assert_eq!(find_option(&h.options, 8).unwrap()[4..], 20u32.to_be_bytes());
    // Out of order: the echo stays that of the last segment in order (RFC 7323 §4.3).
    s.timestamp = Some(30);
    let later = s.seq.wrapping_add(10);
    s.say_at(later, ACK, &stream_bytes(40_000, 20, 10));
    let h = s.hear().pop().unwrap();
    assert_eq!(find_option(&h.options, 8).unwrap()[4..], 20u32.to_be_bytes());
}

#[test]
fn a_route_says_the_mss_that_is_announced_and_the_initial_window() {
    let conditions = Conditions { mss: 600, initial_segments: 3, segment_max: 0, ..Conditions::default() };
    let mut s = Script::under(conditions, Plan { send: 100_000, ..quiet_plan() }, 16);
    s.say_with(SYN, &[], &[2, 4, 3, 232]);
    let heard = s.hear();
    assert_eq!(heard[0].options[..4], [2, 4, 600u16.to_be_bytes()[0], 600u16.to_be_bytes()[1]]);
    s.ack = heard[0].seq.wrapping_add(1);
    s.say(ACK, &[]);
    // Its own segments are as large as the path and the peer let them be.
    let sent: Vec<usize> = s.hear().iter().map(|h| h.len).collect();
    assert_eq!(sent, [1000, 1000, 1000]);
}
