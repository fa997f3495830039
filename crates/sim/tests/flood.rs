//! A flood of SYNs from unused addresses (RFC 4987), and clients that connect during it.

use eft_base::checksum::Checksum;
use eft_messages::ComponentId;
use eft_sim::Simulation;
use eft_sim::simulation::{Settings, address};
use std::net::Ipv4Addr;
use std::time::Duration;

const TARGET: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A SYN to port 80 of side 1, with the options of a usual client.
fn syn(source: Ipv4Addr, port: u16, sequence: u32) -> Vec<u8> {
    let std::net::IpAddr::V4(target) = address(1).address else { panic!("IPv4") };
    let options = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 1, 0, 0, 0, 0, 0, 1, 3, 3, 7];
    let mut tcp = [port.to_be_bytes(), 80u16.to_be_bytes()].concat();
    tcp.extend(sequence.to_be_bytes());
    tcp.extend([0, 0, 0, 0, (20 + options.len() as u8) << 2, 2, 0xff, 0xff, 0, 0, 0, 0]);
    tcp.extend(options);
    let sum = Checksum::new()
        .add_pseudo_header(source.into(), target.into(), 6, tcp.len() as u32)
        .add_bytes(&tcp)
        .finish();
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    let mut ip = vec![0x45, 0, 0, (20 + tcp.len()) as u8, 0, 0, 0x40, 0, 64, 6, 0, 0];
    ip.extend(source.octets());
    ip.extend(target.octets());
    let sum = Checksum::new().add_bytes(&ip).finish();
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let ethernet = [&TARGET[..], &[2, 0, 0, 0, 0, 99], &[8, 0]].concat();
    [ethernet, ip, tcp].concat()
}

/// Every so often another SYN arrives, of another client that does not exist.
fn flood(s: &mut Simulation, turns: u32, each: impl Fn(&mut Simulation, u32) -> bool) -> bool {
    for n in 0..turns {
        let source = Ipv4Addr::new(10, 77, 0, 10 + (n % 200) as u8);
        s.link.inject(s.now, 1, syn(source, 1024 + (n / 200) as u16, n));
        s.run_for(Duration::from_micros(100));
        if each(s, n) {
            return true;
        }
    }
    false
}

/// Connections of side 0 while the flood goes on. `disturb` may do something before each SYN.
fn connect_through_it(seed: u64, disturb: impl Fn(&mut Simulation, u32)) -> Simulation {
    let mut s = Simulation::new(seed, Settings::default());
    s.serve(20_000, 50_000, 0);
    flood(&mut s, 500, |_, _| false);
    assert!(s.stacks[1].counter(ComponentId::TCP, "syn_cookies_sent") > 0, "seed {seed}: nothing was full");
    for _ in 0..8 {
        s.stream(20_000, 50_000, 0);
    }
    let done = flood(&mut s, 60_000, |s, n| {
        disturb(s, n);
        s.applications.iter().all(|a| a.streams.len() == 8 && a.is_done())
    });
    if !done {
        s.fail("the flood shut the clients out");
    }
    s
}

#[test]
fn clients_connect_through_a_flood() {
    for seed in 0..4 {
        let s = connect_through_it(seed, |_, _| {});
        let count = |name| s.stacks[1].counter(ComponentId::TCP, name);
        assert!(count("syn_cookies_received") > 0, "seed {seed}");
        assert_eq!(count("resets_sent"), 0, "seed {seed}: {}", s.report("a client was sent away"));
    }
}

/// A successor knows the cookies of its predecessor.
#[test]
fn clients_connect_through_a_flood_while_tcp_dies() {
    let mut deaths = 0;
    for seed in 10..14 {
        let s = connect_through_it(seed, |s, n| {
            if n % 3 == 1 && n < 300 {
                s.kill(1, ComponentId::TCP);
            }
        });
        deaths += s.stacks[1].crashes;
    }
    assert!(deaths > 8, "only {deaths} deaths");
}
