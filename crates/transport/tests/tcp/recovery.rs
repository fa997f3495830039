//! Loss by time, probes, and undone reductions: a peer 40 ms away plays the network.

use crate::loss::{MS, places, sack, sender, stretches};
use crate::script::*;
use crate::streams::transfer;
use crate::world::Conditions;
use eft_component::transport::Event;

/// Connected over 40 ms, with ten segments of 1000 bytes in flight; where the stream begins.
fn connected(bytes: u64, options: &[u8]) -> (Script, u32) {
    connected_from(Script::new(sender(bytes)), bytes, options)
}

fn connected_from(mut s: Script, bytes: u64, options: &[u8]) -> (Script, u32) {
    s.rtt = 40 * MS;
    s.handshake(options);
    let base = s.ack;
    let first = places(&s.hear(), base);
    assert_eq!(first.iter().map(|(_, len)| len).sum::<usize>(), (bytes as usize).min(10_000));
    (s, base)
}

const SACK: [u8; 4] = [4, 2, 1, 1];

fn acknowledge(s: &mut Script, base: u32, ack: u32, ranges: &[(u32, u32)]) -> Vec<(u32, usize)> {
    s.ack = base.wrapping_add(ack);
    let option = if ranges.is_empty() { Vec::new() } else { sack(base, ranges) };
    s.say_with(ACK, &[], &option);
    stretches(&s.hear(), base)
}

/// RFC 6675 §5 (C), RFC 8985 §6.2: until the reordering window is over, new data goes out instead.
#[test]
fn selective_acknowledgements_allow_new_data_before_anything_is_lost() {
    let (mut s, base) = connected(20_000, &SACK);
    s.wait(40 * MS);
    for n in 0..2 {
        let heard = acknowledge(&mut s, base, 0, &[(1000, 2000 + n * 1000)]);
        assert_eq!(heard, [(10_000 + n * 1000, 1000)]);
    }
    assert_eq!(s.counter("fast_recoveries"), 0);
    // A quarter of a round trip later the first is lost.
    assert!(places(&s.wait(9 * MS), base).is_empty());
    assert_eq!(places(&s.wait(2 * MS), base), [(0, 1000)]);
    assert_eq!((s.counter("fast_recoveries"), s.counter("retransmit_timeouts")), (1, 0));
}

#[test]
fn segments_within_the_reordering_window_are_not_lost() {
    let (mut s, base) = connected(20_000, &SACK);
    s.wait(40 * MS);
    acknowledge(&mut s, base, 0, &[(1000, 3000)]);
    s.wait(8 * MS);
    acknowledge(&mut s, base, 3000, &[]);
    s.wait(8 * MS);
    // Reordering was seen: from now on even three segments prove nothing at once.
    acknowledge(&mut s, base, 3000, &[(4000, 9000)]);
    s.wait(5 * MS);
    acknowledge(&mut s, base, 9000, &[]);
    s.wait(20 * MS);
    assert_eq!((s.counter("fast_recoveries"), s.counter("retransmitted_segments")), (0, 0));
}

/// RFC 8985 §6.2 step 3: what one acknowledgment reports at once came in no particular order.
#[test]
fn an_acknowledgment_of_what_came_before_and_behind_a_hole_is_no_reordering() {
    let (mut s, base) = connected(10_000, &SACK);
    s.wait(40 * MS);
    assert_eq!(
        acknowledge(&mut s, base, 1000, &[(8000, 10_000), (3000, 6000)]),
        [(1000, 2000), (6000, 2000)]
    );
}

/// RFC 2018 §8: a receiver that died may have forgotten data that it reported.
#[test]
fn a_receiver_that_forgot_gets_all_again_by_the_first_timeout() {
    let (mut s, base) = connected(10_000, &SACK);
    s.wait(40 * MS);
    assert_eq!(acknowledge(&mut s, base, 0, &[(1000, 9000)]), [(0, 1000)]);
    s.wait(40 * MS);
    // It waits for data that it had reported: it has forgotten them.
    acknowledge(&mut s, base, 1000, &[]);
    let mut heard = s.wait(600 * MS);
    assert_eq!(s.counter("retransmit_timeouts"), 1);
    s.ack = base.wrapping_add(2000);
    s.say(ACK, &[]);
    heard.extend(s.hear());
    let again = stretches(&heard, base);
    assert!(again.contains(&(1000, 3000)), "{again:?}");
    assert_eq!(s.counter("retransmit_timeouts"), 1);
}

/// RFC 8985 §6.2 step 4: without reordering three segments are proof enough.
#[test]
fn three_segments_beyond_a_hole_are_proof() {
    let (mut s, base) = connected(10_000, &SACK);
    s.wait(40 * MS);
    assert_eq!(acknowledge(&mut s, base, 0, &[(1000, 4000)]), [(0, 1000)]);
}

/// RFC 8985 §3.1: a retransmission counts as lost if a segment sent after it arrives.
#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    let (mut s, base) = connected(30_000, &SACK);
    s.wait(40 * MS);
    let again = acknowledge(&mut s, base, 0, &[(1000, 6000)]);
    assert_eq!(again[0], (0, 1000));
    s.wait(5 * MS);
    let new = acknowledge(&mut s, base, 0, &[(1000, 10_000)]);
    assert!(new.iter().all(|(at, _)| *at >= 10_000), "{new:?}");
    s.wait(40 * MS);
    let again = acknowledge(&mut s, base, 0, &[(1000, 11_000)]);
    assert_eq!(again[0], (0, 1000));
    assert_eq!(s.counter("retransmit_timeouts"), 0);
}

fn threshold(s: &mut Script) -> u32 {
    let socket = s.world.sides[1].app.streams[0].socket;
    s.world.sides[1].page(socket).ask_info();
    s.world.dirty(1, socket);
    s.world.sides[1].page(socket).info().ssthresh_bytes
}

/// RFC 5681 §4.3: the loss of a retransmission is a second sign of congestion, and ends slow start after a timeout. In a fast recovery
/// the window stays, as on Linux.
#[test]
fn a_lost_retransmission_ends_slow_start_after_a_timeout() {
    let (mut s, base) = connected(10_000, &SACK);
    while s.counter("retransmit_timeouts") == 0 {
        s.wait(10 * MS);
    }
    assert_eq!(threshold(&mut s), 7000, "of 10,000");
    assert_eq!(acknowledge(&mut s, base, 1000, &[]), [(1000, 2000)]);
    s.wait(40 * MS);
    assert_eq!(acknowledge(&mut s, base, 1000, &[(2000, 3000)])[0], (1000, 1000));
    assert_eq!((threshold(&mut s), s.counter("retransmit_timeouts")), (2000, 1));

    let (mut s, base) = connected(40_000, &SACK);
    s.wait(40 * MS);
    acknowledge(&mut s, base, 0, &[(1000, 4000), (5000, 6000)]);
    s.wait(40 * MS);
    assert_eq!(acknowledge(&mut s, base, 0, &[(1000, 4000), (5000, 11_000)])[0], (0, 1000));
    assert_eq!(threshold(&mut s), 7000);
}

/// RFC 5681 §4.3: loss in two successive windows. What was sent during a recovery and lost is known to be lost at its end.
#[test]
fn a_loss_in_the_next_window_reduces_the_window_again() {
    let (mut s, base) = connected(40_000, &SACK);
    s.wait(40 * MS);
    acknowledge(&mut s, base, 0, &[(1000, 9000)]);
    s.wait(40 * MS);
    let again = acknowledge(&mut s, base, 9000, &[(11_000, 14_000)]);
    assert_eq!((again[0], threshold(&mut s)), ((9000, 2000), 7000), "one recovery goes on: {again:?}");
    s.wait(40 * MS);
    acknowledge(&mut s, base, 10_000, &[(11_000, 14_000)]);
    assert_eq!((threshold(&mut s), s.counter("fast_recoveries")), (4900, 2));
    s.wait(40 * MS);
    // Nothing is left at the end of this one.
    acknowledge(&mut s, base, 14_000, &[]);
    s.wait(40 * MS);
    acknowledge(&mut s, base, 20_000, &[]);
    assert_eq!(s.counter("fast_recoveries"), 2);
}

/// RFC 6298 §4 wants a measurement in each round trip: on a path that always loses something, blocks give it.
#[test]
fn a_round_trip_is_measured_beyond_a_hole() {
    let (mut s, base) = connected(40_000, &SACK);
    let page = s.world.sides[1].page(s.world.sides[1].app.streams[0].socket);
    s.wait(40 * MS);
    acknowledge(&mut s, base, 0, &[(1000, 9000)]);
    let before = (threshold(&mut s), page.info().rtt_us);
    // What was sent behind the retransmission arrives after twice the time.
    s.wait(80 * MS);
    acknowledge(&mut s, base, 0, &[(1000, 9000), (10_000, 11_000)]);
    assert_eq!((before.1, threshold(&mut s) > 0, page.info().rtt_us), (40_000, true, 45_000));
}

/// RFC 7323 §4.3: an acknowledgment with a hole echoes the time of a segment before the hole, so that it says nothing of the age of
/// what it reports beyond it. There is nothing new to send, and the acknowledgments of other retransmissions must do.
#[test]
fn a_lost_retransmission_is_found_by_others_though_echoes_are_old() {
    let mut s = Script::new(sender(10_000));
    s.timestamp = Some(1);
    s.say_with(SYN, &[], &[&[2, 4, 3, 0xf4][..], &SACK, &timestamps(1, 0)].concat());
    let base = s.hear()[0].seq.wrapping_add(1);
    let echo = s.echo;
    s.ack = base;
    s.wait(40 * MS);
    s.say(ACK, &[]);
    assert_eq!(stretches(&s.hear(), base), [(0, 10_000)]);
    let say = |s: &mut Script, ranges: &[(u32, u32)]| {
        s.say_with(ACK, &[], &[timestamps(2, echo), sack(base, ranges)].concat());
        stretches(&s.hear(), base)
    };
    s.wait(40 * MS);
    assert_eq!(say(&mut s, &[(1000, 2000), (3000, 10_000)]), [(0, 1000), (2000, 1000)]);
    s.wait(45 * MS);
    // The second of the retransmissions arrives, and the first does not.
    assert_eq!(say(&mut s, &[(1000, 10_000)]), [(0, 1000)]);
    assert_eq!(s.counter("retransmit_timeouts"), 0);
}

/// RFC 8985 §7: the last segments are lost; a probe is sent after two round trips.
#[test]
fn a_lost_tail_is_found_by_a_probe() {
    let (mut s, base) = connected(10_000, &SACK);
    s.wait(40 * MS);
    acknowledge(&mut s, base, 7000, &[]);
    assert!(places(&s.wait(70 * MS), base).is_empty());
    assert_eq!(places(&s.wait(20 * MS), base), [(9000, 1000)]);
    s.wait(30 * MS);
    assert_eq!(acknowledge(&mut s, base, 7000, &[(9000, 10_000)]), [(7000, 1000)]);
    assert_eq!(places(&s.wait(12 * MS), base), []);
    s.wait(30 * MS);
    // The first of the two arrived: the other one, that was sent with it, has the window's time.
    let next = acknowledge(&mut s, base, 8000, &[(9000, 10_000)]);
    assert_eq!(next, [(8000, 1000)]);
    acknowledge(&mut s, base, 10_000, &[]);
    assert_eq!((s.counter("retransmit_timeouts"), s.counter("loss_probes")), (0, 1));
}

/// RFC 8985 §7.3: there is one probe, and then the timer.
#[test]
fn one_probe_is_followed_by_the_timer() {
    let (mut s, base) = connected(10_000, &SACK);
    assert_eq!(places(&s.wait(90 * MS), base), [(9000, 1000)]);
    assert_eq!(places(&s.wait(190 * MS), base), []);
    assert_eq!(places(&s.wait(60 * MS), base)[0], (0, 1000));
    assert_eq!((s.counter("retransmit_timeouts"), s.counter("loss_probes")), (1, 1));
}

#[test]
fn without_probes_only_the_timer_finds_a_lost_tail() {
    let mut s = Script::new(sender(10_000));
    let off = Event::Configure { key: "tail-probes".into(), value: "off".into() };
    s.world.at(1).event(off);
    let (mut s, base) = connected_from(s, 10_000, &SACK);
    assert_eq!(places(&s.wait(230 * MS), base), []);
    assert_eq!(places(&s.wait(110 * MS), base)[0], (0, 1000));
    assert_eq!((s.counter("retransmit_timeouts"), s.counter("loss_probes")), (1, 0));
}

/// RFC 8985 §7.4.2: data that a probe repaired were lost, and duplicates were not.
#[test]
fn a_probe_that_repaired_a_loss_shrinks_the_window() {
    for needless in [false, true] {
        let (mut s, base) = connected(30_000, &SACK);
        let page = s.world.sides[1].page(s.world.sides[1].app.streams[0].socket);
        s.wait(40 * MS);
        s.window = 0;
        let sent = acknowledge(&mut s, base, 9000, &[]);
        assert!(sent.is_empty());
        assert_eq!(places(&s.wait(300 * MS), base), [(9000, 1000)]);
        s.window = 65_000;
        if needless {
            acknowledge(&mut s, base, 10_000, &[(9000, 10_000)]);
        } else {
            acknowledge(&mut s, base, 10_000, &[]);
        }
        s.wait(60 * MS);
        acknowledge(&mut s, base, 12_000, &[]);
        s.wait(200 * MS);
        assert_eq!(s.counter("loss_probes_repaired"), !needless as u64);
        assert_eq!(page.info().ssthresh_bytes == u32::MAX, needless);
    }
}

/// RFC 2883, RFC 3708: all retransmitted data came twice, so nothing was lost.
#[test]
fn a_needless_retransmission_gives_the_window_back() {
    let (mut s, base) = connected(20_000, &SACK);
    let page = s.world.sides[1].page(s.world.sides[1].app.streams[0].socket);
    s.wait(40 * MS);
    assert_eq!(acknowledge(&mut s, base, 0, &[(1000, 4000)])[0], (0, 1000));
    s.wait(20 * MS);
    // The original comes late, and then the retransmission.
    acknowledge(&mut s, base, 4000, &[]);
    acknowledge(&mut s, base, 4000, &[(0, 1000)]);
    s.wait(200 * MS);
    assert_eq!(page.info().ssthresh_bytes, u32::MAX, "as before");
    assert_eq!((s.counter("spurious_recoveries"), s.counter("duplicates_reported")), (1, 1));
}

#[test]
fn a_spurious_timeout_causes_no_further_retransmission() {
    // RFC 3522: the first acknowledgment after the timeout echoes the original or the retransmission.
    for late in [true, false] {
        let mut s = Script::new(sender(60_000));
        s.timestamp = Some(10);
        s.handshake(&timestamps(10, 0));
        let base = s.ack;
        let sent = s.hear();
        let outstanding: usize = sent.iter().map(|h| h.len).sum();
        assert!(outstanding > 5000, "{sent:?}");
        let original = s.echo;
        let again = s.wait(500 * MS);
        assert!(again.iter().any(|h| h.seq == base && h.len > 0), "{again:?}");
        if late {
            s.echo = original;
        }
        s.ack = base.wrapping_add(2000);
        s.say(ACK, &[]);
        // New data may wait a moment for a larger segment.
        let heard = s.wait(20 * MS);
        let next: Vec<u32> = heard.iter().filter(|h| h.len > 0).map(|h| h.seq.wrapping_sub(base)).collect();
        assert!(!next.is_empty(), "late: {late}");
        if late {
            assert!(next.iter().all(|offset| *offset >= outstanding as u32), "{next:?} of {outstanding}");
        } else {
            assert_eq!(next[0], 2000);
        }
        assert_eq!(s.counter("spurious_timeouts"), late as u64);
        finish(&mut s, base, &heard, 60_000);
    }
}

/// The stream is whole in the end.
fn finish(s: &mut Script, base: u32, heard: &[Heard], bytes: u32) {
    let end = |heard: &[Heard]| heard.iter().map(|h| h.seq.wrapping_sub(base) + h.len as u32).max();
    let mut acknowledged = 2000.max(end(heard).unwrap_or(0));
    for _ in 0..1000 {
        s.ack = base.wrapping_add(acknowledged);
        s.say(ACK, &[]);
        acknowledged = acknowledged.max(end(&s.wait(MS)).unwrap_or(0));
    }
    assert_eq!(acknowledged, bytes);
}

/// RFC 5682 §3.1: without timestamps new data shows whether the timeout was right.
#[test]
fn after_a_timeout_without_timestamps_new_data_is_tried_first() {
    for right in [true, false] {
        let (mut s, base) = connected(60_000, &[]);
        let page = s.world.sides[1].page(s.world.sides[1].app.streams[0].socket);
        let again = places(&s.wait(400 * MS), base);
        assert_eq!(again, [(0, 1000)]);
        let new = acknowledge(&mut s, base, 1000, &[]);
        assert_eq!(new, [(10_000, 2000)], "not what seems to be lost");
        if right {
            let lost = acknowledge(&mut s, base, 1000, &[]);
            assert_eq!(lost[0].0, 1000);
        } else {
            let next = acknowledge(&mut s, base, 3000, &[]);
            assert!(next.iter().all(|(at, _)| *at >= 12_000), "{next:?}");
            s.wait(200 * MS);
            assert_eq!(page.info().ssthresh_bytes, u32::MAX, "as before");
        }
        assert_eq!(s.counter("spurious_timeouts"), !right as u64);
        let heard = s.hear();
        finish(&mut s, base, &heard, 60_000);
    }
}

/// RFC 9937: sending continues during the recovery, seven segments for ten that arrive.
#[test]
fn a_recovery_sends_all_the_time() {
    let (mut s, base) = connected(60_000, &SACK);
    s.wait(40 * MS);
    let mut sent = acknowledge(&mut s, base, 0, &[(1000, 4000)]).len();
    for n in 5..=10 {
        sent += acknowledge(&mut s, base, 0, &[(1000, n * 1000)]).len();
        let arrived = n as usize - 1;
        assert!((arrived * 7 / 10).abs_diff(sent) <= 2, "{arrived} arrived, {sent} sent");
    }
}

/// Frames that overtake each other are not lost, and after a while they are not treated as lost.
#[test]
fn a_network_that_reorders_costs_few_retransmissions() {
    let conditions =
        Conditions { jitter_us: 2000, delay_us: 10_000, split: true, rate: 20, ..Conditions::default() };
    for seed in 0..5 {
        let w = transfer(seed, conditions, 8 << 20, 0);
        let again = w.sides[0].counter("retransmitted_segments");
        let all = w.sides[0].counter("sent_segments");
        assert!(again * 100 < all, "seed {seed}: {again} of {all}");
    }
}
