//! Which readings of two samples are credible, and which are not.

use super::*;
use crate::sample::{HardwareCounters, QueueSample};
use core::time::Duration;
use eft_base::time::nanos;
use eft_machine::{CpuId, Microjoules};

const PERIOD: u64 = 10_000_000;

fn ns(length: u64) -> Duration {
    Duration::from_nanos(length)
}

fn tcp(busy_ns: u64) -> ComponentSample {
    ComponentSample {
        name: "tcp".into(),
        generation: 1,
        running: true,
        heartbeat: busy_ns / 1000,
        cpu: Some(CpuId(1)),
        busy: ns(busy_ns),
        queues: alloc::vec![QueueSample {
            from: "ip".into(),
            capacity: 64,
            high: 40,
            low: 3,
            ..Default::default()
        }],
        ..ComponentSample::default()
    }
}

fn cpu(number: u32, busy_ns: u64, idle_ns: u64) -> CpuSample {
    CpuSample {
        cpu: CpuId(number),
        online: true,
        managed: true,
        speed: Share::ALL,
        busy: ns(busy_ns),
        idle: ns(idle_ns),
        stolen: Duration::from_millis(100),
        ..CpuSample::default()
    }
}

fn sample(at_ns: u64, busy_ns: u64) -> Sample {
    Sample {
        at: Instant(at_ns),
        components: alloc::vec![ComponentSample { accounted_to: Instant(at_ns), ..tcp(busy_ns) }],
        cpus: alloc::vec![cpu(0, 0, at_ns), cpu(1, busy_ns, at_ns - busy_ns.min(at_ns))],
        energy: Some(Microjoules(at_ns / 100)),
    }
}

/// Two samples, the second changed.
fn second(change: impl FnOnce(&mut Sample)) -> Observation {
    let mut observer = Observer::default();
    observer.observe(&sample(PERIOD, 1_000_000));
    let mut next = sample(2 * PERIOD, 6_000_000);
    change(&mut next);
    observer.observe(&next)
}

#[track_caller]
fn complains(seen: &Observation, word: &str) {
    let complaint = seen.complaint().expect("no complaint");
    assert!(complaint.contains(word) && !complaint.contains('\n'), "{complaint}");
}

#[test]
fn a_connection_that_began_long_ago_is_no_rate() {
    let mut observer = Observer::default();
    let step = |observer: &mut Observer, i: u64, begun: u64| {
        let mut next = sample(i * PERIOD, 0);
        next.components[0].traffic = Traffic {
            sent_segments: i * 1000,
            accepted_connections: begun,
            closed_connections: begun,
            connections_open: 1,
            ..Traffic::default()
        };
        observer.observe(&next).indicators
    };
    step(&mut observer, 1, 0);
    assert!(step(&mut observer, 2, 1).segments_per_connection > 0.0);
    // Seen live in `eft top`: 73104208991988 segments each.
    let later = (3..200).map(|i| step(&mut observer, i, 1)).last().unwrap();
    assert_eq!((later.segments_per_connection, later.mean_lifetime_s), (0.0, 0.0));
}

#[test]
fn two_samples_make_shares_and_rates() {
    let seen = second(|next| {
        next.components[0].polling = Duration::from_millis(2);
        next.components[0].traffic = Traffic {
            sent_bytes: 144_800,
            sent_segments: 110,
            sent_empty_segments: 10,
            received_segments: 50,
            received_empty_segments: 50,
            ip_sent_bytes: 144_800 + 160 * 52,
            closed_connections: 10,
            connections_open: 5,
            accepted_connections: 10,
            ..Traffic::default()
        };
    });
    assert!(seen.is_sound(), "{:?}", seen.problems);
    let load = seen.component("tcp").unwrap();
    assert_eq!((load.busy, load.polling, load.waiting), (Share(0.5), Share(0.2), Share::NONE));
    assert!((load.sleeping.0 - 0.3).abs() < 1e-9);
    assert!((load.fill().0 - 40.0 / 64.0).abs() < 1e-9);
    assert!((seen.cpu(CpuId(1)).unwrap().busy.0 - 0.5).abs() < 1e-9);
    assert!((seen.power.unwrap().0 - 10.0).abs() < 0.01, "{:?}", seen.power);
    let indicators = seen.indicators;
    assert!((indicators.mean_segment_bytes - 1448.0).abs() < 1.0);
    assert!((indicators.sent.0 - 14_480_000.0).abs() < 1.0);
    assert!((indicators.segments_per_connection - 16.0).abs() < 1e-9);
    assert!((indicators.mean_lifetime_s - 0.005).abs() < 1e-9, "5 open, 1000 a second close");
    assert!((indicators.empty_share.0 - 10.0 / 110.0).abs() < 1e-9);
    assert_eq!(
        (indicators.kind, indicators.side),
        (crate::indicators::Kind::Bulk, crate::indicators::Side::Server)
    );
}

#[test]
fn what_is_stale_missing_or_absurd_is_named() {
    complains(&second(|next| next.at = Instant(PERIOD)), "stale");
    complains(&second(|next| next.at = Instant(1)), "went back");
    complains(&second(|next| next.at = Instant(u64::MAX)), "passed since");
    complains(
        &second(|next| (next.components[0].heartbeat, next.components[0].cpu_time) = (1000, ns(PERIOD))),
        "heartbeat",
    );
    complains(&second(|next| next.components[0].busy = Duration::ZERO), "busy and polling time went back");
    complains(&second(|next| next.components[0].accounted_to = Instant(PERIOD)), "stands still");
    complains(&second(|next| next.components[0].accounted_to = Instant(1)), "less time than before");
    complains(&second(|next| next.components[0].accounted_to = Instant(0)), "only begun");
    complains(&second(|next| next.components[0].accounted_to = Instant(u64::MAX)), "not come yet");
    complains(&second(|next| next.components[0].busy = ns(u64::MAX)), "busy or polling");
    complains(&second(|next| next.components[0].generation = 2), "reborn");
    complains(&second(|next| next.components[0].running = false), "not running");
    complains(&second(|next| next.components.clear()), "missing");
    complains(&second(|next| next.components[0].queues[0].high = 65), "holds 65");
    complains(&second(|next| next.cpus.truncate(1)), "vanished");
    complains(&second(|next| next.cpus[0].stolen = Duration::ZERO), "stolen time went back");
    complains(&second(|next| next.cpus[1].online = false), "offline");
    complains(&second(|next| next.cpus[1].speed = Share(f64::NAN)), "speed");
    complains(&second(|next| next.components[0].name = "tc\np".into()), "missing");
}

#[test]
fn what_a_hypervisor_took_is_a_share_of_all_the_time() {
    let seen = second(|next| next.cpus[0].stolen += ns(PERIOD / 4));
    assert_eq!((seen.cpus[0].stolen, seen.cpus[1].stolen), (Share(0.2), Share::NONE));
    assert_eq!(seen.cpus[0].accounted, ns(PERIOD), "without what was taken");
}

#[test]
fn a_meter_or_pmu_that_goes_back_costs_only_its_own_figures() {
    let seen = second(|next| next.energy = Some(Microjoules(0)));
    assert!(seen.is_sound() && seen.power.is_none() && seen.problems.len() == 1);
    let counters = |cycles| Some(HardwareCounters { cycles, ..HardwareCounters::default() });
    let mut observer = Observer::default();
    let mut first = sample(PERIOD, 0);
    first.components[0].counters = counters(1000);
    observer.observe(&first);
    let mut next = sample(2 * PERIOD, 10);
    next.components[0].counters = counters(10);
    next.components[0].heartbeat = 5;
    let seen = observer.observe(&next);
    assert!(seen.is_sound() && seen.component("tcp").unwrap().instructions_per_cycle.is_none());
}

#[test]
fn a_sample_that_lost_its_cpu_is_as_good_as_any_other() {
    // The sampler read the clock, lost its CPU for a period, then read the page: the component seems busy for two
    // periods in one. The next sample finds almost nothing.
    let mut observer = Observer::default();
    observer.observe(&sample(PERIOD, PERIOD));
    for (at, accounted_to) in
        [(2 * PERIOD, 3 * PERIOD), (3 * PERIOD, 3 * PERIOD + 1000), (4 * PERIOD, 4 * PERIOD)]
    {
        let mut late = sample(at, accounted_to);
        late.components[0].accounted_to = Instant(accounted_to);
        let seen = observer.observe(&late);
        assert!(seen.is_sound(), "{:?}", seen.problems);
        assert_eq!(seen.component("tcp").unwrap().busy, Share::ALL);
    }
}

#[test]
fn a_turn_that_turns_out_to_have_been_an_idle_poll_takes_nothing_back() {
    // Half of the first period counted as busy while the turn went on.
    let seen =
        second(|next| (next.components[0].busy, next.components[0].polling) = (ns(500_000), ns(5_000_000)));
    assert!(seen.is_sound(), "{:?}", seen.problems);
    let load = seen.component("tcp").unwrap();
    assert_eq!((load.busy, load.polling), (Share::NONE, Share(0.45)));
}

#[test]
fn a_long_sleep_that_is_accounted_for_late_is_no_absurdity() {
    let seen = second(|next| next.components[0].sleeping = ns(100 * PERIOD));
    assert!(seen.is_sound());
    let load = seen.component("tcp").unwrap();
    assert!(((load.busy + load.sleeping).0 - 1.0).abs() < 1e-9);
}

#[test]
fn an_account_that_stands_still_is_waited_for() {
    let mut observer = Observer::default();
    let still = |next: &mut ComponentSample, last: &ComponentSample| {
        next.accounted_to = last.accounted_to;
        next.busy = last.busy;
        next.polling = last.polling;
        next.waiting = last.waiting;
        next.sleeping = last.sleeping;
    };
    (1..=2).for_each(|step| drop(observer.observe(&sample(step * PERIOD, step * 1000))));
    let last = sample(2 * PERIOD, 2000).components[0].clone();
    let mut samples = (3..).map(|step| {
        let mut next = sample(step * PERIOD, step * 1000);
        still(&mut next.components[0], &last);
        let seen = observer.observe(&next);
        (step, seen.is_sound(), seen.component("tcp").unwrap().busy)
    });
    let (_, sound, busy) = samples.next().unwrap();
    assert!(sound && busy > Share::NONE, "as before: {busy}");
    let (step, ..) = samples.find(|(_, sound, _)| !sound).unwrap();
    assert_eq!((step - 2) * PERIOD, nanos(QUIET), "but not for ever");
}

#[test]
fn a_component_that_stays_down_makes_no_more_doubts() {
    let mut observer = Observer::default();
    let mut last = Observation::default();
    for step in 1..=150 {
        let mut sample = sample(step * PERIOD, step * 1000);
        sample.components[0].running = false;
        sample.components[0].busy = Duration::ZERO;
        last = observer.observe(&sample);
        assert!(!(2..=100).contains(&step) || !last.is_sound(), "sample {step}");
    }
    assert!(last.is_sound(), "{:?}", last.problems);
}
