//! Which memory exists and who may map it: the one table of a stack's walls.
//!
//! | segment | who writes | who reads | when its writer dies |
//! |---|---|---|---|
//! | status page of X | X | every component, programs (tcp's and udp's), `eft stat`; cores reads all | successor goes on with it |
//! | queue X→Y | X | Y | replaced by a fresh one |
//! | position of Y in X→Y | Y | X | replaced by a fresh one |
//! | pool of X | X | [`pools`]' readers | fresh one; the old stays mapped while in use |
//! | arena of tcp, udp, filter | its owner | `eft ss`, `eft pf` | successor opens it |
//! | arena of a family | its programs, tcp, udp, sockets | ip, nics | freed with the family |

use alloc::vec;
use alloc::vec::Vec;
use eft_component::Topology;
use eft_component::topology::Limits;
use eft_messages::nic::{FRAME_SLOT_LEN, PACKET_SLOT_LEN};
use eft_messages::transport::SEND_SLOT_LEN;
use eft_messages::{ComponentId, Role};

/// A pool to be made for a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolPlan {
    pub slot_size: usize,
    pub slots: usize,
    pub readers: Vec<ComponentId>,
}

fn present(topology: &Topology, nics: usize, wanted: &[ComponentId]) -> Vec<ComponentId> {
    let all = topology.peers(nics);
    wanted.iter().copied().filter(|p| all.contains(p)).collect()
}

fn nic_peers(nics: usize) -> Vec<ComponentId> {
    (0..nics).map(|n| ComponentId::nic(n as u8)).collect()
}

/// The pools that `peer` owns, in the order in which its constructor takes them.
pub fn pools(topology: &Topology, nics: usize, peer: ComponentId) -> Vec<PoolPlan> {
    let mut wire = vec![ComponentId::IP];
    wire.extend(nic_peers(nics));
    let mut everyone = vec![ComponentId::TCP, ComponentId::UDP];
    everyone.extend(&wire);
    let transports_and_wire = present(topology, nics, &everyone);
    match peer.role {
        Role::Tcp | Role::Udp => {
            vec![PoolPlan { slot_size: SEND_SLOT_LEN, slots: 2048, readers: vec![ComponentId::IP] }]
        }
        Role::Ip => vec![
            PoolPlan { slot_size: FRAME_SLOT_LEN, slots: 4096, readers: nic_peers(nics) },
            PoolPlan {
                slot_size: PACKET_SLOT_LEN,
                slots: 256,
                readers: transports_and_wire.into_iter().filter(|p| *p != ComponentId::IP).collect(),
            },
        ],
        Role::Nic => vec![PoolPlan {
            slot_size: PACKET_SLOT_LEN,
            slots: topology.memory.nic_frames,
            readers: present(topology, nics, &[ComponentId::IP, ComponentId::TCP, ComponentId::UDP]),
        }],
        Role::Sockets | Role::Filter | Role::Cores => vec![],
    }
}

/// Who maps families' arenas, and whether it may write.
pub fn family_mappers(topology: &Topology, nics: usize) -> Vec<(ComponentId, bool)> {
    let writers = present(topology, nics, &[ComponentId::SOCKETS, ComponentId::TCP, ComponentId::UDP]);
    let mut mappers: Vec<(ComponentId, bool)> = writers.into_iter().map(|p| (p, true)).collect();
    mappers.push((ComponentId::IP, false));
    mappers.extend(nic_peers(nics).into_iter().map(|p| (p, false)));
    mappers
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

/// Slots of a family's arena: tcp and udp have every second one each.
pub fn family_slots(limits: &Limits) -> usize {
    limits.sockets_per_family * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_contracted_neighbours_and_no_filter_without_one() {
        let t = Topology::parse(include_str!("../../../topologies/default.toml")).unwrap();
        let of = |p| neighbours(&t, 2, p).into_iter().map(|(p, _)| p).collect::<Vec<_>>();
        assert_eq!(of(ComponentId::FILTER), [ComponentId::IP]);
        assert_eq!(of(ComponentId::nic(1)), [ComponentId::IP]);
        assert_eq!(
            of(ComponentId::IP),
            [
                ComponentId::TCP,
                ComponentId::UDP,
                ComponentId::FILTER,
                ComponentId::nic(0),
                ComponentId::nic(1)
            ]
        );
        let t = Topology::parse(include_str!("../../../topologies/no-filter.toml")).unwrap();
        assert!(neighbours(&t, 1, ComponentId::IP).iter().all(|(p, _)| *p != ComponentId::FILTER));
    }

    #[test]
    fn nobody_but_transports_and_sockets_writes_a_family() {
        let t = Topology::parse(include_str!("../../../topologies/default.toml")).unwrap();
        let writers: Vec<ComponentId> =
            family_mappers(&t, 1).into_iter().filter(|(_, w)| *w).map(|(p, _)| p).collect();
        assert_eq!(writers, [ComponentId::SOCKETS, ComponentId::TCP, ComponentId::UDP]);
    }
}
