//! Loss: which segments are retransmitted, and when.

use crate::app::{App, Plan};
use crate::script::*;
use crate::streams::{close_all, plan, run_to_end, transfer};
use crate::world::{Conditions, World};
use eft_base::errno::ETIMEDOUT;
use eft_channel::socket::Opt;
use std::time::Duration;

pub const MS: Duration = Duration::from_millis(1);

/// A server that sends at once when it is connected to.
pub fn sender(bytes: u64) -> Plan {
    Plan { send: bytes, ..quiet_plan() }
}

#[test]
fn the_timeout_doubles_until_the_connection_is_given_up() {
    let (mut s, _) = Script::connected(sender(500));
    let mut heard = s.hear();
    heard.extend(s.wait(Duration::from_secs(3 * 3600)));
    let data: Vec<_> = heard.iter().filter(|h| h.len == 500).collect();
    // Before the first timeout comes a tail loss probe (RFC 8985 §7.3).
    assert_eq!(data.len(), 1 + 1 + 15, "{data:?}");
    assert_eq!(s.counter("loss_probes"), 1);
    let gaps: Vec<u128> =
        data[1..].windows(2).map(|w| w[1].at.saturating_since(w[0].at).as_millis()).collect();
    for w in gaps.windows(2) {
        assert!(w[1] == (2 * w[0]).min(120_000), "{gaps:?}");
    }
    let stream = &s.world.sides[1].app.streams[0];
    assert_eq!(stream.error, ETIMEDOUT);
    assert_eq!(s.counter("connections_timed_out"), 1);
}

#[test]
fn three_duplicate_acknowledgements_bring_one_segment_without_sack() {
    let mut s = Script::new(sender(10_000));
    s.handshake(&[]);
    let base = s.ack;
    s.hear();
    for n in 1..=2 {
        s.say(ACK, &[]);
        assert!(s.hear().iter().all(|h| h.seq != base), "after {n}");
    }
    s.say(ACK, &[]);
    let again: Vec<_> = s.hear().into_iter().filter(|h| h.seq == base).collect();
    assert_eq!(again.len(), 1);
    assert_eq!(s.counter("fast_recoveries"), 1);
    // Before the timer, too.
    assert_eq!(s.counter("retransmit_timeouts"), 0);
}

/// SACK option for offsets relative to `base`.
pub fn sack(base: u32, ranges: &[(u32, u32)]) -> Vec<u8> {
    let mut o = vec![1, 1, 5, 2 + 8 * ranges.len() as u8];
    for (start, end) in ranges {
        o.extend(base.wrapping_add(*start).to_be_bytes());
        o.extend(base.wrapping_add(*end).to_be_bytes());
    }
    o
}

#[test]
fn duplicate_acknowledgements_prove_nothing_with_sack() {
    let (mut s, _) = Script::connected(sender(10_000));
    s.hear();
    let base = s.ack;
    s.ack = base.wrapping_add(2000);
    s.say(ACK, &[]);
    s.hear();
    for _ in 0..10 {
        // Duplicates are reported as such (RFC 2883).
        let option = sack(base, &[(0, 2000)]);
        s.say_with(ACK, &[], &option);
    }
    assert!(s.hear().iter().all(|h| h.seq != base.wrapping_add(2000)));
    assert_eq!(s.counter("fast_recoveries"), 0);
    assert_eq!(s.counter("retransmitted_segments"), 0);
}

#[test]
fn selective_acknowledgements_bring_exactly_the_holes() {
    let (mut s, _) = Script::connected(sender(10_000));
    s.hear();
    let base = s.ack;
    s.say_with(ACK, &[], &sack(base, &[(1000, 2000), (3000, 6000)]));
    let again: Vec<_> = s.hear().into_iter().map(|h| (h.seq.wrapping_sub(base), h.len)).collect();
    assert_eq!(again, [(0, 1000), (2000, 1000)]);
    s.ack = base.wrapping_add(10_000);
    s.say(ACK, &[]);
    assert_eq!(s.counter("retransmitted_bytes"), 2000);
}

/// What side 1 sent: places relative to `base`, and lengths.
pub fn places(heard: &[Heard], base: u32) -> Vec<(u32, usize)> {
    heard.iter().filter(|h| h.len > 0).map(|h| (h.seq.wrapping_sub(base), h.len)).collect()
}

/// The same for what was sent in a row: where each stretch begins, and its length, however many pieces it went in.
pub fn stretches(heard: &[Heard], base: u32) -> Vec<(u32, usize)> {
    let mut stretches: Vec<(u32, usize)> = Vec::new();
    for (at, len) in places(heard, base) {
        match stretches.last_mut() {
            Some(last) if last.0 + last.1 as u32 == at => last.1 += len,
            _ => stretches.push((at, len)),
        }
    }
    stretches
}

/// RFC 5681 §3.2, RFC 3042: each of two duplicate acknowledgements allows a new segment.
#[test]
fn limited_transmit_keeps_acknowledgements_coming_without_sack() {
    let mut s = Script::new(sender(20_000));
    s.handshake(&[]);
    let base = s.ack;
    assert_eq!(stretches(&s.hear(), base), [(0, 10_000)]);
    for n in 0..2 {
        s.say(ACK, &[]);
        assert_eq!(places(&s.hear(), base), [(10_000 + n * 1000, 1000)]);
    }
    s.say(ACK, &[]);
    assert_eq!(places(&s.hear(), base), [(0, 1000)]);
    // They do not count as in flight when the window is halved.
    let page = s.world.sides[1].page(s.world.sides[1].app.streams[0].socket);
    s.wait(200 * MS);
    assert_eq!(page.info().ssthresh_bytes, 7000, "of a window of 10,000");
}

/// Sending waits for a larger piece, but only for a moment: the acknowledgements may never come.
#[test]
fn a_small_piece_is_not_held_back_for_long() {
    let (mut s, _) = Script::connected(sender(20_000));
    s.hear();
    let base = s.ack;
    s.ack = base.wrapping_add(1000);
    s.say(ACK, &[]);
    assert!(s.hear().is_empty(), "a tenth of the window is not worth a segment at once");
    let heard = s.wait(11 * MS);
    assert_eq!(places(&heard, base), [(10_000, 2000)]);
    assert_eq!(s.counter("retransmit_timeouts"), 0);
}

#[test]
fn a_sender_whose_packets_are_doubled_sends_nothing_again() {
    let w = transfer(3, Conditions { duplicate: 0.3, split: true, ..Conditions::default() }, 4 << 20, 0);
    assert_eq!(w.sides[0].counter("retransmitted_segments"), 0);
    assert_eq!(w.sides[0].counter("fast_recoveries"), 0);
    assert!(w.sides[1].counter("duplicate_segments") > 100);
}

#[test]
fn the_death_of_ip_brings_no_retransmission() {
    for seed in 0..10 {
        let conditions = Conditions { ip_crash: 0.02, ..Conditions::default() };
        let w = transfer(seed, conditions, 8 << 20, 8 << 20);
        assert!(w.ip_crashes > 10);
        for side in &w.sides {
            assert_eq!(side.counter("retransmitted_segments"), 0, "seed {seed}");
        }
        assert!(w.sides[0].counter("resubmitted_requests") > 0);
    }
}

#[test]
fn a_few_lost_segments_cost_no_timeout() {
    for seed in 0..60 {
        let mut w = World::new(seed, Conditions { split: true, delay_us: 5000, ..Conditions::default() });
        App::listen(&mut w, 1, PORT, 16, plan(0, 2 << 20));
        App::connect(&mut w, 0, PORT, plan(2 << 20, 0));
        w.run_until(Duration::from_secs(5), |w| w.sides[1].counter("received_bytes") > 200_000);
        w.conditions.loss = 0.05;
        let sent = w.sides[0].sends;
        w.run_until(Duration::from_secs(5), |w| w.sides[0].sends > sent + 1);
        w.conditions.loss = 0.0;
        run_to_end(&mut w);
        close_all(&mut w);
        assert_eq!(w.sides[0].counter("retransmit_timeouts"), 0, "seed {seed}");
    }
}

#[test]
fn keepalive_finds_a_dead_peer_and_leaves_a_living_one() {
    let (mut s, socket) = Script::connected(quiet_plan());
    let page = s.world.sides[1].page(socket);
    page.set_option(Opt::KeepAlive, 1);
    page.set_option(Opt::KeepIdle, 10);
    page.set_option(Opt::KeepInterval, 5);
    page.set_option(Opt::KeepCount, 3);
    s.world.dirty(1, socket);
    s.hear();
    let heard = s.wait(Duration::from_secs(11));
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].seq, s.ack.wrapping_sub(1), "an old sequence number");
    s.say(ACK, &[]);
    let heard = s.wait(Duration::from_secs(9));
    assert!(heard.is_empty(), "{heard:?}");
    let heard = s.wait(Duration::from_secs(30));
    assert_eq!(heard.iter().filter(|h| h.flags == ACK).count(), 3);
    assert!(heard.last().unwrap().flags & RST != 0);
    assert_eq!(s.world.sides[1].app.streams[0].error, ETIMEDOUT);
}

#[test]
fn the_user_timeout_ends_the_wait() {
    let (mut s, socket) = Script::connected(sender(500));
    s.world.sides[1].page(socket).set_option(Opt::UserTimeout, 3000);
    s.world.dirty(1, socket);
    let start = s.world.now;
    let ended = s.world.run_until(Duration::from_secs(60), |w| w.sides[1].app.streams[0].error != 0);
    assert!(ended);
    let after = s.world.now.saturating_since(start);
    assert!((3000 * MS..10_000 * MS).contains(&after), "{after:?}");
}

#[test]
fn a_long_silence_of_the_network_is_survived() {
    let mut w = World::new(5, Conditions::default());
    App::listen(&mut w, 1, PORT, 16, plan(1 << 20, 1 << 20));
    App::connect(&mut w, 0, PORT, plan(1 << 20, 1 << 20));
    w.run_until(Duration::from_secs(5), |w| w.sides[1].counter("received_bytes") > 100_000);
    w.blackhole = [true, true];
    w.run_for(Duration::from_secs(100));
    w.blackhole = [false, false];
    run_to_end(&mut w);
    close_all(&mut w);
}
