//! The whole system on one page: which components exist, who may talk to whom, how large the
//! queues are, where each runs.
//!
//! A topology file is checked as a whole before anything starts; every error is one line that names
//! what is wrong.

mod check;

use crate::scheduling::Scheduling;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use eft_base::text::complaint;
use eft_channel::dirty::DIRTY_SLOTS;
use eft_machine::CpuId;
use eft_messages::{ComponentId, Role};
use serde::Deserialize;

pub use check::{TopologyError, is_process_name};

/// The topology of a stack that is given no other.
pub const DEFAULT: &str = include_str!("../../../topologies/default.toml");
/// All components between the transports and the wire in one process.
pub const EDGE: &str = include_str!("../../../topologies/edge.toml");
/// All components that a packet passes in one process; sockets in another.
pub const STACK: &str = include_str!("../../../topologies/stack.toml");
/// All but `cores` in one process.
pub const WHOLE: &str = include_str!("../../../topologies/whole.toml");

/// A checked topology.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// The components besides the NICs, which follow from the devices. `nic` here sets how they all
    /// run.
    pub component: Vec<ComponentSpec>,
    /// Who may talk to whom.
    pub edge: Vec<EdgeSpec>,
    #[serde(default)]
    pub memory: MemorySpec,
    #[serde(default)]
    pub limits: Limits,
    /// How `cores` decides; only with that component.
    #[serde(default)]
    pub scheduling: Option<Scheduling>,
}

/// One component.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentSpec {
    pub name: String,
    /// CPU number; absent: the kernel chooses.
    #[serde(default)]
    pub cpu: Option<CpuId>,
    /// Alone on its CPU: it may poll for a bounded time before it sleeps.
    #[serde(default)]
    pub dedicated: bool,
    /// Components that name the same process run in one, and die and are reborn together; absent: a process of its own.
    #[serde(default)]
    pub process: Option<String>,
    /// A process is started ahead and waits to take this one's place when it dies. It holds for all that share the process.
    #[serde(default)]
    pub standby: bool,
}

/// A pair of queues.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeSpec {
    pub between: [String; 2],
    /// Messages in each direction; a power of two from 64 to 65536.
    #[serde(default = "default_capacity")]
    pub capacity: usize,
}

fn default_capacity() -> usize {
    1024
}

/// The most frames that a NIC may hold.
pub const NIC_FRAMES_MAX: usize = 4096;

/// Sizes of memory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemorySpec {
    /// Most bytes of each socket's send ring; a power of two. It begins with a quarter of them
    /// ([`eft_channel::socket::Geometry::first_send_len`]).
    pub send_ring_bytes: usize,
    /// Bytes of each socket's receive ring; a power of two.
    pub receive_ring_bytes: usize,
    /// Most frames that a NIC holds; each slot has room for a 64 KB segment.
    pub nic_frames: usize,
}

impl Default for MemorySpec {
    fn default() -> Self {
        // The receive ring bounds the window, and with it bulk over a path of a few processes: 1 MB held
        // it to 11 Gb/s where 4 MB gave 14 (docs/performance.md). A send ring of 4 MB, as far as Linux's buffers
        // grow (`tcp_wmem`), holds what a path of 100 Mb/s and 200 ms holds.
        MemorySpec { send_ring_bytes: 1 << 22, receive_ring_bytes: 1 << 22, nic_frames: 256 }
    }
}

/// Quotas.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Program domains at a time. Servers map all of each, so with the largest rings by default and most sockets they take 120 of
    /// the 128 TB of addresses that a process has.
    pub domains: usize,
    /// Sockets of one domain with each transport. Absent: [`SOCKETS_PER_DOMAIN`], or fewer beside more than two transports.
    #[serde(deserialize_with = "sockets_asked")]
    pub sockets_per_domain: usize,
    /// Listeners of one domain.
    pub listeners_per_domain: usize,
    /// Connections of each tcp, those in TIME_WAIT too.
    pub connections: usize,
}

/// Sockets of a program and its descendants. They cost address space; memory only when they are used.
pub const SOCKETS_PER_DOMAIN: usize = 100_000;
/// The file gives no number; none that it may give is 0.
const AS_MANY_AS_FIT: usize = 0;

fn sockets_asked<'de, D: serde::Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    match usize::deserialize(from)? {
        AS_MANY_AS_FIT => Err(serde::de::Error::custom("limits.sockets_per_domain must be at least 1")),
        sockets => Ok(sockets),
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            domains: 60,
            sockets_per_domain: AS_MANY_AS_FIT,
            listeners_per_domain: 256,
            connections: 131_072,
        }
    }
}

/// The edges that the contracts in `messages` define; no other may be drawn.
const EDGES: &[(Role, Role)] = &[
    (Role::Sockets, Role::Tcp),
    (Role::Sockets, Role::Udp),
    (Role::Tcp, Role::Ip),
    (Role::Udp, Role::Ip),
    (Role::Ip, Role::Filter),
    (Role::Ip, Role::Nic),
];

/// A component as files name it: that of a [`ComponentId`], or `nic` for all drivers, which are made from devices.
fn named(name: &str) -> Option<ComponentId> {
    if name == Role::Nic.name() {
        return Some(ComponentId::nic(0));
    }
    name.parse().ok().filter(|id: &ComponentId| id.role != Role::Nic)
}

impl Topology {
    /// Reads and checks a topology file.
    pub fn parse(text: &str) -> Result<Topology, TopologyError> {
        let mut topology: Topology = toml::from_str(text)
            .map_err(|e| TopologyError::Syntax(complaint(text, e.span(), e.message())))?;
        let fit = DIRTY_SLOTS / topology.transports().len().max(1);
        if topology.limits.sockets_per_domain == AS_MANY_AS_FIT {
            topology.limits.sockets_per_domain = SOCKETS_PER_DOMAIN.min(fit);
        }
        topology.check()?;
        Ok(topology)
    }

    /// Whether some components share a process.
    pub fn shares_processes(&self) -> bool {
        self.component.iter().any(|c| c.process.is_some())
    }

    /// Whether a process waits to take the place of this component's: one that shares it may have asked.
    pub fn has_standby(&self, spec: &ComponentSpec) -> bool {
        let shares = |other: &&ComponentSpec| spec.process.is_some() && other.process == spec.process;
        spec.standby || self.component.iter().filter(shares).any(|other| other.standby)
    }

    pub fn has(&self, name: &str) -> bool {
        self.component.iter().any(|c| c.name == name)
    }

    /// How this component runs.
    pub fn spec(&self, peer: ComponentId) -> Option<&ComponentSpec> {
        self.component.iter().find(|c| c.name == name_of(peer))
    }

    /// The capacity of the queues between two components, if they may talk.
    pub fn capacity(&self, a: ComponentId, b: ComponentId) -> Option<usize> {
        self.edge.iter().find(|e| e.joins(&name_of(a), &name_of(b))).map(|e| e.capacity)
    }

    /// The components of a stack with `nics` devices that move packets, in the order in which packets go out.
    pub fn peers(&self, nics: usize) -> Vec<ComponentId> {
        let named = self.component.iter().filter_map(|c| named(&c.name));
        let mut peers: Vec<ComponentId> =
            named.filter(|id| !matches!(id.role, Role::Nic | Role::Cores)).collect();
        peers.sort();
        peers.extend((0..nics).map(|n| ComponentId::nic(n as u8)));
        peers
    }

    /// The transports, in the order in which they share the slots of programs' arenas.
    pub fn transports(&self) -> Vec<ComponentId> {
        self.peers(0).into_iter().filter(|id| id.role.is_transport()).collect()
    }
}

/// How the file names a component: all drivers have one name there.
fn name_of(peer: ComponentId) -> String {
    match peer.role {
        Role::Nic => Role::Nic.name().into(),
        _ => peer.to_string(),
    }
}

impl EdgeSpec {
    fn joins(&self, a: &str, b: &str) -> bool {
        let [x, y] = &self.between;
        (x == a && y == b) || (x == b && y == a)
    }
}

#[cfg(test)]
mod tests;
