use super::*;
use crate::indicators::Mix;
use crate::throughput::Throughput;

const S: u64 = 1_000_000_000;
const LOADS: Difference = Difference { mix: false, level: true, by_load: true };
const MACHINES: Difference = Difference { by_load: false, ..LOADS };
const MIX: Difference = Difference { mix: true, ..MACHINES };
const NONE: Difference = Difference { mix: false, level: false, by_load: false };

/// After how many seconds the difference is acted on.
fn believed_after(is: Difference, doublings: u32) -> Option<u64> {
    let mut departure = Departure::default();
    (0..10_000).find(|at| departure.is_over(Instant(at * S), is, doublings))
}

#[test]
fn other_traffic_is_believed_sooner_than_more_of_it_and_that_sooner_than_a_slower_machine() {
    assert_eq!(
        [MIX, LOADS, MACHINES, NONE].map(|is| believed_after(is, 0)),
        [Some(1), Some(5), Some(30), None]
    );
    assert_eq!(
        [MIX, LOADS, MACHINES, NONE].map(|is| believed_after(is, 3)),
        [Some(1), Some(40), Some(240), None]
    );
    let mut departure = Departure::default();
    for at in 1..100 {
        // Differences of a few seconds, with gaps, do not add up.
        assert!(!departure.is_over(Instant(at * S), if at % 5 == 0 { NONE } else { LOADS }, 0), "{at}");
    }
}

#[test]
fn a_level_that_keeps_changing_has_to_stay_longer_each_time_until_it_has_been_calm() {
    let mut restless = Restless::default();
    for times in 0..20 {
        assert_eq!(restless.doublings(Instant(times * S)), (times as u32).min(DOUBLINGS_MAX));
        restless.note(Instant(times * S));
    }
    assert_eq!(restless.doublings(Instant(19 * S) + RESTLESS), 0);
}

#[test]
fn noise_is_no_drift_and_a_twentieth_is() {
    let work = |tcp: f64| Demand::from([("tcp".into(), tcp), ("ip".into(), 1.0 - tcp)]);
    let at = Measured { throughput: Throughput(1000.0), ..Measured::default() };
    let settled = Settled { at, work: work(0.6), since: Instant::ZERO, check_again: Instant::ZERO };
    assert!(!settled.has_drifted(&Measured { throughput: Throughput(960.0), ..at }, &work(0.63)));
    assert!(settled.has_drifted(&Measured { throughput: Throughput(940.0), ..at }, &work(0.6)));
    assert!(settled.has_drifted(&at, &work(0.67)));
    let mix = Mix { empty: 0.06, ..Mix::default() };
    assert!(settled.has_drifted(&Measured { mix, ..at }, &work(0.6)));
}
