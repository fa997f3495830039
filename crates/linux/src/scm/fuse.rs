//! A fuse that ends what happens in this thread before the nth step that other processes notice, as a death would.

use std::cell::Cell;

thread_local! {
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// What a process that dies panics with.
pub struct Death;

/// So many steps are made from now on, and then no more; `None`: any number.
pub fn set(left: Option<u32>) {
    LEFT.set(left);
}

/// One step.
pub fn burn() {
    match LEFT.get() {
        None => {}
        Some(0) => {
            LEFT.set(None);
            std::panic::resume_unwind(Box::new(Death));
        }
        Some(left) => LEFT.set(Some(left - 1)),
    }
}

/// What others do meanwhile burns nothing.
pub fn without<T>(what: impl FnOnce() -> T) -> T {
    let left = LEFT.take();
    let done = what();
    LEFT.set(left);
    done
}
