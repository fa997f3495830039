use eft_channel::sleepers::{Left, Sleepers, Tag};
use eft_channel::token::ReadToken;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use std::sync::Arc;

/// A reader that announces itself sees the input in its last look or is woken, and otherwise the token is posted. A reader that
/// leaves without having been woken has not been handed anything either.
#[test]
fn no_input_is_handed_to_nobody() {
    for interrupted in [false, true] {
        loom::model(move || {
            let sleepers = Arc::new(Sleepers::new());
            let token = Arc::new(ReadToken::new());
            let end = Arc::new(AtomicU64::new(0));
            let (sleepers2, token2, end2) = (sleepers.clone(), token.clone(), end.clone());
            let tag = Tag::of_process(7);
            let server = thread::spawn(move || {
                end2.store(1, Ordering::Release);
                match sleepers2.reader() {
                    Some(reader) if sleepers2.hand(reader, Some(3)) => true,
                    Some(_) => false,
                    None => {
                        token2.post(1);
                        false
                    }
                }
            });
            let (word, left_over) = sleepers.announce_reader(tag);
            assert_eq!(left_over, None);
            let seen = end.load(Ordering::Acquire) == 1;
            let left = (seen || interrupted).then(|| sleepers.leave());
            let handed = server.join().unwrap();
            match left {
                // It sleeps: the kernel compares the word.
                None => assert!(
                    sleepers.word().load(Ordering::SeqCst) != word || token.is_posted(),
                    "sleeps beside input"
                ),
                Some(left) => {
                    assert_eq!(left == Left::WokenBefore(3), handed, "who is next is not woken, or twice");
                    assert!(seen || handed || token.is_posted() || end.load(Ordering::Acquire) == 1);
                }
            }
        });
    }
}
