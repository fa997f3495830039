use super::*;

#[test]
fn the_newest_verdict_on_a_mix_counts_until_it_is_old() {
    let mix = |size| Mix { size, ..Mix::default() };
    let mut verdicts = Verdicts::default();
    verdicts.note(Instant(0), mix(0.5), Follows::No);
    verdicts.note(Instant(1), mix(0.52), Follows::Yes);
    verdicts.note(Instant(1), mix(0.9), Follows::No);
    assert_eq!(verdicts.recall(Instant(2), &mix(0.5)), Follows::Yes);
    assert_eq!(verdicts.recall(Instant(2), &mix(0.92)), Follows::No);
    assert_eq!(verdicts.recall(Instant(2), &mix(0.7)), Follows::Unknown);
    assert_eq!(verdicts.recall(Instant(2) + VERDICT, &mix(0.5)), Follows::Unknown);
    for size in 0..100 {
        verdicts.note(Instant(2), mix(f64::from(size)), Follows::No);
    }
    assert_eq!(verdicts.0.len(), VERDICTS_MAX);
}
