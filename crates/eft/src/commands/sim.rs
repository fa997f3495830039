//! `eft sim`: hands over to `eft-sim`, which lies beside this program.

use anyhow::{Result, anyhow, bail};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

#[derive(clap::Args)]
pub struct SimArguments {
    /// Arguments of `eft-sim`; `eft sim help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub fn run(arguments: &SimArguments) -> Result<()> {
    let own =
        std::env::current_exe().map_err(|error| anyhow!("eft does not find its own program ({error})"))?;
    let program = own.with_file_name("eft-sim");
    let error = Command::new(&program).args(&arguments.arguments).exec();
    bail!("{} cannot be run ({error}); build it with cargo build --release -p eft-sim", program.display())
}
