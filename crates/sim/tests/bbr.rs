//! BBR beside CUBIC, on a wire of 20 Mbit/s and 40 ms there and back: what losses cost, and how much waits before the bottleneck.

use eft_messages::ComponentId;
use eft_sim::simulation::Settings;
use eft_sim::{Conditions, Faults, Simulation};
use std::time::Duration;

const RATE: u64 = 2_500_000;
const DELAY: Duration = Duration::from_millis(20);
/// Bytes that the path holds.
const HELD: u64 = RATE * 40 / 1000;

fn settings(congestion: &'static str, loss: f64, queue: u64) -> Settings {
    Settings {
        conditions: Conditions { delay: DELAY, loss, rate: RATE, queue, cut: true, ..Conditions::default() },
        transport: vec![("congestion", congestion)],
        ..Settings::default()
    }
}

fn received(s: &Simulation) -> u64 {
    s.applications[1].streams.iter().map(|stream| stream.received).sum()
}

/// Sends so many bytes; returns the world, and bytes per second.
fn send(seed: u64, settings: Settings, bytes: u64) -> (Simulation, u64) {
    let mut s = Simulation::new(seed, settings);
    s.serve(bytes, 0, 0);
    let begun = s.now;
    s.stream(bytes, 0, 0);
    s.run(Duration::from_secs(3600), |s| s.applications.iter().all(|a| a.streams.len() == 1 && a.is_done()));
    let took = s.now.saturating_since(begun);
    (s, bytes * 1000 / took.as_millis() as u64)
}

#[test]
fn losses_do_not_slow_it_down() {
    for (loss, share, times) in [(0.01, 0.75, 2), (0.05, 0.45, 4)] {
        for seed in 1..4 {
            let (_, bbr) = send(seed, settings("bbr", loss, 4 * HELD), 10_000_000);
            let (_, cubic) = send(seed, settings("cubic", loss, 4 * HELD), 10_000_000);
            assert!(bbr as f64 > share * RATE as f64, "seed {seed}, loss {loss}: {bbr} of {RATE}");
            assert!(bbr > times * cubic, "seed {seed}, loss {loss}: {bbr}, CUBIC {cubic}");
        }
    }
}

/// Holes keep a ring of 1 MiB full, twice what the path and its queue hold: that is no want of data, and must not prolong the search
/// for the path's rate, in which most of what is sent is lost.
#[test]
fn a_full_ring_does_not_prolong_the_search() {
    const FAST: u64 = 12_500_000;
    for seed in 1..4 {
        let mut settings = settings("bbr", 0.05, FAST / 50);
        settings.conditions.delay = DELAY / 2;
        settings.conditions.rate = FAST;
        (settings.geometry.send_len, settings.geometry.receive_len) = (1 << 20, 1 << 22);
        let (s, rate) = send(seed, settings, 20_000_000);
        let again = s.total(ComponentId::TCP, "retransmitted_bytes");
        assert!(again < 2_400_000, "seed {seed}: {again} bytes were sent again at {rate} a second");
    }
}

/// On half the delay, so that not the receiver's buffer of 256 KiB bounds what CUBIC has in flight.
#[test]
fn little_waits_before_the_bottleneck() {
    let held = HELD / 2;
    for seed in 1..4 {
        let of = |congestion| {
            let mut settings = settings(congestion, 0.0, 20 * held);
            settings.conditions.delay = DELAY / 2;
            let mut s = Simulation::new(seed, settings);
            s.serve(40_000_000, 0, 0);
            s.stream(40_000_000, 0, 0);
            // The search for the path's rate fills the queue for a moment.
            s.run(Duration::from_secs(60), |s| received(s) > 8_000_000);
            s.link.most_waiting = 0;
            s.run(Duration::from_secs(60), |s| received(s) > 24_000_000);
            s.link.most_waiting
        };
        let (bbr, cubic) = (of("bbr"), of("cubic"));
        // Twice what the path holds may be in flight, and what acknowledgments that come together need.
        assert!(bbr < held * 2 && cubic > 2 * bbr, "seed {seed}: {bbr} of {held}, CUBIC {cubic}");
    }
}

#[test]
fn a_clean_path_is_used_as_well_as_by_cubic() {
    for seed in 1..4 {
        let (s, bbr) = send(seed, settings("bbr", 0.0, 2 * HELD), 20_000_000);
        assert!(bbr > RATE * 4 / 5, "seed {seed}: {bbr} of {RATE}");
        assert_eq!(s.total(ComponentId::TCP, "retransmit_timeouts"), 0, "seed {seed}");
    }
}

/// What was known of the path is found again, and every byte arrives.
#[test]
fn a_connection_goes_on_after_the_death_of_tcp() {
    for seed in 1..4 {
        let mut s = Simulation::new(seed, settings("bbr", 0.01, 4 * HELD));
        s.serve(8_000_000, 0, 0);
        s.faults = Faults {
            peers: vec![ComponentId::TCP],
            crash: 0.0005,
            downtime: Duration::from_millis(2),
            one_at_a_time: true,
            ..Faults::default()
        };
        s.stream(8_000_000, 0, 0);
        s.run(Duration::from_secs(600), |s| {
            s.applications.iter().all(|a| a.streams.len() == 1 && a.is_done())
        });
        assert!(s.stacks[0].crashes > 0, "seed {seed}: none died");
    }
}
