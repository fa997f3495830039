use super::*;

#[test]
fn what_is_dear_is_read_seldom() {
    let period = |us| times_period(Duration::from_micros(us));
    assert_eq!(period(8), TIMES_PERIOD_MIN);
    assert_eq!(period(50), Duration::from_millis(50));
    assert_eq!(period(4000), TIMES_PERIOD_MAX);
}

#[test]
fn times_do_not_go_back_when_a_burner_is_noticed_late() {
    let mut cpu = CpuSample::default();
    let mut after = |busy, idle, stolen| {
        account(&mut cpu, Ticks { busy, idle, stolen });
        [cpu.busy, cpu.idle, cpu.stolen].map(|length| nanos(length) / nanos(TICK))
    };
    assert_eq!(after(100, 50, 7), [100, 50, 7]);
    // 12 of the 14 ticks since were a burner's; the last sample did not know 6 of them.
    assert_eq!(after(94, 49, 6), [100, 50, 7]);
    assert_eq!(after(103, 58, 9), [103, 58, 9]);
}

#[test]
fn a_line_of_proc_stat() {
    assert_eq!(times("cpu3 1 2 3 4 5 6 7 8 9 10"), Some((CpuId(3), Ticks { busy: 19, idle: 9, stolen: 8 })));
    assert_eq!(times("cpu3 1 2"), Some((CpuId(3), Ticks { busy: 3, idle: 0, stolen: 0 })));
    assert_eq!(times("cpu 1 2 3"), None);
    assert_eq!(times("cpux 1"), None);
    assert_eq!(times("intr 4"), None);
}
