//! Threads of programs that sleep on a word of a socket's page instead of its descriptor.
//!
//! A thread that reads from a stream announces itself here and looks at the ring once more before it sleeps; a transport that
//! finds it when input arrives wakes it and leaves the token out ([`crate::token`]), since this thread takes the input. If it
//! does not after all, the transport notices and posts the token then. Announcer: write the word, fence, look again. Transport:
//! publish, fence, read the word. One of the two sees the other's write; `tests/loom.rs` checks it.
//!
//! Threads of one process that are handed input in the same turn wake each other: each finds the slot of the next in its word, so
//! the transport makes one call for all of them.

use crate::atomic::{AtomicU32, Ordering, fence};

/// The low two bits say what the word means.
const KIND: u32 = 3;
/// No thread sleeps. What lies above is one more than the slot whose sleeper the woken thread wakes, or 0.
const NONE: u32 = 0;
/// A thread waits for any change of the descriptor's state, which is mirrored there as ever.
const WATCHER: u32 = 1;
/// A thread waits for input and takes it. Its process's tag lies above.
const READER: u32 = 2;
/// No thread sleeps, but there is input for which the token was left out, and somebody waits for the token.
const WANTED: u32 = 3;
const SHIFT: u32 = 2;

/// Distinguishes the processes of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(u32);

impl Tag {
    pub fn of_process(pid: u32) -> Tag {
        Tag(pid & (u32::MAX >> SHIFT))
    }
}

/// What a thread finds when it stops sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It was not woken; others may sleep here that this thread silenced.
    ByItself,
    /// It was handed input.
    Woken,
    /// It was handed input, and wakes the sleeper of this slot.
    WokenBefore(u32),
}

impl Left {
    fn of(word: u32) -> Left {
        match (word & KIND, next(word)) {
            (NONE, None) => Left::Woken,
            (NONE, Some(slot)) => Left::WokenBefore(slot),
            _ => Left::ByItself,
        }
    }
}

/// The word. 0 in a fresh page.
#[repr(C)]
pub struct Sleepers(AtomicU32);

impl Sleepers {
    pub fn new() -> Sleepers {
        Sleepers(AtomicU32::new(NONE))
    }

    /// The word itself, for the kernel.
    pub fn word(&self) -> &AtomicU32 {
        &self.0
    }

    fn put(&self, word: u32) -> Option<u32> {
        let before = self.0.swap(word, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        next(before)
    }

    /// Application: is going to sleep while the word has the value that is returned, until the descriptor's state changes.
    pub fn announce_watcher(&self) -> u32 {
        self.put(WATCHER);
        WATCHER
    }

    /// Application: is going to sleep while the word has the first value that is returned, until there is input. Look at the
    /// socket after this. The second: a slot whose sleeper is to be woken first, because the thread that was to do it has not
    /// yet.
    pub fn announce_reader(&self, tag: Tag) -> (u32, Option<u32>) {
        let word = READER | tag.0 << SHIFT;
        (word, self.put(word))
    }

    /// Application: does not sleep any more.
    pub fn leave(&self) -> Left {
        let before = self.0.swap(NONE, Ordering::SeqCst);
        // The caller looks at the socket once more.
        fence(Ordering::SeqCst);
        Left::of(before)
    }

    /// Application: there is input without a token, and one is needed. Tell the transport after this. Who was to sleep or to be
    /// woken here may be gone; see [`Sleepers::leave`].
    pub fn want_token(&self) -> Left {
        Left::of(self.0.swap(WANTED, Ordering::SeqCst))
    }

    /// Transport, after it published input: the process of a thread that takes it.
    pub fn reader(&self) -> Option<Tag> {
        fence(Ordering::SeqCst);
        let word = self.0.load(Ordering::Relaxed);
        (word & KIND == READER).then_some(Tag(word >> SHIFT))
    }

    /// Transport: hands the input over to the reader, which wakes the sleeper of `next`. False: it does not sleep any more, and
    /// looks at the socket by itself.
    pub fn hand(&self, reader: Tag, next: Option<u32>) -> bool {
        let word = next.map_or(NONE, |slot| slot.wrapping_add(1) << SHIFT);
        let reader = READER | reader.0 << SHIFT;
        self.0.compare_exchange(reader, word, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Transport, after the descriptor's state changed: whether threads are to be woken.
    pub fn silence(&self) -> bool {
        let sleeps = |word: u32| matches!(word & KIND, WATCHER | READER);
        sleeps(self.0.load(Ordering::SeqCst))
            && self
                .0
                .fetch_update(Ordering::SeqCst, Ordering::Relaxed, |word| sleeps(word).then_some(NONE))
                .is_ok()
    }

    /// Transport: whether somebody waits for the token.
    pub fn take_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed) == WANTED
            && self.0.compare_exchange(WANTED, NONE, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }
}

impl Default for Sleepers {
    fn default() -> Self {
        Self::new()
    }
}

/// The slot that a word links to.
fn next(word: u32) -> Option<u32> {
    (word & KIND == NONE).then(|| (word >> SHIFT).checked_sub(1)).flatten()
}

#[cfg(test)]
mod tests;
