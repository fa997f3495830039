//! Whether a load takes more when the stack gets faster: a closed-loop load does, and overloads nothing.
//!
//! So the absence of overload does not show whether the load would take more. Only a trial does; its result holds for
//! loads of the same mix for a while.

use alloc::collections::VecDeque;
use core::time::Duration;

use eft_base::Instant;

use crate::indicators::Mix;

/// How long a result is valid, and for how many loads results are kept.
const VERDICT: Duration = Duration::from_secs(600);
const VERDICTS_MAX: usize = 16;
/// A mix that differs by more than this on an axis is another one.
pub const MIX_MOVED: f64 = 0.08;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Follows {
    /// Not known: the best plan is tried once the load is steady.
    #[default]
    Unknown,
    Yes,
    No,
}

#[derive(Clone, Debug)]
struct Verdict {
    mix: Mix,
    follows: Follows,
    until: Instant,
}

#[derive(Clone, Debug, Default)]
pub struct Verdicts(VecDeque<Verdict>);

impl Verdicts {
    pub fn note(&mut self, time: Instant, mix: Mix, follows: Follows) {
        self.0.retain(|known| known.mix.difference(&mix) > MIX_MOVED);
        self.0.truncate(VERDICTS_MAX - 1);
        self.0.push_front(Verdict { mix, follows, until: time + VERDICT });
    }

    pub fn recall(&self, time: Instant, mix: &Mix) -> Follows {
        let is_it = |known: &&Verdict| known.until > time && known.mix.difference(mix) <= MIX_MOVED;
        self.0.iter().find(is_it).map_or(Follows::Unknown, |known| known.follows)
    }
}

#[cfg(test)]
mod tests;
