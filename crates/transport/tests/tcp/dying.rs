//! Death in the middle of a turn: at every access of a block, every write of a page, every store of the commit.

use crate::app::App;
use crate::streams::{PORT, plan, run_to_end};
use crate::turns::{assert_nothing_is_left, close_domain, close_listener, waiting_crowd};
use crate::world::{Conditions, World};
use eft_base::Random;
use std::time::Duration;

/// Silences the panic messages of deaths in the middle of a call.
fn quietly<T>(run: impl FnOnce() -> T) -> T {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(|info| {
        let fuse = info.payload().downcast_ref::<String>().is_some_and(|s| s == eft_transport::FUSE_BURNT);
        if !fuse {
            eprintln!("{info}");
        }
    }));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    std::panic::set_hook(usual);
    result.unwrap_or_else(|why| std::panic::resume_unwind(why))
}

/// A connection is made, moves bytes both ways and ends, while the engine of `side` dies at its `step`-th access. True if
/// it has so many.
fn exchange(side: usize, step: u64, conditions: Conditions) -> bool {
    let mut w = World::new(step, conditions);
    w.sides[side].light(step);
    App::listen(&mut w, 1, PORT, 16, plan(3000, 2000));
    App::connect(&mut w, 0, PORT, plan(2000, 3000));
    run_to_end(&mut w);
    w.run_for(Duration::from_secs(1));
    w.crashes == 1
}

#[test]
fn a_connection_survives_a_death_at_every_access() {
    quietly(|| {
        for side in [0, 1] {
            let conditions = Conditions { mtu: 1500, segment_max: 0, ..Conditions::default() };
            let deaths = (1..).take_while(|step| exchange(side, *step, conditions)).count();
            assert!(deaths > 200, "only {deaths} accesses of side {side}");
        }
    });
}

#[test]
fn streams_go_on_while_engines_die_in_the_middle_of_turns() {
    quietly(|| {
        for seed in 0..1000 {
            let mut random = Random::new(seed);
            let conditions = Conditions { loss: 0.02, jitter_us: 300, ring: 65_536, ..Conditions::default() };
            let mut w = World::new(seed, conditions);
            for side in 0..2 {
                let steps = 1 + random.below(2000);
                w.sides[side].fuse = steps;
                w.sides[side].light(steps);
            }
            let (up, down) = (random.below(60_000), random.below(60_000));
            App::listen(&mut w, 1, PORT, 16, plan(down, up));
            for _ in 0..1 + random.below(3) {
                App::connect(&mut w, 0, PORT, plan(up, down));
            }
            run_to_end(&mut w);
        }
    });
}

#[test]
fn a_closed_listener_leaves_nothing_at_whichever_access_its_engine_dies() {
    quietly(|| {
        for close in [close_listener, close_domain] {
            let outlives = |step: &u64| {
                let mut s = waiting_crowd(3, 3);
                s.world.sides[1].light(*step);
                close(&mut s);
                s.world.turn(1);
                s.world.run_for(Duration::from_secs(40));
                s.world.sides[1].light(0);
                let died = s.world.crashes == 1;
                assert_nothing_is_left(&mut s);
                died
            };
            let deaths = (1..).take_while(outlives).count();
            assert!(deaths > 50, "only {deaths} accesses");
        }
    });
}

/// A connection moves bytes both ways while the engine of `side` dies at its `access`-th access, and its successor at the
/// `step`-th store while it opens the arena. True if it has so many.
fn reopen(side: usize, access: u64, step: u64) -> bool {
    let mut w = World::new(step, Conditions::default());
    App::listen(&mut w, 1, PORT, 16, plan(30_000, 20_000));
    App::connect(&mut w, 0, PORT, plan(20_000, 30_000));
    w.run_until(Duration::from_secs(1), |w| w.sides[0].app.streams.iter().any(|s| s.sent > 0));
    w.sides[side].opening_fuse = step;
    w.sides[side].light(access);
    run_to_end(&mut w);
    assert_eq!(w.crashes, 1, "the turn was not over");
    w.sides[side].opening_deaths == 1
}

#[test]
fn a_connection_survives_a_death_at_every_store_while_an_arena_is_opened() {
    quietly(|| {
        for side in [0, 1] {
            let stores = |access| (1..).take_while(|step| reopen(side, access, *step)).count();
            let deaths: Vec<usize> = (1..8).map(|nth| stores(20 * nth)).collect();
            // The header takes some; a turn that is undone takes more.
            assert!(deaths.iter().all(|n| *n >= 25) && deaths.iter().any(|n| *n > 30), "only {deaths:?}");
        }
    });
}
