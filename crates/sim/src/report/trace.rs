//! `eft-sim trace`: makes a trace of what `eft capture` has written.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use eft_sim::trace::convert;

use super::file;
use super::print;

/// Longest capture that is read.
const CAPTURE_MB_MAX: u64 = 1024;

#[derive(Args)]
pub struct TraceArguments {
    /// What `eft capture -w FILE` has written since before the clients connected
    capture: PathBuf,
    /// File to write
    #[arg(short = 'w', long)]
    write: PathBuf,
}

pub fn run(arguments: &TraceArguments) -> Result<()> {
    let shown = || arguments.capture.display().to_string();
    let bytes = file::bytes(&arguments.capture, "a capture", CAPTURE_MB_MAX)?;
    let converted = convert(&bytes).with_context(shown)?;
    let (trace, tally) = (&converted.trace, converted.trace.tally());
    std::fs::write(&arguments.write, trace.to_string())
        .with_context(|| arguments.write.display().to_string())?;
    print(&format!(
        "{} requests on {} connections in {:.3} s: {} bytes asked, {} answered; left out: {} requests and {} segments of \
         connections that had begun before\n",
        tally.requests,
        tally.opens,
        trace.length_us() as f64 / 1e6,
        tally.request_bytes,
        tally.answer_bytes,
        converted.left_out,
        converted.strange_segments,
    ))
}
