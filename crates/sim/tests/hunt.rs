//! Long hunts, by hand: `EFT_SEEDS=1000..2000 cargo test -p eft-sim --test hunt -- --ignored`.

use eft_messages::ComponentId;
use eft_sim::simulation::Settings;
use eft_sim::{Conditions, Faults, Simulation};
use std::time::Duration;

fn seeds() -> std::ops::Range<u64> {
    let text = std::env::var("EFT_SEEDS").unwrap_or("0..100".into());
    let (a, b) = text.split_once("..").expect("EFT_SEEDS=FROM..TO");
    a.parse().expect("a number")..b.parse().expect("a number")
}

/// What does not happen on a good day.
fn is_odd(name: &str) -> bool {
    let words = ["drop", "refused", "full", "error", "retransm", "stale", "bad", "again", "resub", "no_"];
    words.iter().any(|w| name.contains(w))
}

#[test]
#[ignore = "long"]
fn hunt() {
    let mut found = Vec::new();
    for seed in seeds() {
        let mut r = eft_base::Random::new(seed);
        let mut settings = Settings { ..Settings::default() };
        let lossless = r.chance(0.5);
        settings.conditions.rate = [0, 50_000_000, 500_000_000, 2_000_000_000][r.below(4) as usize];
        settings.conditions.delay = Duration::from_micros(10 + r.below(1000));
        if !lossless {
            settings.conditions = Conditions {
                jitter: Duration::from_micros(r.below(300)),
                loss: 0.02,
                duplicate: 0.02,
                corrupt: 0.01,
                cut: r.chance(0.5),
                ..settings.conditions
            };
        }
        let mut peers = vec![ComponentId::IP, ComponentId::FILTER, ComponentId::nic(0), ComponentId::UDP];
        if !lossless && r.chance(0.5) {
            peers.push(ComponentId::TCP);
        }
        if r.chance(0.3) {
            settings.device.segment_max = 0;
        }
        if r.chance(0.3) {
            settings.device.segment_max = 0;
            settings.device.checksum = false;
        }
        let faults = Faults {
            peers,
            crash: [0.0002, 0.001, 0.005][r.below(3) as usize],
            downtime: Duration::from_millis(3),
            one_at_a_time: lossless,
            ..Faults::default()
        };
        let mut s = Simulation::new(seed, settings.clone());
        let most = [2_000, 100_000, 1_000_000][r.below(3) as usize];
        let (up, down) = (r.below(most), r.below(most));
        let write_max = [0, 0, 64, 3000][r.below(4) as usize];
        s.serve(up, down, write_max);
        s.faults = faults;
        let n = 1 + r.below(10) as usize;
        for _ in 0..n {
            s.stream(up, down, write_max);
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            s.run(Duration::from_secs(600), |s| {
                s.applications.iter().all(|a| a.streams.len() == n && a.is_done())
            });
        }));
        let names = [
            "retransmitted_segments",
            "retransmit_timeouts",
            "fast_recoveries",
            "duplicate_segments",
            "duplicate_acks",
        ];
        let c: Vec<String> = s.stacks.iter().map(|k| k.counters(ComponentId::TCP, &names)).collect();
        if result.is_err() || (lossless && s.total(ComponentId::TCP, "retransmitted_segments") > 0) {
            found.push(seed);
            for (side, stack) in s.stacks.iter().enumerate() {
                for peer in stack.peers() {
                    let all = stack.all_counters(peer);
                    let odd = all.iter().filter(|(n, v)| *v > 0 && is_odd(n));
                    println!("  {side} {peer}: {:?}", odd.collect::<Vec<_>>());
                }
            }
            println!(
                "seed {seed}: lossless {lossless} failed {} {:?} crash {} cond {:?} seg {} n {n} {up} {down}\n  {c:?}",
                result.is_err(),
                s.faults.peers,
                s.faults.crash,
                settings.conditions,
                settings.device.segment_max
            );
        }
    }
    assert!(found.is_empty(), "seeds {found:?}");
}
