use super::*;

#[test]
fn a_slower_machine_is_told_from_a_smaller_load() {
    // Bytes a second and the busiest CPU's share, as seen live on one plan within seconds.
    let level = |(throughput, busy)| Level { throughput: Throughput(throughput), busy };
    let is_the_loads = |was, now| is_the_loads(level(was), level(now));
    let (fast, slow) = ((6500.0, 0.64), (3700.0, 0.74));
    assert!(!is_the_loads(fast, slow) && !is_the_loads(slow, fast));
    // Others took a CPU half of the time; by the clock, the stack is as busy as before.
    assert!(!is_the_loads((6500.0, 0.64), (3300.0, 0.63)));
    for (was, now) in [((6500.0, 0.64), (3250.0, 0.4)), ((100.0, 0.05), (1e6, 0.5)), ((5.0, 0.3), (0.0, 0.0))]
    {
        assert!(is_the_loads(was, now) && is_the_loads(now, was), "{was:?} {now:?}");
    }
}

#[test]
fn what_is_missing_while_a_change_settles_is_counted_as_lost_time() {
    let mut meter = Meter::default();
    meter.restart();
    let readings = [20.0, 60.0, 110.0, 90.0, 1.0, 1.0].map(Throughput);
    for throughput in readings {
        meter.add(Reading { period: Duration::from_millis(10), throughput, ..Reading::default() });
    }
    // 80% and 40% of two samples; the next two are above and below by the same amount.
    assert!((meter.missing(Throughput(100.0)).as_secs_f64() - 12e-3).abs() < 1e-9);
    assert_eq!(meter.missing(Throughput(10.0)), Duration::ZERO);
    meter.restart();
    assert_eq!(meter.missing(Throughput(100.0)), Duration::ZERO);
}
