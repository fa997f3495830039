use super::*;
use crate::hardware::cores::SPEEDS;
use crate::timed::bulk::Bulk;

fn experiment(settle_ms: u64, measured_ms: u64) -> Experiment {
    Experiment::new(&Calibration::e5520().unwrap(), None, 1, (Load::Bulk, true), (settle_ms, measured_ms))
        .unwrap()
}

/// Two servers on one core; at an eighth of the clock they carry less than the wire.
const TWO_CORES: Placement = Placement { core_of: [1, 1, 2], speed: [SPEEDS; PLACED.len()] };
const TWO_SLOW_CORES: Placement = Placement { speed: [1; PLACED.len()], ..TWO_CORES };
const SPREAD_SLOW: Placement = Placement { speed: [1; PLACED.len()], ..Placement::SPREAD };

/// A world under one placement, which another one replaces in mid-run.
struct Changing<'a> {
    experiment: &'a Experiment,
    world: World<'a, Bulk>,
    meter: Meter,
    force: InForce,
}

impl<'a> Changing<'a> {
    fn new(experiment: &'a Experiment, placement: Placement) -> Self {
        let plan = placement.plan(experiment.cores());
        let Job::Bulk(profile) = &experiment.job else { unreachable!("it is asked for") };
        let world = bulk::world(profile, &experiment.setting(&plan), experiment.seed);
        let world = experiment.with_cores(world, &plan);
        let force = InForce { plan, moves: 0, clock_changes: 0 };
        Self { experiment, world, meter: Meter::new(experiment.cores().clone()), force }
    }

    fn change(&mut self, placement: Placement) {
        let (clocks, plan) = (&self.experiment.clocks, placement.plan(self.experiment.cores()));
        self.force.change(&mut self.world, &mut self.meter, clocks, &plan);
    }

    fn pass(&mut self, ms: u64) {
        let until_ps = self.world.machine.now_ps + ms * PS_PER_MS;
        self.world.advance(until_ps);
    }

    fn kbps(&mut self, ms: u64) -> u64 {
        let before = parts(&self.world)[0];
        self.pass(ms);
        (parts(&self.world)[0] - before) * 8 / ms
    }
}

fn is_near(one: u64, other: u64, percent: u64) -> bool {
    one.abs_diff(other) * 100 <= other * percent
}

/// What a placement carries that was always there.
fn fixed_kbps(experiment: &Experiment, placement: Placement) -> u64 {
    let mut fixed = Changing::new(experiment, placement);
    fixed.pass(50);
    fixed.kbps(400)
}

/// What `one` carries, then `other` after it, and `one` again.
fn there_and_back(experiment: &Experiment, one: Placement, other: Placement) -> ([u64; 3], InForce) {
    let mut changing = Changing::new(experiment, one);
    changing.pass(50);
    let before = changing.kbps(100);
    let [there, back] = [other, one].map(|placement| {
        changing.change(placement);
        changing.pass(50);
        changing.kbps(400)
    });
    ([before, there, back], changing.force)
}

#[test]
fn a_plan_that_slows_a_core_in_mid_run_lowers_the_rate_as_the_same_fixed_clock_does() {
    let experiment = experiment(0, 0);
    let ([fast, slowed, again], force) = there_and_back(&experiment, TWO_CORES, TWO_SLOW_CORES);
    let fixed = fixed_kbps(&experiment, TWO_SLOW_CORES);
    assert!(slowed * 10 < fast * 8, "{slowed} after {fast}");
    assert!(is_near(slowed, fixed, 4), "{slowed} instead of {fixed}");
    assert!(is_near(again, fast, 2), "{again} instead of {fast}");
    assert_eq!((force.moves, force.clock_changes), (0, 4));
}

#[test]
fn a_clock_changes_when_the_machine_has_done_it() {
    let mut experiment = experiment(0, 0);
    experiment.clocks.transition_ps = 3 * PS_PER_MS;
    let mut changing = Changing::new(&experiment, Placement::SPREAD);
    changing.pass(20);
    changing.change(Placement { speed: [2, SPEEDS, 3], ..Placement::SPREAD });
    assert_eq!(changing.world.machine.now_ps, 23 * PS_PER_MS, "both at the same time");
    assert_eq!(changing.world.machine.clock_of(1).unwrap().duty, 2);
}

#[test]
fn servers_that_come_together_and_go_apart_in_mid_run_carry_what_they_do_fixed() {
    let experiment = experiment(0, 0);
    let ([apart, together, again], force) = there_and_back(&experiment, SPREAD_SLOW, TWO_SLOW_CORES);
    let fixed = fixed_kbps(&experiment, TWO_SLOW_CORES);
    assert!(together * 10 < apart * 8, "{together} after {apart}");
    assert!(is_near(together, fixed, 4), "{together} instead of {fixed}");
    assert!(is_near(again, apart, 2), "{again} instead of {apart}");
    assert_eq!(force.moves, 4, "tcp stayed where it was");
}

#[test]
fn no_byte_is_lost_or_changed_while_servers_move_every_millisecond() {
    let experiment = experiment(0, 0);
    let mut changing = Changing::new(&experiment, Placement::SPREAD);
    changing.world.rest.load.programs.with_content = true;
    changing.world.rest.load.peer.compares = true;
    let mut random = Random::new(7);
    let before = parts(&changing.world)[0];
    let read = |world: &World<Bulk>| world.rest.load.peer.read_bytes();
    for _ in 0..200 {
        changing.pass(1);
        let core_of = [(); 3].map(|()| 1 + random.below(4) as usize);
        let of_core = [(); 4].map(|()| 1 + random.below(SPEEDS));
        let speed = core_of.map(|core| of_core[core - 1]);
        changing.change(Placement { core_of, speed });
    }
    let (delivered, rest) = (parts(&changing.world)[0] - before, &changing.world.rest);
    assert!(changing.force.moves > 300, "{}", changing.force.moves);
    assert!(delivered > 10_000_000, "{delivered}");
    assert!(read(&changing.world) >= delivered, "acknowledged and not read");
    assert_eq!(rest.load.peer.wrong_bytes, 0);
}

#[test]
fn a_policy_gets_sound_samples_and_two_runs_are_equal() {
    let experiment = experiment(100, 200);
    let one = experiment.run(Way::Adaptive).unwrap();
    assert!(one.rates.total() > 0 && one.milliwatts > 34_000 / 4, "{one:?}");
    assert!(one.moves > 0, "{one:?}");
    let unusable = one.decisions.iter().filter(|line| line.contains("went back") || line.contains("absurd"));
    assert_eq!(unusable.count(), 0, "{:#?}", one.decisions);
    assert_eq!(one, experiment.run(Way::Adaptive).unwrap());
    assert!(experiment.run(Way::Random).unwrap().moves > 0);
}

#[test]
fn power_falls_with_the_clock_and_is_the_chips() {
    let experiment = experiment(50, 100);
    let of =
        |speed| experiment.run(Way::Fixed(Placement { speed: [speed; 3], ..Placement::SPREAD })).unwrap();
    let (slow, fast) = (of(2).milliwatts, of(SPEEDS).milliwatts);
    let chip = Calibration::e5520().unwrap().chip().unwrap();
    assert!(chip.static_mw() < slow && slow < fast && fast < chip.highest.1, "{slow} {fast}");
}

#[test]
fn a_web_server_goes_on_while_its_stack_changes_and_two_runs_are_equal() {
    let load = (Load::Web { file_bytes: 1_000, clients: 8 }, true);
    let calibration = Calibration::e5520().unwrap();
    let experiment = Experiment::new(&calibration, None, 1, load, (100, 100)).unwrap();
    let fixed = experiment.run(Way::Fixed(Placement::SPREAD)).unwrap();
    let one = experiment.run(Way::Adaptive).unwrap();
    assert!(one.moves > 0 && one.rates.total() * 4 > fixed.rates.total(), "{one:?} beside {fixed:?}");
    assert_eq!(one, experiment.run(Way::Adaptive).unwrap());
}

#[test]
fn a_machine_of_two_classes_runs_and_its_little_cores_carry_less_for_less_power() {
    let machine = Calibration::exynos_5422().unwrap();
    let experiment = Experiment::new(&machine, None, 1, (Load::Bulk, false), (50, 150)).unwrap();
    let on = |core_of| experiment.run(Way::Fixed(Placement { core_of, ..Placement::SPREAD })).unwrap();
    let (big, little) = (on([1, 2, 3]), on([5, 6, 7]));
    assert!(little.rates.total() * 2 < big.rates.total(), "{little:?} beside {big:?}");
    assert!(little.milliwatts * 2 < big.milliwatts, "{little:?} beside {big:?}");

    let one = experiment.run(Way::Adaptive).unwrap();
    assert!(one.rates.total() > 0 && one.moves > 0, "{one:?}");
    assert_eq!(one, experiment.run(Way::Adaptive).unwrap());
    let placement = Placement::of(&one.plan, experiment.cores()).unwrap();
    assert!(placement.is_possible(experiment.cores()), "{placement:?}");
}
