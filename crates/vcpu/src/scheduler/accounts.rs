//! Charges each vCPU's accounts from its samples.

use alloc::vec::Vec;
use core::time::Duration;

use eft_base::time::Instant;
use eft_machine::Ppm;

use super::{Leaver, Memory, NO_IPC, Scheduler, Seen};
use crate::guest::{Progress, VcpuId};
use crate::host::Host;
use crate::promote::Since;
use crate::turns;

impl Memory {
    /// What it ran since the last turn, by class, into `all`: as the world tells, which is not beyond `ran` in all; else
    /// all of it where it was placed.
    fn by_class(&mut self, host: &Host, told: &[Duration], ran: Duration, all: &mut [Duration]) {
        all.fill(Duration::ZERO);
        if told.len() == all.len() {
            let mut left = ran;
            for (class, (now, then)) in told.iter().zip(&self.by_class).enumerate() {
                all[class] = now.saturating_sub(*then).min(left);
                left -= all[class];
            }
            self.by_class.copy_from_slice(told);
        } else if let Some(group) = self.placed {
            all[host.class_of(group)] = ran;
        }
    }
}

impl Scheduler {
    pub(super) fn progress_of<'a>(
        all: &'a [Progress<'a>],
        index: usize,
        id: VcpuId,
    ) -> Option<&'a Progress<'a>> {
        // Worlds usually report in the order of the entries; then no search is needed.
        all.get(index).filter(|p| p.id == id).or_else(|| all.iter().find(|p| p.id == id))
    }

    /// What the vCPUs in `all` did since the last tick.
    pub(super) fn since(&mut self, all: &[Progress]) -> Vec<Since> {
        let mut since = Vec::with_capacity(self.entries.len());
        for (index, (entry, memory)) in self.entries.iter().zip(&mut self.memories).enumerate() {
            since.push(Self::progress_of(all, index, entry.vcpu.id).map_or(Since::default(), |progress| {
                let did = Since {
                    ran: progress.ran.saturating_sub(memory.tick.ran),
                    waited: progress.waited.saturating_sub(memory.tick.waited),
                };
                memory.tick = Seen { ran: progress.ran, waited: progress.waited };
                did
            }));
        }
        since
    }

    pub(super) fn settle(&mut self, now: Instant, all: &[Progress], is_watched: fn(&Self, usize) -> bool) {
        let turn = now.saturating_since(self.last_turn);
        (self.last_turn, self.last_tick) = (now, now);
        let mut woke = false;
        let mut by_class = alloc::vec![Duration::ZERO; self.host.classes.len()];
        for index in 0..self.entries.len() {
            if is_watched(self, index)
                && let Some(progress) = Self::progress_of(all, index, self.entries[index].vcpu.id)
            {
                self.account(index, now, progress, &mut by_class);
            }
            let (entry, memory) = (&mut self.entries[index], &mut self.memories[index]);
            entry.earn(turn);
            // It slept through a window and works now: it need not wait for the next one to get its part.
            if entry.saturated && !entry.active {
                (entry.active, memory.known.demand, memory.room, woke) = (true, Ppm::ALL, Ppm::ALL, true);
                memory.known.score = memory.known.ipc.unwrap_or(NO_IPC).0;
            }
        }
        turns::level(&self.host, &mut self.entries);
        if woke {
            self.deal();
        }
    }

    /// What a vCPU did since it was sampled last; `by_class` is scratch space for that.
    fn account(&mut self, index: usize, now: Instant, progress: &Progress, by_class: &mut [Duration]) {
        let (entry, memory) = (&mut self.entries[index], &mut self.memories[index]);
        let length = now.saturating_since(memory.sampled);
        let seen = Seen { ran: progress.ran, waited: progress.waited };
        let is_first = memory.placed.is_none();
        let (no_time, before) = (Duration::ZERO, memory.turn);
        let ran = if is_first { no_time } else { seen.ran.saturating_sub(before.ran).min(length) };
        let waited = if is_first { no_time } else { seen.waited.saturating_sub(before.waited).min(length) };
        (memory.turn, memory.tick, memory.sampled) = (seen, seen, now);
        memory.waited += waited;
        memory.by_class(&self.host, progress.by_class, ran, by_class);
        memory.known.run_time.iter_mut().zip(&*by_class).for_each(|(sum, ran)| *sum += *ran);
        entry.account(length, by_class, waited);
    }

    /// The last part of a turn or a promotion that moved those: what they did where they were.
    pub fn left(&mut self, now: Instant, leavers: &[Leaver], all: &[Progress]) {
        let mut by_class = alloc::vec![Duration::ZERO; self.host.classes.len()];
        for Leaver { index, from } in leavers {
            if let Some(progress) = Self::progress_of(all, *index, self.entries[*index].vcpu.id) {
                let to = self.memories[*index].placed.replace(*from);
                self.account(*index, now, progress, &mut by_class);
                self.memories[*index].placed = to;
            }
        }
    }
}
