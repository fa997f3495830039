//! Bytes through two whole stacks.

use eft_messages::Peer;
use eft_sim::simulation::Settings;
use eft_sim::{Conditions, Faults, Simulation};
use std::time::Duration;

const NO_UDP: &str = include_str!("no-udp.toml");

fn settings() -> Settings {
    Settings { topology: NO_UDP.to_string(), ..Settings::default() }
}

/// Streams of these lengths, to the end.
fn transfer(seed: u64, settings: Settings, streams: usize, up: u64, down: u64) -> Simulation {
    let faults = settings.faults.clone();
    let mut s = Simulation::new(seed, Settings { faults: Faults::default(), ..settings });
    s.serve(up, down, 0);
    s.faults = faults;
    for _ in 0..streams {
        s.stream(up, down, 0);
    }
    s.run(Duration::from_secs(600), |s| {
        s.applications.iter().all(|a| a.streams.len() == streams && a.is_done())
    });
    s
}

#[test]
fn a_clean_wire_carries_both_ways_without_a_retransmission() {
    for seed in 0..6 {
        let s = transfer(seed, settings(), 2, 2_000_000, 3_000_000);
        assert_eq!(s.total(Peer::Tcp, "retransmitted_segments"), 0, "seed {seed}");
    }
}
