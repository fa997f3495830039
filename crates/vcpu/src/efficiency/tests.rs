use super::*;
use crate::host::tests::host;

const THRESHOLD: Ppm = Ppm::from_percent(15);

fn count(class: u8, ipc: f64) -> Count {
    Count { class, sibling_busy: false, instructions: (ipc * 1e9) as u64, cycles: 1_000_000_000 }
}

#[test]
fn a_change_counts_if_it_is_small_or_stays() {
    let mut filter = Filter::default();
    let offer = |filter: &mut Filter, new| {
        filter.offer(Ppm(new), THRESHOLD);
        filter.value().unwrap().0
    };
    assert_eq!(offer(&mut filter, 1_000_000), 1_000_000);
    assert_eq!(offer(&mut filter, 1_150_000), 1_150_000, "15% is within");
    assert_eq!(offer(&mut filter, 500_000), 1_150_000, "once is not enough");
    assert_eq!(offer(&mut filter, 2_000_000), 1_150_000, "another change begins anew");
    assert_eq!(offer(&mut filter, 2_100_000), 2_100_000, "the second interval of it");
    assert_eq!(offer(&mut filter, 100), 2_100_000);
    assert_eq!(offer(&mut filter, 2_000_000), 2_000_000, "back again: the outlier is forgotten");
    assert_eq!(offer(&mut filter, 100), 2_000_000);
}

#[test]
fn the_other_type_is_predicted_from_what_others_show() {
    let host = host(2, 2, 0.5);
    let mut ratios = Ratios::described(&host);
    let efficiency = |counts: &[Count]| {
        let mut e = Efficiency::new(&host);
        e.window(counts, THRESHOLD);
        e
    };
    let (both, slow_only) = (efficiency(&[count(0, 2.0), count(1, 1.0)]), efficiency(&[count(1, 0.7)]));
    assert_eq!(slow_only.alone(0, &ratios), Some(Ppm(700_000)), "nothing is known yet");
    ratios.learn(&host, [&both, &slow_only].into_iter());
    assert_eq!(slow_only.alone(0, &ratios), Some(Ppm(1_400_000)));
    assert_eq!(slow_only.raw(), Some(Ppm(700_000)));
    assert_eq!(both.alone(0, &ratios), Some(Ppm(2_000_000)), "what is measured is not predicted");
    assert_eq!(Efficiency::new(&host).alone(0, &ratios), None);
}

#[test]
fn a_busy_sibling_is_taken_out() {
    let host = host(2, 2, 0.5);
    let mut shared = Efficiency::new(&host);
    shared.window(&[Count { sibling_busy: true, ..count(0, 0.6) }], THRESHOLD);
    assert_eq!(shared.alone(0, &Ratios::described(&host)), Some(Ppm(1_000_000)));
    assert_eq!(shared.raw(), Some(Ppm(600_000)));
    assert_eq!(shared.on(0, true, &Ratios::described(&host)), Some(Ppm(600_000)));
    let mut alone = Efficiency::new(&host);
    alone.window(&[count(0, 2.0)], THRESHOLD);
    assert_eq!(alone.on(0, true, &Ratios::described(&host)), Some(Ppm(1_200_000)), "predicted from alone");
}

#[test]
fn mad_counters_do_no_harm() {
    let host = host(1, 1, 0.5);
    let mut e = Efficiency::new(&host);
    let mad = |class, instructions, cycles| Count { class, sibling_busy: true, instructions, cycles };
    e.window(&[mad(0, u64::MAX, CYCLES_MIN), mad(1, 5, u64::MAX), mad(99, 1, u64::MAX)], THRESHOLD);
    let mut ratios = Ratios::described(&host);
    ratios.learn(&host, [&e].into_iter());
    assert!(e.alone(0, &ratios).is_some_and(|ipc| ipc.0 < u64::MAX / PPM));
}
