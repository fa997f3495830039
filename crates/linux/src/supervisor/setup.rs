//! Checks a stack's configuration, and makes everything that exists before the first server starts.

mod configuration;
mod in_force;
mod member;
mod network;

use super::changes::{self, Changes};
use super::deathwatch::Deathwatch;
use super::domains::Keeping;
use super::inheritance::{Inheritance, InheritedDevice};
use super::kept::{COOKIE_SECRET, IDENTITY, Kept, REMEMBERED};
use super::member::Member;
use super::say::say;
use super::{Supervisor, Watched};
use super::{predecessor, signals};
use crate::devices::{DeviceSpec, packet, pair, tap};
use crate::protocol::{DeviceKind, DeviceSetup, RingShape};
use crate::{Doing, Error, Result, host, life, operator};
pub(super) use configuration::check_address;
use configuration::{check, configuration, cookie_secret};
use eft_autoconf::method::Method;
use eft_base::{Cidr, MacAddress};
use eft_component::Topology;
use eft_host::clock;
use eft_messages::{ComponentId, Role};
pub(super) use in_force::InForce;
#[cfg(test)]
pub(super) use member::all as members;
use network::{identity, network_of, remembered};
pub(super) use network::{of_network, silence};
use rustix::event::epoll;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

/// One device of a stack.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    pub spec: DeviceSpec,
    /// The device's text on the command line.
    pub text: String,
    /// The name that rules and `getifaddrs` use.
    pub interface: String,
    pub addresses: Vec<Cidr>,
    /// How it gets further ones.
    pub auto: Vec<Method>,
    pub mac: MacAddress,
    pub mtu: u16,
    /// The receive ring that a packet socket has.
    pub ring: Option<RingShape>,
}

impl DeviceConfig {
    /// What its NIC learns of it.
    pub fn setup(&self, interface: u8) -> DeviceSetup {
        let kind = match self.spec {
            DeviceSpec::Tap(_) => DeviceKind::Tap,
            DeviceSpec::PlainTap(_) => DeviceKind::PlainTap,
            DeviceSpec::Packet(_) => DeviceKind::Packet,
            DeviceSpec::Pair(_) => DeviceKind::Pair,
        };
        DeviceSetup { kind, interface, mac: self.mac, mtu: self.mtu, ring: self.ring }
    }
}

/// Everything that `eft up` was asked for.
#[derive(Clone, Debug)]
pub struct StackConfig {
    pub name: String,
    pub topology: Topology,
    pub devices: Vec<DeviceConfig>,
    /// At most one of each IP version.
    pub gateways: Vec<IpAddr>,
    /// The addresses of the Linux side of the first TAP device.
    pub host_addresses: Vec<Cidr>,
    pub mtu: Option<u16>,
    pub nameserver: Option<IpAddr>,
    /// tcp's use of explicit congestion notification: `off`, `answer` or `ask`.
    pub ecn: &'static str,
    /// tcp's use of TCP Fast Open: `off`, or a list of its sides.
    pub fastopen: String,
    /// The keys of its cookies, as `net.ipv4.tcp_fastopen_key`; empty: the stack makes its own.
    pub fastopen_key: String,
    /// tcp's use of timestamps: `off` or `on`.
    pub timestamps: &'static str,
    /// Segments that tcp hands to the device as one, at least, if there are so many.
    pub min_tso_segs: u16,
    /// The congestion control of streams that choose none: `cubic`, `reno` or `bbr`.
    pub congestion: &'static str,
    /// How tcp's slow start ends: `hystart++` or `hystart`.
    pub slow_start: &'static str,
    /// Whether tcp's slow start begins anew after an idle time: `on` or `off`.
    pub slow_start_after_idle: &'static str,
    /// Which connections tcp paces: `auto` or `on`.
    pub pacing: &'static str,
    /// When tcp probes a path for its MTU: `off`, `blackhole` or `always`.
    pub mtu_probing: &'static str,
    pub tail_probes: &'static str,
    /// Off only in order to measure what it costs.
    pub protection: eft_base::Protection,
    /// The folder for recordings of ip, filter, tcp and udp.
    pub record: Option<std::path::PathBuf>,
    /// How long connections wait for another supervisor after this one has died; five times as long while a server lives.
    pub keep: std::time::Duration,
    /// How long it is not ready for want of addresses from the network.
    pub wait_online: std::time::Duration,
    /// Says in one line what is wrong with a configuration of ip. The engine knows it.
    pub check_ip: fn(&str) -> std::result::Result<(), String>,
    /// The network namespace is this stack's alone: the kernel there has no reason to answer for its addresses.
    pub private: bool,
    /// Whether a running stack of this name is asked to hand over.
    pub take_over: bool,
    /// Bytes of each engine's durable arena; 0: it has none. The engines know it, and the crate that composes them
    /// provides the function.
    pub arena_len: fn(ComponentId, &Topology) -> usize,
}

/// The most devices of one stack (a byte holds an interface's number; queues are counted).
const DEVICES_MAX: usize = 16;

/// Opens a device, and completes its configuration with what the device says.
fn open_device(
    config: &mut StackConfig,
    i: usize,
    inherited: Option<InheritedDevice>,
    patient: bool,
) -> Result<Vec<OwnedFd>> {
    let name = config.name.clone();
    if let Some(InheritedDevice { mac, mtu, ring, fds }) = inherited {
        let device = &mut config.devices[i];
        (device.mac, device.mtu, device.ring) = (mac, mtu, ring);
        return Ok(fds);
    }
    let (mtu, host_addresses) = (config.mtu, config.host_addresses.clone());
    let first_tap = config.devices[..i].iter().all(|d| d.spec.tap().is_none());
    let device = &mut config.devices[i];
    match &device.spec {
        DeviceSpec::Tap(interface) | DeviceSpec::PlainTap(interface) => {
            let fd = open_tap(interface, matches!(device.spec, DeviceSpec::Tap(_)), patient)?;
            if let Some(mtu) = mtu {
                host::set_mtu(interface, mtu)?;
            }
            host::configure(interface, if first_tap { &host_addresses } else { &[] })?;
            device.mtu = host::mtu(interface)?;
            device.mac = local_mac()?;
            Ok(vec![fd])
        }
        DeviceSpec::Packet(interface) => {
            let opened = packet::open(interface)?;
            (device.mac, device.ring) = (opened.mac, opened.ring);
            device.mtu = mtu.unwrap_or(opened.mtu).min(opened.mtu);
            if config.private {
                return Ok(vec![opened.fd]);
            }
            let list: Vec<String> = device.addresses.iter().map(ToString::to_string).collect();
            say!(
                "eft {name}: on {interface} the stack uses the interface's MAC {} and answers for {}; the kernel is kept from answering for these",
                device.mac,
                list.join(", ")
            );
            Ok(vec![opened.fd])
        }
        DeviceSpec::Pair(path) => {
            device.mtu = mtu.unwrap_or(1500);
            device.mac = local_mac()?;
            pair::open(path)
        }
    }
}

/// How long servers of a stack that was killed may take to let go of its device.
const LET_GO: Duration = Duration::from_secs(1);

/// Opens a TAP device; if `patient`, a moment after another process had it.
fn open_tap(interface: &str, offloads: bool, patient: bool) -> Result<OwnedFd> {
    let until = clock::now() + LET_GO;
    loop {
        match tap::open(interface, offloads) {
            Err(Error::Busy(_)) if patient && clock::now() < until => std::thread::sleep(LET_GO / 200),
            other => return other,
        }
    }
}

/// A random locally administered unicast address (IEEE 802, U/L bit).
fn local_mac() -> Result<MacAddress> {
    let mut bytes = [0u8; 6];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).doing("getrandom")?;
    bytes[0] = bytes[0] & 0xfc | 0x02;
    Ok(MacAddress(bytes))
}

/// Makes everything except the processes.
pub fn build(mut config: StackConfig) -> Result<Supervisor> {
    check(&config)?;
    raise_file_limit();
    reserve_descriptors(DESCRIPTORS);
    raise_priority();
    let signals = signals::block()?;
    // A stack of this name was killed a moment ago, or runs, or its folder was left.
    let patient = operator::stack_dir(&config.name).exists();
    if config.take_over {
        predecessor::ask_to_hand_over(&config)?;
    }
    let (kept, mut inherited) = predecessor::inherit(&config)?.unzip();
    let changes = changes::of_predecessor(inherited.as_mut())?;
    let mut devices = Vec::new();
    for i in 0..config.devices.len() {
        let device = inherited.as_mut().and_then(|all| all.device(i));
        devices.push(open_device(&mut config, i, device, patient)?);
    }
    let mut members = member::all(&config, &mut inherited, &changes)?;
    for m in &mut members {
        if m.peer.role == Role::Nic {
            m.device = std::mem::take(&mut devices[m.peer.instance as usize]);
        }
    }
    let dir = operator::stack_dir(&config.name);
    if inherited.is_none() {
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).doing(format_args!("cannot make {}", dir.display()))?;
    }
    let _ = std::fs::remove_file(operator::control_path(&config.name));
    let operators = operator::listen(&operator::control_path(&config.name))?;
    let applications = match inherited.as_mut().and_then(Inheritance::applications) {
        Some(socket) => socket,
        None => operator::listen(&operator::applications_path(&config.name))?,
    };
    let founded = Founded { config, members, kept, inherited, changes, signals, operators, applications };
    founded.assemble()
}

/// What a supervisor is made of.
pub struct Founded {
    pub config: StackConfig,
    pub members: Vec<Member>,
    pub kept: Option<Kept>,
    pub inherited: Option<Inheritance>,
    pub changes: Rc<Changes>,
    pub signals: OwnedFd,
    pub operators: OwnedFd,
    pub applications: OwnedFd,
}

impl Founded {
    /// Takes over what a predecessor left, and tells nobody of addresses yet.
    pub fn assemble(self) -> Result<Supervisor> {
        let Founded { config, members, kept, mut inherited, changes, signals, operators, applications } =
            self;
        let adopts = inherited.as_ref().is_some_and(|inherited| inherited.adopts);
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).doing("epoll")?;
        let mut store = configuration(&config);
        super::scheduling::fill_store(&mut store, &config.topology, &members);
        let mut keeping = Keeping::default();
        if let Some(inherited) = &mut inherited {
            inherited.fill_store(&mut store, REMEMBERED);
            keeping = Keeping::restore(inherited);
        }
        let network = remembered(&store, &config).unwrap_or_else(|| network_of(&config));
        if let Some(identity) = identity(&store, &config.name) {
            store.publish(IDENTITY, identity);
        }
        if let Some(secret) = cookie_secret(&store, &config)? {
            store.publish(COOKIE_SECRET, secret);
        }
        let in_force = InForce::at_start(&config, &network, &store);
        for (key, value) in of_network(&config, &in_force) {
            store.publish(key, value);
        }
        let silencers = silence(&config, &in_force.network)?;
        let mut supervisor = Supervisor {
            config,
            members,
            queues: Vec::new(),
            keeping,
            kept,
            keeper_due: None,
            network,
            in_force,
            store,
            set,
            watched: Vec::new(),
            signals,
            deathwatch: Deathwatch::start()?,
            operators,
            applications,
            packet: Vec::new(),
            heard_of: Default::default(),
            clients: Vec::new(),
            waiting: Vec::new(),
            next_client: 1,
            moves: Vec::new(),
            next_ticket: 0,
            update: None,
            regroup: None,
            next_pool: 0,
            spares: Default::default(),
            later: Vec::new(),
            old_pools: Vec::new(),
            silencers,
            announced: false,
            has_inherited: inherited.is_some(),
            ending: None,
            dead: Vec::new(),
            last_word: None,
            changes,
            adopted: Vec::new(),
        };
        // The set watches open files, so closing the duplicate leaves the registration in place.
        let signals = supervisor.signals.try_clone().doing("signalfd")?;
        supervisor.watch(&signals, Watched::Signals)?;
        let deaths = supervisor.deathwatch.descriptor().try_clone().doing("eventfd")?;
        supervisor.watch(&deaths, Watched::Deaths)?;
        let operators = supervisor.operators.try_clone().doing("socket")?;
        supervisor.watch(&operators, Watched::Operators)?;
        supervisor.settle_modes(None);
        match &mut inherited {
            Some(inherited) if adopts => supervisor.adopt(inherited)?,
            _ => supervisor.announce_again(),
        }
        if let Some(words) = inherited.as_mut().and_then(|all| all.last_words.take()) {
            // The predecessor may have looked further.
            let _ = crate::scm::look_on(&words);
            supervisor.hear_the_rest(&words);
        }
        Ok(supervisor)
    }
}

/// The niceness of the supervisor and its servers. Among sixteen programs that compute, a restart of ip at niceness 0
/// takes so long that both ends of a connection retransmit; the kernel's own stack does not queue behind programs
/// either.
const NICE: i32 = -11;

/// Sets the niceness, which servers inherit. Without the privilege they queue like any program.
fn raise_priority() {
    life::take_niceness(NICE);
}

/// Descriptors for which the kernel's table has room from the start.
const DESCRIPTORS: u64 = 1 << 16;

/// Enlarges the table of descriptors while this process has one thread. With several, each doubling waits for an RCU grace period,
/// in which this process would notice no death: some 10 ms, and more under load (`expand_fdtable` of Linux's fs/file.c).
fn reserve_descriptors(most: u64) {
    use rustix::process::{Resource, getrlimit};
    let most = getrlimit(Resource::Nofile).current.map_or(most, |limit| limit.min(most));
    if let Ok(file) = std::fs::File::open("/dev/null") {
        let _ = rustix::io::fcntl_dupfd_cloexec(&file, most.saturating_sub(1) as i32);
    }
}

fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_has_room_for_as_many_descriptors_as_are_allowed() {
        super::reserve_descriptors(900);
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
        // A limit below that is no error.
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        assert!(size.trim().parse::<u64>().unwrap() >= limit.map_or(900, |limit| limit.min(900)));
    }
}
