//! What a machine charges for everything that is not a message's own work.

/// Of one machine under one system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A look at all of a server's queues.
    pub empty_poll_cycles: u64,
    /// Looks before a server that is alone on its thread goes to sleep.
    pub polls: u64,
    /// The system's way into a sleep, and out of it.
    pub enter_cycles: u64,
    pub leave_cycles: u64,
    /// What whoever wakes a sleeper pays; 0: who sleeps watches its queues' memory, and any message wakes it.
    pub wake_cycles: u64,
    /// From the write that wakes until the first instruction: of a core that slept, and of a thread whose sibling ran.
    pub core_exit_ps: u64,
    pub thread_exit_ps: u64,
    /// On a shared thread: from one process to the next, cold caches included, and telling the kernel of a message.
    pub switch_cycles: u64,
    pub notify_cycles: u64,
    pub quantum_ps: u64,
    /// From a device's event until the core of a sleeping driver is woken.
    pub interrupt_ps: u64,
}

impl Costs {
    /// A receipt, for which nobody rings, wakes only who watches memory.
    pub fn receipts_wake(&self) -> bool {
        self.wake_cycles == 0
    }
}
