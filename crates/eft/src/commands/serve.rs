//! `eft serve NAME`: one server in its process. Started by the supervisor, never by hand.

use eft_channel::Pool;
use eft_channel::socket::Transport;
use eft_component::topology::Limits;
use eft_linux::capture::{CaptureSlot, Captured};
use eft_linux::devices::LiveDevice;
use eft_linux::serve::{self, Answering, Applications, Plain, Setup, TransportSurroundings};
use eft_messages::Peer;
use eft_sim::file::{self, Head};
use eft_sim::makes;
use eft_sim::replay::Recorder;
use eft_transport::tcp::{Tcp, TcpConfig};
use eft_transport::udp::{Udp, UdpConfig};
use std::path::Path;

#[derive(clap::Args, Debug)]
pub struct ServeArguments {
    /// The component's name, as `eft ps` shows it
    component: String,
    /// The stack that it belongs to
    #[arg(long)]
    stack: String,
}

pub fn tcp_config(limits: &Limits, seed: u64) -> TcpConfig {
    TcpConfig {
        connections: limits.connections,
        sockets_per_family: limits.sockets_per_family,
        listeners_per_family: limits.listeners_per_family,
        seed,
    }
}

pub fn udp_config(limits: &Limits, seed: u64) -> UdpConfig {
    UdpConfig { sockets: limits.connections, sockets_per_family: limits.sockets_per_family, seed }
}

pub fn filter_config(seed: u64) -> eft_filter::FilterConfig {
    eft_filter::FilterConfig { seed, ..Default::default() }
}

pub fn run(_arguments: &ServeArguments) -> Result<(), String> {
    let setup = Setup::receive().map_err(|e| e.to_string())?;
    serve(setup).map_err(|e| e.to_string())
}

fn serve(mut setup: Setup) -> eft_linux::Result<()> {
    let seed = setup.identity.seed;
    let limits = Limits {
        connections: setup.identity.connections,
        sockets_per_family: setup.identity.sockets_per_family,
        listeners_per_family: setup.identity.listeners_per_family,
        ..Limits::default()
    };
    match setup.identity.peer {
        Peer::Sockets => {
            let config = eft_sockets::SocketsConfig {
                listeners_per_family: limits.listeners_per_family,
                generation: setup.identity.generation,
                ..Default::default()
            };
            let applications = Applications::new(&setup.control, setup.identity.generation)?;
            serve::run(setup, eft_sockets::Sockets::new(config), applications)
        }
        Peer::Tcp => {
            let (arena, pool) = (setup.take_arena()?, setup.take_pool()?);
            let tcp = Tcp::open(arena, pool, tcp_config(&limits, seed));
            serve::run(setup, tcp, TransportSurroundings::new(Transport::Tcp))
        }
        Peer::Udp => {
            let (arena, pool) = (setup.take_arena()?, setup.take_pool()?);
            let udp = Udp::open(arena, pool, udp_config(&limits, seed));
            serve::run(setup, udp, TransportSurroundings::new(Transport::Udp))
        }
        Peer::Ip => serve_ip(setup),
        Peer::Filter => serve_filter(setup),
        Peer::Nic(interface) => {
            let pool = setup.take_pool()?;
            let device = setup
                .identity
                .device
                .clone()
                .ok_or_else(|| eft_linux::Error("the supervisor gave no device".into()))?;
            let device = LiveDevice::adopt(&device, std::mem::take(&mut setup.device))?;
            let capture = CaptureSlot::default();
            let surroundings = Plain::with_device(&device, capture.clone())?;
            let nic = eft_nic::Nic::new(Captured::new(device, capture), pool, interface);
            serve::run(setup, nic, surroundings)
        }
        Peer::Cores => serve::cores::run(setup, super::stat::counters_of),
    }
}

/// Bytes after which a recording is long enough.
const RECORDING_MAX: usize = 256 << 20;

/// A file for what a server is told. It is opened before the sandbox closes.
fn recording(path: &Path, head: &Head) -> eft_linux::Result<file::Writer<std::fs::File>> {
    std::fs::File::create(path)
        .and_then(|f| file::Writer::new(f, head, RECORDING_MAX))
        .map_err(|e| eft_linux::Error(format!("{}: {e}", path.display())))
}

fn serve_ip(mut setup: Setup) -> eft_linux::Result<()> {
    let (frames, packets) = (setup.take_pool()?, setup.take_pool()?);
    let (with_filter, seed) = (setup.identity.with_filter, setup.identity.seed);
    let config = eft_ip::IpConfig { with_filter, seed };
    let Some(path) = setup.identity.record.clone() else {
        return serve::run(setup, eft_ip::Ip::new(frames, packets, config), Plain::default());
    };
    let shape = |p: &Pool| (p.id(), p.slots(), p.slot_size());
    let pools = vec![shape(&frames), shape(&packets)];
    let head = Head { peer: Peer::Ip, seed, with_filter, states: 0, pools, arena: Vec::new() };
    let log = recording(&path, &head)?;
    let (ip, make) = makes::ip(frames, packets, config);
    serve::run(setup, Recorder::new(ip, make, log), Plain::default())
}

fn serve_filter(mut setup: Setup) -> eft_linux::Result<()> {
    let arena = setup.take_arena()?;
    let answering = Answering::new(&setup.control)?;
    let config = filter_config(setup.identity.seed);
    let Some(path) = setup.identity.record.clone() else {
        return serve::run(setup, eft_filter::Filter::open(arena, config), answering);
    };
    let mut left = vec![0; arena.len()];
    arena.read(0, &mut left).map_err(|_| eft_linux::Error("the arena cannot be read".into()))?;
    let (seed, states) = (config.seed, config.states);
    let head = Head { peer: Peer::Filter, seed, with_filter: true, states, pools: Vec::new(), arena: left };
    let log = recording(&path, &head)?;
    let (filter, make) = makes::filter(arena, config);
    serve::run(setup, Recorder::new(filter, make, log), answering)
}
