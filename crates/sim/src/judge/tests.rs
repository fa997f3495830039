use super::*;

#[test]
fn rules_hold_where_they_should() {
    assert!(Rule::Near(10.0).holds(11.4) && !Rule::Near(10.0).holds(11.6) && Rule::Near(10.0).holds(8.5));
    assert!(Rule::AtMost(1.0).holds(1.0) && !Rule::AtLeast(1.0).holds(0.99));
    assert_eq!(Rule::AtMost(1.0).deviation(0.5), 0.0);
    assert!((Rule::Near(10.0).deviation(11.0) - 10.0).abs() < 1e-9);
}

#[test]
fn verdicts_follow_the_draws_and_what_is_absent_is_missed() {
    let claim = claim("x", "x", Rule::AtLeast(1.0), |f| f.get("a").copied());
    let of = |value: f64| Figures::from([("a".to_string(), value)]);
    let draws = |good: usize| (0..10).map(|i| of(if i < good { 2.0 } else { 0.0 })).collect::<Vec<_>>();
    assert_eq!(claim.verdict(&of(1.0), &draws(9)).0, Verdict::Reproduced);
    assert_eq!(claim.verdict(&of(1.0), &draws(8)).0, Verdict::Fragile);
    assert_eq!(claim.verdict(&of(0.5), &draws(10)).0, Verdict::Missed);
    assert_eq!(claim.verdict(&Figures::new(), &[]).0, Verdict::Missed);
}
