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
use eft_messages::Peer;
use eft_messages::nic::{FRAME_SLOT_LEN, PACKET_SLOT_LEN};
use eft_messages::transport::SEND_SLOT_LEN;

/// A pool to be made for a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolPlan {
    pub slot_size: usize,
    pub slots: usize,
    pub readers: Vec<Peer>,
}

fn present(topology: &Topology, nics: usize, wanted: &[Peer]) -> Vec<Peer> {
    let all = topology.peers(nics);
    wanted.iter().copied().filter(|p| all.contains(p)).collect()
}

fn nic_peers(nics: usize) -> Vec<Peer> {
    (0..nics).map(|n| Peer::Nic(n as u8)).collect()
}

/// The pools that `peer` owns, in the order in which its constructor takes them.
pub fn pools(topology: &Topology, nics: usize, peer: Peer) -> Vec<PoolPlan> {
    let mut wire = vec![Peer::Ip];
    wire.extend(nic_peers(nics));
    let mut everyone = vec![Peer::Tcp, Peer::Udp];
    everyone.extend(&wire);
    let transports_and_wire = present(topology, nics, &everyone);
    match peer {
        Peer::Tcp | Peer::Udp => {
            vec![PoolPlan { slot_size: SEND_SLOT_LEN, slots: 2048, readers: vec![Peer::Ip] }]
        }
        Peer::Ip => vec![
            PoolPlan { slot_size: FRAME_SLOT_LEN, slots: 4096, readers: nic_peers(nics) },
            PoolPlan {
                slot_size: PACKET_SLOT_LEN,
                slots: 256,
                readers: transports_and_wire.into_iter().filter(|p| *p != Peer::Ip).collect(),
            },
        ],
        Peer::Nic(_) => vec![PoolPlan {
            slot_size: PACKET_SLOT_LEN,
            slots: topology.memory.nic_frames,
            readers: present(topology, nics, &[Peer::Ip, Peer::Tcp, Peer::Udp]),
        }],
        Peer::Sockets | Peer::Filter | Peer::Cores => vec![],
    }
}

/// Who maps families' arenas, and whether it may write.
pub fn family_mappers(topology: &Topology, nics: usize) -> Vec<(Peer, bool)> {
    let writers = present(topology, nics, &[Peer::Sockets, Peer::Tcp, Peer::Udp]);
    let mut mappers: Vec<(Peer, bool)> = writers.into_iter().map(|p| (p, true)).collect();
    mappers.push((Peer::Ip, false));
    mappers.extend(nic_peers(nics).into_iter().map(|p| (p, false)));
    mappers
}

/// The neighbours of `peer` and the capacity of the queues between them.
pub fn neighbours(topology: &Topology, nics: usize, peer: Peer) -> Vec<(Peer, usize)> {
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
        assert_eq!(of(Peer::Filter), [Peer::Ip]);
        assert_eq!(of(Peer::Nic(1)), [Peer::Ip]);
        assert_eq!(of(Peer::Ip), [Peer::Tcp, Peer::Udp, Peer::Filter, Peer::Nic(0), Peer::Nic(1)]);
        let t = Topology::parse(include_str!("../../../topologies/no-filter.toml")).unwrap();
        assert!(neighbours(&t, 1, Peer::Ip).iter().all(|(p, _)| *p != Peer::Filter));
    }

    #[test]
    fn nobody_but_transports_and_sockets_writes_a_family() {
        let t = Topology::parse(include_str!("../../../topologies/default.toml")).unwrap();
        let writers: Vec<Peer> =
            family_mappers(&t, 1).into_iter().filter(|(_, w)| *w).map(|(p, _)| p).collect();
        assert_eq!(writers, [Peer::Sockets, Peer::Tcp, Peer::Udp]);
    }
}
