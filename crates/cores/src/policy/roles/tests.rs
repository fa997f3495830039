use super::*;

#[test]
fn roles_follow_the_indicators() {
    let role = |received: f64, sent: f64| {
        let received_share = received / f64::max(1.0, received + sent);
        Role::of(&Indicators {
            received: ByteRate(received),
            sent: ByteRate(sent),
            received_share: Share(received_share),
            ..Default::default()
        })
    };
    assert_eq!(role(1e8, 1e3), Role::Receives);
    assert_eq!(role(1e3, 1e8), Role::Sends);
    assert_eq!(role(1e8, 1e8), Role::Serves);
    assert_eq!(role(1e2, 1e2), Role::Computes);
}

#[test]
fn short_phases_do_not_pay() {
    let mut phases = Phases::default();
    for turn in 0..10u64 {
        let role = if turn % 2 == 0 { Role::Receives } else { Role::Sends };
        assert!(phases.note(Instant(turn * 100), role) || turn == 0);
    }
    assert!(!phases.pays(Instant(910), Duration::from_nanos(60)));
    assert!(phases.pays(Instant(910), Duration::from_nanos(10)));
    assert!(phases.pays(Instant(1_500), Duration::from_nanos(60)), "it lasts longer than ever");
}
