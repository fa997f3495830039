//! What accurate ECN costs: streams between two engines without ECN, with that of RFC 3168, and with accurate ECN and its option, in
//! turns. It is run by hand, in a release build:
//!
//! `cargo test --release -p eft-transport --test tcp -- --ignored --nocapture what_accurate_ecn_costs`

use crate::authentication_cost::stream_in;
use crate::marks::configure;
use crate::world::{Conditions, World};
use std::time::Duration;

const ROUNDS: usize = 11;

/// Time of a stream in segments of the wire, and the packets that both ends sent.
fn stream(setting: &str) -> (Duration, u64) {
    let mut world = World::new(1, Conditions { segment_max: 0, ..Conditions::default() });
    (0..2).for_each(|side| configure(&mut world, side, setting));
    stream_in(world)
}

#[test]
#[ignore = "a measurement"]
fn what_accurate_ecn_costs() {
    let settings = ["off", "ask", "accurate"];
    let mut times: [Vec<Duration>; 3] = Default::default();
    let mut packets = 0;
    for _ in 0..ROUNDS {
        for (of, setting) in times.iter_mut().zip(settings) {
            let (time, sent) = stream(setting);
            of.push(time);
            packets = sent;
        }
    }
    let medians = times.map(|mut of| {
        of.sort_unstable();
        of[ROUNDS / 2]
    });
    for (setting, time) in settings.iter().zip(medians) {
        let more = (time.as_secs_f64() - medians[0].as_secs_f64()) * 1e9 / packets as f64;
        println!(
            "{setting}: {time:?}, {:.3} of none, {more:.0} ns a packet more",
            time.as_secs_f64() / medians[0].as_secs_f64()
        );
    }
}
