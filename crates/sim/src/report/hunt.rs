//! `eft-sim hunt`: scenarios with faults, as many as one likes.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Mutex;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use eft_sim::hunt::{Hunted, Scenario};

use super::print;

#[derive(Args)]
pub struct HuntArguments {
    /// How many scenarios; each follows from its seed alone
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first one's seed
    #[arg(long, default_value_t = 0)]
    first: u64,
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=128))]
    threads: u8,
    /// Stop at the first failure
    #[arg(long)]
    stop: bool,
}

/// What is known so far.
#[derive(Default)]
struct State {
    next: u64,
    done: u64,
    /// By kind of scenario: how many, and what befell them.
    all: BTreeMap<String, (u64, Hunted)>,
    failed: Vec<u64>,
}

pub fn run(arguments: &HuntArguments) -> Result<()> {
    // A failure is reported once, with the command that repeats it.
    std::panic::set_hook(Box::new(|_| {}));
    let state = Mutex::new(State::default());
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads {
            scope.spawn(|| while hunt_one(arguments, &state) {});
        }
    });
    let state = state.into_inner().map_err(|_| anyhow!("a thread of the hunt failed"))?;
    let mut rows = vec![
        ["SCENARIO", "SEEDS", "DEATHS", "IN A TURN", "INJECTED", "LOST", "HANGS", "HOSTILE"]
            .map(String::from)
            .to_vec(),
    ];
    for (kind, (count, of)) in &state.all {
        let numbers =
            [*count, of.deaths, of.burnt, of.injected, of.lost, of.hangs, of.hostile].map(|n| n.to_string());
        rows.push([kind.clone()].into_iter().chain(numbers).collect());
    }
    print(&eft_text::columns(&rows))?;
    match state.failed.as_slice() {
        [] => Ok(()),
        failed => bail!("{} of {} scenarios failed: seeds {failed:?}", failed.len(), state.done),
    }
}

/// False: no seed is left.
fn hunt_one(arguments: &HuntArguments, state: &Mutex<State>) -> bool {
    let seed = {
        let Ok(mut state) = state.lock() else { return false };
        let is_over = state.next >= arguments.seeds || (arguments.stop && !state.failed.is_empty());
        if is_over {
            return false;
        }
        state.next += 1;
        arguments.first.wrapping_add(state.next - 1)
    };
    let scenario = Scenario::draw(seed);
    let outcome = scenario.run();
    let Ok(mut state) = state.lock() else { return false };
    state.done += 1;
    match outcome {
        Ok(hunted) => {
            let (count, sum) = state.all.entry(format!("{:?}", scenario.kind)).or_default();
            *count += 1;
            *sum += hunted;
        }
        Err(why) => {
            state.failed.push(seed);
            eprintln!("{:?}, {why}\nagain: eft sim hunt --first {seed} --seeds 1\n", scenario.kind);
        }
    }
    if std::io::stderr().is_terminal() && state.done.is_multiple_of(100) {
        eprint!("\r{} of {} scenarios, {} failed", state.done, arguments.seeds, state.failed.len());
    }
    true
}
