use super::*;
use crate::batch::calibrated::{Ablation, profile};
use crate::batch::profile::Filter;
use crate::calibration::Calibration;
use crate::hardware::Work;

fn newtos() -> Profile {
    profile(&Calibration::e5520().unwrap(), "newtos", Ablation::default()).unwrap()
}

/// tcp, ip and driver on cores (or threads of cores) at these clocks.
fn setting(seats: [(usize, usize, Clock); 3]) -> Setting {
    let seat = |(core, thread, clock)| Seat { core, thread, clock };
    let [tcp, ip, driver] = seats.map(seat);
    Setting::of([seat((0, 0, Clock::full(1_600_000))), tcp, ip, driver])
}

fn throttled(duty: u64) -> Clock {
    Clock::throttled(1_600_000, duty)
}

fn dedicated(tcp: Clock, others: Clock) -> Setting {
    setting([(1, 0, tcp), (2, 0, others), (3, 0, others)])
}

#[test]
fn a_seed_repeats_a_run_to_the_bit_and_another_one_does_not() {
    let setting = dedicated(throttled(8), throttled(8));
    let profile = newtos();
    assert_eq!(run(&profile, &setting, 1), run(&profile, &setting, 1));
    assert_ne!(run(&profile, &setting, 1), run(&profile, &setting, 2));
}

#[test]
fn an_eighth_of_the_clock_makes_tcp_the_bottleneck_and_keeps_it_awake() {
    let outcome = run(&newtos(), &dedicated(throttled(1), throttled(8)), 1);
    assert_eq!(outcome.busy_ppm[Server::Tcp as usize], 1_000_000);
    assert_eq!(outcome.sleeps_per_ms[Server::Tcp as usize], 0);
    let more = run(&newtos(), &dedicated(throttled(2), throttled(8)), 1);
    let ratio = more.kbps as f64 / outcome.kbps as f64;
    assert!((1.8..2.2).contains(&ratio), "{ratio}");
}

#[test]
fn nothing_exceeds_the_wire() {
    let mut profile = newtos();
    profile.copy_kib = Default::default();
    (profile.window_bytes, profile.initial_window_bytes) = (1 << 20, 1 << 20);
    profile.buffer_bytes = 1 << 20;
    let fast = Clock::full(8_000_000);
    let outcome = run(&profile, &dedicated(fast, fast), 1);
    // 1460 of 1538 bytes are payload; the edges of the measurement blur it.
    assert!((9_000_000..9_600_000).contains(&outcome.kbps), "{outcome:?}");
}

#[test]
fn waking_takes_time_and_who_never_sleeps_does_not_mind() {
    let slow_to_wake = |profile: &Profile| {
        let mut profile = *profile;
        profile.costs.core_exit_ps *= 20;
        profile
    };
    let rate = |profile: &Profile, setting: &Setting| run(profile, setting, 1).kbps;
    let (profile, idle) = (newtos(), dedicated(throttled(8), throttled(8)));
    assert!(rate(&slow_to_wake(&profile), &idle) * 100 < rate(&profile, &idle) * 97);
    let mut tireless = profile;
    tireless.costs.polls = 1_000_000;
    let (before, after) = (rate(&tireless, &idle), rate(&slow_to_wake(&tireless), &idle));
    assert!(before.abs_diff(after) * 50 < before, "{before} {after}");
}

#[test]
fn the_front_server_has_a_sleep_of_its_own() {
    let (profile, setting) = (newtos(), dedicated(throttled(8), throttled(8)));
    let mut slow = profile;
    slow.costs.front_exit_ps *= 20;
    let front = Server::Front as usize;
    let (before, after) = (run(&profile, &setting, 1), run(&slow, &setting, 1));
    assert!(after.kbps * 10 < before.kbps * 9, "{before:?} {after:?}");
    assert!(after.sleeps_per_ms[front] < before.sleeps_per_ms[front], "{before:?} {after:?}");
}

#[test]
fn who_shares_a_thread_waits_for_its_caches_after_each_switch() {
    let clock = throttled(8);
    let rate = |refill_ps: u64, own_cores: bool| {
        let mut profile = newtos();
        profile.costs.refill_ps = refill_ps;
        let core = |core| if own_cores { core } else { 1 };
        run(&profile, &setting([(core(1), 0, clock), (core(2), 0, clock), (core(3), 0, clock)]), 1).kbps
    };
    let us = 1_000 * PS_PER_MS / 1_000_000;
    assert!(rate(40 * us, false) * 10 < rate(0, false) * 9);
    assert_eq!(rate(40 * us, true), rate(0, true));
}

#[test]
fn who_shares_a_thread_asks_the_kernel_for_each_batch_and_is_told_of_each_message() {
    let clock = throttled(8);
    let rate = |change: fn(&mut Profile), own_cores: bool| {
        let mut profile = newtos();
        (profile.costs.receive_cycles, profile.costs.notifies_each) = (0, false);
        change(&mut profile);
        let core = |core| if own_cores { core } else { 1 };
        run(&profile, &setting([(core(1), 0, clock), (core(2), 0, clock), (core(3), 0, clock)]), 1).kbps
    };
    let nothing: fn(&mut Profile) = |_| {};
    let changes: [fn(&mut Profile); 2] =
        [|p| p.costs.receive_cycles = 3000, |p| p.costs.notifies_each = true];
    for change in changes {
        assert!(rate(change, false) * 100 < rate(nothing, false) * 98);
        assert_eq!(rate(change, true), rate(nothing, true));
    }
}

#[test]
fn one_thread_for_all_is_busy_and_does_less() {
    let clock = throttled(8);
    let one = run(&newtos(), &setting([(1, 0, clock), (1, 0, clock), (1, 0, clock)]), 1);
    let three = run(&newtos(), &dedicated(clock, clock), 1);
    assert!(one.kbps * 10 < three.kbps * 9, "{one:?} {three:?}");
    assert!(one.busy_ppm[Server::Tcp as usize] > 950_000);
}

#[test]
fn threads_of_one_core_do_more_than_half_each_only_by_what_they_wait_for() {
    let (fast, slow) = (throttled(8), throttled(1));
    let share = |profile: &Profile| {
        let threads = run(profile, &setting([(1, 0, fast), (2, 0, slow), (2, 1, slow)]), 1);
        let cores = run(profile, &dedicated(fast, slow), 1);
        threads.kbps as f64 / cores.kbps as f64
    };
    let no_stalls = Ablation { no_memory_stalls: true, ..Ablation::default() };
    let computing = profile(&Calibration::e5520().unwrap(), "newtos", no_stalls).unwrap();
    let (waiting, computing) = (share(&newtos()), share(&computing));
    assert!(waiting > 0.55 && computing < 0.55, "{waiting} {computing}");
}

#[test]
fn a_stack_that_flushes_once_a_batch_sends_larger_segments_than_one_that_flushes_after_each_message() {
    let mut profile = profile(
        &Calibration::e5520().unwrap(),
        "eft",
        Ablation { no_memory_stalls: true, ..Ablation::default() },
    )
    .unwrap();
    // So that tcp is the bottleneck, and not the wire.
    let tcp = &mut profile.tcp;
    for work in [&mut profile.write, &mut tcp.segment, &mut tcp.acknowledgement, &mut tcp.sent] {
        work.cycles *= 8;
    }
    let setting = dedicated(throttled(1), throttled(8));
    let once = run(&profile, &setting, 1).bytes_per_segment;
    profile.flushes = false;
    let each = run(&profile, &setting, 1).bytes_per_segment;
    assert!(once > each, "{once} {each}");
}

#[test]
fn a_filter_is_asked_about_each_packet_and_ip_pays_for_it() {
    let (without, clock) = (newtos(), throttled(2));
    let mut with = without;
    let filter = Filter { question: Work::cycles(1000), verdict: Work::cycles(1000), grants: false };
    with.filter = Some(filter);
    let setting = dedicated(throttled(8), clock);
    let (before, after) = (run(&without, &setting, 1), run(&with, &setting, 1));
    assert!(after.kbps * 100 < before.kbps * 95, "{before:?} {after:?}");
    assert_eq!(
        (before.busy_ppm[Server::Filter as usize], after.busy_ppm[Server::Filter as usize] > 0),
        (0, true)
    );
    with.filter = Some(Filter { grants: true, ..filter });
    assert_eq!(run(&with, &setting, 1), before, "who grants connections is not asked about their packets");
}

#[test]
fn who_is_tireless_never_sleeps_and_who_polls_longer_sleeps_less() {
    let (profile, setting) = (newtos(), dedicated(throttled(8), throttled(8)));
    let sleeps = |profile: &Profile, server: Server| run(profile, &setting, 1).sleeps_per_ms[server as usize];
    let mut other = profile;
    other.polling.driver_is_tireless = true;
    other.polling.ip_polls_percent = 10_000;
    assert!(sleeps(&profile, Server::Driver) > 0);
    assert_eq!(sleeps(&other, Server::Driver), 0);
    assert!(sleeps(&other, Server::Ip) < sleeps(&profile, Server::Ip));
}
