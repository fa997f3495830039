//! Tests of the whole scheduler in a toy world.

use super::*;
use crate::guest::VmId;
use crate::host::GroupSet;
use crate::host::tests::host;
use eft_base::time::nanos;
use proptest::prelude::*;

/// A world of vCPUs that run as much of their time as they want, wherever they are, alone on a core.
struct Toy {
    scheduler: Scheduler,
    now: Instant,
    guests: Vec<Guest>,
}

struct Guest {
    vcpu: Vcpu,
    /// Of the time on a fast core, in per mille.
    wants: u64,
    /// Of the time beside that, in per mille.
    waits: u64,
    /// IPC on each class, in per mille.
    ipc: [u64; 2],
    run_ns: u64,
    wait_ns: u64,
    /// What the last sample showed of these two.
    told: (u64, u64),
    samples: u64,
    counts: [Count; 2],
    fast_ns: u64,
}

impl Guest {
    fn sample(&mut self) {
        self.told = (self.run_ns, self.wait_ns);
        self.samples += 1;
    }
}

impl Toy {
    fn new(fast: u32, slow: u32, policy: Policy, guests: &[(u64, u64, [u64; 2])]) -> Self {
        let options = Options { policy, ..Options::default() };
        let mut scheduler = Scheduler::new(host(fast, slow, 0.5), options).unwrap();
        let guest = |(i, (vm, wants, ipc)): (usize, &(u64, u64, [u64; 2]))| Guest {
            vcpu: Vcpu::new(i as u64, *vm),
            wants: *wants,
            waits: 0,
            ipc: *ipc,
            run_ns: 0,
            wait_ns: 0,
            told: (0, 0),
            samples: 0,
            counts: [0, 1].map(|class| Count { class, ..Count::default() }),
            fast_ns: 0,
        };
        let guests: Vec<Guest> = guests.iter().enumerate().map(guest).collect();
        scheduler.set_vcpus(&guests.iter().map(|guest| guest.vcpu).collect::<Vec<_>>());
        Self { scheduler, now: Instant::from_millis(1), guests }
    }

    fn run(&mut self, duration: Duration) {
        let end = self.now + duration;
        loop {
            let (at, due) = self.scheduler.due();
            let until = at.max(self.now).min(end);
            self.pass(until.saturating_since(self.now));
            self.now = until;
            if at > end {
                return;
            }
            self.step(due);
        }
    }

    /// Samples only the vCPUs that must be sampled.
    fn step(&mut self, due: Due) {
        for (index, guest) in self.guests.iter_mut().enumerate() {
            let is_watched = match due {
                Due::Window => true,
                Due::Turn => self.scheduler.watched_at_turns(index),
                Due::Tick => self.scheduler.watched_at_ticks(index),
            };
            if is_watched {
                guest.sample();
            }
        }
        let tell = |guests: &[Guest], tell: &mut dyn FnMut(&[Progress])| {
            tell(&guests.iter().map(|guest| progress(guest, due)).collect::<Vec<_>>());
        };
        let (scheduler, now) = (&mut self.scheduler, self.now);
        match due {
            Due::Tick => tell(&self.guests, &mut |all| _ = scheduler.tick(now, all)),
            Due::Window => tell(&self.guests, &mut |all| scheduler.window(now, all)),
            Due::Turn => {
                let mut leavers = Vec::new();
                tell(&self.guests, &mut |all| leavers = scheduler.turn(now, all));
                leavers.iter().for_each(|leaver| self.guests[leaver.index].sample());
                tell(&self.guests, &mut |all| scheduler.left(now, &leavers, all));
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        for (index, guest) in self.guests.iter_mut().enumerate() {
            let Some(group) = self.scheduler.entries()[index].group else { continue };
            let speed = [2, 1][group];
            let ran = (nanos(time) * guest.wants / 1000 * 2 / speed).min(nanos(time));
            guest.run_ns += ran;
            guest.wait_ns += nanos(time) * guest.waits / 1000;
            guest.fast_ns += if group == 0 { ran } else { 0 };
            guest.counts[group].cycles += ran * speed;
            guest.counts[group].instructions += ran * speed * guest.ipc[group] / 1000;
        }
    }

    /// The part of a time that each spends on fast cores, in parts per million.
    fn fast_shares(&mut self, duration: Duration) -> Vec<u64> {
        let before: Vec<u64> = self.guests.iter().map(|guest| guest.fast_ns).collect();
        self.run(duration);
        self.guests.iter().zip(before).map(|(g, then)| Ppm::of(g.fast_ns - then, nanos(duration)).0).collect()
    }
}

fn progress(guest: &Guest, due: Due) -> Progress<'_> {
    let counts: &[Count] = if due == Due::Window { &guest.counts } else { &[] };
    Progress {
        id: guest.vcpu.id,
        ran: Duration::from_nanos(guest.told.0),
        waited: Duration::from_nanos(guest.told.1),
        by_class: &[],
        counts,
        own_unit: false,
    }
}

const SETTLE: Duration = Duration::from_secs(12);

#[test]
fn the_fast_core_goes_to_the_higher_ipc_wherever_it_was_measured() {
    // The second has the higher raw IPC at first, since it is measured on the slow core, where memory is nearer.
    let mut toy = Toy::new(1, 1, Policy::AmpVm, &[(1, 1000, [2000, 2100]), (2, 1000, [1200, 2300])]);
    toy.run(SETTLE);
    assert!(toy.fast_shares(SETTLE)[0] > 990_000);
}

#[test]
fn a_vm_takes_turns_and_amp_fair_gives_all_the_same() {
    let guests = [(1, 1000, [2000; 2]), (1, 1000, [2000; 2]), (2, 1000, [900; 2]), (2, 1000, [900; 2])];
    let mut toy = Toy::new(1, 3, Policy::AmpVm, &guests);
    toy.run(SETTLE);
    let fast = toy.fast_shares(SETTLE);
    assert!(fast[0].abs_diff(500_000) < 10_000 && fast[1].abs_diff(500_000) < 10_000, "{fast:?}");
    toy.scheduler.set_policy(Policy::AmpFair(100));
    let fast = toy.fast_shares(SETTLE);
    assert!(fast.iter().all(|share| share.abs_diff(250_000) < 10_000), "{fast:?}");
}

#[test]
fn sleepers_do_not_count_for_their_vm() {
    let guests = [(1, 1000, [2000; 2]), (1, 1, [2000; 2]), (2, 1000, [1500; 2]), (2, 1000, [1500; 2])];
    let mut toy = Toy::new(1, 3, Policy::AmpVm, &guests);
    toy.run(SETTLE);
    assert!(
        toy.fast_shares(SETTLE)[0] > 980_000,
        "with the sleeper its VM's mean would be below the other's"
    );
    assert!(!toy.scheduler.entries()[1].active);
}

#[test]
fn without_counters_utilisation_decides() {
    let mut toy = Toy::new(1, 1, Policy::AmpVm, &[(1, 300, [0; 2]), (2, 1000, [0; 2])]);
    toy.guests.iter_mut().for_each(|guest| guest.counts.iter_mut().for_each(|count| count.cycles = 0));
    toy.run(SETTLE);
    // Cycles without instructions are an IPC of zero: take the counters away altogether.
    let mut bare = Toy::new(1, 1, Policy::AmpVm, &[(1, 300, [0; 2]), (2, 1000, [0; 2])]);
    for _ in 0..400 {
        let at = bare.scheduler.due();
        let step = at.0.max(bare.now).saturating_since(bare.now);
        bare.pass(step);
        bare.now += step;
        bare.guests.iter_mut().for_each(Guest::sample);
        let all: Vec<Progress> = bare.guests.iter().map(|guest| progress(guest, Due::Turn)).collect();
        match at.1 {
            Due::Tick => _ = bare.scheduler.tick(bare.now, &all),
            Due::Turn => drop(bare.scheduler.turn(bare.now, &all)),
            Due::Window => bare.scheduler.window(bare.now, &all),
        }
    }
    let group = |i: usize| bare.scheduler.entries()[i].group;
    assert_eq!((group(0), group(1)), (Some(1), Some(0)));
    let demand = bare.scheduler.known(0).demand.0;
    assert!(demand.abs_diff(300_000) < 15_000, "60% of the slow core is 30% of a fast one: {demand}");
}

#[test]
fn adaptive_fair_keeps_its_bound_by_prediction() {
    let guests = [(1, 1000, [2000; 2]), (2, 1000, [1900; 2]), (3, 1000, [1800; 2])];
    let mut toy = Toy::new(1, 2, Policy::AdaptiveFair(Ppm(50_000)), &guests);
    toy.run(SETTLE);
    let worst = (0..3).map(|i| toy.scheduler.known(i).slowdown.0).max().unwrap();
    assert!(worst <= 50_000 && worst > 30_000, "{worst}");
    assert!((Ppm(1)..Ppm::ALL).contains(&toy.scheduler.even()));
}

#[test]
fn who_wakes_after_a_long_sleep_gets_its_part_at_once() {
    let mut toy = Toy::new(1, 1, Policy::AmpFair(100), &[(1, 0, [2000; 2]), (2, 1000, [1000; 2])]);
    toy.run(SETTLE);
    assert!(!toy.scheduler.entries()[0].active);
    toy.guests[0].wants = 1000;
    toy.run(Duration::from_millis(100));
    assert!(toy.scheduler.entries()[0].shares[0] > Ppm::NONE);
}

#[test]
fn newcomers_and_leavers_are_followed() {
    let mut toy = Toy::new(1, 1, Policy::AmpVm, &[(1, 1000, [2000; 2]), (2, 1000, [1000; 2])]);
    toy.run(SETTLE);
    let first = toy.guests.remove(0);
    toy.scheduler.set_vcpus(&[toy.guests[0].vcpu]);
    toy.run(SETTLE);
    assert_eq!(toy.scheduler.entries().len(), 1);
    assert_eq!(toy.scheduler.entries()[0].group, Some(0));
    toy.guests.insert(0, first);
    toy.scheduler.set_vcpus(&[toy.guests[0].vcpu, toy.guests[1].vcpu]);
    toy.run(SETTLE);
    assert_eq!(toy.scheduler.entries()[0].group, Some(0));
}

proptest! {
    /// Whatever a world reports, no vCPU is placed where it may not run, and nothing panics.
    #[test]
    fn no_figures_break_it(
        steps in proptest::collection::vec((0u64..3_000, proptest::collection::vec(any::<(u64, u64, u64, u64)>(), 6)), 1..40),
        pins in proptest::collection::vec(0usize..4, 6),
        policy in 0usize..5,
    ) {
        let policy = [Policy::AmpVm, Policy::AmpVcpu, Policy::AmpFair(100), Policy::AmpFair(30), Policy::AdaptiveFair(Ppm(1))][policy];
        let mut scheduler = Scheduler::new(host(1, 2, 0.4), Options { policy, ..Options::default() }).unwrap();
        let vcpus: Vec<Vcpu> = pins.iter().enumerate().map(|(i, pin)| {
            let allowed = if *pin < 2 { [*pin].into_iter().collect() } else { GroupSet::ALL };
            Vcpu { allowed, vm: VmId(i as u64 / 2), ..Vcpu::new(i as u64, 0) }
        }).collect();
        scheduler.set_vcpus(&vcpus);
        let mut now = Instant::ZERO;
        for (ms, figures) in steps {
            now += Duration::from_millis(ms);
            let counts: Vec<[Count; 2]> = figures.iter().map(|(_, _, instructions, cycles)| [0, 9].map(|class| Count {
                class, sibling_busy: false, instructions: *instructions, cycles: *cycles,
            })).collect();
            let all: Vec<Progress> = figures.iter().zip(&counts).enumerate().map(|(i, ((ran_ns, waited_ns, ..), counts))| {
                Progress { id: VcpuId(i as u64), ran: Duration::from_nanos(*ran_ns), waited: Duration::from_nanos(*waited_ns), by_class: &[], counts, own_unit: i == 0 }
            }).collect();
            match ms % 3 {
                0 => drop(scheduler.tick(now, &all)),
                1 => {
                    let leavers = scheduler.turn(now, &all);
                    scheduler.left(now, &leavers, &all);
                }
                _ => scheduler.window(now, &all),
            }
            for entry in scheduler.entries() {
                prop_assert!(entry.group.is_none_or(|group| entry.vcpu.allowed.contains(group)));
            }
        }
    }
}

#[test]
fn whoever_sleeps_wants_what_it_does_and_not_its_waiting_too() {
    // Behind the other's 70% it waits, and sleeps between: 300 ms of work a second are all that there are.
    let mut toy = Toy::new(1, 1, Policy::AmpFair(100), &[(1, 700, [2000; 2]), (2, 300, [2000; 2])]);
    toy.guests[0].waits = 300;
    toy.guests[1].waits = 250;
    toy.run(SETTLE);
    let shares: Vec<u64> = toy.scheduler.entries().iter().map(|entry| entry.shares[0].0).collect();
    assert!(shares[0].abs_diff(700_000) < 20_000 && shares[1].abs_diff(300_000) < 20_000, "{shares:?}");
    assert!(toy.scheduler.entries()[1].sizes[0].0 >= 390_000, "but it gets room to do more without waiting");
}

#[test]
fn absent_vcpus_are_not_sampled() {
    let samples = |toy: &mut Toy, what: Due| {
        let end = toy.now + Duration::from_secs(2);
        let mut count = 0;
        while toy.now < end {
            let (at, due) = toy.scheduler.due();
            count += u32::from(due == what);
            toy.run(at.saturating_since(toy.now) + Duration::from_nanos(1));
        }
        count
    };
    let mut empty = Toy::new(2, 2, Policy::AmpVm, &[]);
    assert_eq!((samples(&mut empty, Due::Tick), samples(&mut empty, Due::Turn)), (0, 0));
    let mut equal = Toy::new(4, 4, Policy::AmpVm, &[(0, 500, [1000; 2])]);
    equal.scheduler.host.classes.truncate(1);
    equal.scheduler.host.groups.truncate(1);
    assert_eq!(samples(&mut equal, Due::Tick), 0, "all cores are alike");
    assert!(samples(&mut equal, Due::Turn) > 30);
    let mut both = Toy::new(2, 2, Policy::AmpVm, &[(0, 500, [1000; 2])]);
    assert!(samples(&mut both, Due::Tick) > 60);
}

#[test]
fn of_many_those_on_slow_cores_are_sampled_less_and_get_what_was_dealt() {
    let guests: Vec<(u64, u64, [u64; 2])> = (0..96).map(|i| (i / 4, 1000, [2000; 2])).collect();
    let mut toy = Toy::new(32, 64, Policy::AmpFair(100), &guests);
    toy.run(SETTLE);
    toy.guests.iter_mut().for_each(|guest| guest.samples = 0);
    let known = |toy: &Toy, i: usize| nanos(toy.scheduler.known(i).run_time[0]);
    let before: Vec<(u64, u64)> = (0..96).map(|i| (known(&toy, i), toy.guests[i].fast_ns)).collect();
    let fast = toy.fast_shares(SETTLE);
    assert!(fast.iter().all(|share| share.abs_diff(333_333) < 10_000), "{fast:?}");
    for (i, (known_then, then)) in before.iter().enumerate() {
        let (known, ran) = (known(&toy, i) - known_then, toy.guests[i].fast_ns - then);
        assert!(known.abs_diff(ran) < 60_000_000, "vCPU {i}: {known} ns of {ran} on fast cores are known");
    }
    // 400 turns and as many ticks: all at each turn and a third at each tick would be 128 samples for each turn.
    let samples = toy.guests.iter().map(|guest| guest.samples).sum::<u64>() / 400;
    assert!((96..116).contains(&samples), "{samples} samples for each turn");
}
