use super::*;

#[test]
fn room_is_made_before_and_taken_after() {
    let plan = |speeds: &[(u32, f64)]| {
        let speeds = speeds.iter().map(|(cpu, share)| (CpuId(*cpu), Share(*share))).collect();
        Wanted { speeds, ..Wanted::default() }
    };
    let (old, new) = (plan(&[(0, 0.5), (1, 1.0)]), plan(&[(1, 0.25), (2, 0.999)]));
    assert_eq!(CpuChange::making_room(&old, &new).faster, BTreeMap::from([(CpuId(0), Share::ALL)]));
    assert_eq!(CpuChange::taking_away(&old, &new).slower, BTreeMap::from([(CpuId(1), Share(0.25))]));
    // If a plan is overtaken half way, the next one starts from the state that was reached.
    let between = old.with_room_for(new.clone());
    assert!(CpuChange::making_room(&between, &new).is_empty());
    assert_eq!(CpuChange::taking_away(&between, &new).slower, BTreeMap::from([(CpuId(1), Share(0.25))]));
}

#[test]
fn what_is_parked_comes_back_first_and_goes_last() {
    let parked = |cpus: &[CpuId]| Wanted { parked: cpus.iter().copied().collect(), ..Wanted::default() };
    let change = CpuChange::between(&parked(&[CpuId(2), CpuId(3)]), &parked(&[CpuId(3), CpuId(4)]));
    assert_eq!((change.unpark.to_string().as_str(), change.park.to_string().as_str()), ("2", "4"));
    assert!(CpuChange::between(&parked(&[CpuId(3)]), &parked(&[CpuId(3)])).is_empty());
    assert_eq!(
        CpuChange::between(&parked(&[CpuId(3)]), &parked(&[CpuId(3)]).without_changes()).unpark,
        CpuSet::one(CpuId(3))
    );
}
