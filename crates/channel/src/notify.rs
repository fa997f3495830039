//! How a receiver sleeps and how a sender wakes it.
//!
//! Only the receiver writes its [`StateWord`]: awake, monitoring (spinning or in user-mode wait on
//! the doorbell words), or blocked in the kernel. Each sender has a [`Doorbell`] word of its own,
//! so that no sender can silence another.
//!
//! Receiver: write the state, fence, check all queues again, sleep on the doorbells' values read
//! before that check. Sender: publish, fence, read the state, ring only a sleeper. One of the two
//! always sees the other's write (Dekker); `tests/loom.rs` checks it.

use crate::atomic::{AtomicU32, Ordering, fence};

/// How the receiver waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// Running: it checks its queues before it sleeps.
    Awake = 0,
    /// Watching the doorbell words from user space: a store wakes it.
    Monitoring = 1,
    /// In the kernel, on the doorbell words as futexes.
    Futex = 2,
    /// In the kernel, on descriptors: wake it through its eventfd.
    Descriptor = 3,
}

/// The receiver's state: mode in the low two bits, above it a count of sleeps, so that a sender
/// that already rang for this sleep does not ring again.
#[repr(C, align(64))]
pub struct StateWord(AtomicU32);

impl StateWord {
    pub fn new() -> StateWord {
        StateWord(AtomicU32::new(0))
    }

    /// Receiver: announces how it is going to wait. The caller must check its queues once more
    /// after this and before it sleeps.
    pub fn announce(&self, mode: Mode) {
        let count = (self.0.load(Ordering::Relaxed) >> 2).wrapping_add(1);
        self.0.store(count << 2 | mode as u32, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Receiver: runs again.
    pub fn awake(&self) {
        let count = self.0.load(Ordering::Relaxed) >> 2;
        self.0.store(count << 2, Ordering::Relaxed);
    }

    pub fn load(&self) -> (Mode, u32) {
        let word = self.0.load(Ordering::Relaxed);
        let mode = match word & 3 {
            0 => Mode::Awake,
            1 => Mode::Monitoring,
            2 => Mode::Futex,
            _ => Mode::Descriptor,
        };
        (mode, word)
    }
}

impl Default for StateWord {
    fn default() -> Self {
        Self::new()
    }
}

/// A sender's bell: a counter that the receiver watches.
#[repr(C, align(64))]
pub struct Doorbell(AtomicU32);

impl Doorbell {
    pub fn new() -> Doorbell {
        Doorbell(AtomicU32::new(0))
    }

    /// The value to sleep on. Read it before the last check of the queues.
    pub fn value(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Rings without waking anybody: for a receiver of the same thread, which looks before the thread sleeps.
    pub fn ring(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    /// The word itself, for the kernel and for user-mode waiting.
    pub fn word(&self) -> &AtomicU32 {
        &self.0
    }
}

impl Default for Doorbell {
    fn default() -> Self {
        Self::new()
    }
}

/// What a sender must do after it published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Nothing: the receiver runs, or it was already woken from this sleep.
    None,
    /// `FUTEX_WAKE` on the doorbell.
    Futex,
    /// Write to the receiver's eventfd.
    Descriptor,
}

/// The sender's side: remembers for which sleep it last rang.
#[derive(Default)]
pub struct Ringer {
    rang_for: u32,
}

impl Ringer {
    /// Called after publishing: rings if the receiver sleeps, and says which system call is needed.
    pub fn ring(&mut self, doorbell: &Doorbell, state: &StateWord) -> Wake {
        fence(Ordering::SeqCst);
        let (mode, word) = state.load();
        if mode == Mode::Awake || word == self.rang_for {
            return Wake::None;
        }
        self.rang_for = word;
        ring_now(doorbell, mode)
    }
}

/// Rings without remembering: for senders that share a doorbell (the processes of a domain).
pub fn ring_once(doorbell: &Doorbell, state: &StateWord) -> Wake {
    fence(Ordering::SeqCst);
    let (mode, _) = state.load();
    ring_now(doorbell, mode)
}

fn ring_now(doorbell: &Doorbell, mode: Mode) -> Wake {
    match mode {
        Mode::Awake => Wake::None,
        Mode::Monitoring => {
            doorbell.0.fetch_add(1, Ordering::Release);
            Wake::None
        }
        Mode::Futex => {
            doorbell.0.fetch_add(1, Ordering::Release);
            Wake::Futex
        }
        Mode::Descriptor => Wake::Descriptor,
    }
}
