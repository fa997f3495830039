use super::*;

#[test]
fn parts_are_counted_from_one() {
    assert_eq!(part("2/3").unwrap(), Part { number: 2, of: 3 });
    for text in ["0/3", "4/3", "1", "/", "1/", "a/b", "0/0"] {
        assert!(part(text).is_err(), "{text}");
    }
}

#[test]
fn a_cut_line_is_taken_away_and_a_strange_file_is_left_alone() {
    let path = std::env::temp_dir().join(format!("eft-sweep-{}", std::process::id()));
    std::fs::write(&path, "{\"job\":\"a\"}\n{\"job\":\"b\"}\n{\"jo").unwrap();
    assert_eq!(done(&path).unwrap(), BTreeSet::from(["a".to_string(), "b".to_string()]));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"job\":\"a\"}\n{\"job\":\"b\"}\n");
    std::fs::write(&path, "my letters\n").unwrap();
    assert!(done(&path).unwrap_err().to_string().contains("line 1 is not of a sweep"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "my letters\n");
    std::fs::remove_file(&path).unwrap();
    assert!(done(&path).unwrap().is_empty());
}
