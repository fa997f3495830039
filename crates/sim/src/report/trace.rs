//! `eft-sim trace`: makes a trace of what `eft capture` has written.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
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
    if is_one_file(&arguments.capture, &arguments.write) {
        bail!("{} is the capture, which the trace would replace", arguments.write.display());
    }
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

/// By whatever names, links among them. One that is not there yet is another one.
fn is_one_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    id(one).is_some() && id(one) == id(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_is_not_replaced_by_its_trace() {
        let folder = std::env::temp_dir().join(format!("eft-sim-one-file-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let [capture, link, other] = ["capture", "link", "other"].map(|name| folder.join(name));
        std::fs::write(&capture, "a capture").unwrap();
        std::fs::hard_link(&capture, &link).unwrap();
        for write in [&capture, &link] {
            let arguments = TraceArguments { capture: capture.clone(), write: write.clone() };
            assert!(run(&arguments).unwrap_err().to_string().contains("would replace"));
        }
        assert!(!is_one_file(&capture, &other));
        assert_eq!(std::fs::read(&capture).unwrap(), b"a capture");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
