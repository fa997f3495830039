use super::*;
use crate::generate::program;
use crate::program::Step;

#[test]
fn what_does_not_matter_is_left_out() {
    let long = program(3);
    assert!(long.steps.len() > 6);
    let (first, last) = (long.steps[1].clone(), long.steps[5].clone());
    let has = |p: &Program, step: &Step| p.steps.contains(step);
    let short = shrink(&long, |p| has(p, &first) && has(p, &last));
    let kept: Vec<&Step> = if first == last { vec![&first] } else { vec![&first, &last] };
    assert_eq!(short.steps.iter().collect::<Vec<_>>(), kept);
}
