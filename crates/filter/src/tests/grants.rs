//! Grants: the same packets pass as if the filter were asked about each.

use super::bench::{Bench, THEM, US};
use super::meaning::packet;
use crate::rule::Packet;
use crate::{Counter, ToIp};
use eft_base::Random;
use eft_base::wire::{TCP_ACK, TCP_FIN, TCP_PSH, TCP_RST, TCP_SYN};
use eft_component::{Component, Configure};
use eft_messages::ComponentId;
use eft_messages::filter::FilterToIp;

const STATEFUL: &str = "block all\npass in proto tcp to port 80 keep state\npass out keep state";

fn open(b: &mut Bench) {
    for (from_us, flags) in [(false, TCP_SYN), (true, TCP_SYN | TCP_ACK), (false, TCP_ACK)] {
        assert!(b.tcp(from_us, flags));
    }
}

#[test]
fn an_established_connection_is_asked_about_once_and_counted_always() {
    for rules in [STATEFUL, "", "pass all"] {
        let mut b = Bench::new(rules);
        open(&mut b);
        let asked = b.count(Counter::Asked);
        for _ in 0..100 {
            assert!(b.tcp(true, TCP_ACK | TCP_PSH) && b.tcp(false, TCP_ACK));
        }
        assert_eq!(b.count(Counter::Asked), asked, "{rules}");
        b.report();
        assert_eq!(b.count(Counter::Passed), 203, "{rules}");
        assert_eq!(b.count(Counter::StateHits), if rules == STATEFUL { 202 } else { 0 }, "{rules}");
    }
}

#[test]
fn the_filter_is_asked_about_packets_that_change_a_connection() {
    let mut b = Bench::new(STATEFUL);
    open(&mut b);
    for (from_us, flags) in
        [(true, TCP_FIN | TCP_ACK), (false, TCP_ACK), (false, TCP_FIN | TCP_ACK), (true, TCP_ACK)]
    {
        let asked = b.count(Counter::Asked);
        assert!(b.tcp(from_us, flags));
        assert_eq!(b.count(Counter::Asked), asked + 1, "{flags:#x}");
    }
    b.pass_time(91);
    assert!(!b.tcp(false, TCP_ACK));
}

#[test]
fn new_rules_take_effect_at_once_for_connections_without_a_state() {
    let mut b = Bench::new("pass all");
    open(&mut b);
    assert!(b.tcp(false, TCP_ACK));
    b.configure("filter.load:1", "block in proto tcp to port 80");
    assert!(!b.tcp(false, TCP_ACK));
    b.configure("interfaces", "0 eft7\n");
    b.configure("filter.load:2", "block on eft8");
    assert!(b.tcp(false, TCP_ACK) && b.tcp(false, TCP_ACK));
    b.configure("interfaces", "0 eft8\n");
    assert!(!b.tcp(false, TCP_ACK), "another interface is meant now");
}

#[test]
fn rules_that_tell_ordinary_packets_apart_are_asked_about_each() {
    for rules in ["block out proto tcp from port 80", "block proto tcp flags P/P"] {
        let mut b = Bench::new(rules);
        assert!(b.tcp(false, TCP_ACK));
        assert!(!b.tcp(true, TCP_ACK | TCP_PSH), "{rules}");
        assert_eq!(b.count(Counter::Granted), 0, "{rules}");
    }
}

#[test]
fn a_busy_datagram_conversation_outlives_its_time_out_and_then_expires_by_it() {
    let mut b = Bench::new("block all\npass out keep state");
    let (out, back) = (packet(false, 17, (US, 5000), (THEM, 53)), packet(true, 17, (THEM, 53), (US, 5000)));
    for p in [out, back, out, back] {
        assert_eq!(b.ask(&p), Some(true));
    }
    for _ in 0..20 {
        b.pass_time(20);
        assert_eq!(b.ask(&back), Some(true));
    }
    assert!(b.count(Counter::Asked) < 15);
    b.pass_time(59);
    assert_eq!(b.ask(&back), Some(true));
    b.pass_time(61);
    assert_eq!(b.ask(&back), Some(false));
}

#[test]
fn a_crash_ends_no_connection_that_was_used_by_a_grant() {
    type Crash = fn(&mut Bench);
    let crashes: [Crash; 2] = [|b| b.crash("block all\npass out keep state"), Bench::crash_ip];
    for crash in crashes {
        let mut b = Bench::new("block all\npass out keep state");
        let (out, back) =
            (packet(false, 17, (US, 5000), (THEM, 53)), packet(true, 17, (THEM, 53), (US, 5000)));
        for p in [out, back, out, back] {
            assert_eq!(b.ask(&p), Some(true));
        }
        b.now += std::time::Duration::from_secs(59);
        assert_eq!(b.ask(&back), Some(true));
        b.now += std::time::Duration::from_secs(30);
        crash(&mut b);
        b.pass_time(2);
        assert_eq!(b.ask(&back), Some(true), "it was used half a minute ago");
        b.pass_time(61);
        assert_eq!(b.ask(&back), Some(false));
    }
}

/// A random packet between two of a few ends.
fn any(random: &mut Random) -> Packet {
    let inbound = random.chance(0.5);
    let (us, them) = ((US, 80 + random.below(2) as u16), (THEM, 4000 + random.below(3) as u16));
    let (from, to) = if inbound { (them, us) } else { (us, them) };
    let flags =
        [TCP_SYN, TCP_SYN | TCP_ACK, TCP_ACK, TCP_ACK, TCP_ACK | TCP_PSH, TCP_FIN | TCP_ACK, TCP_RST, 0];
    let protocol = if random.chance(0.7) { 6 } else { 17 };
    Packet { tcp_flags: flags[random.below(8) as usize], ..packet(inbound, protocol, from, to) }
}

#[test]
fn with_grants_and_without_the_same_passes_at_any_time() {
    let rules = [
        STATEFUL,
        "",
        "pass keep state flags any",
        "block in proto udp",
        "block all\npass flags P/P keep state",
    ];
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let (mut b, mut plain) = (Bench::new(rules[0]), Bench::new(rules[0]));
        plain.grants = None;
        for step in 0..1500 {
            let p = any(&mut random);
            let said = [b.ask(&p), plain.ask(&p)];
            assert_eq!(said[0], said[1], "seed {seed}, step {step}: {p:?}");
            if random.chance(0.1) {
                let seconds = [1, 20, 50, 100, 900][random.below(5) as usize];
                b.pass_time(seconds);
                plain.pass_time(seconds);
            }
            if random.chance(0.01) {
                let text = rules[random.below(5) as usize];
                b.configure("filter", text);
                plain.configure("filter", text);
            }
        }
        b.report();
        assert!(b.count(Counter::Asked) < plain.count(Counter::Asked));
        for counter in [Counter::Passed, Counter::Blocked, Counter::StateHits] {
            assert_eq!(
                b.count(counter),
                plain.count(counter),
                "seed {seed}: {}",
                crate::counters::COUNTERS[counter as usize]
            );
        }
    }
}

#[test]
fn a_filter_without_rules_and_states_says_that_everything_passes() {
    let all = || ToIp::ToIp(FilterToIp::PassAll {});
    let mut b = Bench::raw();
    let configure = |b: &mut Bench, key: &str, value: &str| {
        let event = Configure { key: key.into(), value: value.into() };
        b.with(|f, cx, out| f.event(cx, event, out));
        b.out.drain().collect::<Vec<_>>()
    };
    assert!(!configure(&mut b, "interfaces", "0 eft0\n").contains(&all()), "it knows no rules yet");
    let said = configure(&mut b, "filter", "");
    assert_eq!(said, [ToIp::ToIp(FilterToIp::RecallByRules {}), all()]);
    assert!(configure(&mut b, "interfaces", "0 eft1\n").ends_with(&[all()]));
    b.with(|f, cx, out| f.peer_reborn(cx, ComponentId::IP, out));
    assert_eq!(b.out.drain().collect::<Vec<_>>(), [all()], "a newborn ip is told, too");
    assert!(!configure(&mut b, "filter", "pass all").contains(&all()));
    configure(&mut b, "filter", STATEFUL);
    open(&mut b);
    // A connection has a state, and the filter is to see its end.
    assert!(!configure(&mut b, "filter", "").contains(&all()));
    for (from_us, flags) in [(true, TCP_RST), (false, TCP_RST)] {
        b.tcp(from_us, flags);
    }
    b.now += std::time::Duration::from_secs(200);
    b.with(|f, cx, out| f.expire(cx, out));
    assert!(b.out.drain().any(|o| o == all()));
    b.with(|f, cx, out| f.expire(cx, out));
    assert!(!b.out.drain().any(|o| o == all()), "it says so once");
}
