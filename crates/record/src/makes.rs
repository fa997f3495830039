//! The engines that can be recorded: what a recorder must know of each, and how it is made and made
//! again.

use crate::durable::Durable;
use crate::recorder::Make;
use crate::recording::Image;
use crate::replay::Failure;
use eft_base::{PacketRef, PoolId, SlotShare};
use eft_channel::{Memory, Pool, Segment};
use eft_component::transport::Effect;
use eft_filter::{Filter, FilterConfig};
use eft_ip::{FromPeer, Ip, IpConfig, ToPeer};
use eft_messages::ComponentId;
use eft_messages::nic::{IpToNic, NicToIp};
use eft_messages::transport::{IpToTransport, SendDescriptor, TransportToIp};
use eft_transport::tcp::{Tcp, TcpConfig};
use eft_transport::udp::{Udp, UdpConfig};
use eft_transport::{Fuse, In, Out, Refused};
use serde::{Deserialize, Serialize};
use zerocopy::FromBytes;

/// Capacity of every queue in the topologies that the simulator uses.
const CAPACITY: usize = 1024;

/// Most NICs of a recorded ip; the queues of absent ones have no room.
const NICS: u8 = 16;

/// Bytes of an arena, or of a pool, that a recording may ask for.
const BYTES_MAX: usize = 1 << 28;

/// Slots of a pool, or blocks of an arena, that a recording may ask for.
const SLOTS_MAX: usize = 1 << 20;

/// The memory that a message to ip names: a received frame, or a descriptor and the payload it names.
fn ip_reads(memory: &Memory, message: &FromPeer) -> Vec<PacketRef> {
    match message {
        FromPeer::Nic(NicToIp::Received { packet, .. }) => vec![*packet],
        FromPeer::Transport(TransportToIp::Send { descriptor, .. }) => {
            let mut refs = vec![*descriptor];
            if let Some(d) = memory.read_value::<SendDescriptor>(*descriptor) {
                refs.extend(d.payload.iter().take(d.payload_count as usize));
            }
            refs
        }
        _ => Vec::new(),
    }
}

/// The frame descriptor of a message to a NIC.
fn ip_shows(out: &ToPeer) -> Option<PacketRef> {
    match out {
        ToPeer::Nic(_, IpToNic::Send { descriptor, .. }) => Some(*descriptor),
        _ => None,
    }
}

/// The memory that a message to a transport names: a received packet.
fn transport_reads(_: &Memory, message: &In) -> Vec<PacketRef> {
    match message {
        In::Ip(IpToTransport::Deliver { packet, .. } | IpToTransport::Error { packet, .. }) => vec![*packet],
        _ => Vec::new(),
    }
}

/// The headers of a segment or datagram.
fn transport_shows(out: &Out) -> Option<PacketRef> {
    match out {
        Out::Ip(TransportToIp::Send { descriptor, .. }) => Some(*descriptor),
        _ => None,
    }
}

/// Where its payload lies.
fn transport_payload(shown: &[u8]) -> Vec<PacketRef> {
    let Ok(d) = SendDescriptor::read_from_bytes(shown) else {
        return Vec::new();
    };
    d.payload.into_iter().take(d.payload_count as usize).collect()
}

/// ip, and what its recorder must know.
pub fn ip(docket: Segment, frames: Pool, packets: Pool, config: IpConfig, fuse: Fuse) -> (Ip, Make<Ip>) {
    let make = Make {
        peers: [ComponentId::TCP, ComponentId::UDP, ComponentId::FILTER]
            .into_iter()
            .chain((0..NICS).map(ComponentId::nic))
            .collect(),
        capacity: CAPACITY,
        own: memory_of(&frames),
        reads: ip_reads,
        shows: ip_shows,
        payload: |_| Vec::new(),
    };
    (Ip::open_with(docket, frames, packets, config, fuse), make)
}

/// The filter, and what its recorder must know. It reads no other component's memory.
pub fn filter(arena: Segment, config: FilterConfig, fuse: Fuse) -> (Filter, Make<Filter>) {
    let make = Make {
        peers: vec![ComponentId::IP],
        capacity: CAPACITY,
        own: Memory::new(),
        reads: |_, _| Vec::new(),
        shows: |_| None,
        payload: |_| Vec::new(),
    };
    (Filter::open_with(arena, config, fuse), make)
}

/// tcp, and what its recorder must know.
pub fn tcp(
    arena: Segment,
    headers: Pool,
    config: TcpConfig,
    fuse: Fuse,
) -> Result<(Tcp, Make<Tcp>), Refused> {
    let make = transport(&headers);
    Ok((Tcp::open_with(arena, headers, config, fuse)?, make))
}

/// udp, and what its recorder must know.
pub fn udp(
    arena: Segment,
    headers: Pool,
    config: UdpConfig,
    fuse: Fuse,
) -> Result<(Udp, Make<Udp>), Refused> {
    let make = transport(&headers);
    Ok((Udp::open_with(arena, headers, config, fuse)?, make))
}

fn transport<C: eft_component::Component<In = In, Out = Out, Effect = Effect>>(headers: &Pool) -> Make<C> {
    Make {
        peers: vec![ComponentId::IP, ComponentId::SOCKETS],
        capacity: CAPACITY,
        own: memory_of(headers),
        reads: transport_reads,
        shows: transport_shows,
        payload: transport_payload,
    }
}

fn memory_of(pool: &Pool) -> Memory {
    let mut own = Memory::new();
    own.insert(pool.id(), pool.view().clone());
    own
}

/// Which engine it is, and its configuration.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Engine {
    Ip {
        with_filter: bool,
        seed: u64,
    },
    Filter {
        states: usize,
        seed: u64,
    },
    Tcp {
        connections: usize,
        sockets_per_domain: usize,
        listeners_per_domain: usize,
        seed: u64,
        slots: SlotShare,
    },
    Udp {
        sockets: usize,
        sockets_per_domain: usize,
        seed: u64,
        slots: SlotShare,
    },
}

impl Engine {
    pub fn peer(&self) -> ComponentId {
        match self {
            Engine::Ip { .. } => ComponentId::IP,
            Engine::Filter { .. } => ComponentId::FILTER,
            Engine::Tcp { slots, .. } | Engine::Udp { slots, .. } => slots.owner,
        }
    }
}

impl From<IpConfig> for Engine {
    fn from(IpConfig { with_filter, seed }: IpConfig) -> Engine {
        Engine::Ip { with_filter, seed }
    }
}

impl From<FilterConfig> for Engine {
    fn from(FilterConfig { states, seed }: FilterConfig) -> Engine {
        Engine::Filter { states, seed }
    }
}

impl From<TcpConfig> for Engine {
    fn from(c: TcpConfig) -> Engine {
        let TcpConfig { connections, sockets_per_domain, listeners_per_domain, seed, slots } = c;
        Engine::Tcp { connections, sockets_per_domain, listeners_per_domain, seed, slots }
    }
}

impl From<UdpConfig> for Engine {
    fn from(UdpConfig { sockets, sockets_per_domain, seed, slots }: UdpConfig) -> Engine {
        Engine::Udp { sockets, sockets_per_domain, seed, slots }
    }
}

/// What a server was made of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Head {
    pub engine: Engine,
    /// Its own pools: id, slots, bytes of a slot.
    pub pools: Vec<(PoolId, usize, usize)>,
    /// Bytes of its arena, 0 if it has none, and what its predecessor left in it.
    pub arena_len: usize,
    pub arena: Image,
}

impl Head {
    /// Must be called before the engine opens its arena.
    pub fn of(engine: impl Into<Engine>, pools: &[&Pool], arena: Option<&Durable>) -> Head {
        Head {
            engine: engine.into(),
            pools: pools.iter().map(|p| (p.id(), p.slots(), p.slot_size())).collect(),
            arena_len: arena.map_or(0, |arena| arena.len()),
            arena: arena.map(Durable::pages).unwrap_or_default(),
        }
    }

    pub(crate) fn arena(&self, wanted: usize) -> Result<Segment, Failure> {
        if self.arena_len < wanted || self.arena_len > BYTES_MAX {
            return Err(unusable("its arena has another length"));
        }
        let arena = Segment::heap(self.arena_len);
        for (at, bytes) in &self.arena {
            arena.write(*at, bytes).map_err(|_| unusable("its arena is shorter than what lies there"))?;
        }
        Ok(arena)
    }

    pub(crate) fn pools<const N: usize>(&self) -> Result<[Pool; N], Failure> {
        let bytes = self.pools.iter().try_fold(0usize, |n, (_, slots, len)| {
            n.checked_add(slots.checked_mul(*len)?).filter(|_| *len > 0 && *slots <= SLOTS_MAX)
        });
        if bytes.is_none_or(|n| n > BYTES_MAX) {
            return Err(unusable("its pools are too large"));
        }
        let one =
            |(id, slots, len): &(PoolId, usize, usize)| Pool::new(*id, Segment::heap(slots * len), *len);
        let pools: Vec<Pool> = self.pools.iter().map(one).collect();
        pools.try_into().map_err(|_| unusable("it has another number of pools"))
    }
}

pub(crate) fn refused(why: Refused) -> Failure {
    Failure::Unusable(format!("the recording is damaged: {why}"))
}

pub(crate) fn unusable(what: &str) -> Failure {
    Failure::Unusable(format!("the recording is damaged: {what}"))
}

/// The length of an arena of `count` items, if that many are possible.
pub(crate) fn arena_len(count: usize, len: impl Fn() -> usize) -> Result<usize, Failure> {
    match count {
        1..=SLOTS_MAX => Ok(len()),
        _ => Err(unusable("its tables have an impossible size")),
    }
}
