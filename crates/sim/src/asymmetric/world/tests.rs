//! Tests of runs on the paper's machine.

use super::*;

fn outcome(vms: &[(&str, usize)], fast_cores: usize, way: Way, seed: u64) -> Outcome {
    let calibration = Calibration::read().unwrap();
    run(&Run {
        calibration: &calibration,
        vms,
        fast_cores,
        seed,
        seconds: 10,
        ..Run::of_the_paper(&calibration, way)
    })
    .unwrap()
}

#[test]
fn a_run_repeats_to_the_bit_and_another_seed_differs() {
    let vms = [("freqmine", 4), ("pmake", 4), ("apache", 4), ("x264", 4)];
    let way = Way::Policy(Policy::AmpVm);
    assert_eq!(outcome(&vms, 4, way, 1), outcome(&vms, 4, way, 1));
    assert_ne!(outcome(&vms, 4, way, 1), outcome(&vms, 4, way, 2));
}

#[test]
fn a_fast_core_is_as_much_faster_as_memory_allows() {
    let speed_up = |name: &str| {
        let of = |fast_cores| outcome(&[(name, 1)], fast_cores, Way::Credit, 3).performance[0];
        of(12) * 1000 / of(0)
    };
    let calibration = Calibration::read().unwrap();
    for name in ["hmmer", "soplex", "mcf"] {
        let expected = 2375 - 1375 * calibration.program(name).unwrap().memory / 1000;
        assert!(speed_up(name).abs_diff(expected) < 25, "{name}: {} of {expected}", speed_up(name));
    }
}

#[test]
fn memory_that_is_shared_slows_down() {
    let alone = outcome(&[("mcf", 1)], 12, Way::Credit, 3).performance[0];
    let crowd = outcome(&[("mcf", 1); 12], 12, Way::Credit, 3).performance[0];
    assert!(crowd < alone * 9 / 10, "{crowd} of {alone}");
}

#[test]
fn amp_vm_gives_the_fast_cores_to_the_efficient() {
    let vms = [("freqmine", 4), ("canneal", 8)];
    let fast = |way| {
        let usage = outcome(&vms, 4, way, 5).usage;
        let (fast, all) = usage[0].iter().fold((0, 0), |(f, a), (x, y)| (f + x, a + x + y));
        fast * 100 / all
    };
    let (vm, fair) = (fast(Way::Policy(Policy::AmpVm)), fast(Way::Policy(Policy::AmpFair(100))));
    assert!(vm > 55 && fair + 15 < vm, "{vm}% and {fair}%");
}
