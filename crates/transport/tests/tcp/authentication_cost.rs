//! What TCP-AO costs: streams between two engines with and without keys, in turns. It is run by hand, in a release build:
//!
//! `cargo test --release -p eft-transport --test tcp -- --ignored --nocapture what_keys_cost`

use crate::app::App;
use crate::authentication::key;
use crate::script::PORT;
use crate::streams::{plan, run_to_end};
use crate::world::{Conditions, World};
use eft_channel::socket::signature_keys::algorithm;
use eft_channel::socket::{AuthenticationWishes, Opt, SignatureKey};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

const BYTES: u64 = 32 << 20;
const ROUNDS: usize = 11;

/// What this thread has used of a CPU.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Time of a stream, and the packets that both ends sent.
fn stream(by: Option<u8>, segment_max: u32) -> (Duration, u64) {
    let mut world = World::new(1, Conditions { segment_max, ..Conditions::default() });
    if let Some(algorithm) = by {
        let key = SignatureKey { algorithm, ..key(1) };
        world.sides[0].app.keys = vec![SignatureKey { send_id: 101, receive_id: 1, ..key }];
        world.sides[1].app.keys = vec![key];
        let mut first = AuthenticationWishes::default();
        first.choose(Some(101), Some(1));
        world.sides[0].app.options = vec![(Opt::Authentication, first.word())];
    }
    stream_in(world)
}

/// Time of a stream through a world, and the packets that both ends sent.
pub fn stream_in(mut world: World) -> (Duration, u64) {
    App::listen(&mut world, 1, PORT, 16, plan(0, BYTES));
    App::connect(&mut world, 0, PORT, plan(BYTES, 0));
    let begun = cpu_time();
    run_to_end(&mut world);
    (cpu_time() - begun, world.sides.iter().map(|side| side.sends).sum())
}

#[test]
#[ignore = "a measurement"]
fn what_keys_cost() {
    let ways = [
        ("no keys, the device cuts", None, 65_000),
        ("no keys", None, 0),
        ("HMAC-SHA1", Some(algorithm::HMAC_SHA1), 0),
        ("AES-CMAC", Some(algorithm::AES_CMAC), 0),
    ];
    let mut times: [Vec<Duration>; 4] = Default::default();
    let mut packets = [0; 4];
    for _ in 0..ROUNDS {
        for (i, (_, by, segment_max)) in ways.into_iter().enumerate() {
            let (time, sent) = stream(by, segment_max);
            times[i].push(time);
            packets[i] = sent;
        }
    }
    let medians = times.map(|mut of| {
        of.sort();
        of[ROUNDS / 2]
    });
    for (i, (name, ..)) in ways.into_iter().enumerate() {
        let each = medians[i].as_nanos() as u64 / packets[i];
        let ratio = medians[i].as_secs_f64() / medians[1].as_secs_f64();
        println!("{name}: {:?}, {} packets, {each} ns each, {ratio:.2} of no keys", medians[i], packets[i]);
    }
}
