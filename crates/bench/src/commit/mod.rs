//! `eft bench commit`: the cost of atomic turns: of the commit alone, and of whole stacks beside stacks without it.

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
