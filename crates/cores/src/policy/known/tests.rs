use super::*;

fn load(throughput: f64) -> Measured {
    Measured { throughput: Throughput(throughput), ..Measured::default() }
}

#[test]
fn what_was_best_at_both_ends_is_best_between_them_for_a_time() {
    let (mut known, plan) = (Known::default(), Plan::default());
    known.note(&plan, &load(100.0), Instant(0));
    assert!(
        known.covers(&plan, &load(90.0), 0.25, Instant(1))
            && !known.covers(&plan, &load(60.0), 0.25, Instant(1))
    );
    known.note(&plan, &load(40.0), Instant(1));
    assert!(
        known.covers(&plan, &load(60.0), 0.0, Instant(2))
            && !known.covers(&plan, &load(110.0), 0.0, Instant(2))
    );
    let other = Measured { mix: Mix { size: 0.9, ..Mix::default() }, ..load(60.0) };
    assert!(!known.covers(&plan, &other, 0.0, Instant(2)));
    assert!(!known.covers(&plan, &load(60.0), 0.0, Instant::ZERO + KNOWN_FOR));
    for i in 0..100 {
        let mix = Mix { size: f64::from(i), ..Mix::default() };
        known.note(&plan, &Measured { mix, ..load(1.0) }, Instant(3));
    }
    assert!(known.entries.len() <= ENTRIES_MAX);
}
