//! Whole stacks whose servers die in the middle of what they do: at an access of a block, a write of a page, a store of the
//! commit, before an effect or a wake; in between, of one and of two components at once. Every byte is compared.

use eft_messages::ComponentId;
use eft_sim::simulation::Settings;
use eft_sim::{Conditions, Faults, Simulation};
use std::time::Duration;

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
    let downtime = Duration::from_millis(2);
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

const PEERS: [ComponentId; 5] =
    [ComponentId::IP, ComponentId::FILTER, ComponentId::nic(0), ComponentId::TCP, ComponentId::UDP];

#[test]
fn streams_go_on_while_tcp_dies_in_the_middle_of_turns() {
    let downtime = Duration::from_millis(2);
    thousand(10_000, Faults { peers: vec![ComponentId::TCP], fuse: 0.02, downtime, ..Faults::default() });
}

#[test]
fn streams_go_on_while_anybody_dies_alone_or_with_another() {
    let faults = Faults {
        peers: PEERS.to_vec(),
        crash: 0.001,
        fuse: 0.02,
        together: 0.5,
        downtime: Duration::from_millis(2),
        ..Faults::default()
    };
    thousand(20_000, faults);
}
