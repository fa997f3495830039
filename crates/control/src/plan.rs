//! Which memory exists and who may map it: the one table of a stack's isolation.
//!
//! | segment | who writes | who reads | when its writer dies |
//! |---|---|---|---|
//! | status page of X | X | its neighbours, cores, programs (tcp's and udp's), `eft stat` | successor goes on with it |
//! | queue X→Y | X | Y | replaced by a fresh one |
//! | position of Y in X→Y | Y | X | replaced by a fresh one |
//! | pool of X | X | [`pools`]' readers | fresh one; the old stays mapped while in use, and a nic's successor takes from it what ip lacks |
//! | arena of tcp, udp, filter, ip (what it handles) | its owner | `eft ss`, `eft pf` | successor opens it |
//! | arena of a domain | its programs, tcp, udp, sockets | ip, nics | freed with the domain |

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use eft_base::SlotShare;
use eft_channel::journal;
use eft_component::Topology;
use eft_component::topology::NIC_FRAMES_MAX;
use eft_messages::nic::{FRAME_SLOT_LEN, PACKET_SLOT_LEN};
use eft_messages::transport::SEND_SLOT_LEN;
use eft_messages::{ComponentId, Role};

/// A pool to be made for a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolPlan {
    pub slot_size: usize,
    pub slots: usize,
    pub readers: Vec<ComponentId>,
    /// Behind the slots lies what its owner's successor must know of them.
    pub has_journal: bool,
}

impl PoolPlan {
    fn new(slot_size: usize, slots: usize, readers: Vec<ComponentId>) -> PoolPlan {
        PoolPlan { slot_size, slots, readers, has_journal: false }
    }

    /// Bytes of its segment.
    pub fn bytes(&self) -> usize {
        self.slots * self.slot_size + if self.has_journal { journal::len(self.slots) } else { 0 }
    }
}

const _: () = assert!(journal::len(NIC_FRAMES_MAX) < PACKET_SLOT_LEN);

fn nic_peers(nics: usize) -> Vec<ComponentId> {
    (0..nics).map(|n| ComponentId::nic(n as u8)).collect()
}

/// Header slots of a transport whose queues to and from ip have `capacity`. If all of them are in use, receipts for them fill less
/// than the half of the queue beyond which ip drops what arrives, and an eighth of the queue is left for that.
fn headers(capacity: usize) -> usize {
    capacity / 2 - capacity / 8
}

/// The pools that `peer` owns, in the order in which its constructor takes them.
pub fn pools(topology: &Topology, nics: usize, peer: ComponentId) -> Vec<PoolPlan> {
    let transports = topology.transports();
    match peer.role {
        Role::Tcp | Role::Udp => {
            let slots = topology.capacity(peer, ComponentId::IP).map_or(0, headers);
            vec![PoolPlan::new(SEND_SLOT_LEN, slots, vec![ComponentId::IP])]
        }
        Role::Ip => vec![
            PoolPlan::new(FRAME_SLOT_LEN, 4096, nic_peers(nics)),
            PoolPlan::new(PACKET_SLOT_LEN, 256, [transports, nic_peers(nics)].concat()),
        ],
        Role::Nic => vec![PoolPlan {
            slot_size: PACKET_SLOT_LEN,
            slots: topology.memory.nic_frames,
            readers: [vec![ComponentId::IP], transports].concat(),
            has_journal: true,
        }],
        Role::Sockets | Role::Filter | Role::Cores => vec![],
    }
}

/// Who maps domains' arenas, and whether it may write.
pub fn domain_mappers(topology: &Topology, nics: usize) -> Vec<(ComponentId, bool)> {
    let writers = [vec![ComponentId::SOCKETS], topology.transports()].concat();
    let readers = [vec![ComponentId::IP], nic_peers(nics)].concat();
    let writable = |writable| move |id: ComponentId| (id, writable);
    writers.into_iter().map(writable(true)).chain(readers.into_iter().map(writable(false))).collect()
}

/// The neighbours of `peer` and the capacity of the queues between them.
pub fn neighbours(topology: &Topology, nics: usize, peer: ComponentId) -> Vec<(ComponentId, usize)> {
    topology
        .peers(nics)
        .into_iter()
        .filter(|other| *other != peer)
        .filter_map(|other| topology.capacity(peer, other).map(|c| (other, c)))
        .collect()
}

/// Slots of a domain's arena: as many for each transport as a domain may have sockets.
pub fn domain_slots(topology: &Topology) -> usize {
    topology.limits.sockets_per_domain * topology.transports().len()
}

/// What two topologies must have in common for one to use the other's memory.
pub fn likeness(topology: &Topology) -> String {
    let mut names: Vec<&str> = topology.component.iter().map(|c| c.name.as_str()).collect();
    names.sort_unstable();
    let (memory, limits) = (&topology.memory, &topology.limits);
    format!(
        "{}; rings {} {}; domains {}, sockets {}, listeners {}, connections {}",
        names.join(" "),
        memory.send_ring_bytes,
        memory.receive_ring_bytes,
        limits.domains,
        limits.sockets_per_domain,
        limits.listeners_per_domain,
        limits.connections
    )
}

/// Whether a new server may replace an arena of `now` bytes by one of `len`: a faulty one must not exhaust memory.
pub fn may_grow(now: usize, len: usize) -> bool {
    len / 4 <= now
}

/// The slots of every domain's arena that this transport gives out; `None` if `owner` is no transport.
pub fn slot_share(topology: &Topology, owner: ComponentId) -> Option<SlotShare> {
    let transports = topology.transports();
    let first = transports.iter().position(|id| *id == owner)? as u32;
    Some(SlotShare { owner, first, stride: transports.len() as u32 })
}

#[cfg(test)]
mod tests;
