//! Programs that compute on this server's CPU.
//!
//! Who yields beside one is away until the kernel looks again whose turn it is, a tick of up to 4 ms later. Who sleeps is woken at
//! once, since it has not used its share. So a server that was away for long does not yield for a while; then it tries again, for
//! programs end, and move.

use eft_base::Instant;
use std::time::Duration;

/// Who is away for so long was not away for another server, or for a program that answers.
const LONG: Duration = Duration::from_micros(500);
/// How long a server does not yield then, at first and at most: a try may cost a tick.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct Crowd {
    /// Until when it is assumed to be there.
    until: Instant,
    pause: Duration,
}

impl Crowd {
    pub fn is_there(&self, now: Instant) -> bool {
        now < self.until
    }

    /// The server has yielded, and has run again since `after`.
    pub fn yielded(&mut self, before: Instant, after: Instant) {
        if after.saturating_since(before) < LONG {
            return;
        }
        // For longer than it had not yielded nothing took long: this is another program.
        if after.saturating_since(self.until) > self.pause {
            self.pause = Duration::ZERO;
        }
        self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        self.until = after + self.pause;
    }
}

#[cfg(test)]
mod tests;
