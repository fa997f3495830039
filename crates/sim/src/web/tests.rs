use super::*;
use crate::batch::Seat;
use crate::batch::calibrated::Ablation;
use crate::calibration::Calibration;
use crate::hardware::Clock;
use crate::web::calibrated::{Stack, web};

pub fn of(stack: Stack, connections: usize, file: u64) -> Web {
    web(&Calibration::e5520().unwrap(), stack, connections, file, Ablation::default()).unwrap()
}

/// The program, tcp, ip and the driver, each on a core.
pub fn setting(mhz: [u64; 4]) -> Setting {
    let mut core = 0;
    Setting::of(mhz.map(|mhz| {
        core += 1;
        Seat { core, thread: 0, clock: Clock::full(mhz * 1000) }
    }))
}

pub const FULL: [u64; 4] = [2267; 4];

#[test]
fn a_seed_repeats_a_run_to_the_bit_and_another_one_does_not() {
    let web = of(Stack::Newtos, 8, 100_000);
    assert_eq!(run(&web, &setting(FULL), 1), run(&web, &setting(FULL), 1));
    assert_ne!(run(&web, &setting(FULL), 1), run(&web, &setting(FULL), 2));
}

#[test]
fn every_stack_serves_answers_of_every_size_and_connections_come_and_go() {
    for stack in [Stack::Newtos, Stack::Eft, Stack::Kernel] {
        for file in [10, 100_000, 1_000_000, 10_000_000] {
            let web = of(stack, 8, file);
            let outcome = run(&web, &setting(FULL), 1);
            assert!(outcome.stack.kbps > 5_000, "{stack:?} {file}: {outcome:?}");
            let ratio = outcome.connections * web.groups[0].requests * 1000;
            let answers = outcome.answers_milli / 40;
            if file == 10 {
                assert!(ratio * 10 > answers * 9 && ratio * 9 < answers * 10, "{stack:?}: {outcome:?}");
            }
        }
    }
}

#[test]
fn the_slowest_program_is_the_bottleneck_and_never_sleeps() {
    let web = of(Stack::Newtos, 32, 10);
    let slow = run(&web, &setting([200, 2267, 2267, 2267]), 1);
    let faster = run(&web, &setting([400, 2267, 2267, 2267]), 1);
    assert!(slow.stack.busy_ppm[0] > 990_000, "{slow:?}");
    let ratio = faster.answers_milli as f64 / slow.answers_milli as f64;
    assert!((1.8..2.2).contains(&ratio), "{ratio}");
}

#[test]
fn more_connections_bring_more_until_something_is_always_busy() {
    let rate = |connections| run(&of(Stack::Newtos, connections, 10), &setting(FULL), 1);
    let (one, four, many) = (rate(1), rate(4), rate(128));
    assert!(four.answers_milli > 3 * one.answers_milli, "{one:?} {four:?}");
    assert!(many.stack.busy_ppm.iter().any(|busy| *busy > 950_000), "{many:?}");
}
