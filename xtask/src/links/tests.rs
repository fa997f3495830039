use super::*;

#[test]
fn a_stale_link_is_found() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(links("a [`x`](src/links.rs) b"), [("`x`".to_string(), "src/links.rs".to_string())]);
    assert_eq!(broken(here, "`defines`", "src/links.rs"), None);
    assert!(broken(here, "`define`", "src/links.rs").is_some());
    assert!(broken(here, "`defines`", "src/nowhere.rs").is_some());
    assert!(broken(here, "a picture", "nowhere.svg").is_some());
}
