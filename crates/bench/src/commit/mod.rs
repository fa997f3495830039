//! `eft bench commit`: what it costs that a turn counts whole or not at all: alone, and whole stacks beside others that do
//! without.

mod probe;
mod stacks;

use crate::report::print;
use crate::stolen::Stolen;
use anyhow::Result;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct CommitArguments {
    /// Rounds; those of stacks with and without commit take turns
    #[arg(long, default_value_t = 30)]
    rounds: usize,
    /// Seconds of each load
    #[arg(long, default_value_t = 0.4)]
    seconds: f64,
    /// The commit alone, without stacks, which only root can start
    #[arg(long)]
    alone: bool,
    #[arg(long)]
    json: bool,
    /// Topology of the stacks under test
    #[arg(long)]
    topology: Option<PathBuf>,
}

pub fn run(arguments: &CommitArguments) -> Result<()> {
    let stolen = Stolen::begin(None);
    let mut figures = probe::run(arguments.rounds)?;
    if !arguments.alone {
        figures.extend(stacks::run(arguments)?);
    }
    print("commit", &figures, &[stolen.describe()], arguments.json)
}
