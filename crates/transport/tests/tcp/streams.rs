//! Byte streams arrive as they were sent, whatever the network and the machine do.

use crate::app::{App, Plan};
use crate::world::{Conditions, World};
use std::time::Duration;

pub const PORT: u16 = 80;

pub fn plan(send: u64, receive: u64) -> Plan {
    Plan {
        send,
        receive,
        read_max: 0,
        write_max: 0,
        shutdown: true,
        no_delay: false,
    }
}

/// One connection with `up` bytes to the server and `down` bytes back; both shut down after.
pub fn transfer(seed: u64, conditions: Conditions, up: u64, down: u64) -> World {
    let mut world = World::new(seed, conditions);
    App::listen(&mut world, 1, PORT, 16, plan(down, up));
    App::connect(&mut world, 0, PORT, plan(up, down));
    run_to_end(&mut world);
    world
}

pub fn run_to_end(world: &mut World) {
    let done = world.run_until(Duration::from_secs(3600), |w| {
        w.sides[0].app.all_done() && w.sides[1].app.all_done()
    });
    assert!(
        done,
        "seed {} stuck at {:?}: {:?} / {:?}",
        world.seed, world.now, world.sides[0].app.streams, world.sides[1].app.streams
    );
}

#[test]
fn a_small_exchange() {
    let w = transfer(1, Conditions::default(), 10, 20);
    assert_eq!(w.sides[0].counter("retransmitted_segments"), 0);
}

#[test]
fn a_long_transfer_uses_large_segments_and_the_whole_window() {
    let w = transfer(2, Conditions::default(), 64 << 20, 0);
    assert!(w.sides[0].largest > 60_000, "{}", w.sides[0].largest);
    assert_eq!(w.sides[0].counter("retransmitted_segments"), 0);
    let mean = (64 << 20) / w.sides[0].sends;
    assert!(mean > 30_000, "mean segment {mean}");
}
