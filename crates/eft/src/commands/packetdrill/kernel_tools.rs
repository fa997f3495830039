//! Tools with which scripts change the kernel under test. Here no kernel is tested, and this one may lack some settings: what
//! the stack has as a setting is changed there, and the rest has no effect. One shows counters, and one looks into tables of
//! sockets: the stack's.

use super::socket_table;
use crate::commands::set::Settings;
use crate::commands::stat::counters_of;
use anyhow::{Context, Result};
use eft_bench::counters::counters;
use eft_transport::tcp::{Ecn, FastOpen, MtuProbing, Pacing, SlowStartAfterIdle, TailProbes, Timestamps};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;

const TOOLS: [&str; 7] = ["sysctl", "tc", "ethtool", "ip", "ifconfig", "nstat", "grep"];
/// Counters of the kernel that scripts look into, and tcp's that count the same.
const COUNTERS: [(&str, &str); 1] = [("TcpExtOutOfWindowIcmps", "drop_icmp")];
/// The variable that names the script's stack.
pub const STACK: &str = "EFT_PACKETDRILL_STACK";
/// The script with which the public scripts begin. The stack begins with its settings, or with those that the script itself
/// makes next.
const DEFAULTS: &str = "defaults.sh";

#[derive(clap::Args, Debug)]
pub struct KernelToolArguments {
    /// The tool and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// The PATH for scripts' commands: it begins with a folder of these tools. The folder lives as long as the value.
pub fn path() -> Result<(tempfile::TempDir, OsString)> {
    let folder = tempfile::tempdir()?;
    let eft = std::env::current_exe()?;
    for name in TOOLS {
        let file = folder.path().join(name);
        // No test of quoting is needed: nobody but packetdrill's scripts runs it.
        let text = format!(
            "#!/bin/sh\ncase \"$(tr '\\0' ' ' < /proc/$PPID/cmdline)\" in *{DEFAULTS}*) exit 0;; esac\n\
             exec '{}' kernel-tool {name} \"$@\"\n",
            eft.display()
        );
        std::fs::write(&file, text)?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755))?;
    }
    let before = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(folder.path().to_path_buf()).chain(std::env::split_paths(&before));
    let path = std::env::join_paths(all)?;
    Ok((folder, path))
}

pub fn kernel_tool(arguments: &KernelToolArguments) -> Result<()> {
    let stack = || std::env::var(STACK).with_context(|| format!("{STACK} is not set"));
    match arguments.words.split_first() {
        Some((tool, _)) if tool == "nstat" => return show_counters(&stack()?),
        Some((tool, words)) if tool == "grep" => return socket_table::grep(&stack()?, words),
        _ => {}
    }
    let settings = meaning(&arguments.words);
    if settings == Settings::default() {
        return Ok(());
    }
    settings.make(&stack()?)
}

/// `nstat`: the counters that are not zero.
fn show_counters(stack: &str) -> Result<()> {
    let all = counters(stack, counters_of)?;
    for (kernel, own) in COUNTERS {
        if let Some(count) = all["tcp"][own].as_u64().filter(|count| *count > 0) {
            println!("{kernel} {count} 0.0");
        }
    }
    Ok(())
}

/// What a command line of a tool means to the stack.
fn meaning(words: &[String]) -> Settings {
    let mut settings = Settings::default();
    match words.first().map(String::as_str) {
        Some("tc") => settings.pacing = pacing(words[1..].iter().map(String::as_str)),
        Some("ip") => settings.forget_servers = words[1..] == ["tcp_metrics", "flush", "all"],
        Some("sysctl") => {
            words[1..].iter().filter_map(|word| word.split_once('=')).for_each(|(name, value)| {
                match name {
                    "net.ipv4.tcp_ecn" => settings.ecn = ecn(value),
                    "net.ipv4.tcp_fastopen" => settings.fastopen = fast_open(value),
                    "net.ipv4.tcp_fastopen_key" => settings.fastopen_key = value.parse().ok(),
                    "net.ipv4.tcp_timestamps" => settings.timestamps = timestamps(value),
                    "net.ipv4.tcp_min_tso_segs" => settings.min_tso_segs = value.parse().ok(),
                    "net.ipv4.tcp_slow_start_after_idle" => {
                        settings.slow_start_after_idle = after_idle(value)
                    }
                    "net.ipv4.tcp_mtu_probing" => settings.mtu_probing = mtu_probing(value),
                    "net.ipv4.tcp_early_retrans" => settings.tail_probes = tail_probes(value),
                    // Linux once emptied its cache so.
                    "net.ipv4.tcp_fastopen_cookies" => settings.forget_servers = true,
                    _ => {}
                }
            })
        }
        _ => {}
    }
    settings
}

pub fn ecn(value: &str) -> Option<Ecn> {
    Some(match value {
        "0" => Ecn::Off,
        "1" => Ecn::Ask,
        "2" => Ecn::Answer,
        "3" => Ecn::Accurate,
        "4" => Ecn::AccurateAsk,
        "5" => Ecn::AccurateAnswer,
        _ => return None,
    })
}

pub fn timestamps(value: &str) -> Option<Timestamps> {
    Some(if value == "0" { Timestamps::Off } else { Timestamps::On })
}

pub fn after_idle(value: &str) -> Option<SlowStartAfterIdle> {
    Some(if value == "0" { SlowStartAfterIdle::Off } else { SlowStartAfterIdle::On })
}

pub fn mtu_probing(value: &str) -> Option<MtuProbing> {
    Some(match value {
        "0" => MtuProbing::Off,
        "1" => MtuProbing::BlackHole,
        "2" => MtuProbing::Always,
        _ => return None,
    })
}

/// Values that once meant another mechanism mean "on" now (tcp.rst).
pub fn tail_probes(value: &str) -> Option<TailProbes> {
    Some(if value == "0" { TailProbes::Off } else { TailProbes::On })
}

/// What the words of a `tc` command line mean: with the queueing discipline `fq` at its device, Linux paces every connection.
pub fn pacing<'a>(words: impl Iterator<Item = &'a str>) -> Option<Pacing> {
    let mut discipline = words.skip_while(|word| *word != "root").skip(1);
    (discipline.next().map(|name| name.trim_end_matches('`')) == Some("fq")).then_some(Pacing::On)
}

/// A value of Linux's `net.ipv4.tcp_fastopen`.
pub fn fast_open(value: &str) -> Option<FastOpen> {
    let (digits, radix) = value.strip_prefix("0x").map_or((value, 10), |hex| (hex, 16));
    u32::from_str_radix(digits, radix).ok().map(FastOpen::of_linux)
}

#[cfg(test)]
mod tests;
