use super::*;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

fn names(tcp: u8, udp: u8) -> String {
    let of = |role, count| (0..count).map(move |i| format!("{}\n", ComponentId::new(role, i)));
    of(Role::Tcp, tcp).chain(of(Role::Udp, udp)).collect()
}

#[test]
fn each_port_has_one_owner_and_each_instance_its_part() {
    for instances in 1..=16 {
        let list = names(instances, 0);
        let shares: Vec<PortShare> = (0..instances)
            .map(|i| PortShare::among(ComponentId::new(Role::Tcp, i), list.as_bytes()))
            .collect();
        let (mut all, mut ephemeral) = (vec![0u32; instances.into()], vec![0u32; instances.into()]);
        for port in 0..=u16::MAX {
            let owner = owner(port, instances);
            let having: Vec<usize> = (0..shares.len()).filter(|i| shares[*i].has(port)).collect();
            assert_eq!(having, [owner.into()], "port {port} among {instances}");
            assert_eq!(
                Instances::among(list.as_bytes()).owner(Role::Tcp, port),
                ComponentId::new(Role::Tcp, owner)
            );
            all[usize::from(owner)] += 1;
            ephemeral[usize::from(owner)] += u32::from((32768..61000).contains(&port));
        }
        for counts in [all, ephemeral] {
            let total: u32 = counts.iter().sum();
            let fair = total / u32::from(instances);
            assert!(counts.iter().all(|n| n.abs_diff(fair) <= fair / 50), "{instances}: {counts:?}");
        }
    }
}

#[test]
fn neighbouring_ports_are_spread() {
    for instances in 2..=8u8 {
        for first in [80, 443, 5201, 8000, 8080, 30000] {
            let mut counts = vec![0u32; instances.into()];
            (first..first + 32).for_each(|port| counts[usize::from(owner(port, instances))] += 1);
            let fair = 32 / u32::from(instances);
            assert!(counts.iter().all(|n| n.abs_diff(fair) <= 2), "{instances} from {first}: {counts:?}");
        }
    }
}

/// What an update must not change, or a connection's segments would reach another instance than its own.
#[test]
fn the_owners_are_those_of_earlier_versions() {
    let among =
        |instances: u8| [22, 53, 80, 443, 5201, 8080, 32768, 60999].map(|port| owner(port, instances));
    assert_eq!(among(1), [0; 8]);
    assert_eq!(among(2), [1, 1, 0, 1, 0, 1, 1, 0]);
    assert_eq!(among(8), [4, 6, 3, 6, 3, 5, 5, 3]);
}

fn peer(address: &str, port: u16) -> (WireAddress, u16) {
    (address.parse::<core::net::IpAddr>().unwrap().into(), port)
}

#[test]
fn each_connection_of_a_servers_port_has_one_owner_and_each_instance_its_part() {
    for instances in 1..=16 {
        let list = names(instances, 0);
        let shares: Vec<PortShare> = (0..instances)
            .map(|i| PortShare::among(ComponentId::new(Role::Tcp, i), list.as_bytes()))
            .collect();
        for port in [80, 443, 32767] {
            let mut counts = vec![0u32; instances.into()];
            let one_host = (32768..60768).map(|from| peer("10.0.5.1", from));
            let many_hosts = (0..28000u32).map(|n| peer(&format!("fd00::7:{:x}", n + 1), 40000));
            for peer in one_host.chain(many_hosts) {
                let owner = connection_owner(port, peer, instances);
                let having: Vec<usize> =
                    (0..shares.len()).filter(|i| shares[*i].has_connection(port, peer)).collect();
                assert_eq!(having, [owner.into()], "port {port} among {instances}");
                let id = Instances::among(list.as_bytes()).connection_owner(port, peer);
                assert_eq!(id, ComponentId::new(Role::Tcp, owner));
                counts[usize::from(owner)] += 1;
            }
            let fair = 56000 / u32::from(instances);
            assert!(counts.iter().all(|n| n.abs_diff(fair) <= fair / 10), "{instances}: {counts:?}");
        }
    }
}

#[test]
fn few_connections_are_spread_too() {
    for instances in 2..=8u8 {
        for first in [32768, 40000, 50001] {
            let mut counts = vec![0u32; instances.into()];
            // Linux takes every other port first.
            for n in 0..32 {
                counts[usize::from(connection_owner(80, peer("10.0.5.1", first + 2 * n), instances))] += 1;
            }
            let fair = 32 / u32::from(instances);
            assert!(counts.iter().all(|n| n.abs_diff(fair) <= 2), "{instances} {first}: {counts:?}");
        }
    }
}

#[test]
fn a_port_that_programs_do_not_name_keeps_its_connections() {
    for port in [32768, 40001, 60999, 61000, 65535] {
        for from in 1..200 {
            assert_eq!(connection_owner(port, peer("10.0.5.1", from), 8), owner(port, 8));
        }
        assert!(!Instances::among(b"tcp\ntcp1\n").spreads(Role::Tcp, port));
    }
    assert!(Instances::among(b"tcp\ntcp1\n").spreads(Role::Tcp, 80));
    assert!(!Instances::among(b"tcp\ntcp1\nudp\nudp1\n").spreads(Role::Udp, 80));
    assert!(!Instances::among(b"tcp\n").spreads(Role::Tcp, 80));
}

#[test]
fn the_zone_of_an_address_says_nothing_about_the_owner() {
    let with = |zone| {
        let address = crate::address::with_zone("fe80::7".parse().unwrap(), zone);
        (WireAddress::from(core::net::IpAddr::V6(address)), 5000)
    };
    for port in 1..100 {
        assert_eq!(connection_owner(port, with(3), 8), connection_owner(port, with(0), 8));
    }
}

#[test]
fn a_list_without_the_transport_gives_it_all_ports() {
    let tcp2 = ComponentId::new(Role::Tcp, 2);
    for list in [&b""[..], b"tcp\ntcp1\n", b"\xff", b"udp"] {
        assert_eq!(PortShare::among(tcp2, list), PortShare::ALL);
    }
    let both = Instances::among(b"tcp\ntcp1\nudp\nnonsense\n");
    assert_eq!((both.of(Role::Tcp), both.of(Role::Udp), both.of(Role::Ip)), (2, 1, 0));
    assert_eq!(both.owner(Role::Udp, 53), ComponentId::UDP);
    assert_eq!(Instances::default().owner(Role::Tcp, 80), ComponentId::TCP);
}
