//! `eft profile`: what configurations achieve under known loads, which the `profile` policy uses.

mod load;
mod plot;
mod show;
mod sweep;

use std::path::PathBuf;

use anyhow::Result;
use eft_bench::store;

#[derive(clap::Args, Debug)]
pub struct ProfileArguments {
    /// The profile file; default of a sweep: the one of the stack's `[scheduling]`
    #[arg(long, global = true)]
    file: Option<PathBuf>,
    /// Print JSON: see below
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Run a load over the configurations of a running stack and record what they achieve
    Sweep(sweep::SweepArguments),
    /// List the known loads
    List,
    /// Show what each configuration achieved under a load
    Show { load: String },
    /// Show throughput over power, as text or as a picture
    Plot {
        /// One load; default: all
        load: Option<String>,
        /// Write a picture (SVG) instead
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
    /// Leave out configurations that can never be chosen, and loads that are nearly equal
    Prune {
        /// Remove a whole load instead
        #[arg(long, value_name = "LOAD")]
        remove: Option<String>,
    },
}

pub fn run(arguments: &ProfileArguments) -> Result<()> {
    let json = arguments.json;
    let path = arguments.file.clone().unwrap_or_else(|| PathBuf::from(store::DEFAULT));
    match &arguments.what {
        What::Sweep(sweep) => sweep::run(sweep, arguments.file.as_ref(), json),
        What::List => show::list(&path, json),
        What::Show { load } => show::show(&path, load, json),
        What::Plot { load, svg } => plot::run(&path, load.as_deref(), svg.as_deref(), json),
        What::Prune { remove } => show::prune_file(&path, remove.as_deref(), json),
    }
}
