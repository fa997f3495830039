//! The numbers of TCP_INFO: what a peer did shows in them.

use crate::loss::{MS, sack, sender};
use crate::script::*;
use eft_channel::socket::SocketStatistics;

const SACK: [u8; 4] = [4, 2, 1, 1];

/// As `TCP_CA_*`.
const DISORDER: u8 = 1;
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;

/// Connected over 40 ms, with ten segments of 1000 bytes in flight; where the stream begins.
fn connected(bytes: u64) -> (Script, u32) {
    let mut s = Script::new(sender(bytes));
    s.rtt = 40 * MS;
    s.handshake(&SACK);
    let base = s.ack;
    s.hear();
    (s, base)
}

/// The numbers that are published after a quiet period.
fn told(s: &mut Script) -> SocketStatistics {
    s.wait(101 * MS);
    now(s)
}

fn now(s: &Script) -> SocketStatistics {
    let side = &s.world.sides[1];
    side.page(side.app.streams[0].socket).statistics().expect("told")
}

/// The application asks for the numbers.
fn asked(s: &mut Script) -> SocketStatistics {
    let side = &s.world.sides[1];
    let socket = side.app.streams[0].socket;
    let question = side.page(socket).ask_info();
    s.world.dirty(1, socket);
    assert_eq!(s.world.sides[1].page(socket).info_answered(), question);
    now(s)
}

fn acknowledge(s: &mut Script, base: u32, ack: u32, ranges: &[(u32, u32)]) {
    s.ack = base.wrapping_add(ack);
    let option = if ranges.is_empty() { Vec::new() } else { sack(base, ranges) };
    s.say_with(ACK, &[], &option);
}

#[test]
fn what_was_sent_and_delivered_is_counted() {
    let (mut s, base) = connected(10_000);
    s.wait(40 * MS);
    acknowledge(&mut s, base, 10_000, &[]);
    let t = told(&mut s);
    assert_eq!((t.bytes_sent, t.bytes_sent_again, t.bytes_acked), (10_000, 0, 10_000));
    // The SYN-ACK, then the data; the ACK of the handshake, then that of the data.
    assert_eq!((t.segments_out, t.data_segments_out), (11, 10));
    assert_eq!((t.segments_in, t.data_segments_in), (2, 0));
    assert_eq!(t.delivered, 11, "the SYN is one");
    assert_eq!((t.busy_us, t.window_limited_us), (40_000, 0));
    // Before them the application had nothing to send: the path may carry more, as Linux says, too.
    assert_eq!((t.delivery_rate, t.application_limited), (250_000, 1));
    assert_eq!((t.min_rtt_us, t.path_mtu, t.phase), (40_000, 1500, 0));
    assert_eq!((t.advertised_mss, t.received_mss), (1460, 536));
    assert_eq!(t.data_sent_at, t.heard_at - 40_000_000);
}

#[test]
fn what_came_is_counted_in_order_and_out_of_it() {
    let (mut s, _) = Script::connected(quiet_plan());
    let bytes = stream_bytes(40_000, 0, 1000);
    let start = s.seq;
    s.say_at(start.wrapping_add(600), ACK, &bytes[600..]);
    s.say_at(start, ACK, &bytes[..600]);
    s.seq = start.wrapping_add(1000);
    let t = told(&mut s);
    assert_eq!((t.bytes_received, t.data_segments_in, t.out_of_order), (1000, 2, 1));
    assert_eq!((t.received_mss, t.data_received_at > 0), (600, true));
    s.say(ACK | FIN, &[]);
    assert_eq!(told(&mut s).bytes_received, 1001, "a FIN counts, as on Linux");
}

#[test]
fn what_is_lost_and_sent_again_shows() {
    let (mut s, base) = connected(10_000);
    s.wait(40 * MS);
    acknowledge(&mut s, base, 0, &[(1000, 2000)]);
    // The reordering window ends before the numbers are refreshed: nothing of disorder is left.
    let t = told(&mut s);
    assert_eq!((t.phase, t.sacked_bytes, t.again_bytes, t.lost_bytes), (RECOVERY, 1000, 1000, 1000));
    assert_eq!((t.bytes_sent, t.bytes_sent_again, t.delivered), (11_000, 1000, 2));
    acknowledge(&mut s, base, 10_000, &[(0, 1000)]);
    let t = told(&mut s);
    assert_eq!((t.phase, t.duplicates_reported, t.delivered), (0, 1, 11));
}

#[test]
fn who_asks_gets_the_numbers_of_now() {
    let (mut s, base) = connected(10_000);
    s.wait(20 * MS);
    let (before, after) = (now(&s), asked(&mut s));
    assert_ne!(before.bytes_sent, 10_000, "the published numbers are older");
    assert_eq!((after.bytes_sent, after.busy_us), (10_000, 20_000));
    s.wait(20 * MS);
    acknowledge(&mut s, base, 10_000, &[]);
    assert_eq!(asked(&mut s).bytes_acked, 10_000);
}

/// A question that its predecessor did not answer.
#[test]
fn a_successor_answers_what_was_asked() {
    let (mut s, _) = connected(10_000);
    let socket = s.world.sides[1].app.streams[0].socket;
    let question = s.world.sides[1].page(socket).ask_info();
    s.world.crash(1);
    s.wait(MS);
    assert_eq!(s.world.sides[1].page(socket).info_answered(), question);
}

#[test]
fn disorder_shows_while_nothing_is_lost() {
    let mut s = Script::new(sender(10_000));
    s.rtt = 400 * MS;
    s.handshake(&SACK);
    let base = s.ack;
    // Nothing was published for a while, so the next change is published at once.
    s.wait(250 * MS);
    acknowledge(&mut s, base, 0, &[(8000, 9000)]);
    assert_eq!((now(&s).phase, now(&s).sacked_bytes), (DISORDER, 1000));
}

#[test]
fn timeouts_show_while_they_last_and_are_counted() {
    let (mut s, base) = connected(1000);
    // A probe after 280 ms, the timeout after 240 ms more, then twice that.
    while s.counter("retransmit_timeouts") < 2 {
        s.wait(10 * MS);
    }
    let t = told(&mut s);
    assert_eq!((t.phase, t.timeouts, t.backoff), (LOSS, 2, 2));
    assert_eq!((t.timeouts_total, t.timeout_recoveries), (2, 1));
    assert!(t.timeout_recovery_ms >= 400);
    acknowledge(&mut s, base, 1000, &[]);
    let t = told(&mut s);
    assert_eq!((t.phase, t.timeouts, t.backoff, t.timeouts_total), (0, 0, 0, 2));
}

#[test]
fn a_closed_window_shows_as_what_limits() {
    let (mut s, base) = connected(20_000);
    s.window = 0;
    s.wait(40 * MS);
    acknowledge(&mut s, base, 10_000, &[]);
    s.wait(150 * MS);
    s.window = 65_000;
    acknowledge(&mut s, base, 10_000, &[]);
    let t = told(&mut s);
    assert_eq!((t.window_limited_us, t.unsent_bytes), (150_000, 0));
    assert!(t.busy_us >= 190_000 && t.bytes_sent == 20_000);
}

/// Counts continue from the predecessor's last published values.
#[test]
fn a_successor_counts_on() {
    let (mut s, base) = connected(10_000);
    s.wait(40 * MS);
    acknowledge(&mut s, base, 10_000, &[]);
    let before = told(&mut s);
    s.world.crash(1);
    s.wait(10 * MS);
    let after = told(&mut s);
    assert_eq!(after.bytes_sent, before.bytes_sent);
    assert_eq!((after.data_segments_out, after.delivered), (before.data_segments_out, before.delivered));
    assert!(after.segments_out > before.segments_out, "a successor acknowledges");
}

#[test]
fn a_listener_reports_its_backlog() {
    let mut s = Script::new(quiet_plan());
    s.wait(MS);
    let side = &s.world.sides[1];
    let listener = side.app.listener.expect("listens");
    assert_eq!(side.page(listener).statistics().map(|t| t.backlog), Some(16));
}
