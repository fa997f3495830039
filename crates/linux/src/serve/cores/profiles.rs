//! Saves what a policy has learnt in the file from which its profiles came.

use crate::error::{Doing, Result, error};
use eft_cores::engine::Learnt;
use eft_cores::profile::file;
use eft_host::named_file;

#[derive(Default)]
pub struct Saver {
    /// The failure has been reported: it is reported once, not every minute.
    failed: bool,
}

impl Saver {
    pub fn save(&mut self, learnt: &Learnt) {
        match write(learnt) {
            Ok(()) => self.failed = false,
            Err(why) if !self.failed => {
                eprintln!("eft cores: what was learnt is not saved: {why}");
                self.failed = true;
            }
            Err(_) => {}
        }
    }
}

/// Replaces the file as a whole: a reader at any time, and after any crash, finds the old file or the new one. If the
/// file is no longer a profile file of this machine, someone else has written it, and it stays as it is.
fn write(learnt: &Learnt) -> Result<()> {
    let Learnt { path, profiles, machine } = learnt;
    let before = named_file::regular_text(path).doing(path)?;
    let stored = file::read(&before, machine).map_err(|e| error!(Invalid, "{path}: {e}"))?;
    let text = file::write(&stored.updated(profiles), machine).doing(path)?;
    let beside = format!("{path}.new");
    std::fs::write(&beside, text).doing(path)?;
    std::fs::rename(&beside, path).doing(path)
}

#[cfg(test)]
mod tests;
