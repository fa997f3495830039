use super::*;

#[test]
fn medians_of_the_rounds_decide() {
    let tried = |rounds: &[(f64, f64)]| Tried {
        plan: Plan::default(),
        rounds: rounds.iter().map(|(work, watts)| (vec![*work], *watts)).collect(),
    };
    let lucky_once = tried(&[(10.0, 1.0), (1.0, 1.0), (1.0, 1.0)]);
    let steady = tried(&[(2.0, 3.0), (2.0, 3.0), (0.5, 3.0)]);
    let order = in_order(&[lucky_once.clone(), steady.clone()], Goal::Throughput);
    assert_eq!(order[0].power_w(), 3.0);
    let order = in_order(&[lucky_once, steady], Goal::Power { floor: 0.4 });
    assert_eq!(order[0].power_w(), 1.0);
}
