//! Fuzz targets for every parser and every channel input. A target makes its inputs from a [`source::Source`] of bytes
//! and feeds them to the real code; a panic, a broken promise or an endless loop fails it.
//!
//! The bytes come from a seed (`eft-fuzz`), from a file of the corpus (`tests/corpus.rs`, `eft-fuzz --input`, AFL), or from
//! libFuzzer (`coverage.rs`). README.md says how each is run.
//!
//! Must never happen: an input that depends on anything but the bytes.

mod mutate;
pub mod source;
mod targets;
pub mod watch;

use source::Source;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
pub use targets::{KINDS, Kind};

/// Inputs with one set-up.
const EPISODE: u64 = 1500;

/// How a target fared.
pub enum Outcome {
    Passed { inputs: u64 },
    Failed { seed: u64, inputs: u64, episode_inputs: u64, bytes: Vec<u8> },
}

impl Kind {
    pub fn named(name: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// One episode: a fresh set-up, inputs while `goes_on` and the source say so, and what must hold at the end. `again`
    /// is how the episode is repeated. Counts inputs in `fed`.
    fn episode(&self, source: &mut Source, again: &Arc<str>, fed: &mut u64, goes_on: impl Fn(u64) -> bool) {
        let mut target = (self.make)(source);
        while !source.is_at_end() && goes_on(*fed) {
            *fed += 1;
            watch::begin(self.name, again, *fed);
            target.feed(source);
        }
        source.end();
        watch::begin(self.name, again, *fed + 1);
        target.finish(source);
    }

    /// The episode that `bytes` describe; returns how many inputs they were. Panics if it fails.
    pub fn run_bytes(&self, bytes: &[u8], again: &Arc<str>) -> u64 {
        let mut fed = 0;
        self.episode(&mut Source::of_bytes(bytes), again, &mut fed, |_| true);
        fed
    }

    /// Episodes until the time is over, at least one; each with its own seed, so that a failure is in the first episode
    /// of its seed.
    pub fn run_seeded(&self, seed: u64, time: Duration) -> Outcome {
        let end = Instant::now() + time;
        let mut inputs = 0;
        for episode in 0.. {
            let seed = seed.wrapping_add(episode);
            let again = format!("eft-fuzz {} --seed {seed}", self.name).into();
            let mut source = Source::seeded(seed);
            let mut fed = 0;
            let goes_on = |fed| fed < EPISODE && (episode == 0 && fed < 50 || Instant::now() < end);
            let result =
                catch_unwind(AssertUnwindSafe(|| self.episode(&mut source, &again, &mut fed, goes_on)));
            inputs += fed;
            if result.is_err() {
                return Outcome::Failed { seed, inputs, episode_inputs: fed, bytes: source.used().to_vec() };
            }
            if Instant::now() >= end {
                break;
            }
        }
        Outcome::Passed { inputs }
    }
}
