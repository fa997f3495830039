//! Death in the middle of a turn: what the turn wrote counts whole or not at all, at whichever access it ends.

use super::bench::{Bench, STATES, THEM, US};
use super::meaning::packet;
use crate::rule::Packet;
use crate::state::State;
use eft_arena::FUSE_BURNT;
use eft_base::Instant;
use eft_base::wire::{TCP_ACK, TCP_FIN, TCP_SYN};
use std::panic::{AssertUnwindSafe, catch_unwind};

const RULES: &str = "pass in keep state\npass out keep state";

/// Something that the filter is told, in a turn of its own.
#[derive(Clone)]
enum Input {
    Packet(Packet),
    /// Sets the time to this many seconds after the beginning; expired states end.
    Time(u64),
    /// ip dies: all grants end.
    NewIp,
}

/// Connections begin, go on, end and begin anew; the table is filled, and one must make room.
fn story() -> Vec<Input> {
    let tcp = |from_us: bool, flags: u8| {
        let (from, to) = if from_us { ((US, 80), (THEM, 4000)) } else { ((THEM, 4000), (US, 80)) };
        Input::Packet(Packet { tcp_flags: flags, ..packet(!from_us, 6, from, to) })
    };
    let datagram = |port| Input::Packet(packet(false, 17, (US, port), (THEM, 53)));
    let mut all =
        vec![tcp(false, TCP_SYN), tcp(true, TCP_SYN | TCP_ACK), tcp(false, TCP_ACK), datagram(5000)];
    all.extend([
        Input::Packet(packet(true, 17, (THEM, 53), (US, 5000))),
        Input::Time(3),
        tcp(true, TCP_ACK),
        Input::NewIp,
    ]);
    all.extend([
        tcp(true, TCP_FIN | TCP_ACK),
        tcp(false, TCP_FIN | TCP_ACK),
        tcp(true, TCP_ACK),
        tcp(false, TCP_SYN),
    ]);
    all.extend((0..STATES as u16 + 4).map(|i| datagram(6000 + i)));
    all.push(Input::Time(100));
    all
}

/// A turn, after which ip knows the verdict.
fn give(b: &mut Bench, input: &Input) {
    match input {
        Input::Packet(p) => assert_eq!(b.ask(p), Some(true)),
        Input::Time(at) => b.pass_time(at.saturating_sub(b.now.as_millis() / 1000)),
        Input::NewIp => b.crash_ip(),
    }
}

/// All states, but for their expiry, which the arena may know less exactly.
fn states(b: &Bench) -> Vec<String> {
    let mut all: Vec<String> =
        b.filter.states().map(|s| format!("{:?}", State { expires: Instant(0), ..*s })).collect();
    all.sort();
    all
}

/// A filter that is asked about every packet, and what it knows after each turn.
fn bench() -> Bench {
    let mut b = Bench::new(RULES);
    b.grants = None;
    b
}

#[test]
fn a_turn_counts_whole_or_not_at_all_wherever_the_filter_dies() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<String>().is_none_or(|s| s != FUSE_BURNT) {
            usual(info);
        }
    }));
    let story = story();
    let mut b = bench();
    let mut after = vec![states(&b)];
    for input in &story {
        give(&mut b, input);
        after.push(states(&b));
    }
    let mut deaths = 0;
    for steps in 1.. {
        let mut b = bench();
        b.filter.fuse().light(steps);
        let mut done = 0;
        let died = catch_unwind(AssertUnwindSafe(|| {
            for input in &story {
                give(&mut b, input);
                done += 1;
            }
        }));
        if died.is_ok() {
            break;
        }
        deaths += 1;
        b.filter.fuse().light(0);
        b.out.drain().for_each(drop);
        b.reopen();
        let found = states(&b);
        assert!(found == after[done] || found == after[done + 1], "step {steps}, turn {done}: {found:#?}");
        // Its successor hears again what was not answered, and the end is the same.
        b.learn(RULES);
        story[done..].iter().for_each(|input| give(&mut b, input));
        assert_eq!(states(&b), after[story.len()], "step {steps}, turn {done}");
    }
    assert!(deaths > 300, "only {deaths} accesses");
}
