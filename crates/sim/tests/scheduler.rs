//! The scheduler's goals, tested on the modelled machine with the whole component, as it runs live.

use eft_base::Random;
use eft_machine::{CpuId, Share, Watts};

use eft_component::scheduling::{PolicyName, Scheduling, Spare};
use eft_cores::history::History;
use eft_cores::plan::Plan;
use eft_cores::platform::Platform;
use eft_cores::policy::cost::Costs;
use eft_cores::policy::{Goal, Policy, Settings};
use eft_cores::profile::sweep::{Configuration, exhaustive};
use eft_cores::profile::{Outcome, Profiles};
use eft_cores::scheduler::Scheduler;
use eft_cores::throughput::Throughput;
use eft_sim::machine::shape::{Speeds, components};
use eft_sim::machine::{Host, Load, Others, Schedule, Shape, World};
use serde_json::json;

const PERIOD_NS: u64 = 10_000_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const SEEDS: [u64; 3] = [1, 2, 3];
const LEAST_POWER: Goal = Goal::least_power(Share(0.95));

struct Run {
    host: Host,
}

/// What a topology says of its scheduling; all managed CPUs of the shape are managed.
fn settings(policy: &str, shape: &Shape, goal: Goal) -> Scheduling {
    let Goal { objective, floor } = goal;
    let managed = shape.machine().managed;
    let text = json!({ "policy": policy, "managed": managed, "objective": objective, "floor": floor });
    serde_json::from_value(text).unwrap()
}

impl Run {
    fn new(world: World, policy: &str, shape: &Shape, goal: Goal, profiles: Profiles) -> Self {
        Self { host: Host::new(world, shape, settings(policy, shape, goal), profiles) }
    }

    fn adaptive(shape: &Shape, schedule: Schedule, goal: Goal, seed: u64) -> Self {
        let world = World::new(shape, schedule, seed);
        Self::new(world, "adaptive", shape, goal, Profiles::default())
    }

    fn profile(schedule: Schedule, goal: Goal, profiles: &Profiles, seed: u64) -> Self {
        let world = World::new(&Shape::TWO, schedule, seed);
        Self::new(world, "profile", &Shape::TWO, goal, profiles.clone())
    }

    fn until(&mut self, end_ns: u64) {
        self.host.until(end_ns);
    }

    /// Messages a second, and W, from now on.
    fn over(&mut self, length_ns: u64) -> (f64, f64) {
        let seen = |run: &Self| (run.host.world().messages(), run.host.world().energy_j());
        let before = seen(self);
        self.until(self.host.world().now_ns() + length_ns);
        let after = seen(self);
        let seconds = length_ns as f64 / S as f64;
        ((after.0 - before.0) / seconds, (after.1 - before.1) / seconds)
    }

    fn plan(&self) -> &Plan {
        self.host.scheduler().plan()
    }

    fn policy(&self) -> &Policy {
        self.host.scheduler().policy()
    }

    /// Changes after that time.
    fn changed_after(&self, from_ns: u64) -> Vec<u64> {
        self.host.changed_ns().iter().copied().filter(|at| *at > from_ns).collect()
    }

    fn changes(&self) -> usize {
        self.host.changed_ns().len()
    }

    fn why(&self) -> String {
        format!("{}{}", self.host.engine().history(), self.host.complaints().join("\n"))
    }
}

/// The machine as the scheduler knows it.
fn platform(shape: &Shape) -> Platform {
    Platform::new(shape.machine(), &components(), shape.duty_levels()).unwrap()
}

/// The best of all fixed configurations: its plan, throughput and power.
fn best_fixed(shape: &Shape, load: &Load, goal: Goal) -> (Plan, f64, f64) {
    let world = World::new(shape, Schedule::Constant(None), 0);
    let all: Vec<(Plan, f64, f64)> = exhaustive(&platform(shape), Spare::GiveBack)
        .into_iter()
        .map(|Configuration { plan, .. }| {
            let (steady, watts) = world.steady(&plan, load);
            (plan, steady.rate, watts)
        })
        .collect();
    let best = all.iter().map(|(_, rate, _)| *rate).fold(0.0, f64::max);
    let score = |(_, rate, watts): &(Plan, f64, f64)| goal.score(rate / best, Watts(*watts));
    all.into_iter().max_by(|a, b| score(a).total_cmp(&score(b))).unwrap()
}

fn shapes() -> Vec<Shape> {
    vec![
        Shape::TWO,
        Shape { speeds: Speeds::Frequency, ..Shape::TWO },
        Shape { speeds: Speeds::None, ..Shape::TWO },
        Shape { managed: 4, little: 2, ..Shape::TWO },
        Shape { managed: 8, threads: 2, packages: 2, speeds: Speeds::None, ..Shape::TWO },
    ]
}

fn loads() -> Vec<Load> {
    vec![Load::bulk_out(), Load::bulk_in(), Load::requests(10, 16), Load::mixed(10)]
}

#[test]
fn when_idle_the_stack_sits_on_one_shared_core_within_a_second() {
    for shape in shapes() {
        for seed in SEEDS {
            let schedule = Schedule::Steps(vec![(S, Some(Load::bulk_out())), (3 * S, None)]);
            let mut run = Run::adaptive(&shape, schedule, Goal::THROUGHPUT, seed);
            run.until(3 * S);
            assert!(shape.managed == 1 || !run.plan().is_consolidated(), "seed {seed}\n{}", run.why());
            run.until(4 * S);
            let plan = run.plan();
            assert!(plan.is_consolidated(), "seed {seed}: {plan}");
            assert!(plan.seats.values().all(|seat| !seat.dedicated));
            assert_eq!(plan.given_back.len() as u32, shape.managed - 1, "{plan}");
        }
    }
}

#[test]
fn a_bulk_transfer_reaches_nine_tenths_of_the_best_within_300_ms() {
    for shape in shapes() {
        for load in [Load::bulk_out(), Load::bulk_in()] {
            let (_, best, _) = best_fixed(&shape, &load, Goal::THROUGHPUT);
            for seed in SEEDS {
                let schedule = Schedule::Steps(vec![(2 * S, Some(load.clone()))]);
                let mut run = Run::adaptive(&shape, schedule, Goal::THROUGHPUT, seed);
                run.until(2 * S + 300 * MS);
                let (rate, _) = run.over(50 * MS);
                assert!(rate >= 0.9 * best, "seed {seed}, {shape:?}: {rate:.0} of {best:.0}\n{}", run.why());
            }
        }
    }
}

#[test]
fn a_bulk_transfer_finds_the_cpu_beside_whose_program_it_does_most() {
    // Seen live: with program and peer on the two managed CPUs, the stack stayed on the peer's, or on both, with half to
    // three quarters of the best.
    let shape = Shape { speeds: Speeds::None, ..Shape::TWO };
    for (program, peer) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let load = Load::bulk_out().between(CpuId(program), CpuId(peer));
        let (plan, best, _) = best_fixed(&shape, &load, Goal::THROUGHPUT);
        for seed in SEEDS {
            let schedule = Schedule::Steps(vec![(2 * S, Some(load.clone()))]);
            let mut run = Run::adaptive(&shape, schedule, Goal::THROUGHPUT, seed);
            run.until(2 * S + 500 * MS);
            let (rate, _) = run.over(2500 * MS);
            let told = format!("seed {seed}, {}: {rate:.0} of {best:.0} ({plan})\n{}", load.name, run.why());
            assert!(rate >= 0.9 * best, "{told}");
        }
    }
}

#[test]
fn least_power_is_within_five_percent_of_the_best_fixed_configuration() {
    for shape in [Shape::TWO, Shape { speeds: Speeds::Frequency, ..Shape::TWO }] {
        for load in loads() {
            let (_, most, _) = best_fixed(&shape, &load, Goal::THROUGHPUT);
            let (plan, _, least) = best_fixed(&shape, &load, LEAST_POWER);
            for seed in SEEDS {
                let mut run =
                    Run::adaptive(&shape, Schedule::Constant(Some(load.clone())), LEAST_POWER, seed);
                run.until(30 * S);
                let (rate, watts) = run.over(5 * S);
                let told = format!(
                    "seed {seed}, {shape:?}, {}: {rate:.0} of {most:.0} at {watts:.2} of {least:.2} W ({plan})\n{}",
                    load.name,
                    run.why()
                );
                assert!(rate >= 0.95 * 0.99 * most, "{told}");
                assert!(watts <= 1.05 * least, "{told}");
            }
        }
    }
}

#[test]
fn least_power_finds_the_cpu_on_which_one_does_for_all() {
    // Seen live: one CPU for all was tried beside the peer, where it did two thirds, and not beside the program, where it
    // did as much as both at three quarters of the power.
    for shape in [Shape::TWO, Shape { speeds: Speeds::None, ..Shape::TWO }] {
        for (program, peer) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            for load in [Load::bulk_out(), Load::bulk_in(), Load::requests(10, 8), Load::mixed(10)] {
                let load = load.between(CpuId(program), CpuId(peer));
                let (_, most, _) = best_fixed(&shape, &load, Goal::THROUGHPUT);
                let (plan, _, least) = best_fixed(&shape, &load, LEAST_POWER);
                for seed in SEEDS {
                    let schedule = Schedule::Constant(Some(load.clone()));
                    let mut run = Run::adaptive(&shape, schedule, LEAST_POWER, seed);
                    run.until(30 * S);
                    let (rate, watts) = run.over(5 * S);
                    let told = format!(
                        "seed {seed}, {shape:?}, {}: {rate:.0} of {most:.0} at {watts:.2} of {least:.2} W ({plan})\n{}",
                        load.name,
                        run.why()
                    );
                    // The fastest plan may need one CPU slower than any prediction asks for, which no policy tries.
                    assert!(rate >= 0.93 * most, "{told}");
                    assert!(watts <= 1.05 * least, "{told}");
                }
            }
        }
    }
}

#[test]
fn throughput_beside_its_own_programs_is_near_the_best_fixed_configuration() {
    // A few pieces of the stack on the CPU that the program crowds may do a third more than any guess from work and speeds.
    for shape in [Shape::TWO, Shape { speeds: Speeds::None, ..Shape::TWO }] {
        for (program, peer) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            for load in [Load::bulk_out(), Load::bulk_in(), Load::requests(10, 8), Load::mixed(10)] {
                let load = load.between(CpuId(program), CpuId(peer));
                let (plan, most, _) = best_fixed(&shape, &load, Goal::THROUGHPUT);
                for seed in SEEDS {
                    let schedule = Schedule::Constant(Some(load.clone()));
                    let mut run = Run::adaptive(&shape, schedule, Goal::THROUGHPUT, seed);
                    run.until(30 * S);
                    let (rate, _) = run.over(5 * S);
                    let told = format!(
                        "seed {seed}, {shape:?}, {}: {rate:.0} of {most:.0} ({plan})\n{}",
                        load.name,
                        run.why()
                    );
                    assert!(rate >= 0.93 * most, "{told}");
                }
            }
        }
    }
}

#[test]
fn throughput_is_near_the_best_fixed_configuration() {
    for shape in shapes() {
        for load in loads() {
            let mut run = Run::adaptive(&shape, Schedule::Constant(Some(load.clone())), Goal::THROUGHPUT, 7);
            let (plan, most, _) = best_fixed(&shape, &load, Goal::THROUGHPUT);
            run.until(30 * S);
            let (rate, _) = run.over(5 * S);
            let name = &load.name;
            assert!(rate >= 0.95 * most, "{shape:?}, {name}: {rate:.0} of {most:.0} ({plan})\n{}", run.why());
        }
    }
}

#[test]
fn a_constant_load_sees_no_more_than_one_change_a_minute_once_settled() {
    for goal in [Goal::THROUGHPUT, LEAST_POWER, Goal::THROUGHPUT_PER_WATT] {
        for load in [Load::bulk_out(), Load::requests(10, 16), Load::requests(1000, 16).at_rate(20_000.0)] {
            for seed in SEEDS {
                let mut run = Run::adaptive(&Shape::TWO, Schedule::Constant(Some(load.clone())), goal, seed);
                run.until(30 * S);
                let settled = matches!(run.policy(), Policy::Adaptive(policy) if policy.is_settled());
                assert!(settled, "seed {seed}, {}:\n{}", load.name, run.why());
                run.until(270 * S);
                let later: Vec<u64> = run.changed_after(30 * S);
                // Every change is followed by its reversal, so one a minute means none within a minute.
                assert!(
                    later.windows(2).all(|pair| pair[1] - pair[0] > 60 * S),
                    "seed {seed}, {}: {later:?}\n{}",
                    load.name,
                    run.why()
                );
            }
        }
    }
}

#[test]
fn a_load_that_drifts_sees_no_more_than_two_changes_in_two_minutes() {
    // By a tenth each 20 s, up and down: never so much that it is another load.
    let mut probes = 0;
    for goal in [Goal::THROUGHPUT, LEAST_POWER, Goal::THROUGHPUT_PER_WATT] {
        for seed in SEEDS {
            let rates = (0..30u64).map(|step| if step % 2 == 0 { 20_000.0 } else { 22_000.0 });
            let loads = rates.map(|rate| Some(Load::requests(1000, 16).at_rate(rate)));
            let steps = (0..).map(|step| step * 20 * S).zip(loads).collect();
            let mut run = Run::adaptive(&Shape::TWO, Schedule::Steps(steps), goal, seed);
            run.until(600 * S);
            let later: Vec<u64> = run.changed_after(30 * S);
            let crowded = later.windows(3).any(|changes| changes[2] - changes[0] < 120 * S);
            probes += later.len() / 2;
            assert!(!crowded, "seed {seed}, {goal}: {later:?}\n{}", run.why());
        }
    }
    assert!(probes > 0, "a load that drifts is worth a probe now and then");
}

#[test]
fn a_load_that_comes_back_is_not_measured_anew_each_time() {
    // Between two rates, some seconds each: another load at every turn, and the same two every time.
    let mut turns_of_all = 0;
    for seed in SEEDS {
        let rates = (0..60u64).map(|step| if step % 2 == 0 { 20_000.0 } else { 12_000.0 });
        let loads = rates.map(|rate| Some(Load::requests(1000, 16).at_rate(rate)));
        let steps = (0..).map(|step| step * 6 * S).zip(loads).collect();
        let mut run = Run::adaptive(&Shape::TWO, Schedule::Steps(steps), Goal::THROUGHPUT, seed);
        run.until(90 * S);
        let before = run.changes();
        run.until(300 * S);
        let later = run.changes() - before;
        let turns = run.why().matches("another one").count();
        turns_of_all += turns;
        assert!(later <= 2 && turns <= 6, "seed {seed}: {later} changes, {turns} turns\n{}", run.why());
    }
    assert!(turns_of_all > 0, "the first turns are other loads");
}

#[test]
fn others_on_the_same_cpus_are_not_taken_for_another_load() {
    // Seen live: on a machine that others use, throughput jumped by half under a constant transfer, and every jump was
    // taken for a load that flaps, or for another one.
    for seed in SEEDS {
        let schedule = Schedule::Steps(vec![(S, Some(Load::bulk_out()))]);
        let world = World::new(&Shape::TWO, schedule, seed).with(Others::Thieves);
        let mut run = Run::new(world, "adaptive", &Shape::TWO, Goal::THROUGHPUT, Profiles::default());
        run.until(60 * S);
        assert!(!run.why().contains("flaps"), "seed {seed}\n{}", run.why());
        run.until(240 * S);
        let later = run.changed_after(60 * S).len();
        assert!(later <= 2, "seed {seed}: {later} changes in three minutes\n{}", run.why());
    }
}

#[test]
fn a_machine_that_others_slow_down_is_not_taken_for_another_load() {
    // Seen live under a constant transfer and constant requests: for seconds at a time half got done with as much work, and
    // now and then nothing ran at all for ten milliseconds. Both were taken for the load's doing.
    const MINUTES: usize = 4;
    let loads = [Load::bulk_out(), Load::requests(10, 2), Load::requests(10, 16)];
    let profiles =
        profiles_of(&Shape::TWO, &[Load::bulk_out(), Load::requests(10, 1), Load::requests(10, 16)]);
    let ways = ["adaptive", "profile"]
        .into_iter()
        .flat_map(|p| [Others::Neighbours, Others::Stalls].map(|o| (p, o)));
    for (policy, others) in ways {
        let (mut changes, mut minutes) = (0, 0);
        for (seed, load) in SEEDS.into_iter().flat_map(|seed| loads.iter().map(move |load| (seed, load))) {
            let schedule = Schedule::Constant(Some(load.clone()));
            let world = World::new(&Shape::TWO, schedule, seed).with(others);
            let mut run = Run::new(world, policy, &Shape::TWO, LEAST_POWER, profiles.clone());
            run.until(60 * S);
            let settled = run.changes();
            run.until(60 * S * (1 + MINUTES as u64));
            let later = run.changes() - settled;
            let told =
                format!("{policy}, {others:?}, {}, seed {seed}: {later} changes\n{}", load.name, run.why());
            assert!(!run.why().contains("flaps") && later <= 2 * MINUTES, "{told}");
            (changes, minutes) = (changes + later, minutes + MINUTES);
        }
        assert!(changes <= minutes, "{policy}, {others:?}: {changes} changes in {minutes} minutes");
    }
}

#[test]
fn a_constant_load_whose_own_program_crowds_the_cpus_is_left_alone() {
    // Seen live, with program and peer on the two managed CPUs: a settled policy began anew for an overload that came and
    // went with the turns that they took.
    const MINUTES: u64 = 4;
    let loads = [Load::bulk_out(), Load::requests(10, 8)];
    let places = [(1, 1), (1, 2), (2, 1), (2, 2)];
    for others in [Others::Neighbours, Others::Stalls, Others::Moods] {
        let (mut changes, mut minutes) = (0, 0);
        for (load, (program, peer)) in loads.iter().flat_map(|load| places.map(|places| (load, places))) {
            for seed in SEEDS {
                let load = load.clone().between(CpuId(program), CpuId(peer));
                let world =
                    World::new(&Shape::TWO, Schedule::Constant(Some(load.clone())), seed).with(others);
                let mut run = Run::new(world, "adaptive", &Shape::TWO, LEAST_POWER, Profiles::default());
                run.until(60 * S);
                let settled = run.changes();
                run.until(60 * S * (1 + MINUTES));
                let later = run.changes() - settled;
                let told = format!("{others:?}, {}, seed {seed}: {later} changes\n{}", load.name, run.why());
                assert!(later as u64 <= 2 * MINUTES, "{told}");
                (changes, minutes) = (changes + later as u64, minutes + MINUTES);
            }
        }
        assert!(changes <= minutes, "{others:?}: {changes} changes in {minutes} minutes");
    }
}

#[test]
fn who_is_starved_by_others_while_the_stack_has_little_to_do_gets_no_more_cores() {
    // Seen live: two late deadlines on a busy machine spread a stack that carried 3 Mbit/s.
    for seed in SEEDS {
        let load = Load::requests(10, 2).at_rate(500.0);
        let schedule = Schedule::Constant(Some(load));
        let world = World::new(&Shape::TWO, schedule, seed).with(Others::Thieves);
        let mut run = Run::new(world, "adaptive", &Shape::TWO, Goal::THROUGHPUT, Profiles::default());
        run.until(20 * S);
        assert!(run.plan().is_consolidated(), "seed {seed}\n{}", run.why());
        assert!(!run.why().contains("climbs"), "seed {seed}\n{}", run.why());
    }
}

#[test]
fn what_a_move_costs_is_learnt() {
    // The modelled machine stops for 0.4 ms for each component that moves, and windows open again over some 15 ms.
    for seed in SEEDS {
        let schedule = Schedule::Constant(Some(Load::requests(10, 16)));
        let mut run = Run::adaptive(&Shape::TWO, schedule, Goal::THROUGHPUT, seed);
        let cost = |run: &Run| match run.policy() {
            Policy::Adaptive(policy) => policy.costs().of_move().as_nanos() as f64,
            _ => panic!("not adaptive"),
        };
        let assumed = cost(&run);
        run.until(30 * S);
        let learnt = cost(&run);
        let told = format!("seed {seed}: {learnt} instead of {assumed} ns\n{}", run.why());
        assert!(learnt < assumed * 0.9 && learnt > 100_000.0, "{told}");
    }
}

#[test]
fn a_successor_goes_on_from_the_plan_in_force() {
    for load in loads() {
        for seed in SEEDS {
            let schedule = Schedule::Constant(Some(load.clone()));
            let mut run = Run::adaptive(&Shape::TWO, schedule, Goal::THROUGHPUT, seed);
            run.until(20 * S);
            let (plan, changes) = (run.plan().clone(), run.changes());
            run.host.kill();
            run.until(60 * S);
            assert_eq!(run.changes(), changes, "seed {seed}, {}: after {plan}\n{}", load.name, run.why());
        }
    }
}

#[test]
fn a_scheduler_that_dies_again_and_again_strands_nobody_and_leaves_nothing_changed() {
    // The modelled machine panics if a component is left on a parked CPU, or sent to one.
    let mut deaths_on_the_way = 0;
    for shape in [Shape::TWO, Shape { managed: 4, little: 2, ..Shape::TWO }] {
        for seed in 1..=60 {
            let mut random = Random::new(seed);
            let loads = [Some(Load::bulk_out()), None];
            let schedule = Schedule::Flips { loads, every_ns: 700 * MS };
            let world = World::new(&shape, schedule, seed);
            let mut settings = settings("adaptive", &shape, LEAST_POWER);
            settings.unneeded = Spare::Park;
            let mut host = Host::new(world, &shape, settings, Profiles::default());
            // The last death is right before the end.
            let last = 3 * S + random.below(2000) * MS;
            loop {
                let over = host.world().now_ns() >= last && host.engine().is_applying();
                if over || random.below(400) == 0 {
                    deaths_on_the_way += u64::from(host.engine().is_applying());
                    host.kill();
                }
                if over || host.world().now_ns() >= 10 * S {
                    break;
                }
                if !host.turn() {
                    host.wait(10 * S);
                }
            }
            host.end();
            let plan = host.world().plan();
            let why = format!("seed {seed}: {plan}\n{}", host.engine().history());
            assert!(plan.parked.is_empty() && plan.speeds.is_empty(), "{why}");
            assert!(host.complaints().is_empty(), "{:?} {why}", host.complaints());
        }
    }
    assert!(deaths_on_the_way > 10, "it died {deaths_on_the_way} times while it applied a plan");
}

#[test]
fn a_load_that_flips_is_not_made_worse_by_a_tenth() {
    let flips = [
        [Some(Load::bulk_out()), None],
        [Some(Load::bulk_out()), Some(Load::requests(10, 16))],
        [Some(Load::bulk_in()), Some(Load::requests(10, 16).at_rate(5_000.0))],
    ];
    for loads in flips {
        for seed in SEEDS {
            let schedule = Schedule::Flips { loads: loads.clone(), every_ns: 100 * MS };
            let mut run = Run::adaptive(&Shape::TWO, schedule.clone(), Goal::THROUGHPUT, seed);
            let Policy::Adaptive(policy) = run.policy() else { panic!("not adaptive") };
            let ladder = policy.ladder();
            let plans = [ladder.rung(ladder.consolidated_top()), ladder.rung(ladder.top())];
            let plans = plans.map(|rung| rung.plan.clone());
            let of_fixed = |plan: &Plan| {
                let mut world = World::new(&Shape::TWO, schedule.clone(), seed);
                world.apply(plan);
                while world.now_ns() < 20 * S {
                    world.sample_after(PERIOD_NS);
                }
                world.messages() / 20.0
            };
            let better = plans.iter().map(of_fixed).fold(0.0, f64::max);
            let (rate, _) = run.over(20 * S);
            assert!(rate >= 0.9 * better, "seed {seed}: {rate:.0} of {better:.0}\n{}", run.why());
        }
    }
}

#[test]
fn slower_is_found_where_it_is_faster() {
    // Where those behind tcp share a fast core, it sleeps often, and waking it costs tcp more than it gains.
    let load = Load::bulk_with_costly_tcp();
    for seed in SEEDS {
        let schedule = Schedule::Constant(Some(load.clone()));
        let mut run = Run::adaptive(&Shape::TWO, schedule, Goal::THROUGHPUT, seed);
        run.until(30 * S);
        let plan = run.plan().clone();
        let full = Plan { speeds: Default::default(), ..plan.clone() };
        let (with, watts) = run.host.world().steady(&plan, &load);
        let (without, more_watts) = run.host.world().steady(&full, &load);
        assert!(plan.speeds.values().any(|speed| *speed < Share::ALL), "seed {seed}: {plan}\n{}", run.why());
        assert!(
            with.rate > without.rate * 1.01,
            "seed {seed}: {} {}\n{}",
            with.rate,
            without.rate,
            run.why()
        );
        assert!(watts < more_watts);
    }
}

fn profiles_of(shape: &Shape, loads: &[Load]) -> Profiles {
    let mut profiles = swept(shape, loads);
    eft_cores::profile::prune(&mut profiles);
    profiles
}

fn swept(shape: &Shape, loads: &[Load]) -> Profiles {
    let world = World::new(shape, Schedule::Constant(None), 1);
    let mut profiles = Profiles::default();
    for load in loads {
        // The nature of the load is what the policy would see of it.
        let mut run =
            Run::adaptive(&Shape::TWO, Schedule::Constant(Some(load.clone())), Goal::THROUGHPUT, 11);
        run.until(2 * S);
        let mix = run.host.scheduler().observation().indicators.mix();
        let each = load.per_thousand;
        let bytes = eft_cores::indicators::delivered(&each) / 1000.0;
        for Configuration { plan, .. } in exhaustive(&platform(shape), Spare::GiveBack) {
            let (steady, watts) = world.steady(&plan, load);
            let outcome = Outcome {
                throughput: Throughput(steady.rate * bytes),
                power: Watts(watts),
                plan,
                ..Outcome::default()
            };
            profiles.record(&load.name, mix, outcome);
        }
    }
    profiles
}

#[test]
fn profile_is_near_the_best_on_loads_that_it_never_saw() {
    let shape = Shape::TWO;
    let known = [
        Load::bulk_out(),
        Load::bulk_in(),
        Load::requests(10, 16),
        Load::requests(1_000, 16),
        Load::requests(10_000, 16),
        Load::requests(100_000, 16),
        Load::mixed(3),
        Load::mixed(30),
    ];
    let profiles = profiles_of(&shape, &known);
    let unseen =
        [Load::requests(300, 16), Load::requests(4_000, 16), Load::requests(40_000, 16), Load::mixed(10)];
    for load in unseen {
        for seed in SEEDS {
            let mut run =
                Run::profile(Schedule::Constant(Some(load.clone())), Goal::THROUGHPUT, &profiles, seed);
            let (plan, most, _) = best_fixed(&shape, &load, Goal::THROUGHPUT);
            run.until(5 * S);
            let (rate, _) = run.over(5 * S);
            let name = &load.name;
            assert!(
                rate >= 0.95 * most,
                "seed {seed}, {name}: {rate:.0} of {most:.0} ({plan})\n{}",
                run.why()
            );
        }
    }
}

#[test]
fn profile_finds_out_that_few_clients_take_more_from_a_faster_plan() {
    // They overload nothing on one slow core, since each waits for its answer.
    let shape = Shape::TWO;
    let profiles = profiles_of(&shape, &[Load::bulk_out(), Load::requests(10, 1), Load::requests(10, 16)]);
    let load = Load::requests(10, 2);
    let (plan, most, _) = best_fixed(&shape, &load, Goal::THROUGHPUT);
    for seed in SEEDS {
        let mut run = Run::profile(Schedule::Constant(Some(load.clone())), Goal::THROUGHPUT, &profiles, seed);
        run.until(3 * S);
        let (rate, _) = run.over(5 * S);
        assert!(rate >= 0.95 * most, "seed {seed}: {rate:.0} of {most:.0} ({plan})\n{}", run.why());
        assert!(run.changes() <= 3, "seed {seed}\n{}", run.why());
    }
}

#[test]
fn profile_rests_when_idle_and_is_calm_at_a_constant_load() {
    let profiles = profiles_of(&Shape::TWO, &[Load::bulk_out(), Load::requests(10, 16)]);
    for (load, goal) in [
        (Load::bulk_out(), Goal::THROUGHPUT),
        (Load::requests(500, 16), LEAST_POWER),
        (Load::requests(500, 16).at_rate(20_000.0), LEAST_POWER),
    ] {
        let mut learnt = 0;
        for seed in SEEDS {
            let schedule = Schedule::Steps(vec![(S, Some(load.clone())), (200 * S, None)]);
            let mut run = Run::profile(schedule, goal, &profiles, seed);
            run.until(20 * S);
            let settled = run.changes();
            run.until(200 * S);
            let later = run.changes() - settled;
            assert!(later <= 3, "seed {seed}, {}: {later} changes\n{}", load.name, run.why());
            // A policy that moved components while the load was steady has learnt what that costs.
            let Policy::Profile(policy) = run.policy() else { panic!("not profile") };
            learnt += usize::from(policy.costs().of_move() < Costs::default().of_move().mul_f64(0.9));
            run.until(201 * S);
            assert!(run.plan().is_consolidated(), "seed {seed}\n{}", run.why());
        }
        // To see whether a load of requests follows, most have to move.
        assert_eq!(learnt >= 2, load.name != Load::bulk_out().name, "{}: {learnt} learnt", load.name);
    }
}

#[test]
fn a_node_follows_its_roles_only_if_they_last() {
    let shape = Shape::TWO;
    let profiles = profiles_of(&shape, &[Load::bulk_in(), Load::requests(10, 16)]);
    let changes = |every_ns: u64, seed: u64| {
        let loads = [Some(Load::bulk_in()), Some(Load::requests(10, 16).at_rate(2_000.0))];
        let mut run = Run::profile(Schedule::Flips { loads, every_ns }, LEAST_POWER, &profiles, seed);
        run.until(5 * S);
        let before = run.changes();
        run.until(5 * S + 8 * every_ns);
        (run.changes() - before, run.why())
    };
    for seed in SEEDS {
        let (fast, why) = changes(40 * MS, seed);
        assert!(fast <= 1, "seed {seed}: {fast} changes in 8 short phases\n{why}");
        let (slow, why) = changes(2 * S, seed);
        assert!((4..=16).contains(&slow), "seed {seed}: {slow} changes in 8 long phases\n{why}");
    }
}

/// Prints a sample's cost to the policy on several machines: `cargo test --release … -- --ignored --nocapture`.
/// Runs with one seed are the same sample by sample, so the least of several is the undisturbed cost.
#[test]
#[ignore = "prints figures, proves nothing"]
fn what_a_sample_costs() {
    const TIMES: usize = 5;
    for managed in [2, 16, 64, 256] {
        let shape = Shape { managed, ..Shape::TWO };
        let mut least_us = vec![f64::INFINITY; 2_000];
        for _ in 0..TIMES {
            let schedule = Schedule::Steps(vec![(S, Some(Load::bulk_out()))]);
            let mut world = World::new(&shape, schedule, 1);
            let mut history = History::default();
            let mut scheduler = Scheduler::new(
                PolicyName::Adaptive,
                shape.machine(),
                &components(),
                shape.duty_levels(),
                Settings::default(),
            )
            .unwrap();
            for least in &mut least_us {
                let sample = world.sample_after(PERIOD_NS);
                let begin = std::time::Instant::now();
                let decision = scheduler.decide(&sample, &mut history);
                *least = least.min(begin.elapsed().as_secs_f64() * 1e6);
                world.apply(&decision.plan);
            }
        }
        let mean = least_us.iter().sum::<f64>() / least_us.len() as f64;
        let longest = least_us.iter().copied().fold(0.0, f64::max);
        println!("{managed} CPUs: {mean:.1} us a look, the longest {longest:.0} us");
    }
}
