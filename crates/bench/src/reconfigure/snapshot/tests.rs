use super::*;

#[test]
fn a_changed_mask_and_file_are_seen_and_a_number_used_again_is_not() {
    let mask = |text: &str| ("x".to_string(), text.parse::<CpuSet>().unwrap());
    let snapshot = |online: &str, masks: &[((i32, u64), &str)]| Snapshot {
        files: [("online".to_string(), online.to_string())].into(),
        masks: masks.iter().map(|(id, text)| (*id, mask(text))).collect(),
    };
    let before = snapshot("0-1", &[((7, 1), "0-1"), ((8, 1), "1"), ((9, 1), "1")]);
    let after = snapshot("0", &[((7, 1), "0"), ((8, 2), "0")]);
    let found = differences(&before, &after);
    assert_eq!(found, ["/online: 0-1 -> 0", "affinity of x (7): 0-1 -> 0"]);
    assert!(differences(&before, &before).is_empty());
}
