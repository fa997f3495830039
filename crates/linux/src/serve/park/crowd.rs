//! Programs that compute on this server's CPU.
//!
//! Who yields beside one is away until the kernel looks again whose turn it is, a tick of up to 4 ms later. Who sleeps is woken at
//! once, since it has not used its share. So a server that was away for long does not yield for a while; then it tries again, for
//! programs end, and move. Not so while it moves bulk data: then it is the stack's own programs that compute, and what they do
//! until they are interrupted goes as one.

use eft_base::Instant;
use std::time::Duration;

/// Who is away for so long was not away for another server, or for a program that answers.
const LONG: Duration = Duration::from_micros(500);
/// How long a server does not yield then, at first and at most: a try may cost a tick.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Bytes in a second that are bulk data: several times what small requests move.
const BULK: u64 = 50_000_000;
/// Over how long they are counted at least: several absences may follow each other.
const WINDOW: Duration = Duration::from_millis(20);

#[derive(Default)]
pub struct Crowd {
    /// Until when it is assumed to be there.
    until: Instant,
    pause: Duration,
    /// When bytes were counted last, how many there were, and whether they were bulk data since the time before.
    counted: Instant,
    moved: u64,
    is_bulk: bool,
}

impl Crowd {
    pub fn is_there(&self, now: Instant) -> bool {
        now < self.until
    }

    /// The server has yielded, and runs again since `after`. `moved`: the bytes that it has ever moved.
    pub fn yielded(&mut self, before: Instant, after: Instant, moved: impl FnOnce() -> u64) {
        if after.saturating_since(before) < LONG {
            return;
        }
        if self.moves_bulk(after, moved) {
            return;
        }
        // For longer than it had not yielded nothing took long: this is another program.
        if after.saturating_since(self.until) > self.pause {
            self.pause = Duration::ZERO;
        }
        self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        self.until = after + self.pause;
    }

    fn moves_bulk(&mut self, now: Instant, moved: impl FnOnce() -> u64) -> bool {
        let since = now.saturating_since(self.counted);
        if since >= WINDOW {
            let moved = moved();
            let bytes = u128::from(moved.saturating_sub(self.moved));
            self.is_bulk = bytes * 1_000_000_000 > since.as_nanos() * u128::from(BULK);
            (self.counted, self.moved) = (now, moved);
        }
        self.is_bulk
    }
}

#[cfg(test)]
mod tests;
