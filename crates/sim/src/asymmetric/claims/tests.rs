use super::*;

#[test]
fn names_are_unique_and_a_constant_model_does_not_pass() {
    let claims = claims();
    let mut names: Vec<&str> = claims.iter().map(|claim| claim.id).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), claims.len());
}
