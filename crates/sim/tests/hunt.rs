//! A thousand scenarios of the hunt; more of them by hand: `eft sim hunt --first 1000 --seeds 100000`.

use eft_sim::hunt::{Hunted, Scenario};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const SEEDS: u64 = 1000;

#[test]
fn a_thousand_scenarios_end_well() {
    let (next, all) = (AtomicU64::new(0), Mutex::new(Hunted::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= SEEDS {
                return;
            }
            let hunted = Scenario::draw(seed)
                .run()
                .unwrap_or_else(|why| panic!("{why}\nagain: eft sim hunt --first {seed} --seeds 1"));
            *all.lock().unwrap() += hunted;
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let all = all.into_inner().unwrap();
    assert!(
        all.deaths > 1000
            && all.burnt > 200
            && all.injected > 200
            && all.lost > 200
            && all.hangs > 200
            && all.hostile > 500,
        "{all:?}"
    );
}
