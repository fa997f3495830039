use super::*;

fn plan(count: u64, most: u64) -> Plan {
    let (components, kinds) = (vec!["tcp".into()], vec![Kind::Kill, Kind::FlipHeap]);
    Plan { seed: 1, count, most, components, kinds }
}

fn trials(kind: Kind, died: &[bool]) -> Vec<Trial> {
    let trial = |died: &bool| Trial { died: *died, ..Trial::new("tcp", kind, 1, 16) };
    died.iter().map(trial).collect()
}

#[test]
fn faults_are_repeated_until_enough_of_them_had_an_effect() {
    let plan = plan(2, 4);
    assert!(plan.goes_on(&[]));
    assert!(plan.goes_on(&trials(Kind::FlipHeap, &[true, false])));
    assert!(!plan.goes_on(&trials(Kind::FlipHeap, &[true, false, true])));
    assert!(!plan.goes_on(&trials(Kind::FlipHeap, &[true, false, false, false])), "there is an end");
}

#[test]
fn a_fault_that_found_nothing_to_break_is_not_effective() {
    let mut all = trials(Kind::Kill, &[true, true]);
    all[0].struck = false;
    assert!(plan(2, 4).goes_on(&all));
}

#[test]
fn what_had_too_little_effect_is_named() {
    let plan = plan(2, 4);
    let mut all = trials(Kind::Kill, &[true, true]);
    all.extend(trials(Kind::FlipHeap, &[true, false, false, false]));
    assert_eq!(plan.lacking(&all).as_deref(), Some("fewer than 2 effective: tcp flip-heap 1 of 4"));
    all.extend(trials(Kind::FlipHeap, &[true]));
    assert_eq!(plan.lacking(&all), None);
}

#[test]
fn what_a_component_does_not_have_is_not_broken() {
    assert!(!is_possible("filter", Kind::FlipPayload));
    assert!(is_possible("ip", Kind::FlipArena));
    assert!(!is_possible("nic:tap0", Kind::FlipArena));
}

#[test]
fn payloads_are_hit_with_both_kinds_of_checksums() {
    let plan = Plan { kinds: vec![Kind::Kill, Kind::FlipPayload], ..plan(1, 1) };
    let all: Vec<_> = plan.series().map(|s| (s.kind, s.checksums)).collect();
    let (device, software) = (Checksums::Device, Checksums::Software);
    assert_eq!(all, [(Kind::Kill, device), (Kind::FlipPayload, device), (Kind::FlipPayload, software)]);
    let effective =
        |checksums| Trial { checksums, died: true, ..Trial::new("tcp", Kind::FlipPayload, 1, 16) };
    let mut trials = vec![effective(device), Trial { kind: Kind::Kill, ..effective(device) }];
    let lacking = "fewer than 1 effective: tcp flip-payload with software checksums 0 of 0";
    assert_eq!(plan.lacking(&trials).as_deref(), Some(lacking));
    trials.push(effective(software));
    assert_eq!(plan.lacking(&trials), None);
}
