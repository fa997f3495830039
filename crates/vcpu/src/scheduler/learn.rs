//! What a window measures of each vCPU: IPC, demand, score.

use alloc::vec::Vec;
use core::time::Duration;

use eft_machine::Ppm;

use super::{NO_IPC, Scheduler};
use crate::PPM;
use crate::guest::{Count, Progress};
use crate::options::Score;

/// A vCPU that uses less of a window sleeps: an idle guest's timer.
const ASLEEP: Ppm = Ppm::from_percent(1);
/// A vCPU that runs or waits for this much of a window wants all it can get.
const SATURATED: Ppm = Ppm::from_percent(95);

impl Scheduler {
    pub(super) fn open_window(&mut self, all: &[Progress]) {
        for (index, (entry, memory)) in self.entries.iter().zip(&mut self.memories).enumerate() {
            memory.window_run_time.clone_from(&memory.known.run_time);
            memory.window_waited = memory.waited;
            memory.counts.clear();
            if let Some(progress) = Self::progress_of(all, index, entry.vcpu.id) {
                memory.counts.extend_from_slice(progress.counts);
            }
        }
    }

    pub(super) fn close_window(&mut self, all: &[Progress]) {
        let threshold = self.options.threshold;
        for (index, (entry, memory)) in self.entries.iter().zip(&mut self.memories).enumerate() {
            let Some(progress) = Self::progress_of(all, index, entry.vcpu.id) else { continue };
            let counts = differences(&memory.counts, progress.counts);
            memory.efficiency.window(&counts, threshold);
        }
        self.ratios.learn(&self.host, self.memories.iter().map(|memory| &memory.efficiency));
        for index in 0..self.entries.len() {
            let own_unit =
                Self::progress_of(all, index, self.entries[index].vcpu.id).is_some_and(|p| p.own_unit);
            self.learn(index, own_unit);
        }
    }

    /// Demand and score of one vCPU from what its window showed.
    fn learn(&mut self, index: usize, own_unit: bool) {
        let window = self.options.window;
        let speeds = self.speeds(index);
        let memory = &mut self.memories[index];
        let both = memory.known.run_time.iter().zip(&memory.window_run_time);
        let ran: Vec<Duration> = both.map(|(now, then)| *now - *then).collect();
        let all: Duration = ran.iter().sum();
        let known = &mut memory.known;
        known.ran = Ppm::of_time(all, window).min(Ppm::ALL);
        known.waited = Ppm::of_time(memory.waited - memory.window_waited, window).min(Ppm::ALL);
        let wants = known.ran + known.waited;
        let work: Ppm =
            ran.iter().zip(&speeds).map(|(time, speed)| Ppm::of_time(*time, window) * *speed).sum();
        // A vCPU that sleeps has done its work. Under a closed-loop load it would have done more without waiting; so it
        // gets that much more, and the next window shows whether it uses it.
        let (is_saturated, runs) = (wants >= SATURATED, Ppm::ALL - known.waited);
        known.demand = if is_saturated { Ppm::ALL } else { work.min(Ppm::ALL) };
        memory.room = if is_saturated { Ppm::ALL } else { Ppm::of(work.0, runs.0).min(Ppm::ALL) };
        self.entries[index].active = wants >= ASLEEP;
        let alone = memory.efficiency.alone(0, &self.ratios);
        // A unit of one's own compares between cores alone: the gain of a fast core stands for IPC.
        let own = speeds.last().map(|slow| Ppm::ALL - *slow);
        known.ipc = match (own_unit, self.options.score) {
            (true, _) => alone.and(own),
            (false, Score::Predicted) => alone,
            (false, Score::Paper) => memory.efficiency.raw(),
        };
        let used = match self.options.score {
            Score::Predicted => known.demand,
            Score::Paper => known.ran,
        };
        known.score = (known.ipc.unwrap_or(NO_IPC) * used).0.min(u64::MAX >> 8);
    }

    /// How fast this vCPU is on each class, relative to the fastest.
    pub(super) fn speeds(&self, index: usize) -> Vec<Ppm> {
        let efficiency = &self.memories[index].efficiency;
        let classes = &self.host.classes;
        let rate = |class: usize| match classes[class].sibling_of {
            None => {
                let ipc = efficiency.alone(class, &self.ratios)?;
                Some(u128::from(ipc.0) * u128::from(classes[class].speed.0))
            }
            Some(of) => {
                let of = usize::from(of);
                let ipc = efficiency.on(of, true, &self.ratios)?;
                Some(u128::from(ipc.0) * u128::from(classes[of].speed.0))
            }
        };
        let of = |class: usize| match (rate(0), rate(class)) {
            (Some(fast), Some(here)) if fast > 0 => {
                Ppm((here * u128::from(PPM) / fast).clamp(1, u128::from(PPM)) as u64)
            }
            _ => self.host.classes[class].speed,
        };
        (0..self.host.classes.len()).map(of).collect()
    }
}

/// What was counted between two readings; a counter that ran backwards counted nothing.
fn differences(before: &[Count], after: &[Count]) -> Vec<Count> {
    let of = |now: &Count| {
        let then =
            before.iter().find(|then| (then.class, then.sibling_busy) == (now.class, now.sibling_busy));
        let then = then.copied().unwrap_or_default();
        Count {
            instructions: now.instructions.saturating_sub(then.instructions),
            cycles: now.cycles.saturating_sub(then.cycles),
            ..*now
        }
    };
    after.iter().map(of).collect()
}
