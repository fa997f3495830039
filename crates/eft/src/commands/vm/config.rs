//! The configuration file of `eft vm` (`/etc/eft/vm.toml` for the service).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use eft_base::text::complaint;
use eft_host::guests::session::GuestOptions;
use eft_machine::CpuSet;
use eft_vcpu::options::{Policy, Score};
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Config {
    pub policy: Option<Policy>,
    pub score: Option<Score>,
    pub interval: Option<f64>,
    pub window: Option<f64>,
    pub cpus: Option<CpuSet>,
    pub qmp: Vec<PathBuf>,
    pub group: Vec<String>,
    pub groups_only: bool,
    pub only: Vec<String>,
    /// By name.
    pub guest: BTreeMap<String, GuestOptions>,
}

pub fn read(path: &Path) -> Result<Config> {
    let text = eft_host::named_file::text(path)
        .map_err(|error| anyhow!("{} cannot be read ({error})", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &str) -> Result<Config> {
    let config: Config =
        toml::from_str(text).map_err(|error| anyhow!(complaint(text, error.span(), error.message())))?;
    for (name, guest) in &config.guest {
        if guest.weight.is_some_and(|weight| !(1..=65_536).contains(&weight)) {
            bail!("guest {name}: a weight is from 1 to 65536");
        }
        if guest.cap.is_some_and(|cap| !(0.01..=8192.0).contains(&cap)) {
            bail!("guest {name}: a cap is from 0.01 to 8192 cores");
        }
    }
    Ok(config)
}

#[cfg(test)]
mod tests;
