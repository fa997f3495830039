//! Verdicts, states, operators' requests, and what survives a crash.

use super::bench::{Bench, STATES, THEM, US};
use super::meaning::packet;
use crate::rule::{Packet, Quoted};
use crate::state::State;
use crate::{Counter, ToIp};
use eft_base::wire::{TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};
use eft_base::{Instant, Random, RequestId};
use eft_component::{Answer, Component, Configure};
use eft_messages::ComponentId;
use eft_messages::filter::{FilterToIp, IpToFilter};
use std::time::Duration;

const STATEFUL: &str = "block all\npass in on eft0 proto tcp to port 80 keep state\npass out keep state";

#[test]
fn a_connection_lives_by_its_state() {
    let mut b = Bench::new(STATEFUL);
    assert!(!b.tcp(true, TCP_ACK), "nothing began");
    assert!(!b.tcp(false, TCP_ACK));
    assert!(b.tcp(false, TCP_SYN));
    assert!(b.tcp(true, TCP_SYN | TCP_ACK));
    assert!(b.tcp(false, TCP_ACK));
    // New rules do not end existing connections.
    b.configure("filter", "block all");
    assert!(b.tcp(true, TCP_ACK));
    b.pass_time(80_000);
    assert!(b.tcp(false, TCP_ACK), "established connections may idle for a day");
    assert_eq!(
        b.configure("filter.show:states:1", "").unwrap(),
        "all tcp 10.77.0.2:80 <- 10.77.0.1:4000       ESTABLISHED:ESTABLISHED\n"
    );
    b.pass_time(86_401);
    assert!(!b.tcp(false, TCP_ACK));
    assert_eq!(b.filter.states().count(), 0);
}

#[test]
fn a_closed_connection_ends_soon_and_may_begin_again() {
    let mut b = Bench::new(STATEFUL);
    for (from_us, flags) in [
        (false, TCP_SYN),
        (true, TCP_SYN | TCP_ACK),
        (false, TCP_ACK),
        (true, TCP_FIN | TCP_ACK),
        (false, TCP_ACK),
        (false, TCP_FIN | TCP_ACK),
        (true, TCP_ACK),
    ] {
        assert!(b.tcp(from_us, flags));
    }
    assert!(b.tcp(false, TCP_SYN), "the same ports again");
    assert!(b.tcp(true, TCP_SYN | TCP_ACK));
    assert!(b.tcp(false, TCP_RST));
    b.pass_time(91);
    assert!(!b.tcp(false, TCP_ACK));
}

#[test]
fn a_half_open_connection_ends_after_half_a_minute() {
    let mut b = Bench::new(STATEFUL);
    b.tcp(false, TCP_SYN);
    b.tcp(true, TCP_SYN | TCP_ACK);
    b.pass_time(31);
    assert!(!b.tcp(false, TCP_ACK));
}

#[test]
fn udp_and_ping_replies_pass_by_state() {
    let mut b = Bench::new(STATEFUL);
    let query = packet(false, 17, (US, 5000), (THEM, 53));
    let reply = packet(true, 17, (THEM, 53), (US, 5000));
    assert_eq!(b.ask(&reply), Some(false));
    assert_eq!(b.ask(&query), Some(true));
    assert_eq!(b.ask(&reply), Some(true));
    assert_eq!(b.ask(&packet(true, 17, (THEM, 54), (US, 5000))), Some(false));
    b.pass_time(61);
    assert_eq!(b.ask(&reply), Some(false));

    let ping = packet(false, 1, (US, 8), (THEM, 0));
    assert_eq!(b.ask(&ping), Some(true));
    assert_eq!(b.ask(&packet(true, 1, (THEM, 0), (US, 0))), Some(true));
    assert_eq!(b.ask(&packet(true, 1, (THEM, 8), (US, 0))), Some(false), "they may not ask");
    assert_eq!(b.ask(&packet(true, 1, (THEM, 3), (US, 1))), Some(false), "errors need a rule");
}

/// An ICMP error of this kind from `router`, about a packet of this protocol.
fn error(kind: u16, router: &str, to: &str, protocol: u8, from: (&str, u16), dest: (&str, u16)) -> Packet {
    let quoted = Quoted {
        source: from.0.parse().unwrap(),
        destination: dest.0.parse().unwrap(),
        source_port: from.1,
        destination_port: dest.1,
        protocol,
    };
    Packet { quoted: Some(quoted), ..packet(to == US, 1, (router, kind), (to, 4)) }
}

#[test]
fn an_icmp_error_passes_only_with_the_state_of_the_packet_that_it_quotes() {
    const ROUTER: &str = "192.0.2.1";
    let mut b = Bench::new("block in all\npass out keep state");
    let ours = |kind| error(kind, ROUTER, US, 6, (US, 5000), (THEM, 443));
    assert_eq!(b.ask(&ours(3)), Some(false), "nothing was sent");
    assert_eq!(b.ask(&packet(false, 6, (US, 5000), (THEM, 443))), Some(true));
    for kind in [3, 11, 12] {
        assert_eq!(b.ask(&ours(kind)), Some(true), "{kind}");
    }
    assert_eq!(b.ask(&ours(5)), Some(false), "a redirect is not an error");
    assert_eq!(b.ask(&Packet { quoted: None, ..ours(3) }), Some(false), "truncated");
    let forged = [
        ("another port", error(3, ROUTER, US, 6, (US, 5001), (THEM, 443))),
        ("another host", error(3, ROUTER, US, 6, (US, 5000), (ROUTER, 443))),
        ("another protocol", error(3, ROUTER, US, 17, (US, 5000), (THEM, 443))),
        ("to somebody else", error(3, ROUTER, "10.77.0.3", 6, (US, 5000), (THEM, 443))),
        ("what the other end has not sent", error(3, ROUTER, THEM, 6, (THEM, 443), (US, 5000))),
        ("about an error", error(3, ROUTER, US, 1, (US, 3), (THEM, 3))),
    ];
    for (name, p) in forged {
        let p = Packet { inbound: true, ..p };
        assert_eq!(b.ask(&p), Some(false), "{name}");
    }
    assert_eq!(b.filter.states().count(), 1, "errors begin no states");
    // An error does not extend a state's life.
    b.pass_time(119);
    assert_eq!(b.ask(&ours(3)), Some(true));
    b.pass_time(2);
    assert_eq!(b.ask(&ours(3)), Some(false));
}

#[test]
fn an_icmp_error_of_ours_passes_with_the_state_of_the_packet_that_caused_it() {
    let mut b = Bench::new(
        "block all\npass in proto udp keep state\npass in proto icmp icmp-type echoreq keep state",
    );
    assert_eq!(b.ask(&packet(true, 17, (THEM, 4000), (US, 53))), Some(true));
    assert_eq!(b.ask(&error(3, US, THEM, 17, (THEM, 4000), (US, 53))), Some(true));
    assert_eq!(b.ask(&error(3, US, THEM, 17, (THEM, 4001), (US, 53))), Some(false));
    // An error about a query, and not about a reply that was never sent.
    assert_eq!(b.ask(&packet(true, 1, (THEM, 8), (US, 0))), Some(true));
    assert_eq!(b.ask(&error(11, US, THEM, 1, (THEM, 8), (US, 0))), Some(true));
    let about_reply = error(11, THEM, US, 1, (US, 0), (THEM, 0));
    assert_eq!(b.ask(&about_reply), Some(false));
    assert_eq!(b.ask(&packet(false, 1, (US, 0), (THEM, 0))), Some(true));
    assert_eq!(b.ask(&about_reply), Some(true));
}

#[test]
fn icmp6_has_queries_and_errors_of_its_own() {
    const OURS: &str = "fd77::2";
    const THEIRS: &str = "fd77::1";
    let mut b = Bench::new("block all\npass out inet6 keep state");
    let echo = |inbound: bool, from, to, kind| packet(inbound, 58, (from, kind), (to, 0));
    assert_eq!(b.ask(&echo(true, THEIRS, OURS, 129)), Some(false), "nobody asked");
    assert_eq!(b.ask(&echo(false, OURS, THEIRS, 128)), Some(true));
    assert_eq!(b.ask(&echo(true, THEIRS, OURS, 129)), Some(true));
    assert_eq!(b.ask(&echo(true, THEIRS, OURS, 128)), Some(false), "only the asked may reply");
    b.pass_time(21);
    assert_eq!(b.ask(&echo(true, THEIRS, OURS, 129)), Some(false));
    // Errors pass with the state of the packet that they quote.
    assert_eq!(b.ask(&packet(false, 17, (OURS, 5000), (THEIRS, 53))), Some(true));
    let error = |kind: u16, port: u16| {
        let quoted = Quoted {
            source: OURS.parse().unwrap(),
            destination: THEIRS.parse().unwrap(),
            source_port: port,
            destination_port: 53,
            protocol: 17,
        };
        Packet { quoted: Some(quoted), ..packet(true, 58, ("2001:db8::1", kind), (OURS, 0)) }
    };
    for kind in 1..=4 {
        assert_eq!(b.ask(&error(kind, 5000)), Some(true), "{kind}");
        assert_eq!(b.ask(&error(kind, 5001)), Some(false), "{kind}");
    }
    assert_eq!(b.ask(&error(137, 5000)), Some(false), "a redirect is not an error");
}

#[test]
fn a_quote_counts_for_the_question_that_it_belongs_to() {
    let mut b = Bench::new("block in all\npass out keep state");
    b.ask(&packet(false, 17, (US, 5000), (THEM, 53)));
    let quote = IpToFilter::Quote {
        request: RequestId { index: 8, generation: 9 },
        source: US.parse::<std::net::IpAddr>().unwrap().into(),
        destination: THEM.parse::<std::net::IpAddr>().unwrap().into(),
        source_port: 5000,
        destination_port: 53,
        protocol: 17,
    };
    b.with(|f, cx, out| f.receive(cx, ComponentId::IP, quote, out));
    assert_eq!(b.ask(&packet(true, 1, (THEM, 3), (US, 3))), Some(false), "it is another's");
}

#[test]
fn nothing_passes_before_the_first_rules() {
    let mut b = Bench::raw();
    let p = packet(true, 17, (THEM, 1), (US, 2));
    assert_eq!(b.ask(&p), None);
    b.configure("filter", "pass foo");
    assert!(b.filter.last_error().is_some());
    assert_eq!(b.ask(&p), None);
    let event = Configure { key: "filter".into(), value: Vec::new() };
    b.with(|f, cx, out| f.event(cx, event, out));
    let answers = b
        .out
        .items()
        .iter()
        .filter(|o| matches!(o, ToIp::ToIp(FilterToIp::Verdict { .. } | FilterToIp::Grant { .. })));
    assert_eq!(answers.count(), 2, "both are answered now");
}

#[test]
fn operators_load_and_show_rules() {
    let mut b = Bench::new("block in all");
    let bad = b.configure("filter.load:42", "pass all\npass in on\n").unwrap();
    assert_eq!(bad, "error: line 2, column 11: expected an interface's name, found end of line");
    assert_eq!(b.configure("filter.show:rules:1", "").unwrap(), "block drop in all\n", "unchanged");
    assert_eq!(b.configure("filter.load:43", "pass all # fine\n").unwrap(), "ok");
    assert_eq!(b.configure("filter.show:rules:2", "").unwrap(), "pass all\n");
    let event = Configure { key: "filter.load:44".into(), value: b"pass\n\xff".into() };
    b.with(|f, cx, out| f.event(cx, event, out));
    let ToIp::Answer(Answer { value, .. }) = b.out.drain().next().unwrap() else { panic!() };
    assert_eq!(value, b"error: line 2, column 1: expected UTF-8 text");
}

#[test]
fn interfaces_are_known_by_name() {
    let mut b = Bench::new("block on eft1\nblock on lo");
    let mut p = packet(true, 17, (THEM, 1), (US, 2));
    for (interface, pass) in [(0, true), (1, false), (255, false), (9, true)] {
        p.interface = interface;
        assert_eq!(b.ask(&p), Some(pass), "{interface}");
    }
}

#[test]
fn states_survive_a_crash() {
    let mut b = Bench::new(STATEFUL);
    b.tcp(false, TCP_SYN);
    b.tcp(true, TCP_SYN | TCP_ACK);
    b.tcp(false, TCP_ACK);
    b.ask(&packet(false, 17, (US, 5000), (THEM, 53)));
    let ungranted = |s: &State| State { granted: false, ..*s };
    let mut before: Vec<_> = b.filter.states().map(ungranted).collect();
    b.crash(STATEFUL);
    let mut after: Vec<_> = b.filter.states().copied().collect();
    before.sort_by_key(|s| s.flow.protocol);
    after.sort_by_key(|s| s.flow.protocol);
    assert_eq!(before, after);
    assert_eq!(b.count(Counter::StatesRecovered), 2);
    assert!(b.tcp(true, TCP_ACK));
    b.pass_time(100_000);
    assert_eq!(b.filter.states().count(), 0, "and they still end");
    b.crash(STATEFUL);
    assert_eq!(b.filter.states().count(), 0);
    assert_eq!(b.count(Counter::StatesDamaged), 0);
}

#[test]
fn a_damaged_arena_costs_only_the_damaged_states() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let mut b = Bench::new("pass keep state");
        for port in 0..40 {
            b.ask(&packet(false, 17, (US, 5000 + port), (THEM, 53)));
        }
        let hits = random.below(8);
        for _ in 0..hits {
            let at = 64 + random.below(b.arena.len() as u64 - 64) as usize;
            b.arena.write(at, &[random.next_u32() as u8]).unwrap();
        }
        b.crash("pass keep state");
        let states = b.filter.states().count() as u64;
        assert!(states >= 40 - hits && states <= 40, "seed {seed}: {states}");
        for port in 0..80 {
            let p = packet(false, 17, (US, 5000 + port), (THEM, 53));
            assert_eq!(b.ask(&p), Some(true), "seed {seed}");
        }
        // Wholly foreign bytes are no states at all.
        for i in 0..b.arena.len() {
            b.arena.write(i, &[random.next_u32() as u8]).unwrap();
        }
        b.crash("pass keep state");
        assert_eq!(b.filter.states().count(), 0, "seed {seed}");
    }
}

#[test]
fn a_flood_cannot_push_out_living_connections() {
    let mut b = Bench::new("pass in keep state\npass out keep state");
    b.tcp(false, TCP_SYN);
    b.tcp(true, TCP_SYN | TCP_ACK);
    b.tcp(false, TCP_ACK);
    for i in 0..10_000u32 {
        let a = std::net::Ipv4Addr::from_bits(0x0b00_0000 + i).to_string();
        assert_eq!(b.ask(&packet(true, 6, (&a, 1), (US, 80))), Some(true));
        assert!(b.filter.states().count() <= STATES);
    }
    assert!(b.count(Counter::StatesEvicted) > 0);
    b.configure("filter", "block all");
    assert!(b.tcp(false, TCP_ACK));
}

#[test]
fn the_table_agrees_with_a_plain_map() {
    use std::collections::HashMap;
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let mut b = Bench::new("pass proto udp keep state");
        let mut model: HashMap<(u16, u16), Instant> = HashMap::new();
        for _ in 0..2000 {
            let (x, y) = (random.below(6) as u16, random.below(6) as u16);
            let p = packet(false, 17, (US, x), (THEM, y));
            let known = model.get(&(x, y)).is_some_and(|e| *e > b.now);
            let hits = b.count(Counter::StateHits);
            assert_eq!(b.ask(&p), Some(true));
            assert_eq!(b.count(Counter::StateHits) - hits, known as u64, "seed {seed}");
            let lifetime = if known { 30 } else { 60 };
            model.insert((x, y), b.now + Duration::from_secs(lifetime));
            if random.chance(0.1) {
                b.pass_time(random.below(40));
            }
            if random.chance(0.01) {
                b.crash("pass proto udp keep state");
            }
        }
    }
}
