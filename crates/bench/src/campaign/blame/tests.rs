use super::*;

#[test]
fn an_input_that_ran_must_be_blamed_and_no_other() {
    for (ran, named, is_wrong) in
        [(true, true, false), (false, false, false), (true, false, true), (false, true, true)]
    {
        let blame = Blame { ran, named, recorded: Some(true) };
        assert_eq!(blame.is_wrong(), is_wrong, "{blame:?}");
    }
}

#[test]
fn who_names_inputs_counts_what_it_blames() {
    for name in ["tcp", "tcp2", "udp", "filter", "ip"] {
        assert!(names(name.parse().unwrap()).contains(&BLAMED), "{name}");
    }
    assert!(names(ComponentId::nic(0)).is_empty());
}

#[test]
fn only_a_failure_is_watched() {
    let watch = Watch::begin("no-such-stack", "tcp", Kind::Null).unwrap();
    assert_eq!(watch.end(2).unwrap(), None);
    assert!(Watch::begin("no-such-stack", "tcp", Kind::Failure).is_err());
}

#[test]
fn servers_whose_replay_would_protect_nothing_have_no_recording() {
    assert!(recording("s", "tcp", 2).unwrap().ends_with("s/crashes/tcp-2.eftrec"));
    assert!(recording("s", "udp2", 3).unwrap().ends_with("s/crashes/udp2-3.eftrec"));
    assert_eq!((recording("s", "cores", 2), recording("s", "nic:eft0", 2)), (None, None));
}
