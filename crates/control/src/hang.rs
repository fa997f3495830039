//! Whether a server makes progress.
//!
//! A server is hung if its heartbeat stands still over 100 ms of its *own CPU time*, or if it sleeps
//! in the kernel although its state word says that it runs. A wall clock alone would kill healthy
//! servers on slow, throttled or paused machines.

use core::time::Duration;
use eft_base::Instant;
use eft_channel::notify::Mode;

const CPU_LIMIT: Duration = Duration::from_millis(100);
/// Looks at which an awake server was found blocked, in a row and spread over this time.
const BLOCKED_LIMIT: Duration = Duration::from_secs(2);

/// What the kernel says the server's thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// Running or waiting for a CPU.
    Runnable,
    /// Sleeping in the kernel.
    Sleeping,
    /// Stopped by a signal or a debugger: paused, not hung.
    Stopped,
}

/// One look at a server.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub now: Instant,
    pub heartbeat: u64,
    /// CPU time that the server has used.
    pub cpu: Duration,
    pub mode: Mode,
    pub thread: ThreadState,
}

/// Why a server is called hung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hang {
    /// It computes without a turn of its loop.
    Spinning,
    /// It blocks in the kernel where it must not.
    Blocked,
}

/// Watches one server.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    heartbeat: Option<u64>,
    cpu_at_beat: Duration,
    blocked_since: Option<Instant>,
}

impl Watch {
    pub fn look(&mut self, look: Look) -> Option<Hang> {
        if self.heartbeat != Some(look.heartbeat) {
            *self = Watch { heartbeat: Some(look.heartbeat), cpu_at_beat: look.cpu, blocked_since: None };
            return None;
        }
        let parked = look.mode != Mode::Awake;
        if parked || look.thread == ThreadState::Stopped {
            // Asleep by its own word: no turn is expected. CPU time spent now is not held against it.
            self.cpu_at_beat = look.cpu;
            self.blocked_since = None;
            return None;
        }
        if look.cpu.saturating_sub(self.cpu_at_beat) >= CPU_LIMIT {
            return Some(Hang::Spinning);
        }
        if look.thread == ThreadState::Sleeping {
            let since = *self.blocked_since.get_or_insert(look.now);
            if look.now.saturating_since(since) >= BLOCKED_LIMIT {
                return Some(Hang::Blocked);
            }
        } else {
            self.blocked_since = None;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(ms: u64, heartbeat: u64, cpu_ms: u64, mode: Mode, thread: ThreadState) -> Look {
        Look { now: Instant::from_millis(ms), heartbeat, cpu: Duration::from_millis(cpu_ms), mode, thread }
    }

    #[test]
    fn only_own_cpu_time_counts() {
        let mut w = Watch::default();
        // A machine so slow that ten seconds of wall time give 90 ms of CPU.
        for i in 0..10 {
            assert_eq!(w.look(look(i * 1000, 7, i * 9, Mode::Awake, ThreadState::Runnable)), None);
        }
        assert_eq!(w.look(look(11_000, 7, 101, Mode::Awake, ThreadState::Runnable)), Some(Hang::Spinning));
    }

    #[test]
    fn a_parked_or_stopped_server_is_left_alone() {
        let mut w = Watch::default();
        for i in 0..100 {
            assert_eq!(w.look(look(i * 1000, 7, i, Mode::Futex, ThreadState::Sleeping)), None);
            assert_eq!(w.look(look(i * 1000, 7, i, Mode::Awake, ThreadState::Stopped)), None);
        }
    }

    #[test]
    fn an_awake_server_that_sleeps_in_the_kernel_is_hung() {
        let mut w = Watch::default();
        for i in 0..3 {
            assert_eq!(w.look(look(i * 900, 7, 1, Mode::Awake, ThreadState::Sleeping)), None);
        }
        assert_eq!(w.look(look(3000, 7, 1, Mode::Awake, ThreadState::Sleeping)), Some(Hang::Blocked));
        assert_eq!(w.look(look(3100, 8, 1, Mode::Awake, ThreadState::Sleeping)), None, "it moved");
    }
}
