use super::*;

#[test]
fn median_and_spread() {
    let mut samples = Samples { samples: vec![5.0, 1.0, 3.0, 100.0], ..Samples::default() };
    samples.summarise();
    assert_eq!((samples.median, samples.low, samples.high, samples.spread), (4.0, 1.0, 100.0, 2.0));
    let mut none = Samples::default();
    none.summarise();
    assert_eq!((none.median, none.high), (0.0, 0.0));
}
