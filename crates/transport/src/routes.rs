//! A cache of ip's answers about routes.

use core::time::Duration;
use eft_base::hash::{Key, Map};
use eft_base::{Instant, WireAddress};

/// How long an answer of ip is used.
pub(crate) const LIFETIME: Duration = Duration::from_secs(10);
/// Beyond this many, all are dropped; they are soon asked for again.
const ROUTES_MAX: usize = 4096;

/// A wanted source, which may be unspecified, and a destination.
pub(crate) type Way = (WireAddress, WireAddress);

/// Cached answers.
pub(crate) struct Routes<T>(Map<Way, (T, Instant)>);

impl<T: Copy> Routes<T> {
    pub fn new(key: Key) -> Routes<T> {
        Routes(Map::with_hasher(key))
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn get(&self, now: Instant, way: Way) -> Option<T> {
        let (answer, until) = self.0.get(&way)?;
        (*until > now).then_some(*answer)
    }

    pub fn put(&mut self, now: Instant, way: Way, answer: T, lifetime: Duration) {
        if self.0.len() >= ROUTES_MAX {
            self.0.clear();
        }
        self.0.insert(way, (answer, now + lifetime));
    }
}

#[cfg(test)]
mod tests;
