//! `eft keep`: the process of a stack's keeper. The supervisor starts it, never an operator.

use anyhow::Result;
use std::time::Duration;

#[derive(clap::Args, Debug)]
pub struct KeepArguments {
    /// The stack that it belongs to
    #[arg(long)]
    stack: String,
    /// Seconds for which it waits for another supervisor; five times as long while servers live
    #[arg(long)]
    patience: u64,
    /// A table of nft to remove if none comes
    #[arg(long)]
    table: Vec<String>,
}

pub fn run(arguments: &KeepArguments) -> Result<()> {
    let patience = Duration::from_secs(arguments.patience);
    Ok(eft_linux::keeper::run(&arguments.stack, patience, &arguments.table)?)
}
