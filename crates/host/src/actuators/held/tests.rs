use super::*;

#[test]
fn a_holder_that_answers_and_ends_between_two_checks_has_answered() {
    // Seen live, once in some hundred rounds: the status was read, then the holder answered and ended, and the
    // check found no holder.
    for answers_before_check in 0..=2 {
        let checks = std::cell::Cell::new(0);
        let has_answered = || checks.replace(checks.get() + 1) >= answers_before_check;
        let status = || Status { generation: if has_answered() { 7 } else { 6 }, ..Status::default() };
        let seen = progress(7, || !has_answered(), status);
        assert_ne!(seen, Progress::Ended, "it answered before check {answers_before_check}");
    }
    let silent = || Status { generation: 6, ..Status::default() };
    assert_eq!(progress(7, || false, silent), Progress::Ended);
    assert_eq!(progress(7, || true, silent), Progress::Working);
}

#[test]
fn what_others_published_since_contains_what_is_waited_for() {
    // Seen live: two eft published, the holder saw only the second generation, and the first waited in vain.
    let dir = tempfile::tempdir().unwrap();
    save_status(dir.path(), &Status { generation: 5, ..Status::default() }).unwrap();
    let status = load_status(dir.path());
    assert!(status.has_served(4) && status.has_served(5) && !status.has_served(6));
    save(dir.path(), &Held::nothing(5)).unwrap();
    assert!(load(dir.path()).is_empty() && load(dir.path()).generation == 5);
}
