use super::*;

fn event(us: u64, step: u32, function: Option<&str>) -> StepEvent {
    StepEvent { at: Instant::from_micros(us), cpu: CpuId(1), step, function: function.map(String::from) }
}

#[test]
fn inner_steps_are_not_counted_twice() {
    let events = [
        event(10, 80, Some("takedown_cpu")),
        event(20, 70, Some("sched_cpu_dying")),
        event(50, 70, None),
        event(60, 80, None),
        event(70, 30, None),
    ];
    let steps = pair(&events, Instant::from_micros(5));
    assert_eq!(steps.iter().map(|step| step.duration.as_micros()).collect::<Vec<_>>(), [20, 30]);
    assert_eq!(steps[0].begin, Duration::from_micros(5));
    let groups = by_group(&steps);
    assert_eq!((groups.len(), groups[0].duration), (1, Duration::from_micros(50)));
}

#[test]
fn functions_are_grouped() {
    assert_eq!(group("sched_cpu_deactivate"), StepGroup::GracePeriods);
    assert_eq!(group("page_alloc_cpu_dead"), StepGroup::PerCpuAllocation);
    assert_eq!(group("cacheinfo_cpu_pre_down"), StepGroup::SysfsNodes);
    assert_eq!(group("something_new"), StepGroup::Other);
}
