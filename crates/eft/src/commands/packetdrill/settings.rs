//! What a script needs of its stack and of packetdrill: addresses as in packetdrill's own runner, and the settings that it
//! makes in the kernel for which the stack has options.

use super::kernel_tools::{after_idle, ecn, fast_open, mtu_probing, pacing, tail_probes, timestamps};
use eft_transport::tcp::{
    CookieKeys, Ecn, FastOpen, MinSegments, MtuProbing, Pacing, SlowStartAfterIdle, TailProbes, Timestamps,
};
use std::net::IpAddr;

/// What packets and sockets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Version {
    Ipv4,
    Ipv6,
    Mapped,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Settings {
    version: Version,
    mtu: u16,
    ecn: Ecn,
    fastopen: FastOpen,
    fastopen_key: CookieKeys,
    timestamps: Timestamps,
    min_tso_segs: MinSegments,
    after_idle: SlowStartAfterIdle,
    mtu_probing: MtuProbing,
    tail_probes: TailProbes,
    pacing: Pacing,
    local: IpAddr,
    remote: IpAddr,
}

/// With these the public scripts begin.
const FAST_OPEN: u32 = 0x70403;
const FAST_OPEN_KEY: &str = "a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4";

impl Settings {
    /// By the text of a script.
    pub fn of(version: Version, mtu: Option<u16>, script: &str) -> Settings {
        // Changes after the first call are made when the script comes to them.
        let begin = script.split(" socket(").next().unwrap_or(script);
        Settings {
            version,
            mtu: mtu.unwrap_or(if version == Version::Ipv6 { 1520 } else { 1500 }),
            ecn: set(begin, "tcp_ecn").and_then(ecn).unwrap_or(Ecn::Off),
            fastopen: set(begin, "tcp_fastopen").and_then(fast_open).unwrap_or(FastOpen::of_linux(FAST_OPEN)),
            fastopen_key: set(begin, "tcp_fastopen_key")
                .or(Some(FAST_OPEN_KEY))
                .and_then(|key| key.parse().ok())
                .expect("a key of ours is one"),
            timestamps: set(begin, "tcp_timestamps").and_then(timestamps).unwrap_or_default(),
            min_tso_segs: set(begin, "tcp_min_tso_segs").and_then(|n| n.parse().ok()).unwrap_or_default(),
            // As `defaults.sh` has it.
            after_idle: set(begin, "tcp_slow_start_after_idle")
                .and_then(after_idle)
                .unwrap_or(SlowStartAfterIdle::Off),
            // As Linux has it.
            mtu_probing: set(begin, "tcp_mtu_probing").and_then(mtu_probing).unwrap_or(MtuProbing::Off),
            tail_probes: set(begin, "tcp_early_retrans").and_then(tail_probes).unwrap_or_default(),
            pacing: begin.lines().find_map(|line| pacing(line.split_whitespace())).unwrap_or_default(),
            local: address(script, "--local_ip=", version),
            remote: address(script, "--remote_ip=", version),
        }
    }

    /// Options of `eft up`.
    pub fn stack(&self) -> Vec<String> {
        let own = [
            ("--ecn", self.ecn.name().to_string()),
            ("--fastopen", self.fastopen.to_string()),
            ("--fastopen-key", self.fastopen_key.to_string()),
            ("--timestamps", self.timestamps.name().to_string()),
            ("--min-tso-segs", self.min_tso_segs.to_string()),
            ("--slow-start-after-idle", self.after_idle.name().to_string()),
            ("--mtu-probing", self.mtu_probing.name().to_string()),
            ("--tail-probes", self.tail_probes.name().to_string()),
            ("--pacing", self.pacing.name().to_string()),
        ];
        // As every kernel of theirs has it.
        let own = own.into_iter().chain([("--slow-start", "hystart".to_string())]);
        let mut options: Vec<String> =
            own.into_iter().flat_map(|(name, value)| [name.into(), value]).collect();
        let (prefix, gateway) = gateway_beside(self.local);
        options.extend(["--address".to_string(), format!("{}/{prefix}", self.local)]);
        options.extend(["--gateway".to_string(), gateway.to_string()]);
        options.extend(["--mtu".to_string(), self.mtu.to_string()]);
        options
    }

    /// Options of packetdrill.
    pub fn options(&self) -> Vec<String> {
        let (local, remote) = (&self.local, &self.remote);
        let mtu = self.mtu;
        let mut options =
            vec![format!("--local_ip={local}"), format!("--remote_ip={remote}"), format!("--mtu={mtu}")];
        let others: &[&str] = match self.version {
            Version::Ipv4 => &[
                "--ip_version=ipv4",
                "--netmask_ip=255.255.0.0",
                "--define=TFO_COOKIE=3021b9d889017eeb",
                "--define=CODE=host_unreachable",
                "--define=CMSG_LEVEL_IP=SOL_IP",
                "--define=CMSG_TYPE_RECVERR=IP_RECVERR",
            ],
            Version::Ipv6 => &[
                "--ip_version=ipv6",
                "--gateway_ip=fd3d:0a0b:17d6:8888::1",
                "--define=TFO_COOKIE=c1d1e9742a47a9bc",
                "--define=CMSG_LEVEL_IP=SOL_IPV6",
                "--define=CMSG_TYPE_RECVERR=IPV6_RECVERR",
            ],
            Version::Mapped => &[
                "--ip_version=ipv4-mapped-ipv6",
                "--netmask_ip=255.255.0.0",
                "--define=TFO_COOKIE=3021b9d889017eeb",
                "--define=CODE=host_unreachable",
                "--define=CMSG_LEVEL_IP=SOL_IPV6",
                "--define=CMSG_TYPE_RECVERR=IPV6_RECVERR",
            ],
        };
        options.extend(others.iter().map(|word| word.to_string()));
        if self.version != Version::Ipv6 {
            options.push(format!("--gateway_ip={local}"));
        }
        options
    }
}

/// The length of an address's network, as packetdrill's runner has it, and the gateway in it.
fn gateway_beside(local: IpAddr) -> (u8, IpAddr) {
    match local {
        IpAddr::V4(local) => {
            let [a, b, ..] = local.octets();
            (16, [a, b, 255, 254].into())
        }
        IpAddr::V6(local) => {
            let [a, b, c, d, ..] = local.segments();
            (64, [a, b, c, d, 0, 0, 0, 0xffff].into())
        }
    }
}

/// An address that a script names for itself, or the usual one: options of a command line would win.
fn address(script: &str, option: &str, version: Version) -> IpAddr {
    let usual = match (version, option) {
        (Version::Ipv6, "--local_ip=") => [0xfd3d, 0xa0b, 0x17d6, 0, 0, 0, 0, 1].into(),
        (Version::Ipv6, _) => [0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1].into(),
        (_, "--local_ip=") => [192, 168, 0, 1].into(),
        _ => [192, 0, 2, 1].into(),
    };
    let own = script
        .lines()
        .filter_map(|line| line.trim().strip_prefix(option)?.parse::<IpAddr>().ok())
        .find(|own| own.is_ipv4() == (version != Version::Ipv6));
    own.unwrap_or(usual)
}

/// The first value that a script sets a kernel variable of TCP to, by `sysctl` or by its file.
fn set<'a>(script: &'a str, name: &str) -> Option<&'a str> {
    let places = [format!("net.ipv4.{name}="), format!("net/ipv4/{name}=")];
    let places = places.iter().filter_map(|assigned| script.find(assigned).map(|at| at + assigned.len()));
    let after = script[places.min()?..].trim_start_matches('"');
    let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || "-,".contains(c)));
    Some(&after[..end.unwrap_or(after.len())])
}

#[cfg(test)]
mod tests;
