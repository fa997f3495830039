use super::*;

#[test]
fn what_a_figure_came_from_is_found_again() {
    let calibration = Calibration::read().unwrap();
    let extent = Extent { placements: 1, seconds: 5, seed: 1, every_point: false, threads: 1 };
    let known = runs::of_mix(&calibration, "8M-4L", "all-fast", "mean", extent).unwrap();
    let point = Point { target: known, ..POINTS[2] };
    let mut astray = calibration.clone();
    for (program, memory) in [("GemsFDTD", 295), ("soplex", 360), ("libquantum", 236)] {
        astray.set(program, "memory", memory);
    }
    let found = halve(&astray, &point, extent).unwrap();
    let share = |c: &Calibration, program| c.program(program).unwrap().memory;
    for program in ["GemsFDTD", "soplex"] {
        assert!(share(&found, program).abs_diff(share(&calibration, program)) <= 40, "{program}");
    }
}
