use super::*;

#[test]
fn the_workspace_is_tidy() {
    let problems = tidy::check(&root());
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}
