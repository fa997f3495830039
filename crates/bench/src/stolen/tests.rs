use super::*;

#[test]
fn time_is_counted_for_the_cpus_that_are_asked_for() {
    let stat = "cpu  30 0 0 0 0 0 0 12 0 0\ncpu0 10 1 1 1 1 1 1 4 5 5\ncpu1 20 0 0 0 0 0 0 8 0 0\nintr 5\n";
    let of = |cpus: Option<&CpuSet>| (times(stat, cpus).all, times(stat, cpus).stolen);
    assert_eq!(of(None), (48, 12));
    assert_eq!(of(Some(&CpuSet::one(CpuId(0)))), (20, 4));
    assert_eq!((times("nonsense", None).all, times("cpu0 x", None).stolen), (0, 0));
}
