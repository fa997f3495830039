//! Stacks with two instances of each transport.

use eft_base::{ComponentId, Endpoint, Role, ports};
use eft_sim::simulation::{Settings, address};
use eft_sim::{Conditions, Datagrams, Faults, Simulation};
use std::time::Duration;

const TCP1: ComponentId = ComponentId::new(Role::Tcp, 1);
const UDP1: ComponentId = ComponentId::new(Role::Udp, 1);
const TRANSPORTS: [ComponentId; 4] = [ComponentId::TCP, TCP1, ComponentId::UDP, UDP1];
const STREAMS: usize = 8;
const SENDERS: u64 = 4;
const DATAGRAMS: u64 = 40;

fn settings() -> Settings {
    let mut settings =
        Settings { topology: include_str!("../../../topologies/spread.toml").into(), ..Settings::default() };
    // Each of the four transports has its share.
    settings.geometry.slots = 128;
    settings
}

/// Streams both ways and datagrams of several sockets, to the end, while servers die.
fn carried(seed: u64, settings: Settings, faults: Faults) -> Simulation {
    let mut s = Simulation::new(seed, settings);
    s.serve(60_000, 90_000, 0);
    for port in 53..53 + SENDERS as u16 {
        s.applications[1].exchange(Datagrams { port, ..Datagrams::default() });
    }
    s.run(Duration::from_secs(5), |s| s.applications[1].datagrams.len() == SENDERS as usize);
    s.faults = faults;
    for port in 53..53 + SENDERS as u16 {
        let to = Some(Endpoint::new(address(1).address, port));
        let plan = Datagrams { port: 0, to, count: DATAGRAMS, len_max: 3000, ..Datagrams::default() };
        s.applications[0].exchange(plan);
    }
    (0..STREAMS).for_each(|_| s.stream(60_000, 90_000, 0));
    s.run(Duration::from_secs(600), |s| {
        s.applications.iter().all(|a| a.streams.len() == STREAMS && a.is_done())
    });
    s.faults = Faults::default();
    s.run_for(Duration::from_secs(1));
    s
}

/// What each of the transports of one side has counted.
fn counted(s: &Simulation, side: usize, peers: [ComponentId; 2], name: &str) -> [u64; 2] {
    peers.map(|peer| s.stacks[side].counter(peer, name))
}

#[test]
fn both_instances_carry_and_nothing_is_lost_between_them() {
    for seed in 0..6 {
        let s = carried(seed, Settings { ipv6: seed % 2 == 1, ..settings() }, Faults::default());
        let outbound = counted(&s, 0, [ComponentId::TCP, TCP1], "outbound_connections");
        assert_eq!(outbound, [STREAMS as u64 / 2; 2], "seed {seed}");
        let sent = counted(&s, 0, [ComponentId::UDP, UDP1], "sent_datagrams");
        assert_eq!(sent, [SENDERS * DATAGRAMS / 2; 2], "seed {seed}");
        let received = counted(&s, 1, [ComponentId::UDP, UDP1], "received_datagrams");
        let of = |instance| (53..53 + SENDERS as u16).filter(move |port| ports::owner(*port, 2) == instance);
        let due = [0, 1].map(|instance| of(instance).count() as u64 * DATAGRAMS);
        assert_eq!(received, due, "seed {seed}");
        assert!(due.iter().all(|n| *n > 0), "{due:?}");
        let accepted = counted(&s, 1, [ComponentId::TCP, TCP1], "accepted_connections");
        assert_eq!(accepted.iter().sum::<u64>(), STREAMS as u64, "seed {seed}");
        assert!(accepted.iter().all(|n| *n >= 2), "seed {seed}: {accepted:?}");
        for peer in [ComponentId::TCP, TCP1] {
            assert_eq!(s.total(peer, "retransmitted_segments"), 0, "seed {seed}, {peer}");
            assert_eq!(s.total(peer, "resets_sent"), 0, "seed {seed}, {peer}");
        }
    }
}

#[test]
fn every_stream_lives_on_while_instances_die() {
    let faults = Faults {
        peers: TRANSPORTS.into_iter().chain([ComponentId::IP]).collect(),
        crash: 0.0005,
        fuse: 0.001,
        together: 0.3,
        downtime: Duration::from_millis(3),
        ..Faults::default()
    };
    let conditions = Conditions { loss: 0.005, rate: 200_000_000, cut: true, ..Conditions::default() };
    let mut deaths = 0;
    for seed in 0..20 {
        let settings = Settings { conditions, ipv6: seed % 4 == 3, ..settings() };
        let s = carried(seed, settings, faults.clone());
        deaths += s.stacks.iter().map(|stack| stack.crashes + stack.burnt).sum::<u64>();
    }
    assert!(deaths > 100, "only {deaths} died");
}

#[test]
fn a_death_of_one_costs_the_streams_of_the_other_nothing() {
    let faults =
        Faults { peers: vec![TCP1], crash: 0.005, downtime: Duration::from_millis(3), ..Faults::default() };
    let mut deaths = 0;
    for seed in 0..8 {
        let s = carried(seed, settings(), faults.clone());
        deaths += s.stacks.iter().map(|stack| stack.crashes).sum::<u64>();
        let [accepted, _] = counted(&s, 1, [ComponentId::TCP, TCP1], "accepted_connections");
        assert!(accepted >= 2, "seed {seed}: {accepted}");
        let again = s.stacks[0].counter(ComponentId::TCP, "retransmitted_segments");
        let probes = s.stacks[0].counter(ComponentId::TCP, "loss_probes");
        assert!(again <= probes, "seed {seed}: {again} segments, {probes} probes");
    }
    assert!(deaths > 8, "only {deaths} died");
}

/// The stack with so many tcp.
fn with_tcps(count: u8) -> Settings {
    let more = (2..count).map(|i| {
        let edges = ["sockets", "ip"].map(|peer| format!("[[edge]]\nbetween = [\"{peer}\", \"tcp{i}\"]\n"));
        format!("\n[[component]]\nname = \"tcp{i}\"\n{}", edges.concat())
    });
    let topology = settings().topology + &more.collect::<String>();
    Settings { topology, ..settings() }
}

#[test]
fn a_port_gets_a_listener_at_each_instance_while_they_die() {
    let tcps: Vec<ComponentId> = (0..4).map(|i| ComponentId::new(Role::Tcp, i)).collect();
    let peers = tcps.clone();
    let faults =
        Faults { peers, crash: 0.02, fuse: 0.02, downtime: Duration::from_millis(2), ..Faults::default() };
    let mut deaths = 0;
    for seed in 0..20 {
        let mut s = Simulation::new(seed, with_tcps(4));
        s.faults = faults.clone();
        s.serve(20_000, 30_000, 0);
        s.faults = Faults::default();
        s.run_for(Duration::from_millis(100));
        deaths += s.stacks[1].crashes + s.stacks[1].burnt;
        assert!(s.applications[1].failures.is_empty(), "seed {seed}: {:?}", s.applications[1].failures);
        // Ports next to each other: each instance gets as many.
        (0..16).for_each(|_| s.stream(20_000, 30_000, 0));
        s.run(Duration::from_secs(60), |s| {
            s.applications.iter().all(|a| a.streams.len() == 16 && a.is_done())
        });
        let accepted: Vec<u64> =
            tcps.iter().map(|tcp| s.stacks[1].counter(*tcp, "accepted_connections")).collect();
        assert_eq!(accepted.iter().sum::<u64>(), 16, "seed {seed}: {accepted:?}");
        assert!(accepted.iter().all(|n| *n > 0), "seed {seed}: {accepted:?}");
    }
    assert!(deaths > 20, "only {deaths} died");
}

#[test]
fn servers_answer_the_same_when_asked_again() {
    let faults = Faults {
        peers: TRANSPORTS.into_iter().chain([ComponentId::IP]).collect(),
        crash: 0.0003,
        downtime: Duration::from_millis(2),
        ..Faults::default()
    };
    let mut lives = TRANSPORTS.map(|_| 0);
    for seed in 0..2 {
        let s = carried(seed, Settings { record: true, ..settings() }, faults.clone());
        for life in s.stacks.iter().flat_map(|stack| &stack.lives) {
            let peer = life.head.engine.peer();
            if let Err(failure) = life.again(&life.recording.borrow()) {
                panic!("seed {seed}, {peer}: {failure}");
            }
            if let Some(n) = TRANSPORTS.iter().position(|id| *id == peer) {
                lives[n] += 1;
            }
        }
    }
    assert!(lives.iter().all(|n| *n > 3), "nobody died: {lives:?}");
}
