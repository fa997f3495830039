//! Whether a server makes progress.
//!
//! A server hangs if it computes without a step of its work, or if it sleeps in the kernel although its state word says
//! that it runs. Computation is counted in ticks of a timer on the server's CPU time, which the server itself handles:
//! the clock of that time runs on while a hypervisor runs another guest, so that a pause looks like a long computation,
//! but a pause of any length causes one tick. Nothing is measured in wall-clock time: no server is killed because the
//! machine is slow, throttled, paused or in a debugger. Sleeps and starts are counted in samples, which the supervisor
//! takes only while it runs itself.

use core::time::Duration;
use eft_channel::notify::Mode;

/// The period of the timer on a server's CPU time. Not below the kernel's own tick (1 to 10 ms), at which the timer
/// fires.
pub const TICK: Duration = Duration::from_millis(10);
/// Ticks without a step, 100 ms: thousands of times the longest step.
const SPINNING_TICKS: u64 = 10;
/// Samples, 10 s of them, at which a running server had used CPU time for another tick without a step, and counted no tick:
/// its ticks do not come. So many, since time that a hypervisor took looks the same until the server runs again.
const DEAF_SAMPLES: u32 = 200;
/// Samples in a row at which it had used CPU time for another tick, had counted none since the sample before, and the kernel
/// held back the signal of a tick for it: it computes in the handler of the ticks, before it counts or after. That takes a microsecond, and one that a hypervisor interrupts there
/// goes on with it: only who is interrupted twice in this microsecond could look the same.
const HELD_SAMPLES: u32 = 10;
/// Samples in a row at which an awake server was found asleep in the kernel.
const BLOCKED_SAMPLES: u32 = 40;
/// Samples at which a starting server had computed for another tick without a step, or samples in a row at which it
/// slept although it waited for no message. Its timer does not run from the beginning, and opening an arena is one
/// step.
const START_SAMPLES: u32 = 60;

/// The state of the server's thread in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// Running or waiting for a CPU.
    Runnable,
    /// Sleeping in the kernel.
    Sleeping,
    /// Stopped, traced, or waiting for a disk: not the server's fault.
    Paused,
}

/// What the supervisor reads of a server at one time.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Turns and steps.
    pub progress: u64,
    /// Ticks of its CPU time.
    pub ticks: u64,
    /// CPU time that it has used, with what was stolen from it.
    pub cpu: Duration,
    /// The kernel has sent it the signal of a tick, which its thread blocks. Looked for only [where it matters](Watch::is_deaf).
    pub holds_tick: bool,
    pub mode: Mode,
    pub thread: ThreadState,
    pub stage: Stage,
}

/// Where it is in its life. If several share a process, the least advanced one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It waits for messages that the supervisor could not send yet.
    Waiting,
    /// It has all that it needs, and builds its state.
    Starting,
    Running,
}

/// Why a server is called hung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hang {
    /// It computes without a step.
    Spinning,
    /// It blocks in the kernel where it must not.
    Blocked,
}

/// Watches one server.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    progress: Option<u64>,
    ticks: u64,
    /// Ticks at the last sample.
    counted: u64,
    cpu: Duration,
    /// Samples in a row at which it was asleep, and samples at which it had computed.
    blocked: u32,
    busy: u32,
    /// Of the latter, how many in a row there were at which it had not taken a tick.
    held: u32,
}

impl Watch {
    pub fn observe(&mut self, sample: Sample) -> Option<Hang> {
        if self.progress != Some(sample.progress) || sample.stage == Stage::Waiting {
            *self = Watch {
                progress: Some(sample.progress),
                ticks: sample.ticks,
                counted: sample.ticks,
                cpu: sample.cpu,
                ..Watch::default()
            };
            return None;
        }
        match sample.stage {
            Stage::Running => self.judge_running(sample),
            _ => self.judge_starting(sample),
        }
    }

    /// Whether it has computed, as far as its numbers say, without a step, and without a tick since the last sample.
    pub fn is_deaf(&self, progress: u64, ticks: u64, cpu: Duration) -> bool {
        self.progress == Some(progress) && self.counted == ticks && cpu.saturating_sub(self.cpu) >= TICK
    }

    fn judge_running(&mut self, sample: Sample) -> Option<Hang> {
        // The state word does not matter: a sleeping server gets no ticks, and a woken one makes a turn.
        if sample.ticks.wrapping_sub(self.ticks) >= SPINNING_TICKS {
            return Some(Hang::Spinning);
        }
        let has_counted = sample.ticks != self.counted;
        self.counted = sample.ticks;
        if sample.cpu.saturating_sub(self.cpu) >= TICK {
            self.cpu = sample.cpu;
            self.busy += 1;
            self.held = if sample.holds_tick && !has_counted { self.held + 1 } else { 0 };
        }
        if self.held >= HELD_SAMPLES || sample.ticks == self.ticks && self.busy >= DEAF_SAMPLES {
            return Some(Hang::Spinning);
        }
        match (sample.mode, sample.thread) {
            (Mode::Awake, ThreadState::Sleeping) => self.blocked += 1,
            _ => self.blocked = 0,
        }
        (self.blocked >= BLOCKED_SAMPLES).then_some(Hang::Blocked)
    }

    fn judge_starting(&mut self, sample: Sample) -> Option<Hang> {
        // At most one tick per sample, however long the time between two: it may have been stolen.
        if sample.cpu.saturating_sub(self.cpu) >= TICK {
            self.cpu = sample.cpu;
            self.busy += 1;
        }
        match sample.thread {
            ThreadState::Sleeping => self.blocked += 1,
            _ => self.blocked = 0,
        }
        match () {
            () if self.busy >= START_SAMPLES => Some(Hang::Spinning),
            () if self.blocked >= START_SAMPLES => Some(Hang::Blocked),
            () => None,
        }
    }

    /// Starts anew, after the hang turned out not to be the server's fault.
    pub fn forgive(&mut self) {
        *self = Watch::default();
    }
}

#[cfg(test)]
mod tests;
