//! ECN (RFC 3168): agreed on when the peer asks, echoed until the peer confirms it, and handled as congestion without a
//! loss.

use crate::app::App;
use crate::loss::{MS, places, sender};
use crate::script::*;
use crate::streams::{plan, run_to_end};
use crate::world::{Conditions, World};
use eft_component::transport::Event;

const PSH: u8 = 8;
const ECT: u8 = 2;
const CE: u8 = 3;
const MSS_AND_SACK: [u8; 8] = [2, 4, 3, 232, 4, 2, 1, 1];

/// Connected over 40 ms, by a SYN that asks for marks; what is heard of the first window.
fn asking(bytes: u64) -> (Script, u32, Vec<Heard>) {
    let mut s = Script::new(sender(bytes));
    s.say_with(SYN | ECE | CWR, &[], &MSS_AND_SACK);
    let heard = s.hear();
    assert_eq!((heard.len(), heard[0].flags, heard[0].ecn), (1, SYN | ACK | ECE, 0));
    s.ack = heard[0].seq.wrapping_add(1);
    s.world.run_for(40 * MS);
    s.say(ACK, &[]);
    let base = s.ack;
    let first = s.hear();
    (s, base, first)
}

fn info(s: &Script) -> eft_channel::socket::SocketInfo {
    let side = &s.world.sides[1];
    side.page(side.app.streams.last().expect("accepted").socket).info()
}

fn acknowledge(s: &mut Script, ack: u32, flags: u8) -> Vec<Heard> {
    s.ack = ack;
    s.say(ACK | flags, &[]);
    s.hear()
}

#[test]
fn a_connection_whose_peer_does_not_ask_sends_no_ecn() {
    // Neither flag alone asks for ECN, nor do both in another kind of SYN.
    for flags in [SYN, SYN | ECE, SYN | CWR] {
        let mut s = Script::new(sender(5000));
        s.say_with(flags, &[], &MSS_AND_SACK);
        let heard = s.hear();
        assert_eq!(heard[0].flags, SYN | ACK);
        s.ack = heard[0].seq.wrapping_add(1);
        s.say(ACK, &[]);
        let port = s.source_port;
        s.say_marked(ACK | ECE, &stream_bytes(port, 0, 100), CE);
        let heard = s.wait(100 * MS);
        assert!(heard.iter().all(|h| h.ecn == 0 && h.flags & (ECE | CWR) == 0), "{heard:?}");
        assert_eq!((s.counter("marks_received"), s.counter("mark_reductions")), (0, 0));
        assert_eq!(info(&s).options & 24, 0);
    }
}

#[test]
fn new_data_may_be_marked_and_nothing_else() {
    let (mut s, base, first) = asking(10_000);
    assert_eq!(places(&first, base).iter().map(|(_, len)| len).sum::<usize>(), 10_000);
    assert!(first.iter().all(|h| h.ecn == ECT && h.flags & (ECE | CWR) == 0), "{first:?}");
    // A pure acknowledgement.
    let port = s.source_port;
    s.say(ACK, &stream_bytes(port, 0, 100));
    let heard = s.hear();
    assert_eq!((heard.len(), heard[0].len, heard[0].ecn), (1, 0, 0));
    // A retransmission after a timeout.
    let again = s.wait(2000 * MS);
    assert!(s.counter("retransmitted_segments") > 0 && !again.is_empty());
    assert!(again.iter().all(|h| h.ecn == 0), "{again:?}");
}

#[test]
fn a_mark_is_echoed_until_the_peer_says_that_it_reduced_its_window() {
    let (mut s, _, _) = asking(0);
    let port = s.source_port;
    let say = |s: &mut Script, flags: u8, ecn: u8| {
        let offset = s.counter("received_bytes");
        s.say_marked(ACK | PSH | flags, &stream_bytes(port, offset, 100), ecn);
        let heard = s.wait(50 * MS);
        assert!(!heard.is_empty() && heard.iter().all(|h| h.ecn == 0));
        heard.last().expect("an acknowledgement").flags
    };
    assert_eq!(say(&mut s, 0, ECT), ACK);
    assert_eq!(say(&mut s, 0, CE), ACK | ECE);
    assert_eq!(say(&mut s, 0, ECT), ACK | ECE);
    // Also by a successor.
    s.world.crash(1);
    s.hear();
    assert_eq!(say(&mut s, 0, ECT), ACK | ECE);
    assert_eq!(say(&mut s, CWR, ECT), ACK);
    assert_eq!(say(&mut s, 0, ECT), ACK);
    // The segment with CWR may be marked itself.
    assert_eq!(say(&mut s, 0, CE), ACK | ECE);
    assert_eq!(say(&mut s, CWR, CE), ACK | ECE);
    assert_eq!(s.counter("marks_received"), 3);
    assert_eq!(info(&s).options & 24, 24, "agreed on, and seen");
}

#[test]
fn an_echo_reduces_the_window_once_in_a_window_of_data() {
    let (mut s, base, _) = asking(1_000_000);
    s.world.run_for(40 * MS);
    let before = info(&s).cwnd_bytes;
    assert_eq!(before, 10_000);
    let mut heard = Vec::new();
    for n in 1..=10 {
        heard.extend(acknowledge(&mut s, base.wrapping_add(n * 1000), ECE));
    }
    assert_eq!(s.counter("mark_reductions"), 1);
    s.wait(150 * MS);
    assert_eq!(s.counter("retransmitted_segments"), 0);
    assert!(s.counter("fast_recoveries") == 0 && info(&s).cwnd_bytes == 7000, "{}", info(&s).cwnd_bytes);
    // Only the first new data carry CWR, in a segment of their own.
    let told: Vec<usize> =
        heard.iter().enumerate().filter(|(_, h)| h.flags & CWR != 0).map(|(n, _)| n).collect();
    assert_eq!(told, [0], "{heard:?}");
    assert_eq!((heard[0].seq, heard[0].len, heard[0].ecn), (base.wrapping_add(10_000), 1000, ECT));
    assert!(heard.len() > 1 && heard[1..].iter().all(|h| h.ecn == ECT), "{heard:?}");
    // An echo with the acknowledgment of that segment is of another mark.
    acknowledge(&mut s, base.wrapping_add(11_000), ECE);
    assert_eq!(s.counter("mark_reductions"), 2);
}

#[test]
fn a_loss_in_the_window_that_was_marked_reduces_nothing_more() {
    let (mut s, base, _) = asking(1_000_000);
    s.wait(40 * MS);
    acknowledge(&mut s, base.wrapping_add(1000), ECE);
    let blocks = crate::loss::sack(base, &[(2000, 10_000)]);
    s.say_with(ACK | ECE, &[], &blocks);
    assert_eq!((s.counter("mark_reductions"), s.counter("fast_recoveries")), (1, 1));
    s.wait(150 * MS);
    assert_eq!(info(&s).ssthresh_bytes, 7000);
}

#[test]
fn a_syn_that_comes_again_without_the_question_takes_it_back() {
    let mut s = Script::new(sender(5000));
    s.say_with(SYN | ECE | CWR, &[], &MSS_AND_SACK);
    assert_eq!(s.hear()[0].flags, SYN | ACK | ECE);
    s.wait(900 * MS);
    s.seq = s.seq.wrapping_sub(1);
    s.say_with(SYN, &[], &MSS_AND_SACK);
    let heard = s.hear();
    assert_eq!(heard[0].flags, SYN | ACK);
    s.ack = heard[0].seq.wrapping_add(1);
    s.say(ACK, &[]);
    let heard = s.hear();
    assert!(!heard.is_empty() && heard.iter().all(|h| h.ecn == 0), "{heard:?}");
}

pub fn configure(world: &mut World, side: usize, value: &str) {
    world.at(side).event(Event::Configure { key: "ecn".into(), value: value.into() });
}

/// A stream each way between two engines; the connecting one asks for ECN.
fn marked_transfer(seed: u64, answer: &str, conditions: Conditions) -> World {
    let mut world = World::new(seed, conditions);
    world.capture = Some(Vec::new());
    configure(&mut world, 0, "ask");
    configure(&mut world, 1, answer);
    App::listen(&mut world, 1, PORT, 16, plan(2 << 20, 2 << 20));
    App::connect(&mut world, 0, PORT, plan(2 << 20, 2 << 20));
    run_to_end(&mut world);
    world
}

#[test]
fn a_router_that_marks_slows_both_sides_without_a_loss() {
    for seed in 0..4 {
        let conditions = Conditions { mark: 0.02, delay_us: 5000, split: true, ..Conditions::default() };
        let w = marked_transfer(seed, "answer", conditions);
        for side in &w.sides {
            assert!(side.counter("marks_received") > 0 && side.counter("mark_reductions") > 0, "seed {seed}");
            assert_eq!(side.counter("retransmitted_segments"), 0, "seed {seed}");
        }
    }
}

pub fn marks_losses_and_crashes() -> Conditions {
    Conditions {
        mark: 0.02,
        loss: 0.01,
        jitter_us: 500,
        crash: 0.001,
        delay_us: 2000,
        split: true,
        ..Conditions::default()
    }
}

#[test]
fn marks_losses_and_crashes_together_lose_nothing() {
    for seed in 0..8 {
        let w = marked_transfer(seed, "answer", marks_losses_and_crashes());
        let marks: u64 = w.sides.iter().map(|side| side.counter("marks_received")).sum();
        assert!(marks > 0, "seed {seed}");
    }
}

#[test]
fn with_ecn_off_the_answer_is_as_without_a_request() {
    let w = marked_transfer(1, "off", Conditions { mark: 1.0, ..Conditions::default() });
    let sent = w.capture.as_ref().expect("captured");
    assert_eq!(sent[0].2.flags(), SYN | ECE | CWR);
    assert!(sent[1..].iter().all(|(_, _, p)| p.ecn() == 0 && p.flags() & (ECE | CWR) == 0));
}

#[test]
fn an_unanswered_syn_that_asked_is_sent_again_without_asking() {
    let mut world = World::new(1, Conditions::default());
    world.capture = Some(Vec::new());
    world.blackhole[1] = true;
    configure(&mut world, 0, "ask");
    App::connect(&mut world, 0, PORT, plan(100, 0));
    world.run_for(1500 * MS);
    let sent: Vec<u8> = world.capture.as_ref().expect("captured").iter().map(|(_, _, p)| p.flags()).collect();
    assert_eq!(sent, [SYN | ECE | CWR, SYN]);
}
