//! Inputs that kill the server that handles them: they end at most their own connection, and the server works on.

use eft_messages::ComponentId;
use eft_sim::Simulation;
use eft_sim::simulation::Settings;
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
