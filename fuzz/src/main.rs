//! `eft-fuzz TARGET|all [--seconds N] [--seed S]` runs targets on seeded inputs; `eft-fuzz TARGET --input FILE` runs
//! the episode that a file's bytes describe, and aborts if it fails, as AFL wants it.

use eft_fuzz::{KINDS, Kind, Outcome, watch};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

struct Options {
    target: String,
    seconds: f64,
    seed: u64,
    input: Option<PathBuf>,
}

fn usage() -> String {
    let names: Vec<&str> = KINDS.iter().map(|k| k.name).collect();
    format!(
        "usage: eft-fuzz TARGET|all [--seconds N] [--seed S]\n       eft-fuzz TARGET --input FILE\ntargets: {}",
        names.join(" ")
    )
}

fn options() -> Result<Options, String> {
    let mut args = std::env::args().skip(1);
    let target = args.next().ok_or_else(usage)?;
    if target != "all" && Kind::named(&target).is_none() {
        return Err(format!("there is no target `{target}`\n{}", usage()));
    }
    let mut options = Options { target, seconds: 20.0, seed: 1, input: None };
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(usage)?;
        match name.as_str() {
            "--seconds" => options.seconds = value.parse().map_err(|_| format!("`{value}` is no number"))?,
            "--seed" => options.seed = value.parse().map_err(|_| format!("`{value}` is no number"))?,
            "--input" => options.input = Some(value.into()),
            _ => return Err(usage()),
        }
    }
    if !(0.0..=1e7).contains(&options.seconds) {
        return Err("--seconds must be from 0 to 10000000".into());
    }
    if options.input.is_some() && options.target == "all" {
        return Err("--input needs the target that the file is for".into());
    }
    Ok(options)
}

/// Runs what a file describes. A failure is an abort: that is how AFL tells it from a refusal.
fn run_file(kind: &Kind, file: &PathBuf) -> ExitCode {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(e) => {
            eprintln!("{}: {e}", file.display());
            return ExitCode::from(2);
        }
    };
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        report(info);
        std::process::abort();
    }));
    let again = format!("eft-fuzz {} --input {}", kind.name, file.display()).into();
    println!("ok      {:<18} {} inputs, {}", kind.name, kind.run_bytes(&bytes, &again), file.display());
    ExitCode::SUCCESS
}

/// Keeps the bytes of a failure where a fuzzer or a test can take them up; says where.
fn keep(kind: &Kind, seed: u64, bytes: &[u8]) -> String {
    let path = std::env::temp_dir().join(format!("eft-fuzz-{}-{seed}", kind.name));
    match std::fs::write(&path, bytes) {
        Ok(()) => format!("its bytes: {}", path.display()),
        Err(e) => format!("its bytes are not kept: {}: {e}", path.display()),
    }
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
    watch::start();
    if let Some(file) = &options.input {
        return run_file(chosen[0], file);
    }
    let share = Duration::from_secs_f64(options.seconds / chosen.len() as f64);
    let (mut passed, mut failed) = (0, 0);
    for kind in chosen {
        match kind.run_seeded(options.seed, share) {
            Outcome::Passed { inputs } => {
                passed += 1;
                println!("ok      {:<18} {inputs} inputs, seed {}", kind.name, options.seed);
            }
            Outcome::Failed { seed, inputs, episode_inputs, bytes } => {
                failed += 1;
                println!(
                    "FAILED  {:<18} input {inputs}; again: eft-fuzz {} --seed {seed} (its input {episode_inputs}); {}",
                    kind.name,
                    kind.name,
                    keep(kind, seed, &bytes)
                );
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
