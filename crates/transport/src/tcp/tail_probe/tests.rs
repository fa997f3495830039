use super::*;

#[test]
fn a_probe_waits_two_round_trips() {
    let ms = Duration::from_millis;
    let mut rtt = Rtt::new();
    assert_eq!(patience(&rtt, false), ms(1000));
    rtt.sample(30_000);
    assert_eq!(patience(&rtt, false), ms(60));
    // The acknowledgement of one segment alone may be delayed.
    assert_eq!(patience(&rtt, true), ms(260));
    let mut rtt = Rtt::new();
    rtt.sample(100);
    assert_eq!(patience(&rtt, false), PATIENCE_MIN);
}

#[test]
fn a_probe_repaired_a_loss_unless_it_came_twice() {
    let again = TailProbe { end: 1000, again: true };
    assert_eq!(again.judge(900, None, false), Verdict::Unknown);
    assert_eq!(again.judge(1000, None, false), Verdict::Unknown);
    assert_eq!(again.judge(1000, Some(1000), false), Verdict::Needless);
    assert_eq!(again.judge(1000, None, true), Verdict::Needless);
    assert_eq!(again.judge(1100, None, false), Verdict::Repaired);
    let new = TailProbe { end: 1000, again: false };
    assert_eq!(new.judge(1100, None, false), Verdict::Needless);
}
