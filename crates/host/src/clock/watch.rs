//! Whether a clock that may go wrong is believed. All times are nanoseconds of one clock.

use std::fmt::{Display, Formatter, Result as Written};
use std::time::Duration;

/// A reading that lies so far behind the kernel's last word is not used before the kernel confirms it: a clock can be ahead by no
/// more unnoticed. What has been stamped with such a time makes peers wait for as long.
const WINDOW: u64 = 100_000_000;
/// After so many readings the kernel is asked, too: the clock may stand still. A busy server reads less often in a [`WINDOW`].
const READINGS: u32 = 1 << 14;
/// How far a clock that is right may differ from the kernel's word: both come from the same counter, a few microseconds apart.
const SLACK: u64 = 10_000_000;

/// What is known of a clock.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// The last time that was used.
    last: u64,
    /// The kernel's last word, no later than `last`.
    said: u64,
    /// Readings that are left until the kernel is asked.
    left: u32,
}

/// How far a clock is from what it should say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    Ahead(Duration),
    Behind(Duration),
}

impl Display for Wrong {
    fn fmt(&self, f: &mut Formatter) -> Written {
        match self {
            Wrong::Ahead(by) => write!(f, "is {by:?} ahead of the kernel's"),
            Wrong::Behind(by) => write!(f, "is {by:?} behind the kernel's"),
        }
    }
}

impl Watch {
    /// Believes nothing before the kernel was asked once.
    pub const fn new() -> Watch {
        Watch { last: 0, said: 0, left: 0 }
    }

    /// Whether a reading may be used as it is.
    #[inline]
    pub fn believes(&mut self, read: u64) -> bool {
        if self.left == 0 || read < self.last || read - self.said >= WINDOW {
            return false;
        }
        self.left -= 1;
        self.last = read;
        true
    }

    /// The time to use, after a reading, the kernel's word, and another reading. The process may have been stopped between any two of
    /// these for any time.
    pub fn compare(&mut self, before: u64, said: u64, after: u64) -> Result<u64, Wrong> {
        let ahead = before.max(self.last).saturating_sub(said);
        let behind = said.saturating_sub(after);
        if ahead > SLACK {
            return Err(Wrong::Ahead(Duration::from_nanos(ahead)));
        }
        if behind > SLACK {
            return Err(Wrong::Behind(Duration::from_nanos(behind)));
        }
        self.last = self.last.max(said);
        self.said = said;
        self.left = READINGS;
        Ok(self.last)
    }
}

#[cfg(test)]
mod tests;
