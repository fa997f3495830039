//! Whether a server makes progress.
//!
//! A server hangs if it computes without a step of its work, or if it sleeps in the kernel although its state word says
//! that it runs. What it computed is counted in ticks of a timer on its own CPU time that the server itself lives to see:
//! the clock of that time goes on while a hypervisor runs somebody else, so that one pause looks like a long computation,
//! but however long the pause, one tick comes of it. Nothing is measured by the wall's clock: a machine that is slow,
//! throttled, paused or in a debugger's hands kills nobody. Sleeps and starts are counted in samples, each of which is one
//! that the supervisor itself had the time to take.

use core::time::Duration;
use eft_channel::notify::Mode;

/// Of the timer on a server's CPU time. Above the kernel's own tick (1 to 10 ms), which is what ends it.
pub const TICK: Duration = Duration::from_millis(10);
/// Ticks without a step, 100 ms: thousands of times what the longest step takes.
const SPINNING_TICKS: u64 = 10;
/// Samples in a row at which an awake server was found asleep in the kernel.
const BLOCKED_SAMPLES: u32 = 40;
/// Samples in a row at which a server that starts had computed for a tick, or slept though nobody owed it anything, without
/// a step. Its timer does not run yet when it begins, and opening an arena is one step.
const START_SAMPLES: u32 = 60;

/// What the kernel says the server's thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// Running or waiting for a CPU.
    Runnable,
    /// Sleeping in the kernel.
    Sleeping,
    /// Stopped, traced, or waiting for a disk: it can do nothing about that.
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
    pub mode: Mode,
    pub thread: ThreadState,
    pub stage: Stage,
}

/// Where it is in its life. Several in one process are as far as the last of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It waits for messages that the supervisor could not send yet.
    Waiting,
    /// It has all that it needs, and makes its state.
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
    cpu: Duration,
    /// Samples at which it was found asleep, and (while it starts) at which it had computed.
    blocked: u32,
    busy: u32,
}

impl Watch {
    pub fn observe(&mut self, sample: Sample) -> Option<Hang> {
        if self.progress != Some(sample.progress) || sample.stage == Stage::Waiting {
            *self = Watch {
                progress: Some(sample.progress),
                ticks: sample.ticks,
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

    fn judge_running(&mut self, sample: Sample) -> Option<Hang> {
        // Whatever its word says: one that sleeps has no ticks, and one that wakes makes a turn.
        if sample.ticks.wrapping_sub(self.ticks) >= SPINNING_TICKS {
            return Some(Hang::Spinning);
        }
        match (sample.mode, sample.thread) {
            (Mode::Awake, ThreadState::Sleeping) => self.blocked += 1,
            _ => self.blocked = 0,
        }
        (self.blocked >= BLOCKED_SAMPLES).then_some(Hang::Blocked)
    }

    fn judge_starting(&mut self, sample: Sample) -> Option<Hang> {
        // However long the time between two samples: it may have been stolen.
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

    /// It turned out that it could do nothing about it.
    pub fn forgive(&mut self) {
        *self = Watch::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server at work, that has done nothing since the last sample.
    const STILL: Sample = Sample {
        progress: 7,
        ticks: 0,
        cpu: Duration::ZERO,
        mode: Mode::Awake,
        thread: ThreadState::Runnable,
        stage: Stage::Running,
    };

    fn cpu(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn who_computes_without_a_step_hangs() {
        let mut w = Watch::default();
        for i in 0..10 {
            assert_eq!(w.observe(Sample { ticks: i, cpu: cpu(i * 10), ..STILL }), None);
        }
        assert_eq!(w.observe(Sample { ticks: 10, cpu: cpu(100), ..STILL }), Some(Hang::Spinning));
        assert_eq!(w.observe(Sample { ticks: 11, progress: 8, ..STILL }), None, "it moved");
    }

    #[test]
    fn stolen_time_is_nobodys_fault() {
        let mut w = Watch::default();
        // A hypervisor takes the CPU away for a second five times in the middle of one step: its CPU time goes on.
        for i in 0..100 {
            assert_eq!(w.observe(Sample { ticks: i / 20, cpu: cpu(i * 50), ..STILL }), None, "sample {i}");
        }
    }

    #[test]
    fn a_machine_so_slow_that_nothing_moves_kills_nobody() {
        let mut w = Watch::default();
        // Throttled, behind a real-time thread, or on a machine that stands still: no CPU time at all.
        (0..10_000).for_each(|_| assert_eq!(w.observe(STILL), None));
    }

    #[test]
    fn a_parked_or_paused_server_is_left_alone() {
        let mut w = Watch::default();
        for _ in 0..1000 {
            let parked = Sample { mode: Mode::Futex, thread: ThreadState::Sleeping, ..STILL };
            assert_eq!(w.observe(parked), None);
            assert_eq!(w.observe(Sample { thread: ThreadState::Paused, ..STILL }), None);
        }
    }

    #[test]
    fn an_awake_server_that_sleeps_in_the_kernel_hangs() {
        let mut w = Watch::default();
        let asleep = Sample { thread: ThreadState::Sleeping, ..STILL };
        (0..BLOCKED_SAMPLES).for_each(|_| assert_eq!(w.observe(asleep), None));
        assert_eq!(w.observe(asleep), Some(Hang::Blocked));
        assert_eq!(w.observe(Sample { progress: 8, ..asleep }), None, "it moved");
    }

    #[test]
    fn who_spins_with_the_word_that_it_sleeps_hangs() {
        let mut w = Watch::default();
        let sample = Sample { mode: Mode::Futex, ..STILL };
        assert_eq!(w.observe(sample), None);
        assert_eq!(w.observe(Sample { ticks: 10, ..sample }), Some(Hang::Spinning));
    }

    #[test]
    fn a_start_that_does_not_end_is_noticed() {
        let starting = Sample { stage: Stage::Starting, ..STILL };
        let mut w = Watch::default();
        let mut samples = (0..).map(|i| w.observe(Sample { cpu: cpu(i * 50), ..starting }));
        assert_eq!(samples.position(|hang| hang == Some(Hang::Spinning)), Some(START_SAMPLES as usize));
        let mut w = Watch::default();
        let asleep = Sample { thread: ThreadState::Sleeping, mode: Mode::Futex, ..starting };
        let mut samples = (0..).map(|_| w.observe(asleep));
        assert_eq!(samples.position(|hang| hang == Some(Hang::Blocked)), Some(START_SAMPLES as usize));
    }

    #[test]
    fn a_long_start_that_goes_on_is_waited_for() {
        let mut w = Watch::default();
        for i in 0..1000 {
            // Ten thousand sockets are revived, slowly.
            let sample = Sample { stage: Stage::Starting, progress: i / 20, cpu: cpu(i * 50), ..STILL };
            assert_eq!(w.observe(sample), None);
        }
        // And one that the supervisor keeps waiting does not hang.
        let waiting = Sample { stage: Stage::Waiting, thread: ThreadState::Sleeping, ..STILL };
        (0..1000).for_each(|_| assert_eq!(w.observe(waiting), None));
        // One stolen second, or ten, in a start is one sample like any other.
        let starting = Sample { stage: Stage::Starting, cpu: cpu(100_000), ..STILL };
        (0..50).for_each(|_| assert_eq!(w.observe(starting), None));
    }
}
