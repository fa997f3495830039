use super::*;

/// The time of two threads for the same work side by side, relative to one alone.
fn together(work: Work) -> (u64, u64) {
    let mut thread = Thread::new(Clock::full(1_000_000));
    let alone = thread.begin(0, work, Pipeline::default());
    let pipeline = thread.pipeline;
    (alone, thread.repace(0, pipeline))
}

#[test]
fn siblings_hide_each_others_waits_and_nothing_else() {
    let (alone, both) = together(Work::cycles(1000));
    assert_eq!(both, 2 * alone);
    let (alone, both) = together(Work { cycles: 500, stall_ps: 500_000 });
    assert_eq!(both * 4, alone * 5);
}

#[test]
fn what_was_done_stays_done_when_the_sibling_changes() {
    let mut thread = Thread::new(Clock::full(1_000_000));
    assert_eq!(thread.begin(0, Work::cycles(1000), Pipeline::default()), 1_000_000);
    assert_eq!(thread.repace(500_000, Pipeline { compute: 1000 }), 1_500_000);
    assert_eq!(thread.repace(1_000_000, Pipeline::default()), 1_250_000);
    thread.rest(1_250_000);
    assert_eq!((thread.busy_ps(2_000_000), thread.is_busy()), (1_250_000, false));
}
