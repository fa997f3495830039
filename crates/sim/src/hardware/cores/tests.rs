use super::*;
use crate::hardware::Work;

const CHIP: Chip = Chip { lowest: (1_000_000, 20_000), highest: (2_000_000, 55_000), cores: 4 };

/// Clocks of 100 MHz to 800 MHz, times `by`, and as many milliwatts.
fn class(name: &'static str, cores: u64, by: u64, per_cycle: u64) -> Class {
    let point = |number: u64| Point { khz: number * by * 100_000, milliwatts: number * by * 100 };
    let clocks = [1, 2, 3, 4, 5, 6, 7, 8].map(point);
    let is_cluster = name == "little";
    Class {
        name,
        cores,
        speeds: Speeds::Clocks(clocks),
        per_cycle,
        static_mw: 10 * by,
        is_cluster,
        capacity: None,
    }
}

fn two_classes() -> Cores {
    Cores::of(vec![class("big", 2, 2, 200), class("little", 3, 1, 50)]).unwrap()
}

#[test]
fn equal_cores_have_the_chips_power_and_its_clock_in_eighths() {
    let cores = Cores::equal(CHIP);
    assert_eq!((cores.count(), cores.static_mw()), (4, CHIP.static_mw()));
    let half = cores.clock(3, 4);
    assert_eq!(half, Clock::throttled(2_000_000, 4));
    assert_eq!(cores.core_mw(3, half, 500_000), CHIP.core_mw(half, 500_000));
    assert_eq!((cores.share(3, 4), cores.speed(3, 0.5), cores.speed(3, 0.01)), (0.5, 4, 1));
    assert_eq!((cores.name(3), cores.clocked_with(3)), ("3".into(), 3..=3));
}

#[test]
fn cores_have_the_clocks_the_work_and_the_power_of_their_class() {
    let cores = two_classes();
    let numbers = [0, 1].map(|class| cores.numbers(class));
    assert_eq!((numbers, cores.count()), ([1..=2, 3..=5], 5));
    let (big, little) = (cores.clock(2, SPEEDS), cores.clock(3, SPEEDS));
    assert_eq!((big.khz, little.khz), (1_600_000, 800_000));
    // Twice the clock, and four times the work of a cycle. A wait for memory is as long.
    let (cycles, wait) = (Work::cycles(1600), Work { cycles: 0, stall_ps: 7 });
    assert_eq!((big.time_ps(cycles), little.time_ps(cycles)), (500_000, 4_000_000));
    assert_eq!((big.time_ps(wait), little.time_ps(wait)), (7, 7));
    assert_eq!(cores.core_mw(2, big, 1_000_000), 1600);
    assert_eq!(cores.core_mw(3, cores.clock(3, 2), 500_000), 100);
    assert_eq!(cores.static_mw(), 30);
}

#[test]
fn a_share_of_full_speed_is_of_the_cores_own() {
    let cores = two_classes();
    for core in 1..=5 {
        assert_eq!(cores.share(core, SPEEDS), 1.0);
        (1..=SPEEDS).for_each(|speed| assert_eq!(cores.speed(core, cores.share(core, speed)), speed));
    }
}

#[test]
fn a_cluster_has_one_clock() {
    let cores = two_classes();
    assert_eq!((cores.clocked_with(1), cores.clocked_with(4)), (1..=1, 3..=5));
    assert_eq!((cores.name(1), cores.name(4)), ("big1".into(), "little4".into()));
}
