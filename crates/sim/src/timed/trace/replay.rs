//! A trace and how fast it is replayed, and what the model takes it for.

use std::sync::Arc;

use crate::hardware::PS_PER_MS;
use crate::trace::{Step, Tally, Trace};

const PS_PER_NS: u64 = 1000;
/// Thousandths of a factor.
pub const MILLI: u64 = 1000;
pub const FACTOR_MILLI_MAX: u64 = 1_000_000 * MILLI;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    trace: Arc<Trace>,
    factor_milli: u64,
    pub tally: Tally,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the trace is over in less than a millisecond at this factor")]
pub struct TooFast;

impl Replay {
    /// So many thousandths as fast as it was recorded.
    pub fn new(trace: Trace, factor_milli: u64) -> Result<Self, TooFast> {
        let replay = Self { tally: trace.tally(), trace: Arc::new(trace), factor_milli };
        let is_sane = (1..=FACTOR_MILLI_MAX).contains(&factor_milli);
        if is_sane && replay.length_ps() >= PS_PER_MS { Ok(replay) } else { Err(TooFast) }
    }

    fn ps(&self, us: u64) -> u64 {
        let ns = u128::from(us) * 1_000_000 / u128::from(self.factor_milli);
        ns as u64 * PS_PER_NS
    }

    /// Of one repetition.
    pub fn length_ps(&self) -> u64 {
        self.ps(self.trace.length_us())
    }

    /// Step number `number`, with its time; after the last one the first one follows.
    pub fn step(&self, number: u64) -> (u64, Step) {
        let steps = self.trace.steps();
        let (round, at) = (number / steps.len() as u64, (number % steps.len() as u64) as usize);
        let step = steps[at];
        (round * self.length_ps() + self.ps(step.at_us), step)
    }

    /// Bytes of answers, in thousands of bits a second.
    pub fn offered_kbps(&self) -> u64 {
        self.per_second(self.tally.answer_bytes * 8) / 1000
    }

    pub fn answers_per_second(&self) -> u64 {
        self.per_second(self.tally.requests)
    }

    fn per_second(&self, count: u64) -> u64 {
        (u128::from(count) * 1_000_000_000_000 / u128::from(self.length_ps())) as u64
    }

    /// Bytes of an answer.
    pub fn mean_answer(&self) -> u64 {
        (self.tally.answer_bytes / self.tally.requests.max(1)).max(1)
    }

    /// Requests of a connection; of one that never closes, very many.
    pub fn mean_requests(&self) -> u64 {
        match self.tally.closes {
            0 => u64::from(u32::MAX),
            closes => (self.tally.requests / closes).max(1),
        }
    }
}
