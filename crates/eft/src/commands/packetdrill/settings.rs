//! What a script needs of its stack and of packetdrill: addresses as in packetdrill's own runner, and the settings that it
//! makes in the kernel for which the stack has options.

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
    ecn: &'static str,
    fastopen: &'static str,
    timestamps: &'static str,
}

impl Settings {
    /// By the text of a script.
    pub fn of(version: Version, script: &str) -> Settings {
        let ecn = match set(script, "net.ipv4.tcp_ecn", "net/ipv4/tcp_ecn") {
            Some(1) => "ask",
            Some(2) => "answer",
            // The public scripts start with this.
            _ => "off",
        };
        // Linux's bits 1 and 2; packetdrill's public scripts run with both by default.
        let fastopen =
            match set(script, "net.ipv4.tcp_fastopen", "net/ipv4/tcp_fastopen").map(|bits| bits & 3) {
                Some(0) => "off",
                Some(1) => "client",
                Some(2) => "server",
                _ => "both",
            };
        let timestamps = match set(script, "net.ipv4.tcp_timestamps", "net/ipv4/tcp_timestamps") {
            Some(0) => "off",
            _ => "on",
        };
        Settings { version, ecn, fastopen, timestamps }
    }

    /// Options of `eft up`.
    pub fn stack(&self) -> Vec<&'static str> {
        let mut options =
            vec!["--ecn", self.ecn, "--fastopen", self.fastopen, "--timestamps", self.timestamps];
        options.extend_from_slice(match self.version {
            Version::Ipv4 | Version::Mapped => {
                &["--address", "192.168.0.1/16", "--gateway", "192.168.255.254"]
            }
            Version::Ipv6 => {
                &["--address", "fd3d:a0b:17d6::1/64", "--gateway", "fd3d:a0b:17d6::ffff", "--mtu", "1520"]
            }
        });
        options
    }

    /// Options of packetdrill.
    pub fn options(&self) -> &'static [&'static str] {
        match self.version {
            Version::Ipv4 => &[
                "--ip_version=ipv4",
                "--local_ip=192.168.0.1",
                "--gateway_ip=192.168.0.1",
                "--netmask_ip=255.255.0.0",
                "--remote_ip=192.0.2.1",
                "--define=TFO_COOKIE=3021b9d889017eeb",
                "--define=CODE=host_unreachable",
                "--define=CMSG_LEVEL_IP=SOL_IP",
                "--define=CMSG_TYPE_RECVERR=IP_RECVERR",
            ],
            Version::Ipv6 => &[
                "--ip_version=ipv6",
                "--mtu=1520",
                "--local_ip=fd3d:0a0b:17d6::1",
                "--gateway_ip=fd3d:0a0b:17d6:8888::1",
                "--remote_ip=fd3d:fa7b:d17d::1",
                "--define=TFO_COOKIE=c1d1e9742a47a9bc",
                "--define=CMSG_LEVEL_IP=SOL_IPV6",
                "--define=CMSG_TYPE_RECVERR=IPV6_RECVERR",
            ],
            Version::Mapped => &[
                "--ip_version=ipv4-mapped-ipv6",
                "--local_ip=192.168.0.1",
                "--gateway_ip=192.168.0.1",
                "--netmask_ip=255.255.0.0",
                "--remote_ip=192.0.2.1",
                "--define=TFO_COOKIE=3021b9d889017eeb",
                "--define=CODE=host_unreachable",
                "--define=CMSG_LEVEL_IP=SOL_IPV6",
                "--define=CMSG_TYPE_RECVERR=IPV6_RECVERR",
            ],
        }
    }
}

/// The first value that a script sets a kernel variable to, by `sysctl` or by its file.
fn set(script: &str, name: &str, path: &str) -> Option<u32> {
    let places = [name, path].into_iter().filter_map(|name| {
        let assigned = format!("{name}=");
        script.find(&assigned).map(|at| at + assigned.len())
    });
    let after = script[places.min()?..].trim_start_matches('"');
    let (digits, radix) = after.strip_prefix("0x").map_or((after, 10), |hex| (hex, 16));
    let len = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    u32::from_str_radix(&digits[..len], radix).ok()
}

#[cfg(test)]
mod tests;
