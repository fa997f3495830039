use super::*;
use eft_cores::plan::Seat;
use eft_machine::Share;

fn slice(speed: f64, work: f64) -> Slice {
    let seats = [("tcp".to_string(), Seat { cpu: CpuId(0), dedicated: false })].into();
    let plan = Plan { seats, speeds: [(CpuId(0), Share(speed))].into(), ..Plan::default() };
    Slice { seconds: 2.0, plan, cpu_s: vec![("tcp".into(), work)] }
}

#[test]
fn slowness_saves_what_switches_and_not_what_leaks() {
    let c = Constants::MIDDLE;
    let of = |speed, work| energy_j(&slice(speed, work), &[CpuId(0), CpuId(1)], &c);
    // Idle: two sleeping cores and what they share.
    assert!((of(1.0, 0.0) - 2.0 * (0.1 + 0.1 + 5.0)).abs() < 1e-9);
    // Busy at full speed, and at half: as long awake, half the instructions.
    assert!((of(1.0, 2.0) - 2.0 * (2.0 + 6.0 + 0.1 + 5.0)).abs() < 1e-9);
    assert!((of(0.5, 1.0) - 2.0 * (2.0 + 3.0 + 0.1 + 5.0)).abs() < 1e-9);
    // The same work at half the speed costs more than at full speed and then to sleep.
    assert!(of(0.5, 0.5) > of(1.0, 0.5));
}

#[test]
fn no_part_of_a_load_hides_behind_another() {
    assert!((relative(&[2.0, 2.0], &[1.0, 1.0]) - 2.0).abs() < 1e-9);
    assert!((relative(&[4.0, 0.25], &[1.0, 1.0]) - 1.0).abs() < 1e-9);
    assert!(relative(&[100.0, 0.0], &[1.0, 1.0]) < 0.01);
}

#[test]
fn the_goal_ranks() {
    let tried = [(100.0, 30.0), (96.0, 20.0), (94.0, 10.0), (97.0, 25.0)];
    assert_eq!(ranked(&tried, Goal::Throughput), [0, 3, 1, 2]);
    assert_eq!(ranked(&tried, Goal::Power { floor: 0.95 }), [1, 3, 0, 2]);
}
