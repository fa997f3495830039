//! Clocks at which no CPU sleeps much: a server that sleeps has to be woken for each message, so slower may be faster
//! (`slower-is-faster`, section 4). One clock a step slower shows nothing of that while the other CPUs sleep, so all are tried at once.

use alloc::vec::Vec;
use core::time::Duration;

use eft_base::Instant;
use eft_machine::Share;

use super::Adaptive;
use crate::estimate;
use crate::indicators::Mix;
use crate::observation::{ComponentLoad, Observation};
use crate::placement;
use crate::plan::Plan;
use crate::policy::memory::SAME_MIX;

/// Work of a CPU that hardly sleeps, but still does it all.
const AWAKE: f64 = 0.9;
/// What a try may take of all that the load could have had since it began: a plan that does a seventh less is taken back after a
/// third of the time.
const LOSS: Duration = Duration::from_millis(36);
/// Who is woken less often has little to win: at some 20 us for a sleep and a wake this is a twentieth of its time.
const OFTEN_PER_S: f64 = 2500.0;
/// Who has less to do does not count.
const WORK_MIN: f64 = 0.01;
/// Traffic that does no better awake is not tried again for so long, then for twice as long.
const REFUSED_FOR: Duration = Duration::from_secs(600);
const DOUBLINGS_MAX: u32 = 6;
const ENTRIES_MAX: usize = 16;

/// Traffic that does no better at slower clocks: what comes at a rate of its own, or does not have to wake anybody.
#[derive(Clone, Debug, Default)]
pub(super) struct Refused(Vec<Entry>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    mix: Mix,
    until: Instant,
    times: u32,
}

impl Entry {
    fn is_of(&self, mix: &Mix) -> bool {
        self.mix.difference(mix) <= SAME_MIX
    }
}

impl Refused {
    pub fn note(&mut self, mix: Mix, time: Instant) {
        let times = self.0.iter().find(|entry| entry.is_of(&mix)).map_or(0, |entry| entry.times + 1);
        self.0.retain(|entry| !entry.is_of(&mix));
        if self.0.len() == ENTRIES_MAX {
            self.0.remove(0);
        }
        let until = time + REFUSED_FOR * (1 << times.min(DOUBLINGS_MAX));
        self.0.push(Entry { mix, until, times });
    }

    pub fn holds(&self, mix: &Mix, time: Instant) -> bool {
        self.0.iter().any(|entry| entry.is_of(mix) && time < entry.until)
    }
}

impl Adaptive {
    /// How old a load has to be. Where everybody who works is woken often, that they are is what makes slower faster.
    pub(super) fn awake_from(&self, seen: &Observation, share: f64) -> Duration {
        if self.are_woken_often(seen) { Duration::ZERO } else { LOSS.mul_f64(1.0 / share) }
    }

    fn are_woken_often(&self, seen: &Observation) -> bool {
        let works = |load: &&ComponentLoad| self.work.get(&load.name).is_some_and(|work| *work >= WORK_MIN);
        let mut working = seen.components.iter().filter(works).peekable();
        working.peek().is_some() && working.all(|load| load.wake_ups_per_s >= OFTEN_PER_S)
    }

    /// The present seats, each CPU at the lowest speed at which it does its present work.
    pub(super) fn kept_awake(&self) -> Plan {
        let mut plan = self.plan.clone();
        for (cpu, busy) in estimate::utilisation(&self.platform, &self.plan, &self.work) {
            let needed = self.plan.speed(cpu).0 * busy / AWAKE;
            let level = self.platform.levels(cpu).iter().copied().find(|level| level.0 >= needed);
            plan.speeds.insert(cpu, level.unwrap_or(Share::ALL));
        }
        placement::couple_speeds(&self.platform, &mut plan);
        plan
    }
}

#[cfg(test)]
mod tests;
