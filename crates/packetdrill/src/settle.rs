//! Linux has done all about a packet when the call returns that gave it to the device. Here servers do it, which are woken
//! first. A script's next call waits for them. Its next packet does so only if it brings data, and less long: Linux acknowledges
//! some of those one by one, while many acknowledgements may come at once.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// More than the servers need on a machine that is not loaded, and less than scripts are exact to.
const TIME: Duration = Duration::from_millis(1);

/// What they need to acknowledge a segment, usually.
const SHORT_TIME: Duration = Duration::from_micros(300);

static LAST: Mutex<Option<Instant>> = Mutex::new(None);

/// A packet was given to the stack.
pub fn note() {
    *LAST.lock().expect("nobody panics with it") = Some(Instant::now());
}

/// Waits until the last packet was there for a while.
pub fn settle() {
    settle_for(TIME);
}

/// As [`settle`], before a packet with data.
pub fn settle_shortly() {
    settle_for(SHORT_TIME);
}

fn settle_for(time: Duration) {
    let left = LAST.lock().expect("nobody panics with it").map(|last| time.saturating_sub(last.elapsed()));
    if let Some(left) = left.filter(|left| !left.is_zero()) {
        std::thread::sleep(left);
    }
}
