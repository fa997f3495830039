use super::*;

#[test]
fn speeds_are_spread_over_the_eighths() {
    assert_eq!(eighths(1), [1.0].map(Share));
    assert_eq!(eighths(2), [0.5, 1.0].map(Share));
    assert_eq!(eighths(3), [0.25, 0.625, 1.0].map(Share));
    assert_eq!(eighths(4), [0.25, 0.5, 0.75, 1.0].map(Share));
    assert_eq!(eighths(99).len(), 8);
    assert!(eighths(5).windows(2).all(|pair| pair[0] < pair[1]));
}
