use super::*;
use crate::batch::Seat;

use crate::batch::calibrated::{Ablation, profile};
use crate::batch::servers::Server;
use crate::calibration::Calibration;
use crate::device::WireFrame;
use crate::hardware::Clock;

fn newtos() -> Profile {
    profile(&Calibration::e5520().unwrap(), "newtos", Ablation::default()).unwrap()
}

fn dedicated(tcp: u64, others: u64) -> Setting {
    let seat = |core, duty| Seat { core, thread: 0, clock: Clock::throttled(1_600_000, duty) };
    Setting::of([seat(0, 8), seat(1, tcp), seat(2, others), seat(3, others)])
}

#[test]
fn a_seed_repeats_a_run_to_the_bit_and_another_one_does_not() {
    let (profile, setting) = (newtos(), dedicated(2, 2));
    let one = run(&profile, &setting, 1, Span::default());
    assert_eq!(one, run(&profile, &setting, 1, Span::default()));
    assert_ne!(one, run(&profile, &setting, 2, Span::default()));
}

#[test]
fn turns_of_real_servers_cost_what_waits_for_them() {
    let outcome = run(&newtos(), &dedicated(1, 8), 1, Span::default());
    assert_eq!(outcome.busy_ppm[Server::Tcp as usize], 1_000_000, "tcp is the bottleneck at an eighth");
    assert!(outcome.busy_ppm[Server::Driver as usize] < 300_000);
    let more = run(&newtos(), &dedicated(2, 8), 1, Span::default());
    let ratio = more.kbps as f64 / outcome.kbps as f64;
    assert!((1.7..2.3).contains(&ratio), "{ratio}");
    let mut dear = newtos();
    dear.tcp.segment.cycles *= 20;
    assert!(
        run(&dear, &dedicated(1, 8), 1, Span::default()).kbps * 10 < outcome.kbps * 9,
        "segments that tcp sends are charged"
    );
    assert!((5_000..66_000).contains(&outcome.bytes_per_segment), "{outcome:?}");
}

fn on_one_core(duty: u64) -> Setting {
    let seat = |core, duty| Seat { core, thread: 0, clock: Clock::throttled(1_600_000, duty) };
    Setting::of([seat(0, 8), seat(1, duty), seat(1, duty), seat(1, duty)])
}

#[test]
fn servers_that_share_a_core_take_turns_and_pay_for_each_message() {
    let (one, three) = (
        run(&newtos(), &on_one_core(8), 1, Span::default()),
        run(&newtos(), &dedicated(8, 8), 1, Span::default()),
    );
    assert!(one.kbps * 10 < three.kbps * 9 && one.kbps > three.kbps / 10, "{one:?} {three:?}");
    let busy = [Server::Tcp, Server::Ip, Server::Driver].map(|server| one.busy_ppm[server as usize]);
    assert!(busy[0] > 950_000 && busy == [busy[0]; 3], "it is one thread: {one:?}");
    let rate = |notifies_each: bool, setting: &Setting| {
        let mut profile = newtos();
        (profile.costs.notifies_each, profile.costs.notify_cycles) = (notifies_each, 20_000);
        run(&profile, setting, 1, Span::default()).kbps
    };
    assert!(rate(true, &on_one_core(8)) * 10 < rate(false, &on_one_core(8)) * 8, "batches are told of once");
    assert_eq!(rate(true, &dedicated(8, 8)), rate(false, &dedicated(8, 8)), "nobody shares a core");
}

#[test]
fn the_peer_takes_what_arrives_at_its_interrupts_alone() {
    let profile = newtos();
    let simulation = connected(&profile, 1);
    let (now, end) = (simulation.now, simulation.link.ends[1].clone());
    let [_, stack] = simulation.stacks;
    let mut peer = Peer::new(stack, end.clone(), Vec::new(), (profile.window_bytes, 0));
    peer.run(now);
    let arrived = || end.borrow().incoming.len();
    peer.arrive(WireFrame { bytes: vec![0; 60], segment_size: 0, checksum_ok: true });
    peer.run(now);
    assert_eq!(arrived(), 0, "a deadline does not bring frames");
    peer.gather();
    assert_eq!(arrived(), 1);
}
