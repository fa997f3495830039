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
mod tests {
    use super::*;
    use eft_cores::indicators::Mix;
    use eft_cores::profile::Outcome;
    use eft_cores::throughput::Throughput;
    use eft_machine::Watts;

    fn complaint(path: &Path, machine: &Machine) -> String {
        format!("{:#}", read(path, machine).unwrap_err())
    }

    #[test]
    fn what_is_written_is_read_and_damage_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/profiles.toml");
        let machine = Machine { online: "0-1".parse().unwrap(), ..Machine::default() };
        assert!(complaint(&path, &machine).contains("no profiles yet"));
        let mut profiles = Profiles::default();
        profiles.record(
            "bulk",
            Mix::default(),
            Outcome { throughput: Throughput(5.0), power: Watts(2.0), ..Outcome::default() },
        );
        write(&path, &profiles, &machine).unwrap();
        assert_eq!(read(&path, &machine).unwrap(), profiles);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "a temporary file is left");
        let other = Machine { online: "0-3".parse().unwrap(), ..Machine::default() };
        assert!(complaint(&path, &other).contains("another machine"));
        let text = fs::read_to_string(&path).unwrap().replace("5.0", "6.0");
        fs::write(&path, text).unwrap();
        assert!(complaint(&path, &machine).contains("damaged"));
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(complaint(&path, &machine).contains("no UTF-8 text"));
    }
}
