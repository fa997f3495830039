use super::*;

/// Whole samples in so many periods of a load.
fn samples(
    attention: &mut Attention,
    at: &mut (u64, QuickSample),
    periods: u32,
    load: (u64, u64, u64),
) -> u32 {
    let mut samples = 0;
    for _ in 0..periods {
        at.0 += 10_000_000;
        at.1.beats += load.0;
        at.1.moved += load.1;
        at.1.distress += load.2;
        samples += u32::from(attention.pay(at.1, Instant(at.0), true, 6).sample);
    }
    samples
}

#[test]
fn a_settled_load_is_sampled_seldom_and_a_change_at_once() {
    let (mut attention, mut at) = (Attention::default(), (0, QuickSample::default()));
    samples(&mut attention, &mut at, 200, (1000, 1_000_000, 0));
    let calm = samples(&mut attention, &mut at, 100, (1000, 1_000_000, 0));
    assert_eq!(calm, 20);
    // An overload is seen in the period in which it arises.
    assert_eq!(samples(&mut attention, &mut at, 3, (1000, 1_000_000, 1)), 3);
    samples(&mut attention, &mut at, 100, (1000, 1_000_000, 0));
    // A load that ends or doubles is noticed within two.
    assert!(samples(&mut attention, &mut at, 4, (1000, 2_000_000, 0)) >= 3);
}

#[test]
fn a_load_that_always_fills_its_queues_is_no_change_and_rest_is_watched() {
    let (mut attention, mut at) = (Attention::default(), (0, QuickSample::default()));
    samples(&mut attention, &mut at, 300, (1000, 1_000_000, 3));
    assert_eq!(samples(&mut attention, &mut at, 100, (1000, 1_000_000, 3)), 20);
    samples(&mut attention, &mut at, 200, (0, 0, 0));
    assert_eq!(samples(&mut attention, &mut at, 80, (0, 0, 0)), 10);
    assert_eq!(samples(&mut attention, &mut at, 1, (1000, 1_000_000, 0)), 1);
}
