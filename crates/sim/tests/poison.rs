//! Inputs that kill the server that handles them: they end at most their own connection, and the server works on.

use eft_base::Endpoint;
use eft_channel::Segment;
use eft_messages::ComponentId;
use eft_record::file;
use eft_record::recording::{Cause, End};
use eft_record::replay::{Conductor, Failure};
use eft_sim::simulation::Settings;
use eft_sim::{Datagrams, Simulation};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// Three streams; tcp dies of some bytes of the second.
fn poisoned_stream(seed: u64, kills: bool) -> Simulation {
    let mut s = Simulation::new(seed, Settings::default());
    s.serve(300_000, 300_000, 0);
    s.faults.downtime = Duration::from_millis(1);
    (0..3).for_each(|_| s.stream(300_000, 300_000, 0));
    s.run(Duration::from_secs(60), |s| {
        s.applications[1].streams.len() == 3 && s.applications[1].streams.iter().all(|t| t.received > 0)
    });
    let poison = s.applications[1].streams[1].expected(40_000, 16).expect("it has begun");
    if kills {
        s.stacks[1].poison(poison);
    }
    s.run(Duration::from_secs(600), |s| {
        s.applications
            .iter()
            .all(|a| a.streams.iter().filter(|t| t.is_done()).count() >= if kills { 2 } else { 3 })
            && (!kills || s.applications[1].streams[1].error != 0 || s.applications[1].streams[1].is_done())
    });
    s
}

#[test]
fn a_segment_that_kills_tcp_each_time_ends_its_own_connection_at_most() {
    let mut deaths = 0;
    for seed in 2000..2030 {
        let s = poisoned_stream(seed, true);
        let stack = &s.stacks[1];
        deaths += stack.poisoned;
        // Two deaths for each of three segments, and one if the first came with others.
        assert!(stack.poisoned <= 8, "seed {seed}: {} deaths", stack.poisoned);
        assert_eq!(stack.crashes, stack.poisoned, "seed {seed}");
        let blamed = stack.counter(ComponentId::TCP, "blamed_inputs");
        assert_eq!(blamed, stack.poisoned, "seed {seed}: each death has an input");
        assert!(stack.poisoned < 2 || stack.counter(ComponentId::TCP, "drop_fatal") > 0, "seed {seed}");
        for side in 0..2 {
            let sound = s.applications[side].streams.iter().filter(|t| t.error == 0 && t.is_done()).count();
            assert!(sound >= 2, "seed {seed}: another connection was harmed");
        }
        // New connections are served.
        let mut s = s;
        s.stream(300_000, 300_000, 0);
        s.run(Duration::from_secs(60), |s| {
            let streams = &s.applications[0].streams;
            streams.len() == 4 && streams.last().is_some_and(|t| t.is_done())
        });
    }
    assert!(deaths >= 60, "only {deaths} deaths");
    assert_eq!(poisoned_stream(2000, false).stacks[1].crashes, 0);
}

/// A program sends one datagram again and again that kills udp, and another one sends others.
fn poisoned_datagrams(seed: u64, ipv6: bool) -> Simulation {
    let settings = Settings { ipv6, ..Settings::default() };
    let to = Some(Endpoint::new(settings.address(1).address, 53));
    let mut s = Simulation::new(seed, settings);
    s.faults.downtime = Duration::from_millis(1);
    s.applications[1].exchange(Datagrams { port: 53, ..Datagrams::default() });
    s.run(Duration::from_secs(5), |s| s.applications[1].datagrams.len() == 1);
    let sane = Datagrams { to, count: 1, len_max: 500, ..Datagrams::default() };
    let deadly = Datagrams { same: Some(1 << 40), ..sane };
    s.stacks[1].poison(deadly.payload(1 << 40));
    s.applications[0].exchange(sane);
    s.applications[0].exchange(deadly);
    for round in 2..=10 {
        // The wire and a death are over by then.
        s.run_for(Duration::from_millis(500));
        assert!(s.applications[0].datagrams.iter().all(|d| d.has_sent_all()), "seed {seed}, round {round}");
        s.applications[0].send_more(1);
    }
    s.run_for(Duration::from_secs(2));
    s
}

#[test]
fn a_datagram_that_kills_udp_each_time_is_dropped_and_others_come() {
    for (seed, ipv6) in (2200..2220).map(|seed| (seed, seed % 2 == 1)) {
        let s = poisoned_datagrams(seed, ipv6);
        let stack = &s.stacks[1];
        assert_eq!((stack.poisoned, stack.crashes), (2, 2), "seed {seed}");
        assert_eq!(stack.counter(ComponentId::UDP, "blamed_inputs"), 2, "seed {seed}");
        assert_eq!(stack.counter(ComponentId::UDP, "drop_fatal"), 8, "seed {seed}");
        let received = &s.applications[1].datagrams[0].received;
        // What came in the turns that did not end is lost.
        assert!(received.len() >= 8 && !received.contains(&(1 << 40)), "seed {seed}: {received:?}");
        assert_eq!(stack.counter(ComponentId::IP, "arrivals"), 0, "seed {seed}");
    }
}

/// Two programs send datagrams, one of them the same again and again. A server of a stack dies of messages with some bytes.
fn poisoned_messages(
    (seed, settings): (u64, Settings),
    (side, peer): (usize, ComponentId),
    poison: Vec<u8>,
) -> Simulation {
    let to = Some(Endpoint::new(settings.address(1).address, 53));
    let mut s = Simulation::new(seed, settings);
    s.faults.downtime = Duration::from_millis(1);
    s.applications[1].exchange(Datagrams { port: 53, ..Datagrams::default() });
    s.run(Duration::from_secs(5), |s| s.applications[1].datagrams.len() == 1);
    let of = |port, same| Datagrams { port, to, count: 1, same, ..OF_PAIR };
    s.stacks[side].poison_messages(peer, poison);
    s.applications[0].exchange(of(SANE, None));
    s.applications[0].exchange(of(DEADLY, Some(SAME)));
    for round in 2..=10 {
        // The wire and a death are over by then.
        s.run_for(Duration::from_millis(500));
        assert!(s.applications[0].datagrams.iter().all(|d| d.has_sent_all()), "seed {seed}, round {round}");
        s.applications[0].send_more(1);
    }
    s.run_for(Duration::from_secs(2));
    s
}

const SANE: u16 = 7001;
const DEADLY: u16 = 7002;
/// The number of the datagram that is sent again and again.
const SAME: u64 = 1 << 40;
const OF_PAIR: Datagrams =
    Datagrams { port: 0, to: None, count: 0, len_max: 500, batch: 0, same: None, group: None };

#[test]
fn a_question_that_kills_the_filter_each_time_is_answered_and_others_are() {
    // Ports and protocol, as ip asks about them.
    let question = [DEADLY.to_le_bytes(), 53u16.to_le_bytes()].concat();
    let poison = [&question[..], &[17]].concat();
    for (seed, ipv6) in (2300..2320).map(|seed| (seed, seed % 2 == 1)) {
        let settings = Settings { ipv6, ..Settings::default() };
        let s = poisoned_messages((seed, settings), (1, ComponentId::FILTER), poison.clone());
        let stack = &s.stacks[1];
        assert_eq!((stack.poisoned, stack.crashes), (2, 2), "seed {seed}");
        assert_eq!(stack.counter(ComponentId::FILTER, "blamed_inputs"), 2, "seed {seed}");
        assert!(stack.counter(ComponentId::FILTER, "drop_fatal") >= 9, "seed {seed}");
        assert_eq!(stack.counter(ComponentId::IP, "arrivals"), 0, "seed {seed}: no packet waits for ever");
        let received = &s.applications[1].datagrams[0].received;
        assert_eq!(*received, (0..10).collect(), "seed {seed}: all others come");
    }
}

#[test]
fn a_packet_that_kills_ip_each_time_is_dropped_and_others_come() {
    for (seed, ipv6) in (2400..2420).map(|seed| (seed, seed % 2 == 1)) {
        let settings = Settings { ipv6, ..Settings::default() };
        let s = poisoned_messages((seed, settings), (1, ComponentId::IP), OF_PAIR.payload(SAME));
        let stack = &s.stacks[1];
        assert_eq!((stack.poisoned, stack.crashes), (2, 2), "seed {seed}");
        assert_eq!(stack.counter(ComponentId::IP, "blamed_inputs"), 2, "seed {seed}");
        assert!(stack.counter(ComponentId::IP, "drop_fatal") >= 8, "seed {seed}");
        assert_eq!(stack.counter(ComponentId::nic(0), "held"), 0, "seed {seed}: the nic has its buffers");
        let received = &s.applications[1].datagrams[0].received;
        assert!((0..10).all(|number| received.contains(&number)), "seed {seed}: {received:?}");
    }
}

/// Each time that the program sends it, it is another packet.
#[test]
fn a_packet_that_kills_the_ip_that_sends_it_is_dropped_and_others_leave() {
    for (seed, ipv6) in (2500..2520).map(|seed| (seed, seed % 2 == 1)) {
        let settings = Settings { ipv6, ..Settings::default() };
        let s = poisoned_messages((seed, settings), (0, ComponentId::IP), OF_PAIR.payload(SAME));
        let stack = &s.stacks[0];
        assert!((10..=20).contains(&stack.poisoned), "seed {seed}: {} deaths", stack.poisoned);
        assert_eq!(stack.counter(ComponentId::IP, "blamed_inputs"), stack.poisoned, "seed {seed}");
        assert_eq!(stack.crashes, stack.poisoned, "seed {seed}");
        assert_eq!(stack.counter(ComponentId::IP, "transmissions"), 0, "seed {seed}");
        let received = &s.applications[1].datagrams[0].received;
        assert!((0..10).all(|number| received.contains(&number)), "seed {seed}: {received:?}");
    }
}

/// A program sends to a neighbour that is not there, and another one sends others.
#[test]
fn a_timer_that_kills_ip_each_time_ends_its_neighbour_and_others_are_reached() {
    for (seed, ipv6) in (2600..2620).map(|seed| (seed, seed % 2 == 1)) {
        let settings = Settings { ipv6, ..Settings::default() };
        let (there, nobody) = (settings.address(1).address, nobody(&settings));
        let mut s = Simulation::new(seed, settings);
        s.faults.downtime = Duration::from_millis(1);
        s.applications[1].exchange(Datagrams { port: 53, ..Datagrams::default() });
        s.run(Duration::from_secs(5), |s| s.applications[1].datagrams.len() == 1);
        let of = |port, to| Datagrams { port, to: Some(Endpoint::new(to, 53)), count: 1, ..OF_PAIR };
        s.stacks[0].poison_timers(ComponentId::IP, "a timer of a neighbour");
        s.applications[0].exchange(of(SANE, there));
        s.applications[0].exchange(of(DEADLY, nobody));
        for round in 2..=10 {
            s.run_for(Duration::from_millis(500));
            assert!(
                s.applications[0].datagrams.iter().all(|d| d.has_sent_all()),
                "seed {seed}, round {round}"
            );
            s.applications[0].send_more(1);
        }
        s.run_for(Duration::from_secs(10));
        let stack = &s.stacks[0];
        assert_eq!((stack.poisoned, stack.crashes), (2, 2), "seed {seed}");
        assert_eq!(stack.counter(ComponentId::IP, "blamed_inputs"), 2, "seed {seed}");
        assert!(stack.counter(ComponentId::IP, "drop_fatal") > 0, "seed {seed}");
        assert_eq!(stack.counter(ComponentId::IP, "transmissions"), 0, "seed {seed}");
        let received = &s.applications[1].datagrams[0].received;
        assert_eq!(*received, (0..10).collect(), "seed {seed}");
    }
}

/// An address on the link that no host has.
fn nobody(settings: &Settings) -> IpAddr {
    match settings.address(1).address {
        IpAddr::V4(address) => (address | Ipv4Addr::new(0, 0, 0, 64)).into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() | 64).into(),
    }
}

/// The states of two flows end, again and again.
#[test]
fn a_state_whose_end_kills_the_filter_each_time_stays_and_others_end() {
    for seed in 2700..2710 {
        let settings = Settings::default();
        let to = Some(Endpoint::new(settings.address(1).address, 53));
        let mut s = Simulation::new(seed, settings);
        s.faults.downtime = Duration::from_millis(1);
        s.applications[1].exchange(Datagrams { port: 53, ..Datagrams::default() });
        s.run(Duration::from_secs(5), |s| s.applications[1].datagrams.len() == 1);
        for port in [SANE, DEADLY] {
            s.applications[0].exchange(Datagrams { port, to, count: 1, ..OF_PAIR });
        }
        s.run_for(Duration::from_secs(2));
        s.stacks[1].poison_timers(ComponentId::FILTER, "a timer");
        s.run_for(Duration::from_secs(600));
        let stack = &s.stacks[1];
        assert_eq!((stack.poisoned, stack.crashes), (2, 2), "seed {seed}");
        assert_eq!(stack.counter(ComponentId::FILTER, "blamed_inputs"), 2, "seed {seed}");
        // One in each sweep from then on.
        assert!(stack.counter(ComponentId::FILTER, "drop_fatal") > 100, "seed {seed}");
        assert_eq!(stack.counter(ComponentId::FILTER, "states"), 1, "seed {seed}: the other has ended");
        // New flows pass.
        s.applications[0].exchange(Datagrams { port: 7003, to, count: 1, ..OF_PAIR });
        s.applications[0].send_more(1);
        s.run_for(Duration::from_secs(2));
        assert_eq!(s.applications[1].datagrams[0].received.len(), 2, "seed {seed}");
    }
}

/// Bytes of calls after which a life that follows a failure is no longer recorded, as in `eft up`.
const RECORDED_MAX: usize = 16 << 20;

/// A stream whose bytes kill tcp after twice as many as a recording holds.
fn poisoned_late(seed: u64) -> Simulation {
    let settings = Settings { record: true, record_max: RECORDED_MAX, ..Settings::default() };
    let mut s = Simulation::new(seed, settings);
    s.serve(40_000_000, 1_000, 0);
    s.faults.downtime = Duration::from_millis(1);
    s.stream(40_000_000, 1_000, 0);
    let received = |s: &Simulation| s.applications[1].streams.first().map_or(0, |t| t.received as usize);
    s.run(Duration::from_secs(60), |s| received(s) > 2 * RECORDED_MAX);
    let poison = s.applications[1].streams[0].expected(200_000, 16).expect("it has begun");
    s.stacks[1].poison(poison);
    s.run(Duration::from_secs(600), |s| {
        let stream = &s.applications[1].streams[0];
        stream.error != 0 || stream.is_done()
    });
    s
}

/// The input that killed is in the recording, however much came before.
#[test]
fn an_input_that_kills_long_after_the_recording_was_full_kills_in_its_replay() {
    let (mut alone, mut dropped) = (0, 0);
    for seed in 2100..2104 {
        let s = poisoned_late(seed);
        let stack = &s.stacks[1];
        dropped += stack.counter(ComponentId::TCP, "drop_fatal");
        for life in stack.lives.iter().filter(|life| life.head.engine.peer() == ComponentId::TCP) {
            let recording = life.recording.borrow();
            let Some(last) = &recording.last else { continue };
            assert!(matches!(recording.end, End::Full(_)), "seed {seed}");
            let said = life.last_input(last);
            assert!(
                said.starts_with("a message of ip: a segment of the connection of "),
                "seed {seed}: {said}"
            );
            let heap = |len| Some(Segment::heap(len));
            let call: Conductor = &mut |_, call| call();
            assert_eq!(life.last_call(last, heap, Some(stack.poisoner()), call), Ok(()), "seed {seed}");
            // The input kills, and nothing else does.
            let outlived = life.last_call(last, heap, None, call);
            assert_eq!(outlived, Err(Failure::Outlived(Cause::Panic)), "seed {seed}");
            // So it does from a file.
            let read = file::from_bytes(&file::to_bytes(life, RECORDED_MAX).unwrap()).unwrap();
            let last = read.recording.borrow().last.clone().expect("it is in the file");
            assert_eq!(read.last_call(&last, heap, Some(stack.poisoner()), call), Ok(()), "seed {seed}");
            alone += 1;
        }
    }
    assert!(alone == 4, "each first death came long after its recording was full: {alone}");
    assert!(dropped > 0, "no input killed twice and was dropped");
}
