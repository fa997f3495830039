//! Interference by other loads on the same machine, as observed live.

use eft_base::Random;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Others {
    #[default]
    Nobody,
    /// They take the stack's CPUs for some ten milliseconds now and then: throughput halves meanwhile, and the
    /// components, whose clocks run on, seem as busy as before.
    Thieves,
    /// They use the same caches and memory, for a tenth of a second to ten seconds at a time: the same work takes longer,
    /// and so less gets done.
    Neighbours,
    /// Program, stack and peer fall in and out of step on the CPUs that they share: for a second to ten at a time a third less
    /// gets done, with as much less work.
    Moods,
    /// Nothing runs at all for a step or two, neither the stack nor its program and peer.
    Stalls,
}

/// The interference and its present state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disturbance {
    pub by: Others,
    /// The share of the throughput that they leave.
    pub left: f64,
    /// The factor by which work visibly takes longer.
    pub dearer: f64,
    /// For how many further steps this state lasts.
    steps: u64,
}

impl Default for Disturbance {
    fn default() -> Self {
        Self { by: Others::Nobody, left: 1.0, dearer: 1.0, steps: 0 }
    }
}

impl Disturbance {
    pub fn by(by: Others) -> Self {
        Self { by, ..Self::default() }
    }

    pub fn starves(&self) -> bool {
        self.by == Others::Thieves && self.left < 1.0
    }

    /// Advances the state by a step.
    pub fn pass(&mut self, random: &mut Random) {
        match self.by {
            Others::Nobody => {}
            Others::Thieves => self.steal(random),
            Others::Neighbours => self.slow_down(random),
            Others::Moods => self.swing(random),
            Others::Stalls => self.stall(random),
        }
    }

    fn steal(&mut self, random: &mut Random) {
        const COME_PERCENT: u64 = 12;
        const GO_PERCENT: u64 = 30;
        let chance = random.below(100);
        if self.left < 1.0 {
            self.left = if chance < GO_PERCENT { 1.0 } else { self.left };
        } else if chance < COME_PERCENT {
            self.left = 0.35 + random.below(35) as f64 / 100.0;
        }
        self.dearer = 1.0 / self.left;
    }

    fn slow_down(&mut self, random: &mut Random) {
        if self.steps > 0 {
            self.steps -= 1;
            return;
        }
        let magnitude = 10u64.pow(random.below(2) as u32 + 1);
        self.steps = magnitude + random.below(magnitude * 9);
        let slow = self.left == 1.0;
        self.left = if slow { 0.45 + random.below(25) as f64 / 100.0 } else { 1.0 };
        // Part of the longer time is the stack's, the rest is its program's and peer's.
        self.dearer = if slow { 1.15 / self.left } else { 1.0 };
    }

    fn swing(&mut self, random: &mut Random) {
        if self.steps > 0 {
            self.steps -= 1;
            return;
        }
        self.steps = 100 + random.below(900);
        self.left = if self.left == 1.0 { 0.6 + random.below(15) as f64 / 100.0 } else { 1.0 };
    }

    fn stall(&mut self, random: &mut Random) {
        const PERCENT: u64 = 6;
        if self.steps > 0 {
            self.steps -= 1;
            return;
        }
        let stalls = random.below(100) < PERCENT;
        self.left = if stalls { random.below(3) as f64 / 10.0 } else { 1.0 };
        self.steps = if stalls { random.below(2) } else { 0 };
    }
}
