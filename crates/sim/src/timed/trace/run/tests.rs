use super::*;
use crate::hardware::PS_PER_MS;
use crate::timed::web::audience::Audience;
use crate::trace::Trace;
use crate::web::calibrated::Stack;
use crate::web::run::tests::{FULL, of, setting};
use eft_messages::ComponentId;

/// Ten milliseconds: two connections that close, one that stays, two requests at once, an answer larger than a ring.
const TRACE: &str = "eft-trace 1\n0 1 open\n100 1 120 500\n150 2 open\n200 1 1000 60000\n200 1 80 10\n300 2 120 2000000\n\
                     400 3 open\n500 3 262144 1\n3000 1 close\n3100 2 close\n4000 1 open\n4100 1 50 70\n5000 1 close\n10000 end\n";

fn replay(factor_milli: u64) -> Replay {
    Replay::new(Trace::parse(TRACE).unwrap(), factor_milli).unwrap()
}

fn ran<'a>(web: &'a Web, replay: &'a Replay, until_ms: u64) -> World<'a, Clients<'a>> {
    let mut world = world(web, replay, &setting(FULL), 1);
    world.advance(until_ms * PS_PER_MS);
    world
}

#[test]
fn every_request_gets_its_answer_and_connections_close() {
    let (web, replay) = (of(Stack::Eft, 3, 10), replay(1000));
    // Two repetitions, and time for what is on its way.
    let world = ran(&web, &replay, 20);
    let clients = &world.rest.load.clients;
    let all = replay.tally;
    let counts = clients.counts;
    assert_eq!((counts.asks, counts.failures), (2 * all.requests, 0));
    assert_eq!((counts.answers, counts.bytes), (2 * all.requests, 2 * all.answer_bytes));
    // The third connection is not closed, so it is not opened again.
    assert_eq!((counts.opens, counts.closed), (2 * all.opens - 1, 2 * all.closes));
    assert_eq!(clients.latencies().len() as u64, counts.answers);
    assert!(
        clients.latencies().iter().all(|ns| (10_000..10_000_000).contains(ns)),
        "{:?}",
        clients.latencies()
    );
    let program = &world.rest.load.program;
    assert_eq!((program.requests, program.written_bytes), (counts.answers, counts.bytes));
    for counter in ["resets_sent", "drop_no_socket"] {
        assert_eq!(world.rest.servers.stack.counter(ComponentId::TCP, counter), 0, "{counter}");
    }
}

#[test]
fn two_replays_are_the_same_to_the_bit() {
    let (web, replay) = (of(Stack::Eft, 3, 10), replay(1500));
    let told = || {
        let world = ran(&web, &replay, 15);
        (world.rest.load.clients.counts, world.rest.load.clients.latencies().to_vec())
    };
    assert_eq!(told(), told());
}

#[test]
fn a_factor_makes_it_faster_and_nothing_else() {
    let [one, two] = [1000, 2000].map(replay);
    assert_eq!(one.length_ps(), 10 * PS_PER_MS);
    assert_eq!(two.length_ps(), 5 * PS_PER_MS);
    assert_eq!(two.answers_per_second(), 2 * one.answers_per_second());
    let steps = one.tally.opens + one.tally.closes + one.tally.requests;
    assert_eq!(two.step(steps + 1), (5 * PS_PER_MS + 50_000_000, one.step(1).1));
    assert_eq!(Replay::new(Trace::parse(TRACE).unwrap(), 10_001), Err(super::super::TooFast));
    assert_eq!(Replay::new(Trace::parse(TRACE).unwrap(), 0), Err(super::super::TooFast));
}
