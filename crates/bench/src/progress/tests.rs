use super::*;

#[test]
fn both_sides_see_one_count() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("count");
    let reader = Progress::create(&path).unwrap();
    let writer = Progress::open(&path).unwrap();
    writer.add(5);
    writer.add(7);
    assert_eq!((reader.get(), Progress::open(&path).unwrap().get()), (12, 12));
    assert_eq!(Progress::create(&path).unwrap().get(), 0);
    std::fs::write(&path, "x").unwrap();
    assert!(Progress::open(&path).is_err_and(|error| format!("{error:#}").contains("no count")));
}
