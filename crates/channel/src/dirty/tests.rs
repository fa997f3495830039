use super::*;

#[test]
fn marks_are_taken_once() {
    let d = Dirty::new(Segment::heap(DIRTY_LEN), 0).unwrap();
    for s in [0, 63, 64, 4095, 4096, 8191] {
        d.mark(s);
        d.mark(s);
    }
    d.mark(DIRTY_SLOTS);
    let mut seen = alloc::vec::Vec::new();
    assert_eq!(d.take(usize::MAX, &mut 0, |s| seen.push(s)), 6);
    assert_eq!(seen, [0, 63, 64, 4095, 4096, 8191]);
    assert!(!d.any());
    d.take(usize::MAX, &mut 0, |_| panic!("taken twice"));
}

#[test]
fn a_limit_starves_nobody() {
    let d = Dirty::new(Segment::heap(DIRTY_LEN), 0).unwrap();
    let mut from = 0;
    d.mark(8000);
    // The first hundred words' sockets are marked again and again; the last one has its turn nevertheless.
    for turn in 0.. {
        (0..100).for_each(|w| d.mark(w * 64));
        let mut last = false;
        assert!(d.take(10, &mut from, |s| last |= s == 8000) <= 10);
        if last {
            break;
        }
        assert!(turn < 12, "it waits for ever");
    }
    let mut rest = 0;
    while d.any() {
        rest += d.take(10, &mut from, |_| {});
    }
    assert!(rest > 0);
}
