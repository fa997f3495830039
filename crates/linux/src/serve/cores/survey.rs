//! Surveys the machine for a policy that begins.

use crate::error::{Doing, Result, error};
use eft_cores::engine::Survey;
use eft_cores::profile::{Profiles, file};
use eft_host::actuators::burner;
use eft_host::{managed, named_file};
use eft_machine::{CpuSet, Machine, Share};

/// The speeds that duty cycles provide: the steps of clock modulation, which the emulation follows.
const EIGHTHS: [Share; 7] =
    [Share(0.125), Share(0.25), Share(0.375), Share(0.5), Share(0.625), Share(0.75), Share(0.875)];

pub fn survey(managed: &CpuSet, profiles: Option<&str>, emulate_speeds: bool) -> Result<Survey> {
    let machine = managed::machine(managed)?;
    let profiles = match profiles {
        None => Profiles::default(),
        Some(path) => {
            let text = named_file::regular_text(path).doing(path)?;
            file::read(&text, &machine).map_err(|e| error!(Invalid, "{path}: {e}"))?
        }
    };
    Ok(Survey { duty_levels: duty_levels(&machine, emulate_speeds), machine, profiles })
}

/// The duty cycles that may be set. `None`: all managed CPUs have P-states. Empty: full speed only, because emulation
/// is not wanted or not allowed.
fn duty_levels(machine: &Machine, emulate: bool) -> Option<Vec<Share>> {
    if machine.has_frequencies() {
        return None;
    }
    if !emulate {
        return Some(Vec::new());
    }
    match burner::check_allowed() {
        Ok(()) => Some(EIGHTHS.to_vec()),
        Err(reason) => {
            eprintln!("eft cores: cores run at full speed only: {reason}");
            Some(Vec::new())
        }
    }
}
