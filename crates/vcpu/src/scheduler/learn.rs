//! What a window shows of each vCPU: IPC, demand, score.

use alloc::vec::Vec;

use super::{NO_IPC, Scheduler, nanos};
use crate::PPM;
use crate::guest::{Count, Progress, ratio_ppm};
use crate::options::Score;

/// A vCPU that uses less of a window sleeps: an idle guest's timer.
const ASLEEP_PPM: u64 = 10_000;
/// A vCPU that runs or waits for this much of a window wants all it can get.
const SATURATED_PPM: u64 = 950_000;

impl Scheduler {
    pub(super) fn open_window(&mut self, all: &[Progress]) {
        for (index, (entry, memory)) in self.entries.iter().zip(&mut self.memories).enumerate() {
            memory.window_ran_ns.clone_from(&memory.known.ran_ns);
            memory.window_waited_ns = memory.waited_ns;
            memory.counts.clear();
            if let Some(progress) = Self::progress_of(all, index, entry.vcpu.id) {
                memory.counts.extend_from_slice(progress.counts);
            }
        }
    }

    pub(super) fn close_window(&mut self, all: &[Progress]) {
        let threshold = self.options.threshold_ppm;
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
        let window = nanos(self.options.window);
        let speeds = self.speeds(index);
        let memory = &mut self.memories[index];
        let ran: Vec<u64> =
            memory.known.ran_ns.iter().zip(&memory.window_ran_ns).map(|(now, then)| now - then).collect();
        let all: u64 = ran.iter().sum();
        let known = &mut memory.known;
        known.ran_ppm = ratio_ppm(all, window).min(PPM);
        known.waited_ppm = ratio_ppm(memory.waited_ns - memory.window_waited_ns, window).min(PPM);
        let wants = known.ran_ppm + known.waited_ppm;
        let work: u64 = ran.iter().zip(&speeds).map(|(ns, speed)| ratio_ppm(*ns, window) * speed / PPM).sum();
        // Whoever sleeps between has done what it had to do. If it waits for each answer, it would have done more without
        // waiting; so it gets the room, and shows by the next window whether it uses it.
        let (is_saturated, runs) = (wants >= SATURATED_PPM, PPM - known.waited_ppm);
        known.demand_ppm = if is_saturated { PPM } else { work.min(PPM) };
        memory.room_ppm = if is_saturated { PPM } else { ratio_ppm(work, runs).min(PPM) };
        self.entries[index].active = wants >= ASLEEP_PPM;
        let alone = memory.efficiency.alone(0, &self.ratios);
        // A unit of one's own compares between cores alone: the gain of a fast core stands for IPC.
        let own = speeds.last().map(|slow| PPM - *slow);
        known.ipc_ppm = match (own_unit, self.options.score) {
            (true, _) => alone.and(own),
            (false, Score::Predicted) => alone,
            (false, Score::Paper) => memory.efficiency.raw(),
        };
        let used = match self.options.score {
            Score::Predicted => known.demand_ppm,
            Score::Paper => known.ran_ppm,
        };
        let score = u128::from(known.ipc_ppm.unwrap_or(NO_IPC)) * u128::from(used) / u128::from(PPM);
        known.score = score.min(u128::from(u64::MAX >> 8)) as u64;
    }

    /// How fast this vCPU is on each class, relative to the fastest.
    pub(super) fn speeds(&self, index: usize) -> Vec<u64> {
        let efficiency = &self.memories[index].efficiency;
        let classes = &self.host.classes;
        let rate = |class: usize| match classes[class].sibling_of {
            None => {
                let ipc = efficiency.alone(class, &self.ratios)?;
                Some(u128::from(ipc) * u128::from(classes[class].speed_ppm))
            }
            Some(of) => {
                let of = usize::from(of);
                let ipc = efficiency.on(of, true, &self.ratios)?;
                Some(u128::from(ipc) * u128::from(classes[of].speed_ppm))
            }
        };
        let of = |class: usize| {
            let by_clock = u64::from(self.host.classes[class].speed_ppm);
            match (rate(0), rate(class)) {
                (Some(fast), Some(here)) if fast > 0 => {
                    (here * u128::from(PPM) / fast).clamp(1, u128::from(PPM)) as u64
                }
                _ => by_clock,
            }
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
