//! Programs that look at marks in shared memory before they wait for an epoll set.
//!
//! A looker stands for one epoll set. For input of a socket that only this set waits for, the transport sets a mark there, and
//! posts no token ([`crate::token`]) while the program is awake: the program looks at the marks before it waits in the kernel. It
//! announces itself before it sleeps there; the first input for a sleeper gets its token, which wakes it, and whatever else
//! arrives until it runs has marks.
//!
//! Program: write the state, fence, look at the marks, sleep. Transport: mark, fence, read the state. One of the two sees the
//! other's write; `tests/loom.rs` checks it. Somebody else who is about to wait for such a socket takes the looker away from the
//! socket's page, fences and looks for input without a token; the transport publishes input, fences, and reads the page. What no
//! program takes in some milliseconds gets its token in any case, so that a looker whose program has died, or tells lies, delays
//! the input of its own domain by that and does no other harm.

use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Lookers of one domain. Sets beyond that get tokens.
pub const LOOKERS_MAX: usize = 256;
/// A slot's mark is its number modulo this: who finds a mark looks at all slots that share it.
pub const MARKS: usize = 64 * WORDS;
const WORDS: usize = 64;

/// The low three bits of the state; above them it counts sleeps.
const MODE: u32 = 7;
/// Nobody looks: each input gets its token.
const ABSENT: u32 = 0;
/// Looks at the marks before it sleeps.
const AWAKE: u32 = 1;
/// Sleeps in the kernel, or is about to.
const ASLEEP: u32 = 2;
/// A token was posted that wakes it.
const RUNG: u32 = 3;
const COUNT: u32 = MODE + 1;

/// What the transport does about input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Nothing: the program finds the mark.
    Marked,
    /// It posts the token, and if that needed a message, says so by [`Looker::rang`].
    Asleep(Sleep),
    /// It posts the token.
    Absent,
}

/// One sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep(u32);

/// How many arrivals there were at some time.
#[derive(Clone, Copy)]
pub struct Ages(u32);

impl Ages {
    /// How many arrivals lie between this one and the next at that time: those that waited longest have the largest age. One that came
    /// later has none, or less.
    pub fn of(self, arrival: u32) -> i32 {
        self.0.wrapping_sub(arrival) as i32
    }
}

#[repr(C, align(64))]
pub struct Looker {
    state: AtomicU32,
    /// The process that has it; 0: none.
    owner: AtomicU32,
    /// Which words have marks.
    top: AtomicU64,
    /// How many marks were set, so that programs find them in their order.
    arrivals: AtomicU32,
    /// Up to the end of the line. Not loom's, which need no line.
    _rest: [core::sync::atomic::AtomicU32; 11],
    words: [AtomicU64; WORDS],
}

/// Bytes from one looker to the next.
#[cfg(not(loom))]
pub const LOOKER_LEN: usize = size_of::<Looker>();
#[cfg(not(loom))]
const _: () = assert!(LOOKER_LEN == 64 + WORDS * 8);

impl Looker {
    pub fn new() -> Looker {
        Looker {
            state: AtomicU32::new(ABSENT),
            owner: AtomicU32::new(0),
            top: AtomicU64::new(0),
            arrivals: AtomicU32::new(0),
            _rest: Default::default(),
            words: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    fn change(&self, from: u32, to: u32) -> bool {
        self.state.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Marks a slot; the program does so, too, for a socket that has input when it comes to the set.
    fn mark(&self, slot: u32) {
        let at = slot as usize % MARKS;
        self.words[at / 64].fetch_or(1 << (at % 64), Ordering::AcqRel);
        self.top.fetch_or(1 << (at / 64), Ordering::AcqRel);
    }

    /// The number of the next arrival, if the slot has no mark yet: what comes beside a mark arrived with it.
    pub fn next_arrival(&self, slot: u32) -> Option<u32> {
        let at = slot as usize % MARKS;
        let is_marked = self.words[at / 64].load(Ordering::Relaxed) >> (at % 64) & 1 != 0;
        (!is_marked).then(|| self.arrivals.fetch_add(1, Ordering::Relaxed))
    }

    /// The ages of arrivals, counted from now. What is put in order needs one count for all, since more arrive meanwhile.
    pub fn ages(&self) -> Ages {
        Ages(self.arrivals.load(Ordering::Relaxed))
    }

    /// Transport, after it published input of this slot, whose page names this looker.
    pub fn tell(&self, slot: u32) -> Told {
        fence(Ordering::SeqCst);
        if !matches!(self.state.load(Ordering::Relaxed) & MODE, AWAKE..=RUNG) {
            return Told::Absent;
        }
        self.mark(slot);
        fence(Ordering::SeqCst);
        let state = self.state.load(Ordering::Relaxed);
        match state & MODE {
            AWAKE | RUNG => Told::Marked,
            ASLEEP => Told::Asleep(Sleep(state)),
            _ => Told::Absent,
        }
    }

    /// Transport: a message was sent that ends this sleep.
    pub fn rang(&self, sleep: Sleep) {
        self.change(sleep.0, sleep.0 & !MODE | RUNG);
    }

    /// Program: begins to look. False: another has this looker.
    pub fn claim(&self, owner: u32) -> bool {
        if self.owner.compare_exchange(0, owner, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        self.take(|_| {});
        self.set_mode(AWAKE);
        true
    }

    /// Program: nobody looks any more. After this it looks for input without a token, then gives the looker back.
    pub fn leave(&self) {
        self.set_mode(ABSENT);
        fence(Ordering::SeqCst);
    }

    /// The process that has it, as it sees itself.
    pub fn owner(&self) -> Option<u32> {
        Some(self.owner.load(Ordering::Acquire)).filter(|owner| *owner != 0)
    }

    /// Program: takes it from a process that is gone. False: another did.
    pub fn inherit(&self, is_gone: impl Fn(u32) -> bool) -> bool {
        let Some(owner) = self.owner().filter(|owner| is_gone(*owner)) else { return false };
        self.leave();
        self.owner.compare_exchange(owner, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    pub fn give_back(&self) {
        self.owner.store(0, Ordering::Release);
    }

    fn set_mode(&self, mode: u32) {
        let next = |state: u32| Some((state & !MODE).wrapping_add(COUNT) | mode);
        let _ = self.state.fetch_update(Ordering::SeqCst, Ordering::Relaxed, next);
    }

    /// Whether somebody has made it leave.
    pub fn is_absent(&self) -> bool {
        self.state.load(Ordering::Acquire) & MODE == ABSENT
    }

    /// Program: is going to sleep in the kernel. False: there are marks, and it must not.
    pub fn announce(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        if state & MODE != ABSENT {
            self.change(state, (state & !MODE).wrapping_add(COUNT) | ASLEEP);
        }
        fence(Ordering::SeqCst);
        !self.has_marks()
    }

    /// Program: runs again.
    pub fn awake(&self) {
        let state = self.state.load(Ordering::Relaxed);
        if matches!(state & MODE, ASLEEP | RUNG) && !self.change(state, state & !MODE | AWAKE) {
            // Rung just now.
            self.change(state & !MODE | RUNG, state & !MODE | AWAKE);
        }
    }

    /// Program: another thread than the sleeper took a token, maybe the one that was to wake it. True: it may sleep on beside
    /// marks, and a token is needed for what is marked.
    pub fn took_ring(&self) -> bool {
        // A new sleep, so that a transport which is about to say that it rang does not mean this one.
        let again = |state: u32| {
            matches!(state & MODE, ASLEEP | RUNG).then_some((state & !MODE).wrapping_add(COUNT) | ASLEEP)
        };
        if self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, again).is_err() {
            return false;
        }
        fence(Ordering::SeqCst);
        self.has_marks()
    }

    /// Program: the marks that are there, which stay.
    pub fn marks(&self) -> impl Iterator<Item = usize> {
        let word = |i: usize| (i, self.words[i].load(Ordering::SeqCst));
        (0..WORDS)
            .map(word)
            .flat_map(|(i, bits)| (0..64).filter(move |b| bits >> b & 1 != 0).map(move |b| i * 64 + b))
    }

    pub fn has_marks(&self) -> bool {
        self.top.load(Ordering::SeqCst) != 0
    }

    /// Program: takes all marks. The slots of each are looked at after this.
    pub fn take(&self, mut each: impl FnMut(usize)) {
        let mut top = self.top.swap(0, Ordering::SeqCst);
        while top != 0 {
            let word = top.trailing_zeros() as usize;
            top &= top - 1;
            let mut bits = self.words[word].swap(0, Ordering::SeqCst);
            while bits != 0 {
                each(word * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }
}

impl Default for Looker {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
