//! The profile file on disk: read as a whole and checked, replaced as a whole.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use eft_cores::profile::{Profiles, file};
use eft_host::named_file;
use eft_machine::{CpuSet, Machine};

pub const DEFAULT: &str = "/var/lib/eft/profiles.toml";

/// What tells machines apart does not depend on what is managed.
pub fn this_machine() -> Result<Machine> {
    Ok(eft_host::managed::machine(&CpuSet::new())?)
}

/// A file that does not exist is an error with a hint.
pub fn read(path: &Path, machine: &Machine) -> Result<Profiles> {
    let shown = path.display();
    let text = named_file::text(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            anyhow!("{shown}: there are no profiles yet; `eft profile sweep` records some")
        }
        _ => anyhow!(e).context(shown.to_string()),
    })?;
    file::read(&text, machine).with_context(|| shown.to_string())
}

/// As [`read`]; no file is no profile.
pub fn read_or_new(path: &Path, machine: &Machine) -> Result<Profiles> {
    if path.exists() { read(path, machine) } else { Ok(Profiles::default()) }
}

/// Written to another file and renamed, so that no reader sees half a file.
pub fn write(path: &Path, profiles: &Profiles, machine: &Machine) -> Result<()> {
    let text = file::write(profiles, machine)?;
    let of = || path.display().to_string();
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(dir).with_context(of)?;
    let name = path.file_name().with_context(|| format!("{}: this names no file", path.display()))?;
    let beside = dir.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let written = fs::File::create(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.with_context(of)
}

#[cfg(test)]
mod tests;
