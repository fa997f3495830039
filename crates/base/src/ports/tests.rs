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
