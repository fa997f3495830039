//! Which machine an experiment is on: the papers', or what a file says of another one.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::Args;
use eft_sim::calibration::Calibration;

/// Longest file that is read.
const BYTES_MAX: u64 = 1 << 20;

#[derive(Args, Clone, Debug, Default)]
pub struct MachineArguments {
    /// Take every parameter that this file has from it, in place of the paper's machine's; `eft bench costs` writes such files
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
}

impl MachineArguments {
    pub fn file(&self) -> Option<&Path> {
        self.calibration.as_deref()
    }

    /// The E5520, with what the file replaces.
    pub fn e5520(&self) -> Result<Calibration> {
        let own = Calibration::e5520()?;
        let Some(path) = &self.calibration else { return Ok(own) };
        let shown = path.display().to_string();
        let unreadable = |why: &dyn std::fmt::Display| anyhow!("{shown} cannot be read ({why})");
        let file = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
        if !file.is_file() || file.len() > BYTES_MAX {
            return Err(unreadable(&"a calibration file is a file of at most 1 MB"));
        }
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(&error))?;
        Ok(own.replaced_by(&Calibration::parse(&shown, &text)?))
    }
}
