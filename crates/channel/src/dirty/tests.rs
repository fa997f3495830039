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
fn a_limit_starves_no_socket() {
    let d = Dirty::new(Segment::heap(DIRTY_LEN), 0).unwrap();
    let mut from = 0;
    d.mark(8000);
    // The first hundred words' sockets are marked again and again; the last one is taken nevertheless.
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

#[test]
fn marks_of_every_group_are_taken() {
    let d = Dirty::new(Segment::heap(DIRTY_LEN), 0).unwrap();
    let marked: alloc::vec::Vec<_> = (0..GROUPS).map(|g| g * 4096 + 63 * g).collect();
    marked.iter().for_each(|s| d.mark(*s));
    let mut seen = alloc::vec::Vec::new();
    // From the middle of a group: its beginning comes last.
    d.take(usize::MAX, &mut (5 * 64 + 6), |s| seen.push(s));
    assert_eq!(seen.len(), GROUPS);
    assert_eq!(seen.last(), Some(&marked[5]));
    seen.sort_unstable();
    assert_eq!(seen, marked);
    assert!(!d.any());
}

#[test]
fn a_program_that_marks_at_random_does_not_keep_a_scan_busy() {
    let d = Dirty::new(Segment::heap(DIRTY_LEN), 0).unwrap();
    d.top().store(!0, Ordering::Relaxed);
    d.group(9).store(!0, Ordering::Relaxed);
    d.mark(4096 * 20);
    let mut seen = alloc::vec::Vec::new();
    assert_eq!(d.take(10, &mut 0, |s| seen.push(s)), 1);
    assert_eq!(seen, [4096 * 20]);
    assert!(!d.any());
}

#[test]
fn no_mark_is_lost_between_two_threads() {
    let segment = Segment::heap(DIRTY_LEN);
    let d = Dirty::new(segment, 0).unwrap();
    let slots = [0, 1, 64, 4095, 4096, 4160, 262_143];
    let rounds = 20_000;
    let answered = AtomicU64::new(0);
    let began = std::time::Instant::now();
    // A machine with much else to do takes long for all, but never so long for one.
    let progress = AtomicU64::new(0);
    let is_over = || began.elapsed().as_secs() >= progress.load(Ordering::Relaxed) + 60;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The next mark comes when this one was taken.
            for round in 0..rounds {
                d.mark(slots[round % slots.len()]);
                while answered.load(Ordering::Acquire) != round as u64 + 1 && !is_over() {
                    std::thread::yield_now();
                }
            }
        });
        let (mut from, mut taken) = (0, 0);
        while taken < rounds as u64 && !is_over() {
            taken += d.take(usize::MAX, &mut from, |_| {}) as u64;
            if answered.swap(taken, Ordering::AcqRel) != taken {
                progress.store(began.elapsed().as_secs(), Ordering::Relaxed);
            }
            std::thread::yield_now();
        }
        assert_eq!(taken, rounds as u64, "a mark was lost");
    });
}
