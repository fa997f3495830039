//! Where a component's time goes: the part of its [account](crate::account) that must be read as a whole.
//!
//! A mark says which phase began when, and how much time there was of each until then. Marks are written to two places in
//! turn, so that if the owner loses its CPU while it writes one, the one before it is still whole. The phase of that earlier
//! mark may be over all the same: the owner may have read the clock at its end and lost its CPU before it wrote that.
//! Therefore the owner announces that it [leaves](Phases::leave) a phase before it reads the clock. A reader that reads its
//! own clock first and then finds no such announcement knows that the phase still lasted at the time that it read.
//! `tests/loom.rs` checks both.

use crate::atomic::{AtomicU64, Ordering, fence};
use core::array;
use eft_base::Instant;

/// What a component does with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Phase {
    /// Turns in which there was something to do.
    Busy = 0,
    /// Polling empty queues.
    Polling = 1,
    /// In user-mode wait: the kernel counts it as busy, the core rests.
    Waiting = 2,
    /// In the kernel, asleep.
    Sleeping = 3,
}

impl Phase {
    pub const ALL: [Phase; 4] = [Phase::Busy, Phase::Polling, Phase::Waiting, Phase::Sleeping];

    /// A turn counts as busy until it turns out to have been an idle poll, so readers take the two together.
    fn is_work(self) -> bool {
        matches!(self, Phase::Busy | Phase::Polling)
    }
}

/// One of the two places for marks.
#[repr(C)]
struct Place {
    /// The phase that began with it.
    phase: AtomicU64,
    /// When, ns of the world's clock.
    since: AtomicU64,
    /// ns in each phase until then.
    times: [AtomicU64; 4],
    _reserved: [AtomicU64; 2],
}

impl Place {
    fn new() -> Place {
        let zero = || AtomicU64::new(0);
        Place {
            phase: zero(),
            since: zero(),
            times: array::from_fn(|_| zero()),
            _reserved: array::from_fn(|_| zero()),
        }
    }

    /// The page may say anything: the index is bounded.
    fn phase(&self) -> Phase {
        Phase::ALL[(self.phase.load(Ordering::Relaxed) as usize).min(Phase::ALL.len() - 1)]
    }

    fn times(&self) -> [u64; 4] {
        array::from_fn(|i| self.times[i].load(Ordering::Relaxed))
    }
}

/// The marks of one component, in memory that it writes and others read.
#[repr(C)]
pub struct Phases {
    /// Marks so far: the last one is in place `marked % 2`, the next one is written to the other.
    marked: AtomicU64,
    /// The number of the next mark: the owner has not read the clock for it yet, or not written it.
    coming: AtomicU64,
    places: [Place; 2],
}

/// Attempts at a sample between two marks: the owner makes a few in a microsecond at most, in some ten nanoseconds each.
const ATTEMPTS: usize = if cfg!(loom) { 2 } else { 64 };

impl Default for Phases {
    fn default() -> Phases {
        Phases { marked: AtomicU64::new(0), coming: AtomicU64::new(0), places: [Place::new(), Place::new()] }
    }
}

impl Phases {
    fn last(&self) -> &Place {
        &self.places[self.marked.load(Ordering::Relaxed) as usize % 2]
    }

    /// Owner, once at its start: the time since a predecessor's last mark counts for no phase.
    pub fn open(&self, now: Instant) {
        self.mark(Phase::Busy, now, self.last().times());
    }

    fn mark(&self, phase: Phase, now: Instant, times: [u64; 4]) {
        let marked = self.marked.load(Ordering::Relaxed).wrapping_add(1);
        let place = &self.places[marked as usize % 2];
        // A reader that sees anything written here from now on also sees the count of the mark before this one. So it
        // notices if it began to read this place when the place held an older mark.
        fence(Ordering::Release);
        place.phase.store(phase as u64, Ordering::Relaxed);
        place.since.store(now.0, Ordering::Relaxed);
        for (word, time) in place.times.iter().zip(times) {
            word.store(time, Ordering::Relaxed);
        }
        self.marked.store(marked, Ordering::Release);
    }

    /// The owner calls this before it reads the clock for [`Phases::enter`]: the present phase may be over. Between
    /// work and idle polls it has no effect.
    pub fn leave(&self, next: Phase) {
        if self.last().phase().is_work() && next.is_work() {
            return;
        }
        let marked = self.marked.load(Ordering::Relaxed);
        self.coming.store(marked.wrapping_add(1), Ordering::Relaxed);
        // A reader that does not see this has read its clock before the owner reads its own.
        fence(Ordering::SeqCst);
    }

    /// Owner: until `now` it was in the phase that it had entered; from now on it is in `next`.
    pub fn enter(&self, next: Phase, now: Instant) {
        let last = self.last();
        let mut times = last.times();
        let of = &mut times[last.phase() as usize];
        *of = of.wrapping_add(now.0.saturating_sub(last.since.load(Ordering::Relaxed)));
        self.mark(next, now, times);
    }

    /// Owner: the time since the last mark turns out to have been of this phase. Needs no clock.
    pub fn reclassify(&self, phase: Phase) {
        self.last().phase.store(phase as u64, Ordering::Relaxed);
    }

    /// Reader: the time in each phase, and the instant up to which these times count: `now`, which the caller has read
    /// before, or the last mark if that is later. The current phase is included. The sum of the times grows exactly as that
    /// instant, and none of them (work and idle polls taken together) is ever less than in an earlier sample. `None`: the
    /// owner lost its CPU while it left a phase, so that the phase's end is unknown, or it marks as fast as it can.
    pub fn read(&self, now: Instant) -> Option<(Instant, [u64; 4])> {
        // The caller has read the clock before we see whether the owner leaves.
        fence(Ordering::SeqCst);
        for _ in 0..ATTEMPTS {
            let marked = self.marked.load(Ordering::Acquire);
            let place = &self.places[marked as usize % 2];
            let mut times = place.times();
            let phase = place.phase();
            let since = place.since.load(Ordering::Relaxed);
            let leaves = self.coming.load(Ordering::Relaxed) == marked.wrapping_add(1);
            fence(Ordering::Acquire);
            if leaves || self.marked.load(Ordering::Relaxed) != marked {
                core::hint::spin_loop();
                continue;
            }
            let until = now.max(Instant(since));
            times[phase as usize] = times[phase as usize].wrapping_add(until.0 - since);
            return Some((until, times));
        }
        None
    }
}
