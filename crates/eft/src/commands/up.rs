//! `eft up`: runs a stack in the foreground.

pub mod file;
mod notify;
pub mod source;

use anyhow::{Context, Result, bail};
use eft_base::{Cidr, MacAddress, Protection, SlotShare};
use eft_component::Topology;
use eft_linux::devices::DeviceSpec;
use eft_linux::supervisor::{self, DeviceConfig, News, StackConfig};
use eft_messages::{ComponentId, Role};
use eft_transport::tcp::{
    Algorithm, CookieKeys, Ecn, FastOpen, MinSegments, MtuProbing, Pacing, SlowStart, SlowStartAfterIdle,
    TailProbes, Timestamps,
};
use file::Options;
use source::Source;
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Longer than systemd takes to start the unit again, and short enough that programs do not wait long for a stack that
/// is not started again.
const KEEP_S: u32 = 2;
/// Longer than a server takes, also one that boots with this machine, and shorter than systemd waits for a service (90 s).
const WAIT_ONLINE_S: u32 = 30;

#[derive(clap::Args, Debug)]
pub struct UpArguments {
    /// The stack's name; `eft` if neither this nor the configuration file names it
    #[arg(long)]
    name: Option<String>,
    /// A configuration file with these options by their names; the command line wins
    #[arg(long)]
    config: Option<PathBuf>,
    /// tap:IF, plain-tap:IF, packet:IF or pair:PATH; may be repeated, each with its --address
    #[arg(long, required_unless_present = "config")]
    device: Vec<DeviceSpec>,
    /// Address with prefix length, or how to get one (slaac: from routers, dhcp4 and dhcp6: from a server, auto: in all ways): the first for the first device,
    /// and so on; further ones are the last device's
    #[arg(long, required_unless_present = "config")]
    address: Vec<Source>,
    /// Router for packets to other networks; at most one for each IP version
    #[arg(long)]
    gateway: Vec<IpAddr>,
    /// Address of the Linux side of the first TAP device; may be repeated
    #[arg(long)]
    host_address: Vec<Cidr>,
    /// Bytes of the largest IP packet on the devices
    #[arg(long, value_parser = clap::value_parser!(u16).range(576..))]
    mtu: Option<u16>,
    /// Name server that programs on the stack ask first
    #[arg(long)]
    nameserver: Option<IpAddr>,
    /// Explicit congestion notification of TCP: off, answer (if the peer asks, the default) or ask (connections that begin
    /// here, too); accurate, accurate-ask, accurate-answer: with counts of marks (RFC 9768), as Linux's tcp_ecn=3, 4, 5
    #[arg(long)]
    ecn: Option<Ecn>,
    /// TCP Fast Open: off, or a list of client (programs that connect may send with the SYN, the default), server
    /// (listeners that ask for it), both, all-listeners, client-no-cookie and server-no-cookie (no proof of the address)
    #[arg(long)]
    fastopen: Option<FastOpen>,
    /// Key of its cookies, and after a comma an older one, as Linux's tcp_fastopen_key, so that several servers behind one
    /// address agree; by default a key of the stack's own that changes daily. `ps` shows it: better in the --config file
    #[arg(long)]
    fastopen_key: Option<CookieKeys>,
    /// Timestamps of TCP (RFC 7323): on (the default) or off
    #[arg(long)]
    timestamps: Option<Timestamps>,
    /// Segments, of 1 to 1000, that TCP hands to the device as one even if the connection is slow; a large number costs less,
    /// and makes longer queues on slow paths (default: 2, as Linux's tcp_min_tso_segs)
    #[arg(long)]
    min_tso_segs: Option<MinSegments>,
    /// Congestion control of TCP for programs that choose none (TCP_CONGESTION): cubic (RFC 9438, the default), reno (RFC 5681) or
    /// bbr (version 1, as Linux's: by the rate that the path delivers, whatever it loses)
    #[arg(long)]
    congestion: Option<Algorithm>,
    /// How TCP's slow start ends when round trips grow longer: hystart++ (RFC 9406, the default), or hystart as Linux's CUBIC
    #[arg(long)]
    slow_start: Option<SlowStart>,
    /// Whether TCP's slow start begins anew when nothing was sent for longer than a retransmission timeout (RFC 5681 §4.1): on
    /// (the default) or off, as Linux's tcp_slow_start_after_idle
    #[arg(long)]
    slow_start_after_idle: Option<SlowStartAfterIdle>,
    /// Which connections TCP paces: auto (those that set SO_MAX_PACING_RATE, and the bursts of a recovery; the default) or on (all)
    #[arg(long)]
    pacing: Option<Pacing>,
    /// When TCP probes a path for its MTU, without ICMP (RFC 4821): off, blackhole (when segments get lost again and again; the
    /// default) or always (from the beginning), as Linux's tcp_mtu_probing
    #[arg(long)]
    mtu_probing: Option<MtuProbing>,
    /// Whether TCP probes for a loss at the end of what it sent (RFC 8985 §7), before the retransmission timer would: on (the
    /// default) or off, as Linux's tcp_early_retrans
    #[arg(long)]
    tail_probes: Option<TailProbes>,
    /// Seconds for which connections wait for another `eft up` of this name if this one is killed (default: 2); five times as long
    /// while servers live, and connections go on
    #[arg(long)]
    keep: Option<u32>,
    /// Seconds for which `ready` waits for addresses from the network: slaac, dhcp4, dhcp6 (default: 30; 0: it does not)
    #[arg(long)]
    wait_online: Option<u32>,
    /// Take over devices and addresses of a running `eft up` of this name: it ends, its connections survive
    #[arg(long)]
    take_over: bool,
    /// Record the inputs of ip, filter, tcp and udp in this folder (made if missing), up to 256 MB each, for `eft replay`
    #[arg(long)]
    record: Option<PathBuf>,
    /// off, to measure what it costs that faults are survived and damage is noticed: then no connection survives the death of
    /// tcp, udp or filter, and nothing is summed or compared
    #[arg(long, default_value = "on", hide_default_value = true)]
    protection: Protection,
    /// Which components run, how they are connected and placed
    #[arg(long)]
    topology: Option<PathBuf>,
}

pub fn run(arguments: &UpArguments) -> Result<()> {
    let mut config = config(options(arguments)?)?;
    config.take_over = arguments.take_over;
    config.protection = arguments.protection;
    if config.protection == Protection::Off {
        if config.record.is_some() {
            bail!("--record works with --protection on alone: a replay protects what it does");
        }
        eprintln!(
            "eft: --protection off is for measurements: connections do not survive the death of tcp, udp or filter, \
             and no damage is noticed"
        );
    }
    let mut manager = notify::Manager::from_environment();
    let tell = |news| {
        if news == News::Ready {
            println!("ready");
            let _ = std::io::stdout().flush();
        }
        manager.tell(news);
    };
    Ok(supervisor::run(config, tell)?)
}

/// The command line, and where it is silent the file.
fn options(arguments: &UpArguments) -> Result<Options> {
    let file = arguments.config.as_deref().map(file::read).transpose()?.unwrap_or_default();
    let or = |given: &Option<PathBuf>, file: Option<PathBuf>| given.clone().or(file);
    let options = Options {
        name: arguments.name.clone().or(file.name),
        device: if arguments.device.is_empty() { file.device } else { arguments.device.clone() },
        address: if arguments.address.is_empty() { file.address } else { arguments.address.clone() },
        gateway: if arguments.gateway.is_empty() { file.gateway } else { arguments.gateway.clone() },
        host_address: match arguments.host_address.is_empty() {
            true => file.host_address,
            false => arguments.host_address.clone(),
        },
        mtu: arguments.mtu.or(file.mtu),
        nameserver: arguments.nameserver.or(file.nameserver),
        ecn: arguments.ecn.or(file.ecn),
        fastopen: arguments.fastopen.or(file.fastopen),
        fastopen_key: arguments.fastopen_key.or(file.fastopen_key),
        timestamps: arguments.timestamps.or(file.timestamps),
        min_tso_segs: arguments.min_tso_segs.or(file.min_tso_segs),
        congestion: arguments.congestion.or(file.congestion),
        slow_start: arguments.slow_start.or(file.slow_start),
        slow_start_after_idle: arguments.slow_start_after_idle.or(file.slow_start_after_idle),
        pacing: arguments.pacing.or(file.pacing),
        mtu_probing: arguments.mtu_probing.or(file.mtu_probing),
        tail_probes: arguments.tail_probes.or(file.tail_probes),
        keep: arguments.keep.or(file.keep),
        wait_online: arguments.wait_online.or(file.wait_online),
        record: or(&arguments.record, file.record),
        topology: or(&arguments.topology, file.topology),
    };
    for (missing, key) in [(options.device.is_empty(), "device"), (options.address.is_empty(), "address")] {
        if missing {
            bail!("there is no {key}: give --{key}, or `{key}` in the configuration file");
        }
    }
    Ok(options)
}

pub fn config(arguments: Options) -> Result<StackConfig> {
    let topology = match &arguments.topology {
        None => Topology::parse(eft_component::topology::DEFAULT)?,
        Some(path) => {
            let text = eft_host::named_file::text(path).with_context(|| path.display().to_string())?;
            Topology::parse(&text).with_context(|| path.display().to_string())?
        }
    };
    if arguments.record.is_some() && topology.edge.iter().any(|e| e.capacity != 1024) {
        bail!("--record works with queues of 1024 messages only: drop `capacity` from the topology");
    }
    let devices = &arguments.device;
    if arguments.address.len() < devices.len() {
        bail!(
            "{} devices but only {} addresses: give every --device an --address",
            devices.len(),
            arguments.address.len()
        );
    }
    if let Some(dir) = &arguments.record {
        // A server that cannot open its recording would die at every start.
        std::fs::create_dir_all(dir).with_context(|| format!("--record {}", dir.display()))?;
    }
    let last = devices.len() - 1;
    let configs = devices.iter().enumerate().map(|(i, spec)| {
        let until = if i == last { arguments.address.len() } else { i + 1 };
        let (addresses, auto) = source::split(&arguments.address[i..until]);
        DeviceConfig {
            spec: spec.clone(),
            text: text(spec),
            interface: interface_name(spec, i),
            addresses,
            auto,
            mac: MacAddress::default(),
            mtu: 1500,
            ring: None,
        }
    });
    Ok(StackConfig {
        name: arguments.name.clone().unwrap_or_else(|| "eft".into()),
        topology,
        devices: configs.collect(),
        gateways: arguments.gateway,
        host_addresses: arguments.host_address,
        mtu: arguments.mtu,
        nameserver: arguments.nameserver,
        ecn: arguments.ecn.unwrap_or_default().name(),
        fastopen: arguments.fastopen.unwrap_or_default().to_string(),
        fastopen_key: arguments.fastopen_key.map_or(String::new(), |keys| keys.to_string()),
        timestamps: arguments.timestamps.unwrap_or_default().name(),
        min_tso_segs: arguments.min_tso_segs.unwrap_or_default().count(),
        congestion: arguments.congestion.unwrap_or_default().name(),
        slow_start: arguments.slow_start.unwrap_or_default().name(),
        slow_start_after_idle: arguments.slow_start_after_idle.unwrap_or_default().name(),
        pacing: arguments.pacing.unwrap_or_default().name(),
        mtu_probing: arguments.mtu_probing.unwrap_or_default().name(),
        tail_probes: arguments.tail_probes.unwrap_or_default().name(),
        keep: Duration::from_secs(arguments.keep.unwrap_or(KEEP_S).into()),
        wait_online: Duration::from_secs(arguments.wait_online.unwrap_or(WAIT_ONLINE_S).into()),
        check_ip: |text| match eft_ip::config::Config::parse(text.as_bytes()) {
            Ok(_) => Ok(()),
            Err(e) => Err(e.to_string()),
        },
        private: false,
        take_over: false,
        protection: Protection::On,
        record: arguments.record,
        arena_len,
    })
}

fn text(spec: &DeviceSpec) -> String {
    match spec {
        DeviceSpec::Tap(name) => format!("tap:{name}"),
        DeviceSpec::PlainTap(name) => format!("plain-tap:{name}"),
        DeviceSpec::Packet(name) => format!("packet:{name}"),
        DeviceSpec::Pair(path) => format!("pair:{path}"),
    }
}

/// What rules and programs call the interface.
fn interface_name(spec: &DeviceSpec, i: usize) -> String {
    match spec {
        DeviceSpec::Tap(name) | DeviceSpec::PlainTap(name) | DeviceSpec::Packet(name) => name.clone(),
        DeviceSpec::Pair(_) => format!("pair{i}"),
    }
}

/// Bytes of each engine's durable arena.
fn arena_len(peer: ComponentId, topology: &Topology) -> usize {
    match peer.role {
        Role::Tcp => {
            eft_transport::tcp::arena_len(&super::serve::tcp_config(&topology.limits, 0, SlotShare::TCP))
        }
        Role::Udp => {
            eft_transport::udp::arena_len(&super::serve::udp_config(&topology.limits, 0, SlotShare::UDP))
        }
        Role::Filter => eft_filter::arena_len(&super::serve::filter_config(0)),
        Role::Ip => eft_ip::DOCKET_LEN,
        _ => 0,
    }
}
