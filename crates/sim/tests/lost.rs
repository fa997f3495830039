//! Messages between servers that are lost: whoever waits for one asks again, and no buffer stays in use for ever.

use eft_component::fault::Fault;
use eft_messages::ComponentId;
use eft_sim::{Faults, Simulation, simulation::Settings};
use std::time::Duration;

/// Longer than it takes until a lost message is noticed, and a lost repetition of it.
const REST: Duration = Duration::from_secs(6);

fn assert_nothing_is_held(s: &Simulation) {
    for (side, stack) in s.stacks.iter().enumerate() {
        let held = stack.counter(ComponentId::nic(0), "held");
        let sending = stack.counter(ComponentId::IP, "transmissions");
        let asking = stack.counter(ComponentId::IP, "arrivals");
        assert_eq!((held, sending, asking), (0, 0, 0), "seed {}, side {side}: {}", s.seed, s.report("held"));
    }
}

/// Receipts that get lost hold buffers for two seconds at most, and none for ever.
#[test]
fn buffers_whose_receipts_are_lost_come_back() {
    let (mut lost, mut repeated) = (0, 0);
    for seed in 1600..1612 {
        let mut s = Simulation::new(seed, Settings::default());
        s.serve(500_000, 500_000, 0);
        s.faults = Faults {
            peers: vec![ComponentId::IP, ComponentId::nic(0), ComponentId::TCP],
            kinds: vec![Fault::Leak],
            inject: 0.01,
            ..Faults::default()
        };
        s.stream(500_000, 500_000, 0);
        s.run(Duration::from_secs(60), |s| {
            s.applications.iter().all(|a| a.streams.len() == 1 && a.is_done())
        });
        let peers = std::mem::take(&mut s.faults).peers;
        s.run_for(REST);
        lost += peers.iter().map(|p| s.total(*p, "faults_injected")).sum::<u64>();
        repeated += s.total(ComponentId::nic(0), "repeated_requests");
        assert_nothing_is_held(&s);
    }
    assert!(lost > 20 && repeated > 5, "only {lost} were lost, {repeated} repeated by the nics");
}
