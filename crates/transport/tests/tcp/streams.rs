//! Byte streams arrive as they were sent, whatever the network and the machine do.

use crate::app::{App, Plan};
use crate::world::{Conditions, World};
use eft_base::Random;
use eft_transport::tcp::inspect;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub const PORT: u16 = 80;

pub fn plan(send: u64, receive: u64) -> Plan {
    Plan { send, receive, read_max: 0, write_max: 0, shutdown: true, no_delay: false }
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
    let done = world
        .run_until(Duration::from_secs(3600), |w| w.sides[0].app.all_done() && w.sides[1].app.all_done());
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

/// Conditions drawn from a seed: bad, but not hopeless.
pub fn bad(random: &mut Random) -> Conditions {
    let tenth = |r: &mut Random| r.below(100) as f64 / 1000.0;
    Conditions {
        loss: if random.below(3) == 0 { 0.0 } else { tenth(random) },
        duplicate: if random.below(2) == 0 { 0.0 } else { tenth(random) },
        corrupt: 0.0,
        delay_us: 10 + random.below(20_000),
        jitter_us: [0, 0, 500, 20_000][random.below(4) as usize],
        mtu: [1500, 1500, 576, 9000][random.below(4) as usize],
        segment_max: [0, 16_000, 65_000][random.below(3) as usize],
        split: random.below(2) == 0,
        checksum: random.below(2) == 0,
        rate: [0, 0, 10, 125][random.below(4) as usize],
        queue: 20_000 + random.below(200_000),
        crash: 0.0,
        ip_crash: 0.0,
        room: [4, 64, 512][random.below(3) as usize],
        ring: [4096, 65_536, 1 << 20][random.below(3) as usize],
        strip_sack: random.below(4) == 0,
        strip_timestamps: random.below(4) == 0,
        ..Conditions::default()
    }
}

fn bad_plan(random: &mut Random, send: u64, receive: u64) -> Plan {
    Plan {
        read_max: [0, 0, 100, 5000][random.below(4) as usize],
        write_max: [0, 0, 1, 3000][random.below(4) as usize],
        no_delay: random.below(2) == 0,
        ..plan(send, receive)
    }
}

/// Several connections under conditions drawn from `seed`, which `change` may make worse.
fn torment(seed: u64, change: impl FnOnce(&mut Conditions, &mut Random)) -> World {
    let mut random = Random::new(seed);
    let mut conditions = bad(&mut random);
    change(&mut conditions, &mut random);
    let size = |r: &mut Random| match r.below(3) {
        0 => r.below(100),
        1 => r.below(20_000),
        _ => r.below(300_000),
    };
    let (mut up, mut down) = (size(&mut random), size(&mut random));
    if conditions.ring == 4096 {
        (up, down) = (up % 30_000, down % 30_000);
    }
    let (client, server) = (bad_plan(&mut random, up, down), bad_plan(&mut random, down, up));
    let trim =
        |p: Plan| Plan { write_max: if p.write_max == 1 && p.send > 2000 { 700 } else { p.write_max }, ..p };
    let mut world = World::new(seed, conditions);
    App::listen(&mut world, 1, PORT, 16, trim(server));
    for _ in 0..1 + random.below(3) {
        App::connect(&mut world, 0, PORT, trim(client));
    }
    run_to_end(&mut world);
    close_all(&mut world);
    world
}

/// Closes every descriptor, in either order, and sees that nothing of the connections is left.
pub fn close_all(world: &mut World) {
    let first = world.random.below(2) as usize;
    for side in [first, 1 - first] {
        let app = &world.sides[side].app;
        let sockets: Vec<_> = app.streams.iter().map(|s| s.socket).chain(app.listener).collect();
        for socket in sockets {
            App::close(world, side, socket);
        }
    }
    let empty = |w: &World| (0..2).all(|side| w.sides[side].counter("blocks") == 0);
    let done = world.run_until(Duration::from_secs(600), empty);
    let rows = |side: usize| inspect::list(&world.sides[side].durable).unwrap();
    assert!(done, "seed {}: left over {:?} / {:?}", world.seed, rows(0), rows(1));
    for side in [0, 1] {
        let made = world.sides[side].app.streams.len() + side;
        assert!(made > 0);
        assert_eq!(world.sides[side].packets_in_use(), 0, "seed {}: packets kept", world.seed);
    }
}

/// Seeds per test; `EFT_SEEDS` for long runs by hand, `EFT_SEED` for one.
pub fn seeds(default: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    if let Some(seed) = number("EFT_SEED") {
        return seed..seed + 1;
    }
    0..number("EFT_SEEDS").unwrap_or(default)
}

/// Whether one seed is run by hand: it need not show what all of them together must.
fn is_one_seed() -> bool {
    std::env::var("EFT_SEED").is_ok()
}

/// Runs `f` for every seed and says which one failed.
pub fn for_seeds(default: u64, f: impl Fn(u64) + std::panic::RefUnwindSafe) {
    for seed in seeds(default) {
        if let Err(why) = std::panic::catch_unwind(|| f(seed)) {
            eprintln!("failed with EFT_SEED={seed}");
            std::panic::resume_unwind(why);
        }
    }
}

#[test]
fn loss_reordering_duplication_and_delay() {
    let names = [
        "retransmit_timeouts",
        "fast_recoveries",
        "retransmitted_segments",
        "duplicate_acks",
        "out_of_order_segments",
        "duplicate_segments",
        "drop_out_of_window",
        "probes_sent",
    ];
    let totals: [AtomicU64; 8] = Default::default();
    for_seeds(150, |seed| {
        let w = torment(seed, |_, _| {});
        for (total, name) in totals.iter().zip(names) {
            total.fetch_add(w.sides[0].counter(name) + w.sides[1].counter(name), Ordering::Relaxed);
        }
    });
    // The torment must be one: every mechanism was needed somewhere.
    if !is_one_seed() {
        for (total, name) in totals.iter().zip(names) {
            assert!(total.load(Ordering::Relaxed) > 0, "{name} never happened");
        }
    }
}

#[test]
fn corruption_is_caught_by_the_checksum() {
    let caught = AtomicU64::new(0);
    for_seeds(40, |seed| {
        let w = torment(seed, |c, r| {
            c.checksum = true;
            c.corrupt = r.below(50) as f64 / 1000.0;
        });
        let dropped = w.sides[0].counter("drop_checksum") + w.sides[1].counter("drop_checksum");
        caught.fetch_add(dropped, Ordering::Relaxed);
    });
    assert!(caught.load(Ordering::Relaxed) > 0 || is_one_seed());
}

#[test]
fn the_engine_is_dropped_between_any_two_events() {
    for_seeds(150, |seed| {
        torment(seed, |c, r| c.crash = [0.5, 0.05, 0.005][r.below(3) as usize]);
    });
}

#[test]
fn ip_is_reborn_again_and_again() {
    for_seeds(60, |seed| {
        torment(seed, |c, r| c.ip_crash = r.below(100) as f64 / 500.0);
    });
}
