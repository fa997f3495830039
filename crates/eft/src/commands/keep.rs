//! `eft keep`: the keeper of a stack in its process. Started by the supervisor, never by hand.

use std::time::Duration;

#[derive(clap::Args, Debug)]
pub struct KeepArguments {
    /// The stack that it belongs to
    #[arg(long)]
    stack: String,
    /// Seconds for which it waits for another supervisor
    #[arg(long)]
    patience: u64,
}

pub fn run(arguments: &KeepArguments) -> Result<(), String> {
    eft_linux::keeper::run(Duration::from_secs(arguments.patience)).map_err(|e| e.to_string())
}
