//! A tcp that commits no turn, as `eft up --protection off` runs it to measure what protection costs.

use crate::app::App;
use crate::streams::{PORT, plan, run_to_end};
use crate::world::{Conditions, World};
use eft_base::Protection;
use eft_component::transport::Event;
use std::time::Duration;

const BYTES: u64 = 2_000_000;

/// Both sides without protection, and three connections.
fn world() -> World {
    let mut w = World::new(1, Conditions::default());
    for side in [0, 1] {
        let value = Protection::Off.name().into();
        w.at(side).event(Event::Configure { key: Protection::KEY.into(), value });
    }
    App::listen(&mut w, 1, PORT, 16, plan(BYTES, BYTES));
    (0..3).for_each(|_| App::connect(&mut w, 0, PORT, plan(BYTES, BYTES)));
    w
}

#[test]
fn streams_pass_without_protection() {
    let mut w = world();
    run_to_end(&mut w);
    assert_eq!(w.sides[0].counter("retransmitted_segments"), 0);
}

#[test]
fn a_death_without_protection_ends_what_has_changed_and_takes_up_nothing_old() {
    let mut w = world();
    assert!(w.run_until(Duration::from_secs(5), |w| w.sides[0].counter("sent_bytes") > 1_000_000));
    w.crash(0);
    assert_eq!(w.sides[0].counter("quarantined_blocks"), 3);
    assert_eq!(w.sides[0].counter("blocks"), 0);
    w.run_for(Duration::from_secs(60));
    assert!(w.sides[1].app.streams.iter().all(|s| s.hung_up), "their peers are told");
}
