//! `eft serve NAME`: one server in its process. Started by the supervisor, never by hand.

use anyhow::{Result, bail};
use eft_base::SlotShare;
use eft_channel::Segment;
use eft_component::Component;
use eft_component::topology::Limits;
use eft_cores::engine::Cores;
use eft_linux::capture::{CaptureSlot, Captured};
use eft_linux::devices::LiveDevice;
use eft_linux::fatal::{self, Death};
use eft_linux::protocol::{Identity, PROTOCOL};
use eft_linux::sandbox::Users;
use eft_linux::serve::{
    self, Answering, Applications, ArenaMemory, CoresSurroundings, Hosted, Plain, Setup, Surroundings,
    TransportSurroundings, Versions,
};
use eft_messages::Role;
use eft_record::durable::Durable;
use eft_record::file;
use eft_record::makes::{self, Head};
use eft_record::recorder::{Make, Recorder};
use eft_record::recording::{Cause, Recorded};
use eft_transport::Refused;
use eft_transport::tcp::{self, Tcp, TcpConfig};
use eft_transport::udp::{self, Udp, UdpConfig};
use std::fmt::Debug;

#[derive(clap::Args, Debug)]
pub struct ServeArguments {
    /// The components' names, as `eft ps` shows them
    #[arg(required = true)]
    components: Vec<String>,
    /// The stack that it belongs to
    #[arg(long)]
    stack: String,
    /// The protocol version that the supervisor speaks
    #[arg(long)]
    protocol: u32,
}

pub fn tcp_config(limits: &Limits, seed: u64, slots: SlotShare) -> TcpConfig {
    TcpConfig {
        connections: limits.connections,
        sockets_per_domain: limits.sockets_per_domain,
        listeners_per_domain: limits.listeners_per_domain,
        seed,
        slots,
    }
}

pub fn udp_config(limits: &Limits, seed: u64, slots: SlotShare) -> UdpConfig {
    UdpConfig { sockets: limits.connections, sockets_per_domain: limits.sockets_per_domain, seed, slots }
}

pub fn filter_config(seed: u64) -> eft_filter::FilterConfig {
    eft_filter::FilterConfig { seed, ..Default::default() }
}

pub fn run(arguments: &ServeArguments) -> Result<()> {
    if arguments.protocol != PROTOCOL {
        bail!(
            "the supervisor speaks protocol {}, and this eft {PROTOCOL}: replace the whole stack (eft up --take-over)",
            arguments.protocol
        );
    }
    let landlock = serve::prepare(users(&arguments.components))?;
    Ok(host_all(arguments.components.len(), landlock)?)
}

/// What servers of these names must know of users. `None`: they enter a sandbox when they know which rights they keep, and hear
/// from nobody but the supervisor until then.
fn users(components: &[String]) -> Option<Users> {
    let has = |role: Role| components.iter().any(|name| name == role.name());
    if has(Role::Cores) {
        // It depends on the CPUs that it manages.
        None
    } else if has(Role::Sockets) {
        // Who asks for a privileged port must be known to be root.
        Some(Users::Known)
    } else {
        Some(Users::Unknown)
    }
}

/// Makes the servers of a process one after the other: the supervisor waits for none of them.
fn host_all(count: usize, landlock: bool) -> eft_linux::Result<()> {
    let (mut servers, mut recorded) = (Vec::new(), false);
    for nth in 0..count {
        match Setup::receive(nth, &Versions { suits, revert })? {
            Some(setup) => {
                recorded |= setup.recording.is_some();
                servers.push(serve(setup)?);
            }
            None => return Ok(()),
        }
    }
    serve::run(servers, landlock, recorded)
}

fn limits_of(identity: &Identity) -> Limits {
    Limits {
        connections: identity.connections,
        sockets_per_domain: identity.sockets_per_domain,
        listeners_per_domain: identity.listeners_per_domain,
        ..Limits::default()
    }
}

/// Whether our server could take over another server's arena; returns the length of our own. An older arena is
/// converted for a trial, while its owner goes on.
fn suits(identity: &Identity, arena: Option<Segment>) -> eft_linux::Result<usize> {
    let Some(arena) = arena else { return Ok(0) };
    let limits = limits_of(identity);
    match identity.peer.role {
        Role::Tcp => {
            let config = tcp_config(&limits, 0, SlotShare::TCP);
            let len = tcp::arena_len(&config);
            match tcp::examine(&arena, &config) {
                Err(Refused::Older { .. }) => tcp::convert(&arena, Segment::heap(len), &config),
                other => other,
            }
            .map_err(refused)?;
            Ok(len)
        }
        Role::Udp => {
            let config = udp_config(&limits, 0, SlotShare::UDP);
            let len = udp::arena_len(&config);
            match udp::examine(&arena, &config) {
                Err(Refused::Older { .. }) => udp::convert(&arena, Segment::heap(len), &config),
                other => other,
            }
            .map_err(refused)?;
            Ok(len)
        }
        Role::Filter => {
            let config = filter_config(0);
            let len = eft_filter::arena_len(&config);
            match eft_filter::examine(&arena, &config) {
                Err(Refused::Older { .. }) => eft_filter::convert(&arena, Segment::heap(len), &config),
                other => other,
            }
            .map_err(refused)?;
            Ok(len)
        }
        _ => Ok(arena.len()),
    }
}

/// Reverts the conversion of an arena.
fn revert(identity: &Identity, ours: &Segment, like: &Segment, to: Segment) -> eft_linux::Result<()> {
    let limits = limits_of(identity);
    let reverted = match identity.peer.role {
        Role::Tcp => tcp::revert(ours, like, to, &tcp_config(&limits, 0, SlotShare::TCP)),
        Role::Udp => udp::revert(ours, like, to, &udp_config(&limits, 0, SlotShare::UDP)),
        Role::Filter => eft_filter::revert(ours, like, to, &filter_config(0)),
        _ => Err(Refused::Foreign),
    };
    reverted.map_err(refused)
}

fn serve(mut setup: Setup) -> eft_linux::Result<Box<dyn Hosted>> {
    let seed = setup.identity.seed;
    let limits = limits_of(&setup.identity);
    match setup.identity.peer.role {
        Role::Sockets => {
            let config = eft_sockets::SocketsConfig {
                listeners_per_domain: limits.listeners_per_domain,
                generation: setup.identity.generation,
                ..Default::default()
            };
            let applications = Applications::new(&setup.control, setup.identity.generation)?;
            Ok(serve::host(setup, eft_sockets::Sockets::new(config), applications))
        }
        Role::Tcp => {
            let (pool, config) = (setup.take_pool()?, tcp_config(&limits, seed, slots(&setup)?));
            let arena = setup.take_converted_arena(
                |arena| matches!(tcp::examine(arena, &config), Err(Refused::Older { .. })),
                |old, new| tcp::convert(old, new, &config).map_err(refused),
            )?;
            let surroundings = TransportSurroundings::new(setup.identity.peer);
            if setup.recording.is_none() {
                return Ok(serve::host(
                    setup,
                    Tcp::open(arena.segment, pool, config).map_err(refused)?,
                    surroundings,
                ));
            }
            let (segment, arena) = durable(arena);
            let head = Head::of(config, &[&pool], Some(&arena));
            let made = makes::tcp(segment, pool, config, Default::default()).map_err(refused)?;
            serve_recorded(setup, &head, made, surroundings, arena)
        }
        Role::Udp => {
            let (pool, config) = (setup.take_pool()?, udp_config(&limits, seed, slots(&setup)?));
            let arena = setup.take_converted_arena(
                |arena| matches!(udp::examine(arena, &config), Err(Refused::Older { .. })),
                |old, new| udp::convert(old, new, &config).map_err(refused),
            )?;
            let surroundings = TransportSurroundings::new(setup.identity.peer);
            if setup.recording.is_none() {
                return Ok(serve::host(
                    setup,
                    Udp::open(arena.segment, pool, config).map_err(refused)?,
                    surroundings,
                ));
            }
            let (segment, arena) = durable(arena);
            let head = Head::of(config, &[&pool], Some(&arena));
            let made = makes::udp(segment, pool, config, Default::default()).map_err(refused)?;
            serve_recorded(setup, &head, made, surroundings, arena)
        }
        Role::Ip => serve_ip(setup),
        Role::Filter => serve_filter(setup),
        Role::Nic => {
            let pool = setup.take_pool()?;
            let device = setup
                .identity
                .device
                .clone()
                .ok_or_else(|| eft_linux::Error::Protocol("the supervisor gave no device".into()))?;
            let device = LiveDevice::adopt(&device, std::mem::take(&mut setup.device))?;
            let capture = CaptureSlot::default();
            let surroundings = Plain::with_device(&device, capture.clone())?;
            let instance = setup.identity.peer.instance;
            let mut nic = eft_nic::Nic::new(Captured::new(device, capture), pool, instance);
            if let Some(left) = setup.take_left() {
                nic.inherit(&left.view, left.queue.as_ref());
            }
            Ok(serve::host(setup, nic, surroundings))
        }
        Role::Cores => {
            let surroundings =
                CoresSurroundings::new(&setup.control, &setup.status, super::stat::counters_of)?;
            Ok(serve::host(setup, Cores::default(), surroundings))
        }
    }
}

/// The slots that the supervisor gave this transport.
fn slots(setup: &Setup) -> eft_linux::Result<SlotShare> {
    setup.identity.slots.ok_or_else(|| eft_linux::Error::Protocol("the supervisor gave no slots".into()))
}

fn refused(why: Refused) -> eft_linux::Error {
    eft_linux::Error::Refused(why.to_string())
}

/// An arena, and how it is recorded.
fn durable(arena: ArenaMemory) -> (Segment, Durable) {
    let segment = arena.segment.clone();
    (segment.clone(), Durable::new(segment, move |heed| arena.each_written(heed)))
}

/// Makes a call of a recorded server, in which a fatal signal is noted.
fn during(note: &mut dyn FnMut(Cause), call: &mut dyn FnMut()) {
    let mut die = |death| {
        note(match death {
            Death::Signal(number) => Cause::Signal(number),
            Death::Hang => Cause::Hang,
        });
    };
    fatal::during(&mut die, call);
}

/// Serves an engine whose calls are recorded.
fn serve_recorded<C: Component<Out: Debug, Event: Recorded> + 'static>(
    mut setup: Setup,
    head: &Head,
    (engine, make): (C, Make<C>),
    surroundings: impl Surroundings<Recorder<C, file::Writer<std::fs::File>>> + 'static,
    arena: Durable,
) -> eft_linux::Result<Box<dyn Hosted>> {
    fatal::prepare()?;
    let file = setup.recording.take();
    let file =
        file.ok_or_else(|| eft_linux::Error::Protocol("the supervisor gave no recording".into()))?.into();
    let log = file::Writer::new(file, head, setup.identity.record.unwrap_or_default())
        .map_err(|e| eft_linux::Error::System(format!("recording: {e}")))?;
    let recorder = Recorder::new(engine, make, log).with_arena(Some(arena)).with_calls(during);
    Ok(serve::host(setup, recorder, surroundings))
}

fn serve_ip(mut setup: Setup) -> eft_linux::Result<Box<dyn Hosted>> {
    let (frames, packets) = (setup.take_pool()?, setup.take_pool()?);
    let (with_filter, seed) = (setup.identity.with_filter, setup.identity.seed);
    let config = eft_ip::IpConfig { with_filter, seed };
    // A supervisor of an older version gives ip no memory of its own.
    let docket = match setup.has_arena() {
        true => Some(setup.take_converted_arena(|_| false, |_, _| Ok(()))?),
        false => None,
    };
    let answering = Answering::new(&setup.control)?;
    let segment = docket.as_ref().map_or_else(|| Segment::heap(eft_ip::DOCKET_LEN), |d| d.segment.clone());
    if setup.recording.is_none() {
        return Ok(serve::host(setup, eft_ip::Ip::open(segment, frames, packets, config), answering));
    }
    let docket = Durable::whole(segment.clone());
    let head = Head::of(config, &[&frames, &packets], Some(&docket));
    serve_recorded(
        setup,
        &head,
        makes::ip(segment, frames, packets, config, Default::default()),
        answering,
        docket,
    )
}

fn serve_filter(mut setup: Setup) -> eft_linux::Result<Box<dyn Hosted>> {
    let config = filter_config(setup.identity.seed);
    let arena = setup.take_converted_arena(
        |arena| matches!(eft_filter::examine(arena, &config), Err(Refused::Older { .. })),
        |old, new| eft_filter::convert(old, new, &config).map_err(refused),
    )?;
    let answering = Answering::new(&setup.control)?;
    if setup.recording.is_none() {
        return Ok(serve::host(setup, eft_filter::Filter::open(arena.segment, config), answering));
    }
    let (segment, arena) = durable(arena);
    let head = Head::of(config, &[], Some(&arena));
    serve_recorded(setup, &head, makes::filter(segment, config, Default::default()), answering, arena)
}
