//! A hardware thread and its current work; siblings share a pipeline.
//!
//! A thread computes at full speed while its sibling waits for memory or sleeps, and at half of it while both compute. The
//! waits themselves are not shared, so two threads together do more than one by as much as each waits.

use super::clock::{Clock, Work};

/// Multiplies the time that something takes alone, in parts of [`PACE_ONE`].
const PACE_ONE: u64 = 1_000;

/// A thread's use of the pipeline that it shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pipeline {
    /// The computing part of the time that its current work takes alone, in parts of [`PACE_ONE`].
    pub compute: u64,
}

/// Progress of a thread's current work.
#[derive(Clone, Debug)]
pub struct Thread {
    pub clock: Clock,
    /// Time left if it were alone on the core, and when this was computed.
    left_ps: u64,
    since_ps: u64,
    pace: u64,
    pub pipeline: Pipeline,
    /// `None`: it sleeps or wakes up.
    begun_ps: Option<u64>,
    busy_ps: u64,
}

impl Thread {
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            left_ps: 0,
            since_ps: 0,
            pace: PACE_ONE,
            pipeline: Pipeline::default(),
            begun_ps: None,
            busy_ps: 0,
        }
    }

    pub fn is_busy(&self) -> bool {
        self.begun_ps.is_some()
    }

    /// Begins some work beside a sibling; returns when it ends unless the sibling changes.
    pub fn begin(&mut self, now_ps: u64, work: Work, sibling: Pipeline) -> u64 {
        let alone = self.clock.time_ps(work);
        self.pipeline =
            Pipeline { compute: (self.clock.compute_ps(work) * PACE_ONE).checked_div(alone).unwrap_or(0) };
        self.begun_ps.get_or_insert(now_ps);
        (self.left_ps, self.since_ps) = (alone, now_ps);
        self.settle(now_ps, sibling)
    }

    /// The sibling changed.
    pub fn repace(&mut self, now_ps: u64, sibling: Pipeline) -> u64 {
        self.advance(now_ps);
        self.settle(now_ps, sibling)
    }

    fn advance(&mut self, now_ps: u64) {
        self.left_ps = self.left_ps.saturating_sub((now_ps - self.since_ps) * PACE_ONE / self.pace);
        self.since_ps = now_ps;
    }

    /// Another clock from now on. Returns when its work ends then, if it has any.
    pub fn set_clock(&mut self, now_ps: u64, clock: Clock, sibling: Pipeline) -> Option<u64> {
        let before = std::mem::replace(&mut self.clock, clock);
        if !self.is_busy() {
            return None;
        }
        self.advance(now_ps);
        let compute = self.left_ps * self.pipeline.compute / PACE_ONE;
        let (compute, stall) = clock.instead_of(before, (compute, self.left_ps - compute));
        self.left_ps = compute + stall;
        self.pipeline = Pipeline { compute: (compute * PACE_ONE).checked_div(self.left_ps).unwrap_or(0) };
        Some(self.settle(now_ps, sibling))
    }

    /// Cuts the remaining work to `work`.
    pub fn cut(&mut self, now_ps: u64, work: Work, sibling: Pipeline) -> u64 {
        self.repace(now_ps, sibling);
        self.left_ps = self.left_ps.min(self.clock.time_ps(work));
        self.settle(now_ps, sibling)
    }

    fn settle(&mut self, now_ps: u64, sibling: Pipeline) -> u64 {
        self.pace = PACE_ONE + self.pipeline.compute * sibling.compute / PACE_ONE;
        now_ps + (self.left_ps * self.pace).div_ceil(PACE_ONE)
    }

    /// It sleeps from now on.
    pub fn rest(&mut self, now_ps: u64) {
        self.busy_ps += self.begun_ps.take().map_or(0, |begun| now_ps - begun);
        self.pipeline = Pipeline::default();
    }

    /// Time spent awake until now.
    pub fn busy_ps(&self, now_ps: u64) -> u64 {
        self.busy_ps + self.begun_ps.map_or(0, |begun| now_ps - begun)
    }
}

#[cfg(test)]
mod tests;
