use super::*;

#[test]
fn the_worst_counts() {
    let mut trial = Trial::new("nic:eft0", Kind::Kill, 1, 16);
    trial.judge();
    assert_eq!((trial.outcome, trial.role()), (Outcome::Transparent, "nic"));
    trial.lost = vec![0, 2, 1];
    trial.judge();
    assert_eq!((trial.outcome, trial.lost_total()), (Outcome::Lost, 3));
    trial.helped = 1;
    trial.judge();
    assert_eq!(trial.outcome, Outcome::RestartNeeded);
    trial.damaged = 1;
    trial.judge();
    assert_eq!(trial.outcome, Outcome::Damaged);
}

#[test]
fn a_flip_that_nobody_saw_is_not_effective() {
    let mut flip = Trial::new("ip", Kind::FlipHeap, 1, 16);
    assert!(!flip.is_effective());
    flip.died = true;
    assert!(flip.is_effective());
    flip.struck = false;
    assert!(!flip.is_effective());
    assert!(Trial::new("ip", Kind::Enomem, 1, 16).is_effective());
}
