//! `eft differential`: the same random programs on the kernel and on a stack, compared.

mod sides;

use anyhow::{Result, bail};
use eft_differential::generate::program;
use eft_differential::known::{Difference, judged};
use eft_differential::observation::differences;
use eft_differential::program::Program;
use eft_differential::shrink::shrink;
pub use sides::{SideArguments, side};
use sides::{Sides, own_network};
use std::collections::{BTreeMap, BTreeSet};

/// A difference that does not come again so often is one of time, not of behaviour.
const TIMES: usize = 12;

#[derive(clap::Args, Debug)]
pub struct DifferentialArguments {
    /// How many programs to run
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The seed of the first program
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Print each program's steps and what was observed
    #[arg(long)]
    verbose: bool,
    /// Print differing programs as they were made, not made shorter
    #[arg(long)]
    whole: bool,
}

pub fn run(arguments: &DifferentialArguments) -> Result<()> {
    own_network()?;
    let mut sides = Sides::start()?;
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut known: BTreeMap<&str, u64> = BTreeMap::new();
    let mut differing = 0;
    for seed in arguments.first..arguments.first.saturating_add(arguments.seeds) {
        let program = program(seed);
        let found = compare(&mut sides, &program, arguments.verbose)?;
        let verdict = match found.new {
            None if found.known.is_empty() => "equal",
            None => "equal but for known differences",
            Some(difference) if !lasts(&mut sides, &program, &difference)? => "not the same each time",
            Some(difference) => {
                let short = match arguments.whole {
                    true => program.clone(),
                    false => shortened(&mut sides, &program, &difference),
                };
                match show(&mut sides, seed, &short, &difference)? {
                    true => {
                        differing += 1;
                        "different"
                    }
                    false => "not the same each time",
                }
            }
        };
        *counts.entry(verdict).or_default() += 1;
        found.known.into_iter().for_each(|name| *known.entry(name).or_default() += 1);
    }
    let counts: Vec<String> = counts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
    println!("differential: {} programs: {}", arguments.seeds, counts.join(", "));
    known.iter().for_each(|(name, count)| println!("  known, in {count}: {name}"));
    println!("differential: {} passed, {differing} failed", arguments.seeds - differing);
    if differing == 0 { Ok(()) } else { bail!("{differing} programs differ") }
}

/// What a comparison found: the first difference that is not known, and the names of the known ones before it.
struct Found {
    new: Option<Difference>,
    known: BTreeSet<&'static str>,
}

/// Runs a program on both sides.
fn compare(sides: &mut Sides, program: &Program, verbose: bool) -> Result<Found> {
    let (kernel, eft) = sides.run(program)?;
    let mut found = Found { new: None, known: BTreeSet::new() };
    for (number, (kernel, eft)) in kernel.iter().zip(&eft).enumerate() {
        if verbose {
            println!("{number}: {:?}\n    {kernel:?}", program.steps[number]);
        }
        for (difference, known) in judged(program, number, kernel, eft) {
            match known {
                Some(name) => found.known.extend([name]),
                None => {
                    found.new = Some(difference);
                    return Ok(found);
                }
            }
        }
    }
    Ok(found)
}

/// Whether the same difference comes each time.
fn lasts(sides: &mut Sides, program: &Program, difference: &Difference) -> Result<bool> {
    for _ in 1..TIMES {
        if compare(sides, program, false)?.new.as_ref() != Some(difference) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The shortest program that shows it, if the sides do not fail over it.
fn shortened(sides: &mut Sides, program: &Program, difference: &Difference) -> Program {
    let step = program.steps[difference.step].clone();
    let mut end = program.clone();
    end.steps.truncate(difference.step + 1);
    shrink(&end, |shorter| {
        compare(sides, shorter, false).is_ok_and(|found| {
            found.new.is_some_and(|found| {
                let same = (&found.name, &found.kernel, &found.eft)
                    == (&difference.name, &difference.kernel, &difference.eft);
                same && shorter.steps.get(found.step) == Some(&step)
            })
        })
    })
}

/// Prints a program with what is different at its end. False if it is not different any more: that was one of time.
fn show(sides: &mut Sides, seed: u64, program: &Program, difference: &Difference) -> Result<bool> {
    if compare(sides, program, false)?.new.is_none() {
        return Ok(false);
    }
    println!("seed {seed} ({}): {}", if program.v6 { "IPv6" } else { "IPv4" }, difference.name);
    let (kernel, eft) = sides.run(program)?;
    for (number, step) in program.steps.iter().enumerate().take(eft.len()) {
        println!("  {step:?}");
        for (name, kernel, eft) in differences(&kernel[number], &eft[number]) {
            println!("      {name}: kernel `{kernel}`, eft `{eft}`");
        }
    }
    println!("  to repeat: eft differential --first {seed} --seeds 1");
    Ok(true)
}
