//! AccECN's option (RFC 9768 §3.2.3): who sends it when, and byte counts that arrive whatever happens.

use crate::accurate_marks::{NOT_ECT, connected_with, say, transfer};
use crate::loss::{MS, sender};
use crate::marks::marks_losses_and_crashes;
use crate::script::*;
use crate::world::{Conditions, World};
use eft_channel::socket::SocketStatistics;

const PSH: u8 = 8;
const ECT_0: u8 = 2;
const CE: u8 = 3;
const NOTHING: [u8; 12] = [174, 11, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1];
const EMPTY: [u8; 4] = [174, 2, 1, 1];

/// The counts of ECT(1), CE and ECT(0) in a segment's options, if they are there.
fn told(heard: &Heard) -> Option<Vec<u32>> {
    let mut options = &heard.options[..];
    while let [kind, rest @ ..] = options {
        let len = match kind {
            0 => return None,
            1 => 1,
            _ => rest[0] as usize,
        };
        if [172, 174].contains(kind) {
            let field = |f: &[u8]| u32::from_be_bytes([0, f[0], f[1], f[2]]);
            let mut counts: Vec<u32> = options[2..len].chunks_exact(3).map(field).collect();
            if *kind == 172 && counts.len() == 3 {
                counts.reverse();
            }
            return Some(counts);
        }
        options = &options[len..];
    }
    None
}

/// Sends so many bytes with these ECN bits; what is answered within the time of a delayed acknowledgment.
fn send(s: &mut Script, ecn: u8, len: usize, options: &[u8]) -> Vec<Heard> {
    let payload = stream_bytes(s.source_port, s.counter("received_bytes"), len);
    say(s, ACK | PSH, 5, ecn, &payload, options);
    let mut heard = s.hear();
    heard.extend(s.wait(100 * MS));
    heard
}

fn numbers(world: &mut World, side: usize) -> SocketStatistics {
    let socket = world.sides[side].app.streams[0].socket;
    world.sides[side].page(socket).ask_info();
    world.dirty(side, socket);
    world.run_for(20 * MS);
    world.sides[side].page(socket).statistics().expect("numbers")
}

#[test]
fn a_syn_ack_has_it_once() {
    let mut s = Script::new(quiet_plan());
    crate::marks::configure(&mut s.world, 1, "accurate");
    say(&mut s, SYN, 0b111, 0, &[], &[2, 4, 3, 232]);
    let first = s.hear();
    assert_eq!(first.iter().map(told).collect::<Vec<_>>(), [Some(vec![1, 0, 1])]);
    let again = s.wait(1500 * MS);
    assert_eq!(
        again.iter().map(told).collect::<Vec<_>>(),
        [None],
        "something may drop what it does not know"
    );
}

#[test]
fn who_sends_it_is_told_of_all_bytes_by_a_successor_too() {
    let mut s = connected_with(0, NOT_ECT, &NOTHING);
    let mut last = Vec::new();
    for (turn, (ecn, len)) in
        [(ECT_0, 100), (CE, 70), (0, 50), (CE, 30), (ECT_0, 20), (1, 10)].into_iter().enumerate()
    {
        if turn == 3 {
            s.world.crash(1);
            s.hear();
        }
        let heard = send(&mut s, ecn, len, &NOTHING);
        last.push(told(heard.last().expect("an answer")).expect("an option"));
    }
    let all = [[1, 0, 101], [1, 70, 101], [1, 70, 101], [1, 100, 101], [1, 100, 121], [11, 100, 121]];
    assert_eq!(last, all.map(Vec::from));
    let known = numbers(&mut s.world, 1);
    assert_eq!(
        (known.received_bytes_by_mark, known.accurate_seen, known.accurate_failures),
        ([10, 120, 100], 2, 0)
    );
}

#[test]
fn who_sends_none_gets_none_until_it_does() {
    let mut s = connected_with(0, NOT_ECT, &[]);
    assert!(send(&mut s, ECT_0, 100, &[]).iter().all(|heard| told(heard).is_none()));
    assert_eq!(numbers(&mut s.world, 1).accurate_seen, 0);
    let heard = send(&mut s, CE, 100, &EMPTY);
    assert_eq!(told(heard.last().unwrap()), Some(vec![1, 100, 101]));
    assert_eq!(numbers(&mut s.world, 1).accurate_seen, 1);
    send(&mut s, CE, 100, &NOTHING);
    assert_eq!(numbers(&mut s.world, 1).accurate_seen, 2);
}

/// A data segment that is full has no room; if the peer must hear of a mark, an acknowledgment of its own goes first.
#[test]
fn no_segment_grows_by_it() {
    let mut s = connected_with(2500, NOT_ECT, &NOTHING);
    let heard = s.hear();
    let data = |heard: &[Heard]| heard.iter().map(|h| (h.len, told(h).is_some())).collect::<Vec<_>>();
    let of_data: Vec<_> = heard.iter().filter(|h| h.len > 0).cloned().collect();
    assert_eq!(data(&of_data), [(2000, false), (500, true)]);
    let mut s = connected_with(1_000_000, NOT_ECT, &NOTHING);
    let sent: usize = s.hear().iter().map(|h| h.len).sum();
    s.wait(MS);
    s.ack = s.ack.wrapping_add(sent as u32);
    let payload = stream_bytes(s.source_port, 0, 100);
    say(&mut s, ACK | PSH, 5, CE, &payload, &NOTHING);
    let heard = s.hear();
    assert_eq!(data(&heard)[..2], [(0, true), (1000, false)], "{heard:?}");
    assert_eq!(told(&heard[0]), Some(vec![1, 100, 1]));
    assert_eq!(heard[0].ack, heard[1].ack);
}

#[test]
fn two_sack_blocks_have_precedence() {
    let mut s = connected_with(0, NOT_ECT, &NOTHING);
    s.hear();
    let first = s.seq;
    // Holes of 100 bytes: one block, two, three.
    for n in 1..=3u32 {
        s.seq = first.wrapping_add(n * 200);
        say(&mut s, ACK | PSH, 5, CE, &[0; 100], &[]);
        let heard = s.hear();
        let last = heard.last().expect("an answer");
        // Without timestamps there is room for all fields beside two blocks, and for two beside three; SACK is not agreed on here.
        assert_eq!(told(last), Some(vec![1, n * 100, 1]), "{n}");
    }
}

#[test]
fn an_option_that_was_cleared_is_not_believed() {
    let cleared = [174, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let mut s = connected_with(2500, NOT_ECT, &cleared);
    let heard = s.hear();
    assert!(heard.iter().any(|h| told(h).is_some()), "ours may get through");
    s.ack = s.ack.wrapping_add(2000);
    say(&mut s, ACK, 5, 0, &[], &[174, 11, 0, 0, 1, 0, 0, 9, 0, 0, 9, 1]);
    let known = numbers(&mut s.world, 1);
    assert_eq!((known.accurate_seen, known.accurate_failures, known.delivered_bytes_by_mark), (3, 8, [0; 3]));
}

#[test]
fn the_peers_counts_are_known_and_late_ones_taken_back() {
    let mut s = connected_with(5000, NOT_ECT, &NOTHING);
    s.hear();
    let from = s.ack;
    let mut known = Vec::new();
    for (acked, e0, ce) in [(1000, 1001, 0), (2000, 1501, 500), (4000, 2001, 1000)] {
        s.ack = from.wrapping_add(acked);
        let [a, b, c] = [e0 as u32, ce as u32, 1].map(|n: u32| n.to_be_bytes());
        let option = [172, 11, a[1], a[2], a[3], b[1], b[2], b[3], c[1], c[2], c[3], 1];
        say(&mut s, ACK, 5, 0, &[], &option);
        known.push(numbers(&mut s.world, 1).delivered_bytes_by_mark);
    }
    assert_eq!(known, [[0, 1000, 0], [0, 1500, 500], [0, 2000, 1000]]);
}

/// Without the option what is delivered counts for the code that grew alone: once, though SACK reports it before it is acknowledged.
#[test]
fn what_sack_has_reported_is_not_delivered_again() {
    let mut s = Script::new(sender(3000));
    crate::marks::configure(&mut s.world, 1, "accurate");
    say(&mut s, SYN, 0b111, 0, &[], &[2, 4, 3, 232, 4, 2, 1, 1]);
    s.ack = s.hear()[0].seq.wrapping_add(1);
    s.world.run_for(40 * MS);
    say(&mut s, ACK, NOT_ECT, 0, &[], &NOTHING);
    s.hear();
    let from = s.ack;
    let mut known = Vec::new();
    let mut ack = |s: &mut Script, acked: u32, options: &[u8]| {
        s.ack = from.wrapping_add(acked);
        say(s, ACK, 5, 0, &[], options);
        known.push(numbers(&mut s.world, 1).delivered_bytes_by_mark);
    };
    ack(&mut s, 1000, &[172, 11, 0, 3, 233, 0, 0, 0, 0, 0, 1, 1]);
    let block = [2000u32, 3000].map(|at| from.wrapping_add(at).to_be_bytes()).concat();
    ack(&mut s, 1000, &[&[1, 1, 5, 10][..], &block].concat());
    ack(&mut s, 3000, &[]);
    assert_eq!(known, [[0, 1000, 0], [0, 2000, 0], [0, 3000, 0]]);
}

/// Requests that are not acknowledged at once, since answers do that: if these are full, an acknowledgment with the counts goes
/// before them, as often as in a round trip.
#[test]
fn full_answers_leave_room_for_the_counts() {
    let mut s = connected_with(1_000_000, NOT_ECT, &NOTHING);
    let mut heard = s.hear();
    for turn in 0..6 {
        s.ack = s.ack.wrapping_add(heard.iter().map(|h| h.len as u32).sum());
        s.wait(30 * MS);
        let payload = stream_bytes(s.source_port, turn * 100, 100);
        say(&mut s, ACK | PSH, 5, ECT_0, &payload, &[]);
        heard = s.hear();
        let counts = vec![1, 0, turn as u32 * 100 + 101];
        assert_eq!((heard[0].len, told(&heard[0])), (0, Some(counts)), "{turn}: {heard:?}");
        assert!(heard.len() > 1 && heard[1..].iter().all(|h| h.len > 0), "{heard:?}");
    }
}

/// Counts that come after all is acknowledged are taken where the timestamp shows that they are newer.
#[test]
fn counts_are_taken_from_newer_segments_that_acknowledge_nothing() {
    let mut s = Script::new(sender(2500));
    crate::marks::configure(&mut s.world, 1, "accurate");
    say(&mut s, SYN, 0b111, 0, &[], &[&[2, 4, 3, 232][..], &timestamps(10, 0)].concat());
    s.ack = s.hear()[0].seq.wrapping_add(1);
    let counts = |e0: u16| {
        let [high, low] = e0.to_be_bytes();
        [172, 11, 0, high, low, 0, 0, 0, 0, 0, 1, 1]
    };
    let with = |at: u32, e0| [&timestamps(at, 0)[..], &counts(e0)].concat();
    say(&mut s, ACK, NOT_ECT, 0, &[], &with(11, 1));
    s.ack = s.ack.wrapping_add(s.hear().iter().map(|h| h.len as u32).sum());
    say(&mut s, ACK, 5, 0, &[], &timestamps(12, 0));
    let mut known = Vec::new();
    for (at, e0) in [(13, 1001), (13, 501), (12, 801), (14, 2501)] {
        say(&mut s, ACK, 5, 0, &[], &with(at, e0));
        known.push(numbers(&mut s.world, 1).delivered_bytes_by_mark[1]);
    }
    assert_eq!(known, [1000, 1000, 1000, 2500]);
}

/// What one end has received, the other knows.
#[test]
fn both_ends_know_all_that_came() {
    for seed in 0..6 {
        let conditions = match seed {
            0 => Conditions { mark: 0.02, delay_us: 5000, ..Conditions::default() },
            1 => Conditions { mark: 0.02, delay_us: 5000, split: true, ..Conditions::default() },
            _ => marks_losses_and_crashes(),
        };
        let mut w = transfer(seed, ["accurate", "accurate"], conditions);
        let [a, b] = [0, 1].map(|side| numbers(&mut w, side));
        for (near, far) in [(&a, &b), (&b, &a)] {
            assert_eq!(near.delivered_bytes_by_mark, far.received_bytes_by_mark, "seed {seed}");
            assert!(
                near.delivered_bytes_by_mark[1] > 1 << 19 && near.delivered_bytes_by_mark[2] > 0,
                "{near:?}"
            );
            assert_eq!((near.accurate_seen, near.accurate_failures), (2, 0));
        }
    }
}

/// Where more packets are acknowledged at once than the field tells apart, the bytes say how often it went round.
#[test]
fn marks_are_counted_also_where_the_field_goes_round() {
    for (seed, mark) in [(1, 0.1), (2, 0.5), (3, 0.9), (4, 1.0)] {
        let conditions = Conditions { mark, delay_us: 5000, segment_max: 65_000, ..Conditions::default() };
        let mut w = transfer(seed, ["accurate", "accurate"], conditions);
        for side in 0..2 {
            let told = numbers(&mut w, side).delivered_marked;
            let seen = w.sides[1 - side].counter("marks_received") as u32;
            assert!(seen > 0);
            assert_eq!(told, seen, "seed {seed}, {mark}");
        }
    }
}
