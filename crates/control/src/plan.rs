//! Which memory exists and who may map it: the one table of a stack's isolation.
//!
//! | segment | who writes | who reads | when its writer dies |
//! |---|---|---|---|
//! | status page of X | X | every component, programs (tcp's and udp's), `eft stat`; cores reads all | successor goes on with it |
//! | queue X→Y | X | Y | replaced by a fresh one |
//! | position of Y in X→Y | Y | X | replaced by a fresh one |
//! | pool of X | X | [`pools`]' readers | fresh one; the old stays mapped while in use |
//! | arena of tcp, udp, filter | its owner | `eft ss`, `eft pf` | successor opens it |
//! | arena of a domain | its programs, tcp, udp, sockets | ip, nics | freed with the domain |

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use eft_base::SlotShare;
use eft_component::Topology;
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

fn nic_peers(nics: usize) -> Vec<ComponentId> {
    (0..nics).map(|n| ComponentId::nic(n as u8)).collect()
}

/// The pools that `peer` owns, in the order in which its constructor takes them.
pub fn pools(topology: &Topology, nics: usize, peer: ComponentId) -> Vec<PoolPlan> {
    let transports = topology.transports();
    match peer.role {
        Role::Tcp | Role::Udp => {
            vec![PoolPlan { slot_size: SEND_SLOT_LEN, slots: 2048, readers: vec![ComponentId::IP] }]
        }
        Role::Ip => vec![
            PoolPlan { slot_size: FRAME_SLOT_LEN, slots: 4096, readers: nic_peers(nics) },
            PoolPlan {
                slot_size: PACKET_SLOT_LEN,
                slots: 256,
                readers: [transports, nic_peers(nics)].concat(),
            },
        ],
        Role::Nic => vec![PoolPlan {
            slot_size: PACKET_SLOT_LEN,
            slots: topology.memory.nic_frames,
            readers: [vec![ComponentId::IP], transports].concat(),
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
    fn nobody_but_transports_and_sockets_writes_a_domain() {
        let t = Topology::parse(include_str!("../../../topologies/default.toml")).unwrap();
        let writers: Vec<ComponentId> =
            domain_mappers(&t, 1).into_iter().filter(|(_, w)| *w).map(|(p, _)| p).collect();
        assert_eq!(writers, [ComponentId::SOCKETS, ComponentId::TCP, ComponentId::UDP]);
    }

    #[test]
    fn a_second_tcp_is_planned_as_the_first() {
        let text = format!(
            "{}\n[limits]\nsockets_per_domain = 1000\n[[component]]\nname = \"tcp1\"\n\
             [[edge]]\nbetween = [\"sockets\", \"tcp1\"]\n[[edge]]\nbetween = [\"tcp1\", \"ip\"]\n",
            include_str!("../../../topologies/default.toml")
        );
        let t = Topology::parse(&text).unwrap();
        let second = ComponentId::new(Role::Tcp, 1);
        let first = ComponentId::TCP;
        // Lanes: its own with the same neighbours, none with the first.
        let of = |p| neighbours(&t, 1, p);
        assert_eq!(of(second), of(first));
        for neighbour in [ComponentId::SOCKETS, ComponentId::IP] {
            let both = of(neighbour).into_iter().filter(|(p, _)| p.role == Role::Tcp);
            assert_eq!(both.map(|(p, _)| p).collect::<Vec<_>>(), [first, second]);
        }
        // Pools: as many and as large, and it reads what the first reads.
        assert_eq!(pools(&t, 1, second), pools(&t, 1, first));
        for owner in t.peers(1) {
            for pool in pools(&t, 1, owner) {
                assert_eq!(pool.readers.contains(&second), pool.readers.contains(&first), "{owner}");
            }
        }
        // Memory: it maps domains, and has a third of their slots to itself.
        assert!(domain_mappers(&t, 1).contains(&(second, true)));
        assert_eq!(domain_slots(&t), 3000);
        let shares: Vec<SlotShare> = t.peers(1).into_iter().filter_map(|p| slot_share(&t, p)).collect();
        assert_eq!(shares.iter().map(|s| s.owner).collect::<Vec<_>>(), [first, second, ComponentId::UDP]);
        for slot in 0..3000 {
            assert_eq!(shares.iter().filter(|s| s.index(slot).is_some()).count(), 1, "slot {slot}");
        }
        assert!(shares.iter().all(|s| s.len(3000) == 1000));
    }

    #[test]
    fn one_tcp_and_one_udp_share_as_simulations_and_tests_assume() {
        let t = Topology::parse(include_str!("../../../topologies/default.toml")).unwrap();
        assert_eq!(slot_share(&t, ComponentId::TCP), Some(SlotShare::TCP));
        assert_eq!(slot_share(&t, ComponentId::UDP), Some(SlotShare::UDP));
        assert_eq!(slot_share(&t, ComponentId::IP), None);
    }

    #[test]
    fn another_place_or_order_is_the_same_stack_and_another_size_is_not() {
        let like = |text: &str| likeness(&Topology::parse(text).unwrap());
        let default = eft_component::topology::DEFAULT;
        let changed = |from: &str, to: &str| {
            assert!(default.contains(from), "{from}");
            like(&default.replacen(from, to, 1))
        };
        assert_eq!(changed("name = \"udp\"", "name = \"udp\"\ncpu = 0"), like(default));
        assert_eq!(changed("capacity = 1024", "capacity = 2048"), like(default));
        assert_eq!(like(&format!("{default}\n[memory]\nnic_frames = 64\n")), like(default));
        let udp = "[[component]]\nname = \"udp\"\n";
        assert_eq!(like(&format!("{}\n{udp}", default.replacen(udp, "", 1))), like(default));
        for table in
            ["[memory]\nsend_ring_bytes = 65536", "[limits]\nconnections = 5", "[limits]\ndomains = 5"]
        {
            assert_ne!(like(&format!("{default}\n{table}\n")), like(default), "{table}");
        }
        assert_ne!(like(include_str!("../../../topologies/no-filter.toml")), like(default));
    }

    #[test]
    fn an_arena_grows_within_reason() {
        assert!(may_grow(1000, 1000) && may_grow(1000, 4000) && may_grow(1000, 10));
        assert!(!may_grow(1000, 4004) && !may_grow(0, 4) && !may_grow(1000, usize::MAX));
    }
}
