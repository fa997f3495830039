use super::*;
use crate::machine::{Cpu, Machine};
use crate::placement::Spare;
use crate::platform::Platform;
use crate::profile::sweep::{Achieved, StepMatching, exhaustive};
use proptest::prelude::*;

fn machine(cpus: u32) -> Machine {
    Machine {
        model: Some("test".into()),
        online: (0..cpus).collect(),
        managed: (0..cpus).collect(),
        cpus: (0..cpus).map(|cpu| Cpu { cpu, online: true, ..Cpu::default() }).collect(),
        ..Machine::default()
    }
}

fn platform(cpus: u32) -> Platform {
    let names = ["sockets", "tcp", "udp", "ip", "filter", "nic0"].map(String::from);
    Platform::new(machine(cpus), &names, Some(&[0.25, 0.5, 0.75])).unwrap()
}

fn mix(size: f64) -> Mix {
    Mix { size, ..Mix::default() }
}

fn outcome(plan: &Plan, throughput: f64, power_w: f64) -> Outcome {
    Outcome { throughput, power_w, plan: plan.clone(), ..Outcome::default() }
}

/// Two plans, and two loads of which each likes another one.
fn two() -> (Profiles, Plan, Plan) {
    let all = exhaustive(&platform(2), Spare::GiveBack);
    let (a, b) = (all[0].plan.clone(), all.last().unwrap().plan.clone());
    let mut profiles = Profiles::default();
    profiles.record("small", mix(0.1), outcome(&a, 100.0, 10.0));
    profiles.record("small", mix(0.1), outcome(&b, 50.0, 12.0));
    profiles.record("large", mix(0.9), outcome(&a, 500.0, 10.0));
    profiles.record("large", mix(0.9), outcome(&b, 1000.0, 20.0));
    (profiles, a, b)
}

#[test]
fn the_nearest_load_decides() {
    let (profiles, a, b) = two();
    let choose = |size, objective| {
        let wish = Wish { mix: mix(size), demand: None, objective };
        profiles.choose(&wish, &Plan::default(), 0.02).unwrap().plan
    };
    assert_eq!(choose(0.15, Objective::Throughput), a);
    assert_eq!(choose(0.85, Objective::Throughput), b);
    assert_eq!(choose(0.85, Objective::LeastPower { floor: 0.4 }), a);
}

#[test]
fn a_light_load_needs_no_more_than_it_asks_for() {
    let (profiles, a, b) = two();
    let objective = Objective::LeastPower { floor: 0.95 };
    let wish = Wish { mix: mix(0.9), demand: Some(0.3), objective };
    assert_eq!(profiles.choose(&wish, &b, 0.02).unwrap().plan, a);
    let more = Wish { demand: Some(0.6), ..wish };
    assert_eq!(profiles.choose(&more, &b, 0.02).unwrap().plan, b);
}

#[test]
fn what_is_learnt_changes_the_choice_nearby_only() {
    let (mut profiles, a, b) = two();
    let choose = |profiles: &Profiles, size| {
        let wish = Wish { mix: mix(size), demand: None, objective: Objective::Throughput };
        profiles.choose(&wish, &Plan::default(), 0.02).unwrap().plan
    };
    assert_eq!(choose(&profiles, 0.7), b);
    profiles.learn(&mix(0.7), &a, 800.0, 10.0, true);
    profiles.learn(&mix(0.7), &b, 300.0, 20.0, true);
    assert_eq!(choose(&profiles, 0.7), a);
    assert_eq!(choose(&profiles, 0.9), b);
    for step in 0..10_000 {
        profiles.learn(&mix(f64::from(step) / 10_000.0), &a, 1.0, 1.0, true);
    }
    assert!(profiles.loads.len() <= LOADS_MAX);
}

#[test]
fn pruning_keeps_what_can_be_chosen() {
    let (mut profiles, a, b) = two();
    let worse = exhaustive(&platform(2), Spare::GiveBack)[3].plan.clone();
    profiles.record("small", mix(0.1), outcome(&worse, 90.0, 11.0));
    profiles.record("large", mix(0.9), outcome(&worse, 400.0, 10.0));
    profiles.record("nearly large", mix(0.901), outcome(&b, 1000.0, 20.0));
    assert_eq!(prune(&mut profiles), (3, 1));
    let left: Vec<&Plan> = profiles.loads[1].outcomes.iter().map(|outcome| &outcome.plan).collect();
    assert_eq!(left, [&a, &b]);
}

#[test]
fn a_file_reads_back_and_bad_ones_are_refused_with_one_line() {
    let (profiles, ..) = two();
    let text = file::write(&profiles, &machine(2)).unwrap();
    assert_eq!(file::read(&text, &machine(2)).unwrap().loads.len(), 2);
    let refused = |text: &str, machine: &Machine, word: &str| {
        let error = file::read(text, machine).unwrap_err();
        assert!(error.contains(word) && !error.contains('\n'), "{error}");
    };
    refused(&text, &machine(4), "another machine");
    refused(&text, &Machine { model: Some("other".into()), ..machine(2) }, "another machine");
    refused(&text[..text.len() - 10], &machine(2), "damaged");
    refused(&text.replace("version 1", "version 9"), &machine(2), "version 9");
    refused(&text.replace("500.0", "600.0"), &machine(2), "digest");
    refused("", &machine(2), "no profile file");
    refused("[machine]", &machine(2), "no profile file");
}

#[test]
fn an_exhaustive_sweep_is_bounded_and_every_configuration_passes_the_check() {
    for cpus in [1, 2, 4, 8] {
        let platform = platform(cpus);
        let all = exhaustive(&platform, Spare::Park);
        assert!((1..=sweep::CONFIGURATIONS_MAX + 64).contains(&all.len()), "{}", all.len());
        for configuration in &all {
            crate::plan::check(&configuration.plan, platform.machine()).unwrap();
        }
    }
}

/// A stack whose throughput is that of its busiest CPU.
fn run(platform: &Platform, plan: &Plan) -> Achieved {
    let demand = crate::ladder::relative(platform, &Default::default());
    let busy = crate::estimate::utilisation(platform, plan, &demand);
    let throughput = 1.0 / crate::estimate::bottleneck(&busy);
    Achieved { throughput, busy: busy.into_iter().map(|(cpu, share)| (cpu, share * throughput)).collect() }
}

#[test]
fn step_matching_finds_the_best_with_few_steps() {
    for cpus in [1, 2, 4] {
        let platform = platform(cpus);
        let mut search = StepMatching::new(&platform, Spare::GiveBack);
        let (mut steps, mut last, mut best) = (0, None, 0f64);
        while let Some(next) = search.next_configuration(last) {
            let achieved = run(&platform, &next.plan);
            best = best.max(achieved.throughput);
            last = Some(achieved);
            steps += 1;
            assert!(steps < 200);
        }
        let full = Plan { speeds: Default::default(), ..search.plan().clone() };
        assert!(best >= run(&platform, &full).throughput / 1.02, "{best}");
        assert!((run(&platform, search.plan()).throughput - best).abs() < best * 0.02);
        assert!(steps < exhaustive(&platform, Spare::GiveBack).len() || cpus == 1);
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,200}", cut in 0usize..4000, flip in 0usize..4000) {
        let _ = file::read(&text, &machine(2));
        let mut bytes = file::write(&two().0, &machine(2)).unwrap().into_bytes();
        let length = bytes.len();
        bytes[flip % length] ^= 1;
        bytes.truncate(length.min(cut + 1));
        if let Ok(text) = String::from_utf8(bytes) {
            prop_assert!(file::read(&text, &machine(2)).is_err());
        }
    }
}
