//! Whole stacks whose servers die in the middle of what they do: at an access of a block, a write of a page, a store of the
//! commit, before a message, an effect or a wake; in between, of one and of two components at once. Every byte is compared.
//!
//! A short exchange is repeated with a death at each of these points, longer ones with deaths at points that a seed draws.

use eft_base::Endpoint;
use eft_messages::ComponentId;
use eft_sim::simulation::Settings;
use eft_sim::{Conditions, Datagrams, Faults, Simulation};
use std::time::Duration;

const DOWNTIME: Duration = Duration::from_millis(2);

/// Streams over a wire that may lose a little, while servers die as `faults` say. Returns the deaths, and those in the middle of
/// something.
fn streams(seed: u64, faults: &Faults) -> (u64, u64) {
    let conditions = Conditions {
        rate: 500_000_000,
        loss: if seed.is_multiple_of(2) { 0.0 } else { 0.01 },
        jitter: Duration::from_micros(seed % 3 * 100),
        ..Conditions::default()
    };
    let mut s = Simulation::new(seed, Settings { conditions, ..Settings::default() });
    let (up, down) = (s.random.below(60_000), s.random.below(60_000));
    s.serve(up, down, 0);
    s.faults = faults.clone();
    let count = 1 + s.random.below(3) as usize;
    (0..count).for_each(|_| s.stream(up, down, 0));
    s.run(Duration::from_secs(600), |s| {
        s.applications.iter().all(|a| a.streams.len() == count && a.is_done())
    });
    let sum = |of: fn(&eft_sim::Stack) -> u64| s.stacks.iter().map(of).sum();
    (sum(|stack| stack.crashes), sum(|stack| stack.burnt))
}

/// Streams that begin with data in the SYN, one after the other and two at a time, while tcp dies. Returns the deaths, and how
/// many SYNs had their data taken.
fn early_streams(seed: u64, faults: &Faults) -> (u64, u64) {
    let conditions =
        Conditions { loss: if seed.is_multiple_of(2) { 0.0 } else { 0.02 }, ..Conditions::default() };
    let ipv6 = seed.is_multiple_of(3);
    let mut s = Simulation::new(seed, Settings { conditions, ipv6, ..Settings::default() });
    let (up, down) = (1 + s.random.below(3000), s.random.below(3000));
    s.serve(up, down, 0);
    s.faults = faults.clone();
    for round in 1..=4 {
        s.stream_early(up, down);
        s.stream_early(up, down);
        s.run(Duration::from_secs(600), |s| {
            s.applications.iter().all(|a| a.streams.len() == 2 * round && a.is_done())
        });
    }
    (s.stacks.iter().map(|stack| stack.crashes).sum(), s.total(ComponentId::TCP, "fast_open_taken"))
}

#[test]
fn streams_begin_early_while_tcp_dies() {
    let downtime = DOWNTIME;
    let faults = Faults { peers: vec![ComponentId::TCP], fuse: 0.02, downtime, ..Faults::default() };
    let all = (30_000..30_200).map(|seed| early_streams(seed, &faults));
    let (deaths, taken) = all.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    assert!(deaths > 100 && taken > 100, "{deaths} deaths, data of {taken} SYNs taken");
}

fn thousand(first: u64, faults: Faults) {
    let deaths = (first..first + 1000).map(|seed| streams(seed, &faults));
    let (deaths, burnt) = deaths.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    assert!(
        burnt > 500 && deaths >= burnt,
        "only {burnt} deaths in the middle of something, {deaths} in all"
    );
}

const PEERS: [ComponentId; 6] = [
    ComponentId::IP,
    ComponentId::FILTER,
    ComponentId::nic(0),
    ComponentId::TCP,
    ComponentId::UDP,
    ComponentId::SOCKETS,
];

#[test]
fn streams_go_on_while_tcp_dies_in_the_middle_of_turns() {
    let downtime = DOWNTIME;
    thousand(10_000, Faults { peers: vec![ComponentId::TCP], fuse: 0.02, downtime, ..Faults::default() });
}

#[test]
fn streams_go_on_while_anybody_dies_alone_or_with_another() {
    let faults = Faults {
        peers: PEERS.to_vec(),
        crash: 0.001,
        fuse: 0.02,
        together: 0.5,
        downtime: DOWNTIME,
        ..Faults::default()
    };
    thousand(20_000, faults);
}

/// Two stacks, of which `side` loses `peer` at its `steps`-th access, and `other` at the same time.
fn doomed(side: usize, peer: ComponentId, steps: u64, other: Option<ComponentId>) -> Simulation {
    let mut s = Simulation::new(steps, Settings::default());
    let together = other.map_or(0.0, |_| 1.0);
    s.faults =
        Faults { peers: other.into_iter().collect(), together, downtime: DOWNTIME, ..Faults::default() };
    s.stacks[side].light(peer, steps);
    s
}

/// A connection is made, moves bytes both ways and ends. False: the server has fewer accesses than `steps`.
fn stream_outlives(side: usize, peer: ComponentId, steps: u64, other: Option<ComponentId>) -> bool {
    let mut s = doomed(side, peer, steps, other);
    s.serve(20_000, 30_000, 0);
    s.stream(20_000, 30_000, 0);
    s.run(Duration::from_secs(60), |s| s.applications.iter().all(|a| a.streams.len() == 1 && a.is_done()));
    s.run_for(Duration::from_secs(1));
    s.stacks[side].burnt == 1
}

/// Datagrams go from side 0 to side 1. Some may be lost, none is altered, and afterwards the same sockets carry all.
fn sockets_outlive(side: usize, steps: u64, other: Option<ComponentId>) -> bool {
    let mut s = doomed(side, ComponentId::UDP, steps, other);
    send_datagrams(&mut s);
    let burnt = s.stacks[side].burnt == 1;
    s.stacks[side].light(ComponentId::UDP, 0);
    all_arrive(&mut s);
    burnt
}

/// Two sockets, and 20 datagrams that are sent.
fn send_datagrams(s: &mut Simulation) {
    s.applications[1].exchange(Datagrams { port: 53, ..Datagrams::default() });
    s.run(Duration::from_secs(60), |s| s.applications[1].datagrams.len() == 1);
    let to = Some(Endpoint::new(Settings::default().address(1).address, 53));
    s.applications[0].exchange(Datagrams { port: 0, to, count: 20, len_max: 3000, ..Datagrams::default() });
    s.run(Duration::from_secs(60), |s| s.applications[0].datagrams.iter().any(|d| d.has_sent_all()));
    s.run_for(Duration::from_millis(200));
}

/// No server dies any more, and the same sockets carry everything.
fn all_arrive(s: &mut Simulation) {
    s.faults = Faults { downtime: DOWNTIME, ..Faults::default() };
    s.run_for(Duration::from_secs(20));
    let received = |s: &Simulation| s.applications[1].datagrams[0].received.len();
    let before = received(s);
    s.applications[0].send_more(20);
    s.run(Duration::from_secs(10), |s| received(s) == before + 20);
}

/// How many accesses there are to die at.
fn deaths(outlives: impl Fn(u64) -> bool) -> usize {
    (1..).take_while(|steps| outlives(*steps)).count()
}

#[test]
fn a_stream_survives_the_death_of_each_at_every_access() {
    for side in [0, 1] {
        for (peer, least) in [
            (ComponentId::TCP, 200),
            (ComponentId::IP, 30),
            (ComponentId::FILTER, 30),
            (ComponentId::nic(0), 10),
            (ComponentId::SOCKETS, 5),
        ] {
            let count = deaths(|steps| stream_outlives(side, peer, steps, None));
            assert!(count > least, "only {count} accesses of {peer} of side {side}");
        }
    }
}

/// The wire is lossless and reorders nothing, so a segment that is missing, or that is there twice, is a NIC's doing.
#[test]
fn a_nic_that_dies_loses_no_frame_that_it_had_read() {
    let (mut deaths, mut inherited) = (0, 0);
    for seed in 50_000..50_100 {
        let mut s = Simulation::new(seed, Settings::default());
        s.serve(0, 200_000, 0);
        s.faults =
            Faults { peers: vec![ComponentId::nic(0)], fuse: 0.02, downtime: DOWNTIME, ..Faults::default() };
        s.stream(0, 200_000, 0);
        s.run(Duration::from_secs(60), |s| {
            s.applications.iter().all(|a| a.streams.len() == 1 && a.is_done())
        });
        deaths += s.stacks.iter().map(|stack| stack.burnt).sum::<u64>();
        inherited += s.total(ComponentId::nic(0), "inherited");
        let holes = s.total(ComponentId::TCP, "out_of_order_segments");
        assert_eq!(holes, 0, "seed {seed}: {}", s.report("a hole"));
    }
    assert!(deaths > 50 && inherited > 10, "{deaths} deaths, {inherited} frames");
}

/// As [`stream_outlives`], for a server that dies in the middle of what it does, and whose successor dies at its `steps`-th access,
/// which is one of those with which it opens its arena at first.
fn stream_outlives_successor(peer: ComponentId, steps: u64) -> bool {
    let mut s = Simulation::new(steps, Settings::default());
    s.faults.downtime = DOWNTIME;
    s.serve(20_000, 30_000, 0);
    s.stream(20_000, 30_000, 0);
    s.run(Duration::from_secs(60), |s| s.applications[0].streams.iter().any(|stream| stream.sent > 0));
    s.stacks[0].light(peer, 40);
    s.run(Duration::from_secs(60), |s| s.stacks[0].burnt == 1);
    s.stacks[0].light(peer, steps);
    s.run(Duration::from_secs(60), |s| s.applications.iter().all(|a| a.streams.len() == 1 && a.is_done()));
    s.stacks[0].burnt == 2
}

#[test]
fn a_stream_survives_the_death_of_each_and_of_its_successor_at_every_access_of_its_beginning() {
    for peer in [ComponentId::TCP, ComponentId::IP, ComponentId::FILTER] {
        let count = (1..120).take_while(|steps| stream_outlives_successor(peer, *steps)).count();
        assert!(count > 30, "only {count} accesses of {peer}");
    }
}

/// As [`stream_outlives`], for two servers that die in the middle of what they do at about the same time.
fn stream_outlives_both(side: usize, steps: u64, (other, later): (ComponentId, u64)) -> bool {
    let mut s = doomed(side, ComponentId::TCP, steps, None);
    s.stacks[side].light(other, later);
    s.serve(20_000, 30_000, 0);
    s.stream(20_000, 30_000, 0);
    s.run(Duration::from_secs(60), |s| s.applications.iter().all(|a| a.streams.len() == 1 && a.is_done()));
    s.run_for(Duration::from_secs(1));
    s.stacks[side].burnt == 2
}

#[test]
fn a_stream_survives_two_deaths_in_the_middle_of_turns_at_once() {
    let others = [ComponentId::IP, ComponentId::FILTER, ComponentId::nic(0)];
    for side in [0, 1] {
        let both = |steps: &u64| {
            let other = others[*steps as usize % others.len()];
            stream_outlives_both(side, *steps, (other, 1 + steps / 10))
        };
        let count = (1..=200).filter(both).count();
        assert!(count > 150, "only {count} of side {side}");
    }
}

#[test]
fn a_stream_survives_the_death_of_tcp_at_every_access_together_with_another() {
    let others = [ComponentId::IP, ComponentId::FILTER, ComponentId::nic(0)];
    for side in [0, 1] {
        let with = |steps: u64| Some(others[steps as usize % others.len()]);
        let count = deaths(|steps| stream_outlives(side, ComponentId::TCP, steps, with(steps)));
        assert!(count > 200, "only {count} accesses of side {side}");
    }
}

#[test]
fn sockets_survive_the_death_of_udp_at_every_access_alone_or_with_another() {
    for side in [0, 1] {
        for other in [None, Some(ComponentId::IP)] {
            let count = deaths(|steps| sockets_outlive(side, steps, other));
            assert!(count > 50, "only {count} accesses of side {side}");
        }
    }
}

#[test]
fn sockets_go_on_while_udp_dies_in_the_middle_of_turns() {
    let (mut all, mut burnt) = (0, 0);
    for seed in 40_000..41_000 {
        let mut s = Simulation::new(seed, Settings::default());
        let peers = vec![ComponentId::UDP, ComponentId::UDP, ComponentId::IP, ComponentId::FILTER];
        s.faults = Faults { peers, fuse: 0.02, together: 0.3, downtime: DOWNTIME, ..Faults::default() };
        send_datagrams(&mut s);
        all += s.stacks.iter().map(|stack| stack.crashes).sum::<u64>();
        burnt += s.stacks.iter().map(|stack| stack.burnt).sum::<u64>();
        for side in 0..2 {
            PEERS.iter().for_each(|peer| s.stacks[side].light(*peer, 0));
        }
        all_arrive(&mut s);
    }
    assert!(burnt > 500 && all > burnt, "only {burnt} deaths in the middle of something, {all} in all");
}
