use super::*;
use eft_base::Random;

/// Stretches of three kinds with these costs, some percent off.
fn made(costs: [f64; 3], percent: u64, seed: u64) -> Vec<Stretch> {
    let mut random = Random::new(seed);
    (0..60)
        .map(|_| {
            let counts: Vec<f64> = (0..3).map(|_| random.below(100) as f64).collect();
            let off = 1.0 + (random.below(2 * percent + 1) as f64 - percent as f64) / 100.0;
            Stretch { cost: total(&counts, &costs) * off, counts }
        })
        .filter(|s| s.cost > 0.0)
        .collect()
}

#[test]
fn costs_that_made_the_stretches_are_found() {
    let found = costs(&made([1000.0, 20.0, 0.0], 0, 1));
    for (found, made) in found.iter().zip([1000.0, 20.0, 0.0]) {
        assert!((found - made).abs() < 1e-3 * (1.0 + made), "{found} for {made}");
    }
}

#[test]
fn stretches_that_are_some_percent_off_give_about_the_same() {
    let stretches = made([1000.0, 400.0, 50.0], 5, 2);
    let found = costs(&stretches);
    for (found, made) in found.iter().zip([1000.0, 400.0, 50.0]) {
        assert!((found - made).abs() < 0.2 * made, "{found} for {made}");
    }
    assert!(error(&stretches, &found) < 0.05);
}

#[test]
fn no_cost_is_below_zero_and_what_never_occurs_costs_nothing() {
    let stretches = vec![
        Stretch { counts: vec![1.0, 5.0, 0.0], cost: 100.0 },
        Stretch { counts: vec![2.0, 0.0, 0.0], cost: 200.0 },
    ];
    let found = costs(&stretches);
    assert!(found.iter().all(|cost| *cost >= 0.0), "{found:?}");
    assert_eq!(found[2], 0.0);
    assert_eq!(costs(&[]), Vec::<f64>::new());
}

#[test]
fn a_range_has_what_the_groups_say_without_each_other() {
    let groups = [made([100.0, 10.0, 1.0], 0, 3), made([200.0, 10.0, 1.0], 0, 4)];
    let ranges = ranges(&groups);
    assert!((ranges[0].0 - 100.0).abs() < 1.0 && (ranges[0].1 - 200.0).abs() < 1.0, "{ranges:?}");
    assert!((ranges[1].0 - 10.0).abs() < 0.5 && (ranges[1].1 - 10.0).abs() < 0.5, "{ranges:?}");
}

#[test]
fn one_group_alone_has_costs_without_a_range() {
    let group = made([100.0, 10.0, 1.0], 0, 5);
    let both = super::ranges(std::slice::from_ref(&group)).into_iter().zip(costs(&group));
    assert_eq!(both.filter(|((low, high), cost)| low == high && low == cost).count(), 3);
}
