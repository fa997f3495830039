use super::*;

const WORK: Work = Work { cycles: 1600, stall_ps: 500_000 };

#[test]
fn frequency_stretches_cycles_and_a_duty_cycle_stretches_everything() {
    assert_eq!(Clock::full(1_600_000).time_ps(WORK), 1_500_000);
    assert_eq!(Clock::full(800_000).time_ps(WORK), 2_500_000);
    let half = Clock::throttled(1_600_000, 4);
    assert_eq!(half.time_ps(WORK), 3_000_000);
    assert_eq!(half.effective_khz(), 800_000);
}

#[test]
fn a_cycle_that_does_more_shortens_computing_and_no_wait() {
    let twice = Clock { per_cycle: 200, ..Clock::full(1_600_000) };
    assert_eq!(twice.time_ps(WORK), 1_000_000);
    let (compute, stall) = twice.instead_of(Clock::full(1_600_000), (1_000, 700));
    assert_eq!((compute, stall), (500, 700));
}
