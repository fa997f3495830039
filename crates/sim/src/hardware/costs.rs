//! A machine's costs of everything besides a message's own work.

use super::clock::Work;

/// The costs of one machine under one system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A poll of all of a server's queues.
    pub empty_poll_cycles: u64,
    /// Polls before a server that is alone on its thread goes to sleep.
    pub polls: u64,
    /// The system's way into a sleep, and out of it.
    pub enter_cycles: u64,
    pub leave_cycles: u64,
    /// The waker's cost; 0: a sleeper watches its queues' memory, and any message wakes it.
    pub wake_cycles: u64,
    /// From the waking write to the first instruction: for a core that slept, and for a thread whose sibling ran.
    pub core_exit_ps: u64,
    /// The same for the core of the server in front of tcp, or of the program.
    pub front_exit_ps: u64,
    pub thread_exit_ps: u64,
    /// Of a core that slept deep, after its exit: until its caches' contents are back, which such a state drops.
    pub cold_ps: u64,
    pub front_cold_ps: u64,
    /// The same for a core that servers share: none of them may stop it for the others, so the kernel does when all wait.
    pub shared_exit_ps: u64,
    /// On a shared thread: from one process to the next, and the wait until its part of the caches and of the TLB is back.
    pub switch_cycles: u64,
    pub refill_ps: u64,
    /// On a shared thread: telling the kernel of a message.
    pub notify_cycles: u64,
    /// It is told of each message, not only of the first one to an empty queue.
    pub notifies_each: bool,
    /// On a shared thread: a server asks the kernel for its messages before each batch.
    pub receive_cycles: u64,
    pub quantum_ps: u64,
    /// From a device's event until the core of a sleeping driver is woken.
    pub interrupt_ps: u64,
}

impl Costs {
    /// From one process to the next.
    pub fn switch(&self) -> Work {
        Work { cycles: self.switch_cycles, stall_ps: self.refill_ps }
    }

    /// A receipt rings no doorbell, so it wakes only a server that watches memory.
    pub fn receipts_wake(&self) -> bool {
        self.wake_cycles == 0
    }
}
