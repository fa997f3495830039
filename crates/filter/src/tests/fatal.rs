//! Inputs that kill the filter: each does so twice at most.

use super::bench::{Bench, THEM, US};
use super::meaning::packet;
use crate::Counter;
use crate::rule::{Packet, Quoted};
use eft_arena::docket::NAMING;
use eft_component::Component;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

const RULES: &str = "pass in keep state\npass out keep state";

/// Asks a filter that dies when it begins a state. `None`: it dies.
fn ask(b: &mut Bench, p: &Packet) -> Option<bool> {
    b.filter.fuse().light(NAMING + 1);
    let died = catch_unwind(AssertUnwindSafe(|| b.put(p))).is_err();
    b.filter.fuse().light(0);
    if died {
        b.out.drain().for_each(drop);
        b.reopen();
        b.learn(RULES);
        return None;
    }
    b.verdict(p)
}

fn datagram(port: u16) -> Packet {
    packet(true, 17, (THEM, port), (US, 53))
}

#[test]
fn a_question_that_kills_twice_is_answered_with_a_drop_and_others_are_answered() {
    let mut b = Bench::new(RULES);
    assert_eq!([(); 4].map(|()| ask(&mut b, &datagram(4000))), [None, None, Some(false), Some(false)]);
    assert_eq!((b.count(Counter::Blamed), b.count(Counter::DropFatal)), (2, 2));
    assert_eq!(b.ask(&datagram(4001)), Some(true));
}

/// Deaths by turns are none of one question twice in a row.
#[test]
fn questions_that_kill_once_are_answered() {
    let mut b = Bench::new(RULES);
    for _ in 0..3 {
        assert_eq!([4000, 4001].map(|port| ask(&mut b, &datagram(port))), [None, None]);
    }
    assert_eq!(b.ask(&datagram(4000)), Some(true));
    assert_eq!((b.count(Counter::Blamed), b.count(Counter::DropFatal)), (6, 0));
}

#[test]
fn what_a_question_asks_tells_it_from_others() {
    let quoted = |port| Quoted {
        source: US.parse().unwrap(),
        destination: THEM.parse().unwrap(),
        source_port: 53,
        destination_port: port,
        protocol: 17,
    };
    let error = |port| Packet { quoted: Some(quoted(port)), ..packet(true, 1, (THEM, 3), (US, 3)) };
    let all = [
        datagram(1),
        datagram(2),
        Packet { inbound: false, ..datagram(1) },
        Packet { interface: 1, ..datagram(1) },
        Packet { tcp_flags: 2, ..datagram(1) },
        packet(true, 17, (US, 1), (THEM, 53)),
        error(1),
        error(2),
    ];
    for condemned in all {
        let mut b = Bench::new(RULES);
        for _ in 0..2 {
            assert!(b.filter.enter(&condemned));
            b.reopen();
        }
        let refused: Vec<&Packet> = all.iter().filter(|p| !b.filter.enter(p)).collect();
        assert_eq!(refused, [&condemned]);
    }
}

/// Dies of new rules.
fn dies_of_rules(b: &mut Bench, rules: &str) {
    assert_eq!(b.with(|f, cx, out| f.load(cx, rules.as_bytes(), out)), Ok(()));
    b.out.drain().for_each(drop);
    b.reopen();
}

const DEADLY: &str = "pass in proto udp to port 9 keep state";

#[test]
fn rules_that_kill_twice_are_refused_and_those_before_stay_in_force() {
    let mut b = Bench::new(RULES);
    for _ in 0..2 {
        dies_of_rules(&mut b, DEADLY);
        b.learn(RULES);
    }
    let answer = b.configure("filter.load:3", DEADLY).unwrap();
    assert_eq!(answer, "error: these rules have killed two filters");
    assert_eq!((b.count(Counter::Blamed), b.count(Counter::DropFatal)), (2, 1));
    assert_eq!(b.ask(&datagram(4000)), Some(true));
    assert_eq!(b.configure("filter.load:4", "block in\npass out").unwrap(), "ok");
    assert_eq!(b.ask(&datagram(4001)), Some(false));
}

/// As rules that an earlier program had taken, and the next one dies of.
#[test]
fn a_filter_whose_only_rules_have_killed_twice_lets_only_connections_pass() {
    let mut b = Bench::new(RULES);
    assert_eq!(b.ask(&datagram(4000)), Some(true));
    b.reopen();
    for _ in 0..2 {
        dies_of_rules(&mut b, DEADLY);
    }
    b.put(&datagram(4001));
    b.configure("filter", DEADLY);
    assert_eq!(b.filter.last_error(), Some("these rules have killed two filters"));
    assert_eq!(b.count(Counter::Held), 1);
    assert_eq!([4001, 4002, 4000].map(|port| b.ask(&datagram(port))), [Some(false), Some(false), Some(true)]);
    assert_eq!(b.configure("filter.load:4", RULES).unwrap(), "ok");
    assert_eq!(b.ask(&datagram(4001)), Some(true));
}

/// The filter dies when it changes the state of a connection that has ended.
#[test]
fn a_state_whose_end_kills_twice_stays_and_others_end() {
    let mut b = Bench::new(RULES);
    assert_eq!([4000, 4001].map(|port| b.ask(&datagram(port))), [Some(true); 2]);
    b.now += Duration::from_secs(600);
    for _ in 0..2 {
        b.filter.fuse().light(NAMING + 1);
        let sweep = |b: &mut Bench| b.with(|f, cx, out| f.expire(cx, out));
        assert!(catch_unwind(AssertUnwindSafe(|| sweep(&mut b))).is_err());
        b.filter.fuse().light(0);
        b.out.drain().for_each(drop);
        b.reopen();
        b.learn(RULES);
    }
    b.pass_time(600);
    assert_eq!((b.filter.states().count(), b.count(Counter::DropFatal)), (1, 1));
    assert_eq!((b.count(Counter::StatesExpired), b.count(Counter::Blamed)), (1, 2));
    // It lets nothing pass.
    b.configure("filter.load:1", "block in");
    assert_eq!([4000, 4001].map(|port| b.ask(&datagram(port))), [Some(false); 2]);
}
