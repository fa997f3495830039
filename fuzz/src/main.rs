//! Fuzz targets for every parser and every channel input, on stable Rust.
//!
//! `eft-fuzz TARGET|all [--seconds N] [--seed S]`. A target makes its inputs from a seeded generator
//! and feeds them to the real code; a panic, a broken promise or an endless loop fails it. Inputs
//! come in episodes, each with a fresh set-up and its own seed, so that a failure is repeated by
//! `eft-fuzz TARGET --seed S` in its first episode.
//!
//! Must never happen: an input that depends on anything but the seed.

mod host;
mod mutate;
mod targets;
mod watch;

use eft_base::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use targets::{KINDS, Kind};

/// Inputs with one set-up.
const EPISODE: u64 = 1500;

struct Options {
    target: String,
    seconds: f64,
    seed: u64,
}

fn usage() -> String {
    let names: Vec<&str> = KINDS.iter().map(|k| k.name).collect();
    format!("usage: eft-fuzz TARGET|all [--seconds N] [--seed S]\ntargets: {}", names.join(" "))
}

fn options() -> Result<Options, String> {
    let mut args = std::env::args().skip(1);
    let target = args.next().ok_or_else(usage)?;
    if target != "all" && !KINDS.iter().any(|k| k.name == target) {
        return Err(format!("there is no target `{target}`\n{}", usage()));
    }
    let mut options = Options { target, seconds: 20.0, seed: 1 };
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(usage)?;
        let bad = |_| format!("`{value}` is no number");
        match name.as_str() {
            "--seconds" => options.seconds = value.parse().map_err(|_| format!("`{value}` is no number"))?,
            "--seed" => options.seed = value.parse().map_err(bad)?,
            _ => return Err(usage()),
        }
    }
    if !(0.0..=1e7).contains(&options.seconds) {
        return Err("--seconds must be from 0 to 10000000".into());
    }
    Ok(options)
}

/// How a target fared.
enum Outcome {
    Passed { inputs: u64 },
    Failed { seed: u64, input: u64, episode_input: u64 },
}

/// Runs episodes until the time is over; at least one.
fn run(kind: &Kind, seed: u64, time: Duration) -> Outcome {
    let end = Instant::now() + time;
    let mut inputs = 0;
    for episode in 0.. {
        let seed = seed.wrapping_add(episode);
        let mut fed = 0;
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut random = Random::new(seed);
            let mut target = (kind.make)(&mut random);
            while fed < EPISODE && (episode == 0 && fed < 50 || Instant::now() < end) {
                fed += 1;
                watch::begin(kind.name, seed, fed);
                target.feed(&mut random);
            }
            watch::begin(kind.name, seed, fed + 1);
            target.finish(&mut random);
        }));
        inputs += fed;
        if result.is_err() {
            return Outcome::Failed { seed, input: inputs, episode_input: fed };
        }
        if Instant::now() >= end {
            break;
        }
    }
    Outcome::Passed { inputs }
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::from(2);
        }
    };
    let chosen: Vec<&Kind> =
        KINDS.iter().filter(|k| options.target == "all" || options.target == k.name).collect();
    let share = Duration::from_secs_f64(options.seconds / chosen.len() as f64);
    watch::start();
    let (mut passed, mut failed) = (0, 0);
    for kind in chosen {
        match run(kind, options.seed, share) {
            Outcome::Passed { inputs } => {
                passed += 1;
                println!("ok      {:<18} {inputs} inputs, seed {}", kind.name, options.seed);
            }
            Outcome::Failed { seed, input, episode_input } => {
                failed += 1;
                println!(
                    "FAILED  {:<18} input {input}; again: eft-fuzz {} --seed {seed} (its input {episode_input})",
                    kind.name, kind.name
                );
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
