//! What protection costs the engines: recordings of live ones are replayed with and without it, and callgrind counts instructions, which
//! do not depend on what else runs.

use super::BASELINE;
use crate::costs::count::{component, has_valgrind, under_callgrind};
use crate::costs::{loads, recordings};
use crate::figure::Figure;
use anyhow::{Context, Result, ensure};
use eft_base::Protection;
use eft_messages::ComponentId;
use std::path::Path;

/// Calls of each recording.
const CALLS: usize = 20_000;
/// Messages of a recording that says something.
const FEWEST: u64 = 100;

pub fn figures(seconds: f64, wanted: impl Fn(&str) -> bool) -> Result<Vec<Figure>> {
    ensure!(has_valgrind(), "--counted needs valgrind, which cannot be run: install the package valgrind");
    let directory = tempfile::tempdir().context("no directory for recordings")?;
    let mut figures = Vec::new();
    for (number, load) in loads::ALL.iter().enumerate().filter(|(_, load)| wanted(load.name)) {
        let folder = directory.path().join(load.folder);
        loads::record(number, load, seconds, &folder).context(load.name)?;
        for file in recordings(&folder)? {
            if let Some(component) = component(&file)? {
                figures.extend(compare(load.name, component, &file, directory.path())?);
            }
        }
    }
    Ok(figures)
}

/// Of one engine under one load, for each message of a neighbour.
fn compare(load: &str, of: ComponentId, file: &Path, scratch: &Path) -> Result<Option<Figure>> {
    let counted = |protection| -> Result<(u64, f64)> {
        let (counted, events) = under_callgrind(file, CALLS, protection, scratch)?;
        let instructions: u64 = events.iter().map(|events| events.instructions).sum();
        Ok((counted.messages, instructions as f64 / counted.messages.max(1) as f64))
    };
    let [(messages, on), (_, off)] = [counted(Protection::On)?, counted(Protection::Off)?];
    if messages < FEWEST {
        return Ok(None);
    }
    let name = format!("{load}: {of}");
    Ok(Some(Figure::new(name, "instructions a message", vec![on]).beside(BASELINE, vec![off])))
}
