use super::*;
use std::cell::RefCell;
use std::sync::atomic::Ordering;

/// A processor that records what it is told, and whose sleep only a store to the armed line ends.
#[derive(Default)]
struct Fake {
    armed: RefCell<Option<(*const u32, u32)>>,
    slept: RefCell<u32>,
}

impl Monitor for Fake {
    fn arm(&self, word: &AtomicU32) {
        *self.armed.borrow_mut() = Some((word.as_ptr(), word.load(Ordering::SeqCst)));
    }

    fn sleep(&self) {
        let (word, value) = self.armed.borrow_mut().take().expect("it sleeps on no line");
        // SAFETY: the test's words live as long as this.
        let now = unsafe { (*word.cast::<AtomicU32>()).load(Ordering::SeqCst) };
        *self.slept.borrow_mut() += u32::from(now == value);
    }
}

#[test]
fn it_sleeps_on_the_line_that_the_sender_writes() {
    let (bell, fake) = (AtomicU32::new(7), Fake::default());
    arm_and_sleep(&fake, &bell, || {
        assert_eq!(fake.armed.borrow().unwrap().0, bell.as_ptr().cast_const(), "looked before it armed");
        false
    });
    assert_eq!(*fake.slept.borrow(), 1);
    // A store between the check and the sleep ends the sleep at once.
    arm_and_sleep(&fake, &bell, || {
        bell.fetch_add(1, Ordering::SeqCst);
        false
    });
    assert_eq!(*fake.slept.borrow(), 1);
    // A store that the check sees prevents the sleep.
    arm_and_sleep(&fake, &bell, || true);
    assert_eq!((*fake.slept.borrow(), fake.armed.borrow().is_some()), (1, true));
}

/// Uses the method that this processor offers.
#[test]
fn a_store_by_another_thread_is_seen() {
    let bell = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::yield_now();
            bell.store(1, Ordering::Release);
        });
        while bell.load(Ordering::Acquire) == 0 {
            wait(&bell, true, || bell.load(Ordering::Acquire) != 0);
        }
    });
}
