use super::*;
use crate::platform::Platform;
use crate::profile::sweep::{Achieved, StepMatching, exhaustive};
use eft_component::scheduling::Spare;
use eft_machine::{Cpu, CpuId, Latency, Machine, Share, Watts};
use proptest::prelude::*;

fn machine(cpus: u32) -> Machine {
    Machine {
        model: Some("test".into()),
        online: (0..cpus).map(CpuId).collect(),
        managed: (0..cpus).map(CpuId).collect(),
        cpus: (0..cpus).map(|cpu| Cpu { cpu: CpuId(cpu), online: true, ..Cpu::default() }).collect(),
        ..Machine::default()
    }
}

fn platform(cpus: u32) -> Platform {
    let names = ["sockets", "tcp", "udp", "ip", "filter", "nic0"].map(String::from);
    Platform::new(machine(cpus), &names, Some(&[0.25, 0.5, 0.75].map(Share))).unwrap()
}

fn mix(size: f64) -> Mix {
    Mix { size, ..Mix::default() }
}

fn outcome(plan: &Plan, throughput: f64, watts: f64) -> Outcome {
    Outcome {
        throughput: Throughput(throughput),
        power: Watts(watts),
        plan: plan.clone(),
        ..Outcome::default()
    }
}

fn wish(size: f64, goal: Goal) -> Wish {
    Wish { mix: mix(size), demand: None, goal, requests: false, latency_max: None }
}

/// Two plans, and two loads, each of which does better under another plan.
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
    let choose = |size, goal| {
        let wish = wish(size, goal);
        profiles.choose(&wish, &Plan::default(), 0.02).unwrap().plan
    };
    assert_eq!(choose(0.15, Goal::THROUGHPUT), a);
    assert_eq!(choose(0.85, Goal::THROUGHPUT), b);
    assert_eq!(choose(0.85, Goal::least_power(Share(0.4))), a);
}

/// Throughput, power and latency of a few plans under one load of requests.
fn with_latencies(figures: &[(f64, f64, Option<f64>)]) -> (Profiles, Vec<Plan>) {
    let plans = exhaustive(&platform(2), Spare::GiveBack).into_iter().map(|configuration| configuration.plan);
    let plans: Vec<Plan> = plans.take(figures.len()).collect();
    let mut profiles = Profiles::default();
    for (plan, (throughput, watts, latency_us)) in plans.iter().zip(figures) {
        let outcome = Outcome { latency: latency_us.map(Latency), ..outcome(plan, *throughput, *watts) };
        profiles.record("requests", mix(0.1), outcome);
    }
    (profiles, plans)
}

#[test]
fn among_plans_that_are_as_good_the_quicker_answers_requests() {
    let (profiles, plans) = with_latencies(&[
        (100.0, 10.0, Some(90.0)),
        (99.0, 10.1, Some(50.0)),
        (90.0, 10.1, Some(20.0)),
        (99.5, 10.05, None),
    ]);
    let choose = |wish: &Wish, present: &Plan| {
        let chosen = profiles.choose(wish, present, 0.02).unwrap();
        (plans.iter().position(|plan| *plan == chosen.plan).unwrap(), chosen.latency.map(|latency| latency.0))
    };
    let nowhere = Plan::default();
    let bulk = wish(0.1, Goal::THROUGHPUT);
    let requests = Wish { requests: true, ..bulk };
    assert_eq!(choose(&bulk, &nowhere), (0, None));
    // The third is quicker yet, but has too little throughput; of the fourth nothing is known.
    assert_eq!(choose(&requests, &nowhere), (1, Some(50.0)));
    // The present plan stays if it is as good, unless its answers take longer.
    assert_eq!(choose(&bulk, &plans[3]).0, 3);
    assert_eq!((choose(&bulk, &plans[0]).0, choose(&requests, &plans[0]).0), (0, 1));
    assert_eq!(choose(&requests, &plans[3]).0, 3);
    let least = Wish { goal: Goal::least_power(Share(0.95)), ..requests };
    assert_eq!(choose(&least, &nowhere).0, 1, "one percent of power is no reason for slow answers");
    let (profiles, plans) = with_latencies(&[(100.0, 10.0, Some(52.0)), (99.0, 10.1, Some(50.0))]);
    let chosen = profiles.choose(&requests, &nowhere, 0.02).unwrap().plan;
    assert_eq!(chosen, plans[0], "latencies that are nearly the same decide nothing");
}

#[test]
fn a_limit_on_latency_is_kept_where_it_can_be() {
    let (profiles, plans) = with_latencies(&[
        (100.0, 10.0, Some(90.0)),
        (70.0, 12.0, Some(50.0)),
        (60.0, 12.0, Some(20.0)),
        (200.0, 10.0, None),
    ]);
    let choose = |requests: bool, limit_us: f64| {
        let wish = Wish {
            requests,
            latency_max: Some(Latency(limit_us)),
            ..wish(0.1, Goal::least_power(Share(0.95)))
        };
        let chosen = profiles.choose(&wish, &plans[0], 0.02).unwrap().plan;
        plans.iter().position(|plan| *plan == chosen).unwrap()
    };
    assert_eq!(choose(true, 1000.0), 0);
    assert_eq!(choose(true, 60.0), 1);
    assert_eq!(choose(true, 5.0), 2, "none is quick enough: the one that comes nearest");
    assert_eq!(choose(false, 5.0), 3, "no requests, no limit");
    let (untold, plans) = with_latencies(&[(100.0, 10.0, None), (50.0, 10.0, None)]);
    let wish = Wish { requests: true, latency_max: Some(Latency(5.0)), ..wish(0.1, Goal::THROUGHPUT) };
    assert_eq!(untold.choose(&wish, &Plan::default(), 0.02).unwrap().plan, plans[0]);
}

#[test]
fn latencies_outlive_learning_and_pruning() {
    let (mut profiles, plans) = with_latencies(&[(100.0, 10.0, Some(90.0)), (100.0, 10.0, Some(50.0))]);
    // Another load: guessed from the first, then measured, without a latency.
    profiles.learn(&mix(0.3), &plans[1], Throughput(80.0), Watts(9.0), true);
    let learnt = |profiles: &Profiles| {
        profiles.loads[1].outcomes.iter().map(|o| o.latency.map(|latency| latency.0)).collect::<Vec<_>>()
    };
    assert_eq!(learnt(&profiles), [Some(90.0), Some(50.0)]);
    profiles.learn(&mix(0.3), &plans[1], Throughput(80.0), Watts(9.0), true);
    assert_eq!(learnt(&profiles), [Some(90.0), Some(50.0)]);
    profiles.record(
        "requests",
        mix(0.1),
        Outcome { latency: Some(Latency(30.0)), ..outcome(&plans[1], 100.0, 10.0) },
    );
    assert_eq!(profiles.loads[0].outcomes[1].latency, Some(Latency(40.0)));
    // As much throughput and power, but the answers take longer: that one can go, the quick one cannot.
    assert_eq!(prune(&mut profiles).0, 2);
    assert!(profiles.loads.iter().all(|load| load.outcomes.iter().all(|outcome| outcome.plan == plans[1])));
}

#[test]
fn a_light_load_needs_no_more_than_it_asks_for() {
    let (profiles, a, b) = two();
    let goal = Goal::least_power(Share(0.95));
    let wish = Wish { demand: Some(0.3), ..wish(0.9, goal) };
    assert_eq!(profiles.choose(&wish, &b, 0.02).unwrap().plan, a);
    let more = Wish { demand: Some(0.6), ..wish };
    assert_eq!(profiles.choose(&more, &b, 0.02).unwrap().plan, b);
}

#[test]
fn what_is_learnt_changes_the_choice_nearby_only() {
    let (mut profiles, a, b) = two();
    let choose = |profiles: &Profiles, size| {
        let wish = wish(size, Goal::THROUGHPUT);
        profiles.choose(&wish, &Plan::default(), 0.02).unwrap().plan
    };
    assert_eq!(choose(&profiles, 0.7), b);
    profiles.learn(&mix(0.7), &a, Throughput(800.0), Watts(10.0), true);
    profiles.learn(&mix(0.7), &b, Throughput(300.0), Watts(20.0), true);
    assert_eq!(choose(&profiles, 0.7), a);
    assert_eq!(choose(&profiles, 0.9), b);
    for step in 0..10_000 {
        profiles.learn(&mix(f64::from(step) / 10_000.0), &a, Throughput(1.0), Watts(1.0), true);
    }
    assert!(profiles.loads.len() <= LOADS_MAX);
}

#[test]
fn a_guess_is_of_how_plans_compare_and_not_of_how_much_others_deliver() {
    let (mut profiles, a, b) = two();
    // A distant load that delivers a thousand times as much.
    for load in &mut profiles.loads {
        let factor = if load.name == "large" { 1000.0 } else { 1.0 };
        load.outcomes.iter_mut().for_each(|outcome| outcome.throughput *= factor);
    }
    profiles.learn(&mix(0.2), &a, Throughput(70.0), Watts(10.0), true);
    let of = |plan: &Plan| profiles.loads[2].outcomes.iter().find(|o| o.plan.is_same(plan)).unwrap().clone();
    assert_eq!((of(&a).throughput, of(&a).guessed), (Throughput(70.0), false));
    assert!((30.0..45.0).contains(&of(&b).throughput.0) && of(&b).guessed, "{:?}", of(&b));
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
        let error = file::read(text, machine).unwrap_err().to_string();
        assert!(error.contains(word) && !error.contains('\n'), "{error}");
    };
    refused(&text, &machine(4), "another machine");
    refused(&text, &Machine { model: Some("other".into()), ..machine(2) }, "another machine");
    refused(&text[..text.len() - 10], &machine(2), "damaged");
    refused(&text.replace("version 2", "version 9"), &machine(2), "version 9");
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
    Achieved {
        throughput: Throughput(throughput),
        busy: busy.into_iter().map(|(cpu, share)| (cpu, share * throughput)).collect(),
    }
}

#[test]
fn step_matching_finds_the_best_with_few_steps() {
    for cpus in [1, 2, 4] {
        let platform = platform(cpus);
        let mut search = StepMatching::new(&platform, Spare::GiveBack);
        let (mut steps, mut last, mut best) = (0, None, 0f64);
        while let Some(next) = search.next_configuration(last) {
            let achieved = run(&platform, &next.plan);
            best = best.max(achieved.throughput.0);
            last = Some(achieved);
            steps += 1;
            assert!(steps < 200);
        }
        let full = Plan { speeds: Default::default(), ..search.plan().clone() };
        assert!(best >= run(&platform, &full).throughput.0 / 1.02, "{best}");
        assert!((run(&platform, search.plan()).throughput.0 - best).abs() < best * 0.02);
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
