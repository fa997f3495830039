//! `eft bench commit`: what it takes to commit a turn, without an engine around it.

mod probe;

use crate::report::print;
use crate::stolen::Stolen;
use anyhow::Result;

#[derive(clap::Args)]
pub struct CommitArguments {
    #[arg(long, default_value_t = 30)]
    rounds: usize,
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &CommitArguments) -> Result<()> {
    let stolen = Stolen::begin(None);
    let figures = probe::run(arguments.rounds)?;
    print("commit", &figures, &[stolen.describe()], arguments.json)
}
