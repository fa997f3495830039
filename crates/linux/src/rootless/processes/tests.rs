use super::Ended;

#[test]
fn how_a_program_ended_passes_through_the_pipe() {
    for ended in [Ended::Status(0), Ended::Status(255), Ended::Signal(15), Ended::Signal(64), Ended::Hindered]
    {
        assert_eq!(Ended::from_bytes(ended.to_bytes()), ended);
    }
}

#[test]
fn the_status_of_wait_says_whether_a_signal_ended_it() {
    assert_eq!(Ended::of(3 << 8), Ended::Status(3));
    assert_eq!(Ended::of(9), Ended::Signal(9));
    // With a core dump.
    assert_eq!(Ended::of(11 | 0x80), Ended::Signal(11));
}
