//! Linux has done all about a packet when the call returns that gave it to the device. Here servers do it, which are woken
//! first. A script's next call waits for them, but not its next packet: many come at once.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// More than the servers need on a machine that is not loaded, and less than scripts are exact to.
const TIME: Duration = Duration::from_millis(1);

static LAST: Mutex<Option<Instant>> = Mutex::new(None);

/// A packet was given to the stack.
pub fn note() {
    *LAST.lock().expect("nobody panics with it") = Some(Instant::now());
}

/// Waits until the last packet was there for a while.
pub fn settle() {
    let left = LAST.lock().expect("nobody panics with it").map(|last| TIME.saturating_sub(last.elapsed()));
    if let Some(left) = left.filter(|left| !left.is_zero()) {
        std::thread::sleep(left);
    }
}
