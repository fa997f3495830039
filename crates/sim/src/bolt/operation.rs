//! Taking CPUs offline or online: the steps of an operation, and when they are done.

/// Who is busy with a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The CPU that asked for the operation; one step at a time.
    Caller,
    /// The CPU that comes or goes; others do the same concurrently.
    Target,
    /// A processor that starts; no CPU is busy with it.
    Hardware,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub name: &'static str,
    pub ns: u64,
    pub place: Place,
    /// Bolt defers or omits it.
    pub is_deferred: bool,
    /// A set does it once, as soon as all of its CPUs have reached it.
    pub is_shared: bool,
    /// With its end the CPU is off, or runs its first thread.
    pub switches: bool,
}

impl Step {
    pub fn new(name: &'static str, ns: u64, place: Place) -> Self {
        Self { name, ns, place, is_deferred: false, is_shared: false, switches: false }
    }

    pub fn deferred(self) -> Self {
        Self { is_deferred: true, ..self }
    }

    pub fn shared(self) -> Self {
        Self { is_shared: true, ..self }
    }

    pub fn switching(self) -> Self {
        Self { switches: true, ..self }
    }
}

/// How several CPUs come or go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// All steps, one CPU after the other.
    Native,
    /// Bolt's steps, one CPU after the other.
    OneByOne,
    /// Bolt's steps, all CPUs in one operation.
    Set(Gains),
}

/// The gains of a set over its CPUs one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gains {
    /// CPUs and processors that start do their steps side by side.
    pub concurrency: bool,
    /// Global steps are done once.
    pub sharing: bool,
}

impl Gains {
    pub const ALL: Self = Self { concurrency: true, sharing: true };
}

/// Time until all CPUs have switched, and until the call returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    pub switched_ns: u64,
    pub done_ns: u64,
}

pub fn latency(steps: &[Step], cpus: usize, way: Way) -> Latency {
    let bolts: Vec<Step> = steps.iter().filter(|step| !step.is_deferred).copied().collect();
    match way {
        Way::Native => one_by_one(steps, cpus),
        Way::OneByOne => one_by_one(&bolts, cpus),
        Way::Set(gains) => as_set(&bolts, cpus, gains),
    }
}

fn sum(steps: &[Step]) -> u64 {
    steps.iter().map(|step| step.ns).sum()
}

fn one_by_one(steps: &[Step], cpus: usize) -> Latency {
    let one = sum(steps);
    let until = steps.iter().position(|step| step.switches).map_or(steps.len(), |at| at + 1);
    Latency { switched_ns: one * (cpus as u64 - 1) + sum(&steps[..until]), done_ns: one * cpus as u64 }
}

/// How far a CPU of a set has come.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// The next step, and from when on it may begin.
    next: usize,
    ready_ns: u64,
    /// When its processor runs.
    started_ns: u64,
}

/// The caller takes the step that may begin first; of several, the first CPU's. While processors start, it does steps
/// that do not need them.
fn as_set(steps: &[Step], cpus: usize, gains: Gains) -> Latency {
    let (mut all, mut caller_ns, mut latency) = (vec![Progress::default(); cpus], 0, Latency::default());
    loop {
        let begins = |p: &Progress| -> Option<u64> {
            let step = steps.get(p.next)?;
            let needs_caller = step.place == Place::Caller || !gains.concurrency;
            let processor = if step.place == Place::Hardware { 0 } else { p.needs(steps) };
            Some(p.ready_ns.max(processor).max(if needs_caller { caller_ns } else { 0 }))
        };
        let is_behind = |p: &Progress, at: usize| p.next < at;
        let runnable = |p: &&Progress| {
            let waits = gains.sharing && steps.get(p.next).is_some_and(|step| step.is_shared);
            !(waits && all.iter().any(|other| is_behind(other, p.next)))
        };
        let next = all.iter().enumerate().filter(|(_, p)| runnable(p));
        let Some((begin, cpu)) = next.filter_map(|(i, p)| Some((begins(p)?, i))).min() else {
            latency.done_ns = all.iter().map(|p| p.ready_ns.max(p.started_ns)).max().unwrap_or(0);
            return latency;
        };
        let step = steps[all[cpu].next];
        if step.is_shared && gains.sharing {
            // All CPUs have reached the step; it begins when the last one is ready.
            let begin = all.iter().filter_map(begins).max().unwrap_or(begin);
            caller_ns = begin + step.ns;
            all.iter_mut().for_each(|p| p.done(&step, caller_ns));
        } else {
            let end = begin + step.ns;
            if step.place == Place::Caller || !gains.concurrency {
                caller_ns = end;
            }
            if step.place == Place::Hardware && gains.concurrency {
                (all[cpu].started_ns, all[cpu].next) = (end, all[cpu].next + 1);
            } else {
                all[cpu].done(&step, end);
            }
        }
        if step.switches {
            latency.switched_ns = latency.switched_ns.max(all[cpu].ready_ns);
        }
    }
}

impl Progress {
    fn done(&mut self, step: &Step, end_ns: u64) {
        debug_assert!(end_ns >= step.ns);
        (self.next, self.ready_ns) = (self.next + 1, end_ns);
    }

    /// Steps before the first one of the CPU itself do not need its processor.
    fn needs(&self, steps: &[Step]) -> u64 {
        let first_own = steps.iter().position(|step| step.place == Place::Target).unwrap_or(steps.len());
        if self.next >= first_own { self.started_ns } else { 0 }
    }
}

#[cfg(test)]
mod tests;
