use super::*;

#[test]
fn only_contracted_neighbours_and_no_filter_without_one() {
    let t = Topology::parse(include_str!("../../../../topologies/default.toml")).unwrap();
    let of = |p| neighbours(&t, 2, p).into_iter().map(|(p, _)| p).collect::<Vec<_>>();
    assert_eq!(of(ComponentId::FILTER), [ComponentId::IP]);
    assert_eq!(of(ComponentId::nic(1)), [ComponentId::IP]);
    assert_eq!(
        of(ComponentId::IP),
        [ComponentId::TCP, ComponentId::UDP, ComponentId::FILTER, ComponentId::nic(0), ComponentId::nic(1)]
    );
    let t = Topology::parse(include_str!("../../../../topologies/no-filter.toml")).unwrap();
    assert!(neighbours(&t, 1, ComponentId::IP).iter().all(|(p, _)| *p != ComponentId::FILTER));
}

#[test]
fn nobody_but_transports_and_sockets_writes_a_domain() {
    let t = Topology::parse(include_str!("../../../../topologies/default.toml")).unwrap();
    let writers: Vec<ComponentId> =
        domain_mappers(&t, 1).into_iter().filter(|(_, w)| *w).map(|(p, _)| p).collect();
    assert_eq!(writers, [ComponentId::SOCKETS, ComponentId::TCP, ComponentId::UDP]);
}

#[test]
fn receipts_for_all_headers_leave_room_for_what_arrives() {
    for capacity in [64, 1024, 65536] {
        let default = include_str!("../../../../topologies/default.toml");
        let edges = [r#"between = ["tcp", "ip"]"#, r#"between = ["udp", "ip"]"#];
        let text = edges.iter().fold(default.to_string(), |text, edge| {
            text.replace(edge, &format!("{edge}\ncapacity = {capacity}"))
        });
        let t = Topology::parse(&text).unwrap();
        for transport in t.transports() {
            assert_eq!(t.capacity(transport, ComponentId::IP), Some(capacity));
            let headers = pools(&t, 1, transport)[0].slots;
            assert!(headers >= 16);
            // As `Outbox::may_drop_in`.
            assert!(capacity - headers > capacity / 2, "{transport}, {capacity}");
        }
    }
}

#[test]
fn a_second_tcp_is_planned_as_the_first() {
    let text = format!(
        "{}\n[limits]\nsockets_per_domain = 1000\n[[component]]\nname = \"tcp1\"\n\
         [[edge]]\nbetween = [\"sockets\", \"tcp1\"]\n[[edge]]\nbetween = [\"tcp1\", \"ip\"]\n",
        include_str!("../../../../topologies/default.toml")
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
    let t = Topology::parse(include_str!("../../../../topologies/default.toml")).unwrap();
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
    for table in ["[memory]\nsend_ring_bytes = 65536", "[limits]\nconnections = 5", "[limits]\ndomains = 5"] {
        assert_ne!(like(&format!("{default}\n{table}\n")), like(default), "{table}");
    }
    assert_ne!(like(include_str!("../../../../topologies/no-filter.toml")), like(default));
}

#[test]
fn an_arena_grows_within_reason() {
    assert!(may_grow(1000, 1000) && may_grow(1000, 4000) && may_grow(1000, 10));
    assert!(!may_grow(1000, 4004) && !may_grow(0, 4) && !may_grow(1000, usize::MAX));
}

#[test]
fn what_lies_behind_the_slots_of_a_pool_is_taken_for_no_slot() {
    let t = Topology::parse(include_str!("../../../../topologies/default.toml")).unwrap();
    for peer in [ComponentId::nic(0), ComponentId::IP, ComponentId::TCP] {
        for pool in pools(&t, 1, peer) {
            assert_eq!(pool.bytes() / pool.slot_size, pool.slots, "{peer}");
            assert_eq!(
                pool.has_journal,
                peer.role == Role::Nic && pool.bytes() > pool.slots * pool.slot_size
            );
        }
    }
}
