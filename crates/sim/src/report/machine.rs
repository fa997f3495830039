//! Which machine an experiment is on: the papers', or what a file says of another one.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use eft_sim::calibration::Calibration;

use super::file;

/// Longest file that is read.
const CALIBRATION_MB_MAX: u64 = 1;

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
        let text = file::text(path, "a calibration file", CALIBRATION_MB_MAX)?;
        let shown = path.display().to_string();
        Ok(own.replaced_by(&Calibration::parse(&shown, &text)?))
    }
}
