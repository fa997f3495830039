use super::*;

#[test]
fn intervals_of_the_median_are_those_of_the_tables() {
    let samples = |count: usize| (1..=count).rev().map(|i| i as f64).collect::<Vec<_>>();
    let of = |count| {
        let i = Interval::of(&samples(count));
        (i.low, i.high, (i.coverage * 1000.0).round() / 1000.0)
    };
    // Order statistics after Conover, table A3.
    assert_eq!(of(5), (1.0, 5.0, 0.938));
    assert_eq!(of(6), (1.0, 6.0, 0.969));
    assert_eq!(of(9), (2.0, 8.0, 0.961));
    assert_eq!(of(20), (6.0, 15.0, 0.959));
    assert_eq!(of(1), (1.0, 1.0, 0.0));
    assert_eq!(Interval::of(&[]).coverage, 0.0);
}

#[test]
fn a_verdict_says_how_sure_it_is() {
    let of = |samples: &[f64], aim| Figure::new("", "", samples.to_vec()).aim(aim).verdict();
    assert_eq!(of(&[0.8, 0.9, 0.85], Aim::AtMost(1.0)), "yes");
    assert_eq!(of(&[0.8, 0.9, 1.85], Aim::AtMost(1.0)), "by the median");
    assert_eq!(of(&[0.8, 1.9, 1.85], Aim::AtMost(1.0)), "not by the median");
    assert_eq!(of(&[1.8, 1.9, 1.85], Aim::AtMost(1.0)), "no");
    assert_eq!(of(&[1.8, 1.9, 1.85], Aim::AtLeast(1.0)), "yes");
    assert_eq!(Figure::new("", "", vec![1.0]).verdict(), "-");
    assert_eq!(of(&[], Aim::AtLeast(1.0)), "no");
}

#[test]
fn a_baseline_is_compared_round_by_round() {
    // The machine was twice as fast in one round: the ratio is the same in each.
    let figure = Figure::new("", "", vec![1.0, 2.0, 1.0]).beside("", vec![2.0, 4.0, 2.0]);
    assert_eq!(figure.judged(), [0.5, 0.5, 0.5]);
    assert!(figure.aim(Aim::AtLeast(0.6)).is_missed());
    let none = Figure::new("", "", vec![0.0]).beside("", vec![0.0]).aim(Aim::AtLeast(0.0));
    assert!(none.is_missed(), "no number is no success");
}
