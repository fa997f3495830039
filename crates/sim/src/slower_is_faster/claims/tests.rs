use super::*;
use crate::judge::Verdict;

#[test]
fn names_are_unique_and_absent_figures_are_missed() {
    let claims = claims();
    let mut names: Vec<&str> = claims.iter().map(|claim| claim.id).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), claims.len());
    assert!(claims.iter().all(|claim| claim.verdict(&Figures::new(), &[]).0 == Verdict::Missed));
}
