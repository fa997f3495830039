//! A bit of tcp's durable state changes, and tcp dies: nobody loses anything.

use crate::app::App;
use crate::streams::{PORT, plan};
use crate::world::{Conditions, World};
use eft_base::Random;
use std::time::Duration;

const BYTES: u64 = 1_000_000;

/// Changes a bit of a word of the arena that is not zero, as `eft inject tcp flip-arena` does.
fn flip_a_bit(w: &World, side: usize, random: &mut Random) -> (usize, u64) {
    let arena = &w.sides[side].durable;
    loop {
        let at = random.below(arena.len() as u64 / 8) as usize * 8;
        let mut word = [0; 8];
        arena.read(at, &mut word).unwrap();
        let word = u64::from_le_bytes(word);
        if word != 0 {
            let bit = random.below(64);
            arena.write(at, &(word ^ 1 << bit).to_le_bytes()).unwrap();
            return (at, bit);
        }
    }
}

#[test]
fn a_changed_bit_costs_nothing() {
    let mut mended = 0;
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let mut w = World::new(seed, Conditions::default());
        App::listen(&mut w, 1, PORT, 16, plan(BYTES, BYTES));
        for _ in 0..3 {
            App::connect(&mut w, 0, PORT, plan(BYTES, BYTES));
        }
        let mut what = String::new();
        for _ in 0..4 {
            w.run_for(Duration::from_millis(1 + random.below(3)));
            let side = random.below(2) as usize;
            let (at, bit) = flip_a_bit(&w, side, random);
            w.crash(side);
            what += &format!("bit {bit} of the word at {at} of side {side}; ");
        }
        // The listener listens.
        App::connect(&mut w, 0, PORT, plan(BYTES, BYTES));
        let finished =
            |w: &World| w.sides.iter().all(|s| s.app.streams.iter().filter(|s| s.is_done()).count() == 4);
        assert!(w.run_until(Duration::from_secs(120), finished), "seed {seed}: {what}");
        mended += w.sides.iter().map(|side| side.counter("mended_blocks")).sum::<u64>();
    }
    assert!(mended > 100, "only {mended} were changed back");
}
