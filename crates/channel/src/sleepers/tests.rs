use super::*;

const TAG: Tag = Tag(7);

#[test]
fn a_reader_is_handed_input_once_and_finds_who_is_next() {
    let word = Sleepers::new();
    assert_eq!((word.reader(), word.hand(TAG, None)), (None, false));
    for (next, found) in
        [(None, Left::Woken), (Some(0), Left::WokenBefore(0)), (Some(9), Left::WokenBefore(9))]
    {
        let (value, left_over) = word.announce_reader(TAG);
        assert_eq!((value, left_over), (word.word().load(Ordering::Relaxed), None));
        assert_eq!(word.reader(), Some(TAG));
        assert!(!word.hand(Tag(8), next), "another process's");
        assert!(word.hand(TAG, next) && !word.hand(TAG, next));
        assert_ne!(word.word().load(Ordering::Relaxed), value, "the kernel would put it to sleep");
        assert_eq!((word.reader(), word.leave()), (None, found));
    }
    word.announce_reader(TAG);
    assert_eq!(word.leave(), Left::ByItself);
    assert_eq!(word.reader(), None);
}

#[test]
fn a_thread_that_comes_late_finds_who_is_next() {
    let word = Sleepers::new();
    word.announce_reader(TAG);
    assert!(word.hand(TAG, Some(3)));
    assert_eq!(word.announce_reader(TAG).1, Some(3), "nobody would wake the sleeper of slot 3");
}

#[test]
fn a_change_of_state_wakes_readers_and_watchers_and_forgets_no_wish() {
    let word = Sleepers::new();
    assert!(!word.silence());
    word.announce_watcher();
    assert!(word.reader().is_none() && word.silence() && !word.silence());
    word.announce_reader(TAG);
    assert!(word.silence() && word.reader().is_none());
    word.want_token();
    assert!(!word.silence() && word.take_wanted() && !word.take_wanted());
    word.announce_reader(TAG);
    assert!(word.hand(TAG, Some(1)) && !word.silence());
    assert_eq!(word.leave(), Left::WokenBefore(1));
}
