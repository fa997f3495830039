use super::*;

#[test]
fn shares_cover_an_arena_without_gap_and_without_overlap() {
    for stride in 1..=5 {
        for slots in 0..20 {
            let shares: Vec<SlotShare> =
                (0..stride).map(|first| SlotShare { first, stride, ..SlotShare::TCP }).collect();
            assert_eq!(shares.iter().map(|s| s.len(slots)).sum::<usize>(), slots);
            for slot in 0..slots as u32 {
                let owners: Vec<_> = shares.iter().filter_map(|s| Some((s, s.index(slot)?))).collect();
                let [(share, i)] = owners[..] else { panic!("slot {slot} of {stride} shares: {owners:?}") };
                assert!(i < share.len(slots));
                assert_eq!(share.slot(i), slot);
            }
        }
    }
}
