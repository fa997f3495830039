use super::*;

#[test]
fn a_stack_belongs_to_the_event_before_it() {
    let text = "  a-5  [000] d..2. 1.000002: <stack trace>\n => __schedule\n => schedule\n  a-5  [000] d..2. 1.000003: sched_waking: comm=a pid=7 prio=98\n => lost\n";
    let events = parse_all(text);
    assert_eq!((events.len(), events[0].name.as_str(), events[0].pid), (2, STACK, 5));
    assert_eq!(events[0].fields.split_whitespace().collect::<Vec<_>>(), ["__schedule", "schedule"]);
}

#[test]
fn names_with_blanks_and_brackets_do_not_confuse() {
    let line = " Web [7] x-y-812     [001] d..2.  1032.000417: sched_switch: prev_comm=a next_pid=5 prev_pid=8 ==> next_comm=b next_pid=31 next_prio=120";
    let event = parse(line).unwrap();
    assert_eq!(
        (event.at.as_micros(), event.cpu, event.pid, event.name.as_str()),
        (1_032_000_417, CpuId(1), 812, "sched_switch")
    );
    assert_eq!(field(&event.fields, "next_pid="), Some("31"));
    let cpuhp =
        parse("   bash-9   [000] .....  3.000001: cpuhp_enter: cpu: 0001 target: 140 step: 232 (sched_cpu_deactivate)").unwrap();
    assert_eq!(field(&cpuhp.fields, "step:"), Some("232"));
    for text in ["", "# tracer", "a-1 [0", "a [x] y", "CPU:1 [LOST 5 EVENTS]"] {
        assert!(parse(text).is_none());
    }
}
