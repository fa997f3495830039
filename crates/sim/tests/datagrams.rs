//! Datagrams through two whole stacks, beside streams.

use eft_base::Endpoint;
use eft_component::DeviceInfo;
use eft_messages::ComponentId;
use eft_sim::simulation::{Settings, address};
use eft_sim::{Conditions, Datagrams, Faults, Simulation};
use std::net::IpAddr;
use std::time::Duration;

/// Side 1 waits on port 53; side 0 will send there.
fn pair(seed: u64, settings: Settings, count: u64, len_max: u64) -> Simulation {
    let to = Some(Endpoint::new(settings.address(1).address, 53));
    let mut s = Simulation::new(seed, settings);
    s.applications[1].exchange(Datagrams { port: 53, ..Datagrams::default() });
    s.run(Duration::from_secs(5), |s| s.applications[1].datagrams.len() == 1);
    s.applications[0].exchange(Datagrams { port: 0, to, count, len_max, ..Datagrams::default() });
    s.run(Duration::from_secs(60), |s| s.applications[0].datagrams.iter().any(|d| d.has_sent_all()));
    s
}

fn received(s: &Simulation) -> usize {
    s.applications[1].datagrams[0].received.len()
}

#[test]
fn all_arrive_once_on_a_clean_wire() {
    for seed in 0..4 {
        for len_max in [500, 4000, 60000] {
            let mut s = pair(seed, Settings::default(), 60, len_max);
            s.run(Duration::from_secs(10), |s| received(s) == 60);
            assert_eq!(s.applications[1].datagrams[0].duplicates, 0, "seed {seed}");
        }
    }
}

#[test]
fn all_arrive_once_over_ipv6() {
    for seed in 0..4 {
        for len_max in [500, 4000, 60000] {
            let settings = Settings { ipv6: true, ..Settings::default() };
            let mut s = pair(seed, settings, 60, len_max);
            s.run(Duration::from_secs(10), |s| received(s) == 60);
            assert_eq!(s.applications[1].datagrams[0].duplicates, 0, "seed {seed}");
            let frames = s.total(ComponentId::IP, "fragments_in");
            assert_eq!(frames > 0, len_max > 1452, "seed {seed}: {frames} fragments");
        }
    }
}

/// 320 datagrams in ten sends. Returns how many frames their sender's NIC sent.
fn send_together(seed: u64, settings: Settings) -> u64 {
    let to = Some(Endpoint::new(settings.address(1).address, 53));
    let mut s = Simulation::new(seed, settings);
    s.applications[1].exchange(Datagrams { port: 53, ..Datagrams::default() });
    s.run(Duration::from_secs(5), |s| s.applications[1].datagrams.len() == 1);
    s.applications[0].exchange(Datagrams {
        to,
        count: 320,
        len_max: 1000,
        batch: 32,
        ..Datagrams::default()
    });
    s.run(Duration::from_secs(10), |s| received(s) == 320);
    assert_eq!(s.applications[1].datagrams[0].duplicates, 0, "seed {seed}");
    assert_eq!(s.stacks[0].counter(ComponentId::UDP, "sent_datagrams"), 320, "seed {seed}");
    s.stacks[0].counter(ComponentId::nic(0), "frames_out")
}

#[test]
fn datagrams_of_one_send_stay_together_as_far_as_somebody_cuts_them() {
    for (seed, ipv6) in [(40, false), (41, true)] {
        let whole = Settings { ipv6, ..Settings::default() };
        let few = send_together(seed, whole.clone());
        assert!((10..40).contains(&few), "seed {seed}: {few} frames");
        let conditions = Conditions { cut: true, ..whole.conditions };
        let few = send_together(seed, Settings { conditions, ..whole.clone() });
        assert!((10..40).contains(&few), "seed {seed}: the device cuts, {few} frames");
        let device = DeviceInfo { datagrams: false, ..whole.device };
        let many = send_together(seed, Settings { device, ..whole.clone() });
        assert!((320..350).contains(&many), "seed {seed}: the NIC cuts, {many} frames");
        let device = DeviceInfo { segment_max: 0, ..whole.device };
        let many = send_together(seed, Settings { device, ..whole.clone() });
        assert!((320..350).contains(&many), "seed {seed}: udp cuts, {many} frames");
    }
}

#[test]
fn what_arrives_over_a_bad_wire_is_whole() {
    for seed in 10..14 {
        let conditions = Conditions {
            loss: 0.03,
            duplicate: 0.03,
            corrupt: 0.02,
            jitter: Duration::from_micros(300),
            ..Conditions::default()
        };
        let settings = Settings { conditions, ..Settings::default() };
        let mut s = pair(seed, settings, 400, 5000);
        s.run_for(Duration::from_secs(40));
        let n = received(&s);
        assert!((200..400).contains(&n), "seed {seed}: {n} of 400");
    }
}

#[test]
fn sockets_outlive_udp_and_streams_do_not_notice() {
    let mut deaths = 0;
    for seed in 20..26 {
        let mut s = pair(seed, Settings::default(), 10, 2000);
        s.serve(2_000_000, 2_000_000, 0);
        s.stream(2_000_000, 2_000_000, 0);
        s.faults = Faults {
            peers: vec![ComponentId::UDP],
            crash: 0.002,
            downtime: Duration::from_millis(2),
            one_at_a_time: true,
            ..Faults::default()
        };
        for _ in 0..20 {
            s.applications[0].send_more(20);
            s.run_for(Duration::from_millis(1));
        }
        s.run(Duration::from_secs(60), |s| {
            s.applications.iter().all(|a| a.streams.len() == 1 && a.is_done())
        });
        assert_eq!(s.total(ComponentId::TCP, "retransmitted_segments"), 0, "seed {seed}");
        deaths += s.stacks[0].crashes + s.stacks[1].crashes;
        // After the last death the same sockets carry everything again.
        s.faults = Faults::default();
        s.run_for(Duration::from_secs(3));
        let before = received(&s);
        s.applications[0].send_more(50);
        s.run(Duration::from_secs(10), |s| received(s) == before + 50);
    }
    assert!(deaths > 10, "only {deaths} deaths");
}

#[test]
fn a_datagram_to_a_closed_port_is_refused() {
    for seed in 30..33 {
        let mut s = Simulation::new(seed, Settings::default());
        let to = Some(Endpoint::new(address(1).address, 9));
        s.applications[0].exchange(Datagrams { port: 0, to, count: 5, len_max: 100, ..Datagrams::default() });
        s.run(Duration::from_secs(10), |s| s.stacks[0].counter(ComponentId::IP, "icmp_errors_in") >= 5);
        assert_eq!(s.stacks[1].counter(ComponentId::IP, "icmp_errors_out"), 5, "seed {seed}");
    }
}

/// Two members of a group on side 1 and one on side 0, which sends to it.
fn members(seed: u64, settings: Settings) -> Simulation {
    let group: IpAddr = if settings.ipv6 { "ff15::7".parse() } else { "239.1.2.3".parse() }.unwrap();
    let mut s = Simulation::new(seed, settings);
    let member = Datagrams { port: 5353, group: Some(group), len_max: 1000, ..Datagrams::default() };
    s.applications[1].exchange(member);
    s.applications[1].exchange(member);
    s.applications[0].exchange(Datagrams { to: Some(Endpoint::new(group, 5353)), ..member });
    s.run(Duration::from_secs(5), |s| {
        [1, 2].into_iter().eq(s.applications.iter().map(|a| a.datagrams.len()))
    });
    s
}

/// Datagrams that each member has heard.
fn heard(s: &Simulation) -> Vec<usize> {
    s.applications.iter().flat_map(|a| &a.datagrams).map(|d| d.received.len()).collect()
}

#[test]
fn all_members_get_a_copy_on_both_sides() {
    for (seed, ipv6) in [(40, false), (41, true)] {
        let mut s = members(seed, Settings { ipv6, ..Settings::default() });
        s.applications[0].send_more(60);
        s.run(Duration::from_secs(10), |s| heard(s) == [60; 3]);
        assert!(s.applications.iter().flat_map(|a| &a.datagrams).all(|d| d.duplicates == 0), "seed {seed}");
        // Both sides have told routers.
        s.run(Duration::from_secs(10), |s| s.total(ComponentId::IP, "membership_out") >= 4);
    }
}

#[test]
fn memberships_outlive_udp_ip_and_sockets() {
    let mut deaths = 0;
    for seed in 50..58 {
        let mut s = members(seed, Settings { ipv6: seed % 2 == 1, ..Settings::default() });
        s.faults = Faults {
            peers: vec![ComponentId::UDP, ComponentId::IP, ComponentId::SOCKETS],
            crash: 0.002,
            downtime: Duration::from_millis(2),
            ..Faults::default()
        };
        for _ in 0..40 {
            s.applications[0].send_more(5);
            s.run_for(Duration::from_millis(1));
        }
        deaths += s.stacks[0].crashes + s.stacks[1].crashes;
        s.faults = Faults::default();
        s.run_for(Duration::from_secs(5));
        let before: Vec<usize> = heard(&s).into_iter().map(|n| n + 50).collect();
        s.applications[0].send_more(50);
        s.run(Duration::from_secs(10), |s| heard(s) == before);
    }
    assert!(deaths > 20, "only {deaths} deaths");
}
