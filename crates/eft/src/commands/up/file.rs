//! The configuration file of `eft up`: the same names as the options of the command line, which win.
//!
//! ```toml
//! device = "tap:eft0"            # or a list
//! address = ["10.0.5.2/24"]      # or how to get one, as "slaac"
//! host-address = "10.0.5.1/24"
//! topology = "web.topology.toml" # beside this file, unless it begins with /
//! ```

use std::fmt::Display;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::source::Source;
use anyhow::{Context, Result, anyhow};
use eft_base::Cidr;
use eft_base::text::complaint;
use eft_linux::devices::DeviceSpec;
use eft_transport::tcp::{
    Algorithm, CookieKeys, Ecn, FastOpen, MinSegments, MtuProbing, Pacing, SlowStart, SlowStartAfterIdle,
    TailProbes, Timestamps,
};
use serde::Deserialize;

#[derive(Debug, Default, PartialEq)]
pub struct Options {
    pub name: Option<String>,
    pub device: Vec<DeviceSpec>,
    pub address: Vec<Source>,
    pub gateway: Vec<IpAddr>,
    pub host_address: Vec<Cidr>,
    pub mtu: Option<u16>,
    pub nameserver: Option<IpAddr>,
    pub ecn: Option<Ecn>,
    pub fastopen: Option<FastOpen>,
    pub fastopen_key: Option<CookieKeys>,
    pub timestamps: Option<Timestamps>,
    pub min_tso_segs: Option<MinSegments>,
    pub congestion: Option<Algorithm>,
    pub slow_start: Option<SlowStart>,
    pub slow_start_after_idle: Option<SlowStartAfterIdle>,
    pub pacing: Option<Pacing>,
    pub mtu_probing: Option<MtuProbing>,
    pub tail_probes: Option<TailProbes>,
    pub keep: Option<u32>,
    pub wait_online: Option<u32>,
    pub record: Option<PathBuf>,
    pub topology: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Text {
    name: Option<String>,
    #[serde(default)]
    device: OneOrMore,
    #[serde(default)]
    address: OneOrMore,
    #[serde(default)]
    gateway: OneOrMore,
    #[serde(default)]
    host_address: OneOrMore,
    mtu: Option<i64>,
    nameserver: Option<String>,
    ecn: Option<String>,
    fastopen: Option<String>,
    fastopen_key: Option<String>,
    timestamps: Option<String>,
    min_tso_segs: Option<i64>,
    congestion: Option<String>,
    slow_start: Option<String>,
    slow_start_after_idle: Option<String>,
    pacing: Option<String>,
    mtu_probing: Option<String>,
    tail_probes: Option<String>,
    keep: Option<u32>,
    wait_online: Option<u32>,
    record: Option<PathBuf>,
    topology: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a string or a list of strings")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl Default for OneOrMore {
    fn default() -> Self {
        OneOrMore::More(Vec::new())
    }
}

impl OneOrMore {
    fn all(self) -> Vec<String> {
        match self {
            OneOrMore::One(one) => vec![one],
            OneOrMore::More(more) => more,
        }
    }
}

pub fn read(path: &Path) -> Result<Options> {
    let text = eft_host::named_file::text(path).with_context(|| path.display().to_string())?;
    let mut options = parse(&text).with_context(|| path.display().to_string())?;
    let beside = |file: PathBuf| path.parent().unwrap_or(Path::new("")).join(file);
    options.topology = options.topology.map(beside);
    options.record = options.record.map(beside);
    Ok(options)
}

fn parse(text: &str) -> Result<Options> {
    let text: Text = toml::from_str(text).map_err(|e| anyhow!(complaint(text, e.span(), e.message())))?;
    let mtu = |mtu: i64| {
        let sane = u16::try_from(mtu).ok().filter(|mtu| *mtu >= 576);
        sane.with_context(|| format!("mtu: {mtu} is not in 576..=65535"))
    };
    Ok(Options {
        name: text.name,
        device: text.device.all().iter().map(|s| one("device", s)).collect::<Result<_, _>>()?,
        address: text.address.all().iter().map(|s| one("address", s)).collect::<Result<_, _>>()?,
        gateway: text.gateway.all().iter().map(|s| one("gateway", s)).collect::<Result<_, _>>()?,
        host_address: text
            .host_address
            .all()
            .iter()
            .map(|s| one("host-address", s))
            .collect::<Result<_, _>>()?,
        mtu: text.mtu.map(mtu).transpose()?,
        nameserver: text.nameserver.map(|s| one("nameserver", &s)).transpose()?,
        ecn: text.ecn.map(|s| one("ecn", &s)).transpose()?,
        fastopen: text.fastopen.map(|s| one("fastopen", &s)).transpose()?,
        fastopen_key: text.fastopen_key.map(|s| one("fastopen-key", &s)).transpose()?,
        timestamps: text.timestamps.map(|s| one("timestamps", &s)).transpose()?,
        min_tso_segs: text.min_tso_segs.map(|n| one("min-tso-segs", &n.to_string())).transpose()?,
        congestion: text.congestion.map(|s| one("congestion", &s)).transpose()?,
        slow_start: text.slow_start.map(|s| one("slow-start", &s)).transpose()?,
        slow_start_after_idle: text
            .slow_start_after_idle
            .map(|s| one("slow-start-after-idle", &s))
            .transpose()?,
        pacing: text.pacing.map(|s| one("pacing", &s)).transpose()?,
        mtu_probing: text.mtu_probing.map(|s| one("mtu-probing", &s)).transpose()?,
        tail_probes: text.tail_probes.map(|s| one("tail-probes", &s)).transpose()?,
        keep: text.keep,
        wait_online: text.wait_online,
        record: text.record,
        topology: text.topology,
    })
}

fn one<T: FromStr<Err: Display>>(key: &str, text: &str) -> Result<T> {
    text.parse().map_err(|e| anyhow!("{key}: `{}`: {e}", text.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_command_line_takes_the_file_takes() {
        let options = parse(
            "name = \"web\"\ndevice = \"tap:eft0\"\naddress = [\"10.0.5.2/24\", \"10.0.5.3/24\"]\nmtu = 9000\n\
             host-address = \"10.0.5.1/24\"\ngateway = \"10.0.5.1\"\n",
        )
        .unwrap();
        assert_eq!((options.name.as_deref(), options.mtu), (Some("web"), Some(9000)));
        assert_eq!((options.device.len(), options.address.len()), (1, 2));
        assert_eq!(options.gateway, ["10.0.5.1".parse::<IpAddr>().unwrap()]);
        assert_eq!(parse("").unwrap(), Options::default());
    }

    #[test]
    fn each_mistake_is_one_line_that_names_it() {
        for (text, says) in [
            ("\nadress = \"10.0.5.2/24\"", "): unknown field `adress`"),
            ("host_address = \"10.0.5.1/24\"", "unknown field `host_address`"),
            ("device = \"bogus:x\"", "device: `bogus:x`"),
            ("device = 7", "a string or a list of strings"),
            ("address = [\"10.0.5.2\"]", "address: `10.0.5.2`"),
            ("mtu = 70000", "mtu: 70000"),
            ("mtu = 100", "mtu: 100"),
            ("gateway = \"here\"", "gateway: `here`"),
            ("name = ", "line 1"),
        ] {
            let said = format!("{:#}", parse(text).unwrap_err());
            assert!(said.contains(says) && !said.contains('\n'), "{text:?}: {said:?}");
        }
    }

    #[test]
    fn the_example_is_right() {
        let example = include_str!("../../../../../packaging/example.toml");
        let options = parse(example).unwrap();
        assert!(!options.device.is_empty() && options.address.len() >= options.device.len());
    }
}
