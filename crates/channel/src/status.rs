//! A component's status page: the only segment that it writes and everybody may read.
//!
//! It holds the state word (how the component sleeps), signs of progress, the [`Account`] and the counters. Peers map it
//! read-only, so none can forge another's state.

use crate::account::{ACCOUNT_LEN, Account};
use crate::notify::StateWord;
use crate::segment::{OutOfBounds, Segment};
use crate::shared::Shared;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bytes of a status page.
pub const STATUS_LEN: usize = 16384;
/// Counters that one component can have.
pub const COUNTERS_MAX: usize = 512;

const HEARTBEAT: usize = 64;
const STEPS: usize = 72;
/// On a line of its own: a signal handler writes it.
const TICKS: usize = 128;
/// On a line of its own: the kernel writes it when the owner dies.
const LIFE: usize = 192;
/// On a line of its own: neighbours read it, and it is written once.
const ALONE: usize = 256;
const ACCOUNT: usize = 1024;
const COUNTERS: usize = 8192;
const _: () = assert!(ACCOUNT + ACCOUNT_LEN <= COUNTERS);
const _: () = assert!(COUNTERS + COUNTERS_MAX * 8 <= STATUS_LEN);

/// A view of a status page; its owner maps it writable.
#[derive(Clone)]
pub struct Status {
    segment: Segment,
}

impl Status {
    /// Fails if the segment is too small.
    pub fn new(segment: Segment) -> Result<Status, OutOfBounds> {
        segment.range(0, STATUS_LEN)?;
        Ok(Status { segment })
    }

    pub fn heap() -> Status {
        Status { segment: Segment::heap(STATUS_LEN) }
    }

    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    pub fn read_only(&self) -> Status {
        Status { segment: self.segment.read_only() }
    }

    pub fn state(&self) -> Shared<StateWord> {
        // SAFETY: StateWord is one atomic; the length was checked in `new`.
        unsafe { self.segment.shared(0) }.expect("status page length was checked")
    }

    /// Where its time goes, and its queues.
    pub fn account(&self) -> Account<'_> {
        Account::new(&self.segment, ACCOUNT)
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        self.segment.atomic_u64(offset).expect("status page length was checked")
    }

    /// Owner: one more turn of the loop.
    pub fn beat(&self) {
        let h = self.word(HEARTBEAT);
        h.store(h.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Turns of the loop so far.
    pub fn heartbeat(&self) -> u64 {
        self.word(HEARTBEAT).load(Ordering::Relaxed)
    }

    /// The word of [`heartbeat`](Status::heartbeat).
    pub fn heartbeat_word(&self) -> Shared<AtomicU64> {
        // SAFETY: an atomic word; the length was checked in `new`.
        unsafe { self.segment.shared(HEARTBEAT) }.expect("status page length was checked")
    }

    /// Owner: one more step within a turn (a message, an event, one of many connections).
    pub fn advance(&self) {
        let s = self.word(STEPS);
        s.store(s.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Turns and steps so far: a component that uses CPU time without changing this hangs.
    pub fn progress(&self) -> u64 {
        self.heartbeat().wrapping_add(self.word(STEPS).load(Ordering::Relaxed))
    }

    /// Where the owner counts the ticks of a timer on its own CPU time. The count continues over all lives of the component.
    pub fn tick_word(&self) -> Shared<AtomicU64> {
        // SAFETY: an atomic word; the length was checked in `new`.
        unsafe { self.segment.shared(TICKS) }.expect("status page length was checked")
    }

    /// Ticks of the owner's CPU time that its handler has counted: time for which its CPU was taken away counts once at
    /// most.
    pub fn ticks(&self) -> u64 {
        self.word(TICKS).load(Ordering::Relaxed)
    }

    /// A robust futex that the owner holds while it lives: the number of its thread, and what the kernel adds when the thread
    /// ends (futex(2)). 0: the owner holds none.
    pub fn life_word(&self) -> Shared<AtomicU32> {
        // SAFETY: an atomic word; the length was checked in `new`.
        unsafe { self.segment.shared(LIFE) }.expect("status page length was checked")
    }

    /// Owner: whether nobody is left who could start it again. Neighbours read it.
    pub fn set_alone(&self, alone: bool) {
        self.word(ALONE).store(alone.into(), Ordering::Release);
    }

    pub fn is_alone(&self) -> bool {
        self.word(ALONE).load(Ordering::Acquire) != 0
    }

    /// Owner: adds to a counter. Counters beyond [`COUNTERS_MAX`] do not exist.
    pub fn add(&self, counter: usize, n: u64) {
        if counter < COUNTERS_MAX {
            let c = self.word(COUNTERS + counter * 8);
            c.store(c.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        }
    }

    /// Owner: sets a gauge.
    pub fn set(&self, counter: usize, value: u64) {
        if counter < COUNTERS_MAX {
            self.word(COUNTERS + counter * 8).store(value, Ordering::Relaxed);
        }
    }

    pub fn get(&self, counter: usize) -> u64 {
        if counter < COUNTERS_MAX { self.word(COUNTERS + counter * 8).load(Ordering::Relaxed) } else { 0 }
    }
}
