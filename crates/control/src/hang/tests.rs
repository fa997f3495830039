use super::*;

/// A server at work, that has done nothing since the last sample.
const STILL: Sample = Sample {
    progress: 7,
    ticks: 0,
    cpu: Duration::ZERO,
    holds_tick: false,
    mode: Mode::Awake,
    thread: ThreadState::Runnable,
    stage: Stage::Running,
};

fn cpu(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn who_computes_without_a_step_hangs() {
    let mut w = Watch::default();
    for i in 0..10 {
        assert_eq!(w.observe(Sample { ticks: i, cpu: cpu(i * 10), ..STILL }), None);
    }
    assert_eq!(w.observe(Sample { ticks: 10, cpu: cpu(100), ..STILL }), Some(Hang::Spinning));
    assert_eq!(w.observe(Sample { ticks: 11, progress: 8, ..STILL }), None, "it moved");
}

#[test]
fn who_computes_where_no_tick_can_come_hangs() {
    let mut w = Watch::default();
    let at = |i: u32| Sample { cpu: TICK * i, ..STILL };
    (0..DEAF_SAMPLES).for_each(|i| assert_eq!(w.observe(at(i)), None, "sample {i}"));
    assert_eq!(w.observe(at(DEAF_SAMPLES)), Some(Hang::Spinning));
    // One tick says that the signal comes: then ticks count, and nothing else.
    let mut w = Watch::default();
    assert_eq!(w.observe(STILL), None);
    (1..1000).for_each(|i| assert_eq!(w.observe(Sample { ticks: 1, ..at(i) }), None, "sample {i}"));
}

#[test]
fn who_computes_in_the_handler_of_the_ticks_hangs() {
    for mode in [Mode::Awake, Mode::Descriptor] {
        let mut w = Watch::default();
        let at = |i: u32| Sample { cpu: TICK * i, holds_tick: i > 0, mode, ..STILL };
        (0..HELD_SAMPLES).for_each(|i| assert_eq!(w.observe(at(i)), None, "sample {i}"));
        let last = at(HELD_SAMPLES);
        assert!(w.is_deaf(last.progress, last.ticks, last.cpu));
        assert_eq!(w.observe(last), Some(Hang::Spinning));
        // It has counted the tick before, and some without a step before that.
        let mut w = Watch::default();
        (0..3).for_each(|i| assert_eq!(w.observe(Sample { ticks: i.into(), ..at(i) }), None));
        let at = |i| Sample { ticks: 3, ..at(i) };
        (3..=HELD_SAMPLES + 3).for_each(|i| {
            let hangs = (i == HELD_SAMPLES + 3).then_some(Hang::Spinning);
            assert_eq!(w.observe(at(i)), hangs, "sample {i}");
        });
    }
}

#[test]
fn who_is_interrupted_in_the_handler_of_the_ticks_is_left_alone() {
    let mut w = Watch::default();
    // It gets no CPU there, although the kernel holds a tick for it.
    (0..10_000).for_each(|_| assert_eq!(w.observe(Sample { holds_tick: true, ..STILL }), None));
    // A hypervisor takes the CPU away for half a second nine times out of ten, and each time it goes on.
    for i in 0..100 {
        let sample =
            Sample { cpu: TICK * i, holds_tick: i % HELD_SAMPLES != 0, progress: u64::from(i / 50), ..STILL };
        assert_eq!(w.observe(sample), None, "sample {i}");
    }
    // It has made a step, or takes its ticks.
    let mut w = Watch::default();
    for i in 0..100 {
        let moved = Sample { cpu: TICK * i, holds_tick: true, progress: u64::from(i / 8), ..STILL };
        assert_eq!(w.observe(moved), None, "sample {i}");
    }
    let mut w = Watch::default();
    for i in 0..72 {
        let ticking = Sample { cpu: TICK * i, holds_tick: true, ticks: u64::from(i / 8), ..STILL };
        assert_eq!(w.observe(ticking), None, "sample {i}");
    }
}

#[test]
fn signals_are_looked_for_only_where_numbers_say_nothing() {
    let mut w = Watch::default();
    assert!(!w.is_deaf(STILL.progress, 0, TICK), "nothing is known");
    w.observe(STILL);
    assert!(w.is_deaf(STILL.progress, 0, TICK));
    assert!(!w.is_deaf(STILL.progress, 0, TICK / 2), "it did not compute");
    assert!(!w.is_deaf(STILL.progress, 1, TICK), "it has had a tick");
    assert!(!w.is_deaf(STILL.progress + 1, 0, TICK), "it made a step");
}

#[test]
fn stolen_time_is_nobodys_fault() {
    let mut w = Watch::default();
    // A hypervisor takes the CPU away for a second five times in the middle of one step: its CPU time goes on.
    for i in 0..100 {
        assert_eq!(w.observe(Sample { ticks: i / 20, cpu: cpu(i * 50), ..STILL }), None, "sample {i}");
    }
}

#[test]
fn a_machine_so_slow_that_nothing_moves_kills_nobody() {
    let mut w = Watch::default();
    // Throttled, behind a real-time thread, or on a machine that stands still: no CPU time at all.
    (0..10_000).for_each(|_| assert_eq!(w.observe(STILL), None));
}

#[test]
fn a_parked_or_paused_server_is_left_alone() {
    let mut w = Watch::default();
    for _ in 0..1000 {
        let parked = Sample { mode: Mode::Futex, thread: ThreadState::Sleeping, ..STILL };
        assert_eq!(w.observe(parked), None);
        assert_eq!(w.observe(Sample { thread: ThreadState::Paused, ..STILL }), None);
    }
}

#[test]
fn an_awake_server_that_sleeps_in_the_kernel_hangs() {
    let mut w = Watch::default();
    let asleep = Sample { thread: ThreadState::Sleeping, ..STILL };
    (0..BLOCKED_SAMPLES).for_each(|_| assert_eq!(w.observe(asleep), None));
    assert_eq!(w.observe(asleep), Some(Hang::Blocked));
    assert_eq!(w.observe(Sample { progress: 8, ..asleep }), None, "it moved");
}

#[test]
fn who_spins_with_the_word_that_it_sleeps_hangs() {
    let mut w = Watch::default();
    let sample = Sample { mode: Mode::Futex, ..STILL };
    assert_eq!(w.observe(sample), None);
    assert_eq!(w.observe(Sample { ticks: 10, ..sample }), Some(Hang::Spinning));
}

#[test]
fn a_start_that_does_not_end_is_noticed() {
    let starting = Sample { stage: Stage::Starting, ..STILL };
    let mut w = Watch::default();
    let mut samples = (0..).map(|i| w.observe(Sample { cpu: cpu(i * 50), ..starting }));
    assert_eq!(samples.position(|hang| hang == Some(Hang::Spinning)), Some(START_SAMPLES as usize));
    let mut w = Watch::default();
    let asleep = Sample { thread: ThreadState::Sleeping, mode: Mode::Futex, ..starting };
    let mut samples = (0..).map(|_| w.observe(asleep));
    assert_eq!(samples.position(|hang| hang == Some(Hang::Blocked)), Some(START_SAMPLES as usize));
}

#[test]
fn a_long_start_that_goes_on_is_waited_for() {
    let mut w = Watch::default();
    for i in 0..1000 {
        // Ten thousand sockets are revived, slowly.
        let sample = Sample { stage: Stage::Starting, progress: i / 20, cpu: cpu(i * 50), ..STILL };
        assert_eq!(w.observe(sample), None);
    }
    // And one that the supervisor keeps waiting does not hang.
    let waiting = Sample { stage: Stage::Waiting, thread: ThreadState::Sleeping, ..STILL };
    (0..1000).for_each(|_| assert_eq!(w.observe(waiting), None));
    // One stolen second, or ten, in a start is one sample like any other.
    let starting = Sample { stage: Stage::Starting, cpu: cpu(100_000), ..STILL };
    (0..50).for_each(|_| assert_eq!(w.observe(starting), None));
}
