use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn what_is_printed_parses_back(cpus in proptest::collection::btree_set(0u32..300, 0..40)) {
        let set: CpuSet = cpus.into_iter().map(CpuId).collect();
        prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set.clone());
        prop_assert_eq!(CpuSet::from_mask(&set.to_mask()).unwrap(), set);
    }

    #[test]
    fn no_text_panics(text in "[-0-9,+ x]{0,20}") {
        let _ = text.parse::<CpuSet>();
        let _ = CpuSet::from_mask(&text);
    }
}

#[test]
fn bad_lists_are_refused() {
    for text in ["3-1", "a", "1,,2", "-1", "0-4000000000", "+1", "1-", "99999"] {
        assert!(text.parse::<CpuSet>().is_err(), "{text}");
    }
    assert_eq!("".parse::<CpuSet>().unwrap(), CpuSet::new());
}
