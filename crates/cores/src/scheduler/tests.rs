//! Bad samples, CPUs that come and go, and random sequences of samples against every policy.

use super::*;
use core::time::Duration;
use eft_component::scheduling::{PolicyName, Spare};
use eft_machine::{Cpu, CpuId, Microjoules, Watts};

const NAMES: [PolicyName; 2] = [PolicyName::Adaptive, PolicyName::Profile];
use crate::policy::Goal;
use crate::profile::sweep::exhaustive;
use crate::profile::{Outcome, Profiles};
use crate::sample::{ComponentSample, CpuSample, Hint, QueueSample, Traffic};
use proptest::prelude::*;

const STACK: [&str; 6] = ["sockets", "tcp", "udp", "ip", "filter", "nic0"];
const PERIOD: u64 = 10_000_000;

fn ns(length: u64) -> Duration {
    Duration::from_nanos(length)
}

fn names() -> Vec<String> {
    STACK.iter().map(|name| name.to_string()).collect()
}

/// A scheduler with its history.
struct Noted {
    scheduler: Scheduler,
    history: History,
}

impl Noted {
    fn new(name: PolicyName, machine: Machine, settings: Settings) -> Noted {
        let scheduler = Scheduler::new(name, machine, &names(), Some(&[Share(0.5)]), settings).unwrap();
        Noted { scheduler, history: History::default() }
    }

    fn decide(&mut self, sample: &Sample) -> Decision {
        self.scheduler.decide(sample, &mut self.history)
    }
}

impl core::ops::Deref for Noted {
    type Target = Scheduler;

    fn deref(&self) -> &Scheduler {
        &self.scheduler
    }
}

impl core::ops::DerefMut for Noted {
    fn deref_mut(&mut self) -> &mut Scheduler {
        &mut self.scheduler
    }
}

fn settings(machine: Machine, goal: Goal, spare: Spare) -> Settings {
    let platform = Platform::new(machine, &names(), Some(&[Share(0.5)])).unwrap();
    let mut profiles = Profiles::default();
    for (name, size) in [("small", 0.1), ("large", 0.8)] {
        let mix = crate::indicators::Mix { size, ..Default::default() };
        for (index, configuration) in exhaustive(&platform, spare).into_iter().enumerate().take(20) {
            let figure = 100.0 + (index * 7 % 13) as f64;
            let outcome = Outcome {
                throughput: crate::throughput::Throughput(figure),
                power: Watts(figure / 10.0),
                plan: configuration.plan,
                ..Default::default()
            };
            profiles.record(name, mix, outcome);
        }
    }
    Settings { goal, spare, profiles, ..Settings::default() }
}

fn scheduler(name: PolicyName, cpus: u32, goal: Goal, spare: Spare) -> Noted {
    let machine = Machine::of_equals(cpus);
    Noted::new(name, machine.clone(), settings(machine, goal, spare))
}

/// A valid sample: busy for this share, with so many segments a period since the beginning.
fn sample_of(index: u64, busy: f64, segments: u64, cpus: u32) -> Sample {
    let component = |name: &&str| ComponentSample {
        name: name.to_string(),
        generation: 1,
        running: true,
        heartbeat: index * 100,
        accounted_to: Instant(index * PERIOD),
        busy: ns((index as f64 * PERIOD as f64 * busy / 6.0) as u64),
        queues: alloc::vec![QueueSample { from: "x".into(), capacity: 64, high: 60, ..Default::default() }],
        traffic: Traffic {
            sent_segments: if *name == "tcp" { index * segments } else { 0 },
            sent_bytes: if *name == "tcp" { index * segments * 1448 } else { 0 },
            ..Traffic::default()
        },
        ..ComponentSample::default()
    };
    let cpu = |cpu: CpuId| CpuSample {
        cpu,
        online: true,
        managed: true,
        speed: Share::ALL,
        busy: ns((index as f64 * PERIOD as f64 * busy) as u64),
        idle: ns((index as f64 * PERIOD as f64 * (1.0 - busy)) as u64),
        ..CpuSample::default()
    };
    Sample {
        at: Instant((index + 1) * PERIOD),
        components: STACK.iter().map(component).collect(),
        cpus: (0..cpus).map(CpuId).map(cpu).collect(),
        energy: None,
    }
}

#[test]
fn a_bad_sample_keeps_the_last_good_plan_and_leaves_one_line() {
    for name in NAMES {
        let mut scheduler = scheduler(name, 4, Goal::THROUGHPUT, Spare::GiveBack);
        for index in 0..100 {
            scheduler.decide(&sample_of(index, 0.9, 1000, 4));
        }
        let good = scheduler.plan();
        assert!(!good.is_consolidated(), "{name:?}: {good}");
        let bad: [fn(&mut Sample); 5] = [
            |sample| sample.at = Instant::ZERO,
            |sample| sample.components[1].running = false,
            |sample| sample.components[1].busy = Duration::ZERO,
            |sample| sample.cpus[2].online = false,
            |sample| sample.cpus.truncate(1),
        ];
        for (step, spoil) in bad.into_iter().enumerate() {
            let good = scheduler.plan().clone();
            let mut sample = sample_of(100 + step as u64 * 4, 0.9, 1000, 4);
            spoil(&mut sample);
            let decision = scheduler.decide(&sample);
            assert!(decision.plan.is_same(&good), "{name:?}, {step}: {}", decision.plan);
            let entry = scheduler.history.entries().last().unwrap().entry.to_string();
            assert_eq!(Some(entry.lines().count()), Some(1));
            assert!(entry.contains("plan stays"), "{entry}");
            for after in 1..4 {
                scheduler.decide(&sample_of(100 + step as u64 * 4 + after, 0.9, 1000, 4));
            }
        }
    }
}

#[test]
fn a_cpu_that_stays_away_is_done_without() {
    for name in NAMES {
        let mut scheduler = scheduler(name, 3, Goal::THROUGHPUT, Spare::Park);
        for index in 0..100 {
            scheduler.decide(&sample_of(index, 0.9, 1000, 3));
        }
        for index in 100..110 {
            let mut sample = sample_of(index, 0.9, 1000, 3);
            sample.cpus.retain(|cpu| cpu.cpu == CpuId(0));
            scheduler.decide(&sample);
        }
        assert_eq!(scheduler.machine().online.to_string(), "0");
        assert_eq!(scheduler.plan().used().to_string(), "0", "{name:?}");
        check(scheduler.plan(), scheduler.machine()).unwrap();
    }
}

#[test]
fn a_further_component_gets_a_seat() {
    let mut scheduler = scheduler(PolicyName::Adaptive, 2, Goal::THROUGHPUT, Spare::GiveBack);
    for index in 0..10 {
        let mut sample = sample_of(index, 0.1, 10, 2);
        let nic1 = ComponentSample { name: "nic1".into(), ..sample.components[5].clone() };
        sample.components.push(nic1);
        scheduler.decide(&sample);
    }
    assert!(scheduler.plan().seats.contains_key("nic1"));
}

#[test]
fn the_policy_changes_while_it_runs_and_mistakes_change_nothing() {
    let mut scheduler = scheduler(PolicyName::Adaptive, 2, Goal::THROUGHPUT, Spare::GiveBack);
    assert!(scheduler.set_policy(PolicyName::Fixed, Settings::default()).is_err());
    assert!(
        scheduler
            .set_policy(PolicyName::Profile, Settings::default())
            .unwrap_err()
            .to_string()
            .contains("no profile")
    );
    assert_eq!(scheduler.policy().name(), PolicyName::Adaptive);
    let settings = settings(Machine::of_equals(2), Goal::THROUGHPUT, Spare::GiveBack);
    scheduler.set_policy(PolicyName::Profile, settings).unwrap();
    assert_eq!(scheduler.policy().name(), PolicyName::Profile);
}

fn any_count() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0u64..20_000_000, 1 => Just(u64::MAX), 1 => Just(0), 1 => any::<u64>()]
}

fn any_component() -> impl Strategy<Value = ComponentSample> {
    let counts = proptest::collection::vec(any_count(), 16);
    let name = prop_oneof![8 => proptest::sample::select(STACK.to_vec()), 1 => Just("nic1"), 1 => Just("a\nb"), 1 => Just("")];
    (name, 0u32..3, any::<bool>(), counts, proptest::option::of(0u32..9), any::<bool>()).prop_map(
        |(name, generation, running, counts, cpu, dedicated)| ComponentSample {
            name: name.into(),
            generation,
            running,
            heartbeat: counts[0],
            cpu: cpu.map(CpuId),
            dedicated,
            accounted_to: Instant(counts[15]),
            busy: ns(counts[1]),
            polling: ns(counts[2]),
            waiting: ns(counts[3]),
            sleeping: ns(counts[4]),
            cpu_time: ns(counts[5]),
            wake_ups: counts[6],
            wakes_sent: counts[7],
            wakes_cost: ns(counts[8]),
            queues: alloc::vec![QueueSample {
                from: "x".into(),
                capacity: counts[9] as u32,
                high: counts[10] as u32,
                low: 0,
                overloads: counts[11],
                underloads: counts[12],
            }],
            hint: if counts[13] % 3 == 0 { Hint::Starved } else { Hint::None },
            traffic: Traffic {
                received_bytes: counts[13],
                sent_segments: counts[14],
                connections_open: counts[15],
                sent_bytes: counts[15],
                ..Traffic::default()
            },
            counters: None,
        },
    )
}

fn any_sample() -> impl Strategy<Value = Sample> {
    let speed = prop_oneof![3 => 0.1f64..1.0, 1 => Just(f64::NAN), 1 => Just(-1.0), 1 => Just(f64::INFINITY)];
    let cpu = (0u32..9, any::<[bool; 3]>(), speed, any_count(), any_count(), any_count()).prop_map(
        |(cpu, [online, managed, parked], speed, busy_ns, idle_ns, stolen_ns)| CpuSample {
            cpu: CpuId(cpu),
            online,
            managed,
            parked,
            speed: Share(speed),
            busy: ns(busy_ns),
            idle: ns(idle_ns),
            stolen: ns(stolen_ns),
        },
    );
    let components = proptest::collection::vec(any_component(), 0..9);
    let cpus = proptest::collection::vec(cpu, 0..9);
    (any_count(), components, cpus, proptest::option::of(any_count())).prop_map(
        |(at, components, cpus, energy)| Sample {
            at: Instant(at),
            components,
            cpus,
            energy: energy.map(Microjoules),
        },
    )
}

/// The input: valid samples of a load, a repeated absurdity, or anything.
#[derive(Clone, Debug)]
enum Stretch {
    Sane { samples: u64, busy: f64, segments: u64 },
    Same(Sample, u64),
}

fn any_stretch() -> impl Strategy<Value = Stretch> {
    let sane = (1u64..120, 0.0f64..1.2, prop_oneof![Just(0u64), 1u64..2000]);
    prop_oneof![
        2 => sane.prop_map(|(samples, busy, segments)| Stretch::Sane { samples, busy, segments }),
        1 => (any_sample(), 1u64..6).prop_map(|(sample, times)| Stretch::Same(sample, times)),
    ]
}

fn feed(scheduler: &mut Noted, sample: &Sample) -> Result<(), TestCaseError> {
    let decision = scheduler.decide(sample);
    let checked = check(&decision.plan, scheduler.machine());
    prop_assert!(checked.is_ok(), "{}: {:?}", decision.plan, checked);
    for load in &scheduler.observation().components {
        let shares = [load.busy, load.polling, load.waiting, load.sleeping];
        prop_assert!(shares.iter().all(|share| share.is_valid()), "{load:?}");
    }
    let mix = scheduler.observation().indicators.mix();
    prop_assert!(mix.axes().iter().all(|axis| (0.0..=1.0).contains(axis)), "{mix:?}");
    if let Some(kept) = scheduler.history.entries().last() {
        prop_assert_eq!(kept.entry.to_string().lines().count(), 1);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn no_sequence_of_samples_makes_a_policy_panic_or_plan_what_cannot_be(
        stretches in proptest::collection::vec(any_stretch(), 1..6),
        cpus in 1u32..6,
        goal in proptest::sample::select(alloc::vec![
            Goal::THROUGHPUT,
            Goal::least_power(Share(0.95)),
            Goal::THROUGHPUT_PER_WATT,
        ]),
        park: bool,
    ) {
        let spare = if park { Spare::Park } else { Spare::GiveBack };
        for name in NAMES {
            let mut scheduler = scheduler(name, cpus, goal, spare);
            let mut index = 0;
            for stretch in &stretches {
                match stretch {
                    Stretch::Sane { samples, busy, segments } => {
                        for _ in 0..*samples {
                            index += 1;
                            feed(&mut scheduler, &sample_of(index, *busy, *segments, cpus))?;
                        }
                    }
                    Stretch::Same(sample, times) => {
                        for time in 0..*times {
                            let at = sample.at + ns(time * PERIOD);
                            feed(&mut scheduler, &Sample { at, ..sample.clone() })?;
                        }
                    }
                }
            }
        }
    }
}

/// CPUs 0 to 3 are one package and 4 to 7 the other; the stack may have all but 0 and 4.
fn two_packages() -> Machine {
    let cpu =
        |number: u32| Cpu { cpu: CpuId(number), online: true, package: Some(number / 4), ..Cpu::default() };
    Machine {
        online: (0..8).map(CpuId).collect(),
        managed: "1-3,5-7".parse().unwrap(),
        cpus: (0..8).map(cpu).collect(),
        ..Machine::default()
    }
}

/// Feeds samples of a load that receives much, while others take `busy(index, cpu)` of each CPU.
fn with_others(scheduler: &mut Noted, samples: core::ops::Range<u64>, busy: impl Fn(u64, CpuId) -> f64) {
    let mut sums = [0u64; 8];
    for index in samples {
        let mut sample = sample_of(index, 0.3, 0, 8);
        sample.components.iter_mut().for_each(|component| component.queues[0].high = 1);
        let tcp = sample.components.iter_mut().find(|component| component.name == "tcp").unwrap();
        tcp.traffic.received_bytes = index * 1_000_000;
        tcp.traffic.received_segments = index * 20;
        for cpu in &mut sample.cpus {
            sums[cpu.cpu.0 as usize] += (busy(index, cpu.cpu) * PERIOD as f64) as u64;
            let others = sums[cpu.cpu.0 as usize];
            (cpu.busy, cpu.idle) = (ns(others), ns((index * PERIOD).saturating_sub(others)));
            cpu.managed = !cpu.cpu.0.is_multiple_of(4);
        }
        scheduler.decide(&sample);
    }
}

fn anew(scheduler: &Noted) -> usize {
    let told = scheduler.history.entries();
    told.filter(|kept| kept.entry.reason.contains("applications' CPUs are others")).count()
}

#[test]
fn the_stack_goes_to_where_others_work_and_does_not_follow_fluctuations() {
    let mut scheduler = Noted::new(PolicyName::Adaptive, two_packages(), Settings::default());
    let package = |scheduler: &Scheduler| {
        let used = scheduler.plan().used();
        used.iter().map(|cpu| cpu.0 / 4).collect::<alloc::collections::BTreeSet<u32>>()
    };
    let at_home = |home: u32| move |_, cpu: CpuId| if cpu == CpuId(home) { 0.7 } else { 0.02 };
    with_others(&mut scheduler, 1..1000, at_home(4));
    assert_eq!(scheduler.applications().to_string(), "4");
    assert_eq!((anew(&scheduler), package(&scheduler)), (1, [1].into()), "{}", scheduler.plan());
    // The applications are elsewhere for a second now and then, and idle in between: that has no effect.
    with_others(&mut scheduler, 1000..4000, |step, cpu| match step / 100 % 5 {
        0 if cpu == CpuId(0) => 0.9,
        1 | 2 if cpu == CpuId(4) => 0.7,
        _ => 0.0,
    });
    assert_eq!((anew(&scheduler), package(&scheduler)), (1, [1].into()));
    with_others(&mut scheduler, 4000..7000, at_home(0));
    assert_eq!((anew(&scheduler), package(&scheduler)), (2, [0].into()), "{}", scheduler.plan());
}

#[test]
fn where_others_work_is_of_no_matter_in_one_package_or_if_somebody_said_better() {
    let mut one = two_packages();
    one.cpus.iter_mut().for_each(|cpu| cpu.package = Some(0));
    let mut scheduler = Noted::new(PolicyName::Adaptive, one, Settings::default());
    with_others(&mut scheduler, 1..1000, |_, cpu| if cpu == CpuId(4) { 0.7 } else { 0.0 });
    assert_eq!((scheduler.applications().to_string().as_str(), anew(&scheduler)), ("4", 0));
    let mut scheduler = Noted::new(PolicyName::Adaptive, two_packages(), Settings::default());
    let Noted { scheduler: told, history } = &mut scheduler;
    told.set_applications("0".parse().unwrap(), history);
    with_others(&mut scheduler, 1..1000, |_, cpu| if cpu == CpuId(4) { 0.7 } else { 0.0 });
    assert_eq!(anew(&scheduler), 1, "only what was said");
}

#[test]
fn a_policy_that_does_not_heed_applications_is_not_begun_anew_by_them() {
    let settings = settings(two_packages(), Goal::THROUGHPUT, Spare::GiveBack);
    let mut scheduler = Noted::new(PolicyName::Profile, two_packages(), settings);
    with_others(&mut scheduler, 1..1000, |_, cpu| if cpu == CpuId(4) { 0.7 } else { 0.0 });
    assert_eq!(anew(&scheduler), 0);
    // The next policy knows it from the beginning.
    scheduler.set_policy(PolicyName::Adaptive, Settings::default()).unwrap();
    assert_eq!(scheduler.platform().applications.to_string(), "4");
}
