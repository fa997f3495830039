use super::*;
use proptest::prelude::*;

const PERIOD: Duration = Duration::from_millis(1);

fn duty(share: f64, cost_ns: i64) -> Duty {
    Duty::new(
        DutyOptions { share: Share(share), period: PERIOD, phase: Duration::ZERO, cost: TimeDelta(cost_ns) },
        Instant(12_345),
    )
}

/// Runs a burner that starts and ends late, as `lateness` says; returns the share that was left to others.
fn share_left(mut duty: Duty, lateness: &[u64]) -> f64 {
    let first = duty.next().begin;
    let mut taken = Duration::ZERO;
    for late in lateness {
        let burn = duty.next();
        let late = Duration::from_nanos(*late);
        let started = burn.begin + late / 2;
        let ended = started + burn.length + late;
        taken += ended - started;
        duty.finish(started, ended);
    }
    1.0 - taken.div_duration_f64(duty.next().begin - first)
}

proptest! {
    #[test]
    fn lateness_is_made_good(eighths in 1u32..8, lateness in proptest::collection::vec(0u64..80_000, 1000)) {
        let share = f64::from(eighths) / 8.0;
        let left = share_left(duty(share, 0), &lateness);
        prop_assert!((left - share).abs() < share * 0.05, "asked {share}, left {left}");
    }
}

#[test]
fn a_standstill_of_the_machine_is_not_made_good_at_length() {
    let mut duty = duty(0.5, 0);
    let burn = duty.next();
    duty.finish(burn.begin, burn.begin + 50 * PERIOD);
    let next = duty.next();
    assert!(next.begin > burn.begin + 49 * PERIOD);
    assert!(next.length <= PERIOD);
}

#[test]
fn calibration_moves_toward_the_wish() {
    let options =
        DutyOptions { share: Share(0.5), period: PERIOD, phase: Duration::ZERO, cost: TimeDelta::ZERO };
    assert_eq!(recalibrate(options, Share(0.49)), TimeDelta(10_000));
    assert!(recalibrate(options, Share(0.51)) < TimeDelta::ZERO);
}

#[test]
fn antiphase_spreads_the_stalls() {
    assert_eq!(
        phases(Phase::Antiphase, 2, PERIOD).collect::<alloc::vec::Vec<_>>(),
        [Duration::ZERO, PERIOD / 2]
    );
    assert_eq!(phases(Phase::InPhase, 2, PERIOD).collect::<alloc::vec::Vec<_>>(), [Duration::ZERO; 2]);
}
