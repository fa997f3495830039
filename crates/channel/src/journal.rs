//! What the owner of a pool has in its slots, for its successor. A NIC's device gives a frame once, so a frame that was read and of
//! which ip was not told would die with the NIC.
//!
//! It lies in the pool's segment behind the slots. Each slot has an entry of two words; a few words more say up to which entry the
//! reader has been told, and are the device's note. The owner may end between any two stores, so their order in the program matters
//! (a successor sees all that a dead process stored):
//!
//! 1. [`Journal::begin`] wipes the note, then says what the entry is (it is being read), then gives it a number, by which it counts.
//! 2. The device reads the frame into the slot and writes its note, from which it can tell a successor what it read.
//! 3. [`Journal::put`] says in one word what the frame is. From here on the note is not needed.
//! 4. The message about the frame is written in the queue. The mark of its line says whether it was: the successor looks there.
//! 5. [`Journal::pass`] says that the lines of all entries so far are written, before they are overwritten.
//! 6. [`Journal::forget`] takes the number away when the slot is free, before it can be taken anew.

use crate::memory::PoolView;
use crate::segment::{OutOfBounds, Segment};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use eft_base::{PacketRef, PoolId};

/// Of the layout.
const VERSION: u64 = 1;
/// Bytes of the device's note.
pub const NOTE_LEN: usize = 32;
/// A note's bytes before the device writes it.
pub const WIPED: u8 = 0xff;

/// The version, and the pool's id.
const NAME: usize = 0;
const PASSED: usize = 8;
const NOTE: usize = 16;
const ENTRIES: usize = 64;
const ENTRY_LEN: usize = 16;

const CHECKSUM_OK: u64 = 1 << 24;
const JOINED: u64 = 1 << 25;
const PUSHED: u64 = 1 << 26;
const READING: u64 = 1 << 27;
const LEN_MASK: u64 = CHECKSUM_OK - 1;

/// What lies in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    pub len: u32,
    pub checksum_ok: bool,
    pub segment_size: u16,
    /// Its headers may still be those of the first of several frames; then, whether one of them had PSH.
    pub joined: Option<bool>,
}

impl Content {
    fn word(self) -> u64 {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        u64::from(self.len) & LEN_MASK
            | flag(self.checksum_ok, CHECKSUM_OK)
            | flag(self.joined.is_some(), JOINED)
            | flag(self.joined == Some(true), PUSHED)
            | u64::from(self.segment_size) << 32
    }

    fn of(word: u64) -> Content {
        Content {
            len: (word & LEN_MASK) as u32,
            checksum_ok: word & CHECKSUM_OK != 0,
            segment_size: (word >> 32) as u16,
            joined: (word & JOINED != 0).then_some(word & PUSHED != 0),
        }
    }
}

/// Bytes behind a pool of so many slots. They must be fewer than those of a slot: whoever maps a pool computes from its length how many
/// slots it has.
pub const fn len(slots: usize) -> usize {
    ENTRIES + slots * ENTRY_LEN
}

/// Where the journal of a pool begins, if it has one.
fn place(view: &PoolView) -> Option<usize> {
    let base = view.base + view.slots * view.slot_size;
    (view.segment.len() >= base + len(view.slots)).then_some(base)
}

/// Where the device's note lies in the segment of a pool with a journal.
pub fn note(view: &PoolView) -> Option<usize> {
    place(view).map(|base| base + NOTE)
}

/// The owner's side.
pub struct Journal {
    /// `None`: the pool has no room for one.
    memory: Option<(Segment, usize)>,
    /// Of the next entry.
    next: u64,
}

impl Journal {
    /// Begins the journal of an empty pool.
    pub fn new(id: PoolId, view: &PoolView) -> Journal {
        let base = place(view).filter(|_| view.segment.is_writable());
        let journal = Journal { memory: base.map(|base| (view.segment.clone(), base)), next: 1 };
        journal.store(NAME, VERSION << 32 | u64::from(id.0));
        journal
    }

    #[inline]
    fn word(&self, at: usize) -> Option<&AtomicU64> {
        let (segment, base) = self.memory.as_ref()?;
        segment.atomic_u64(base + at).ok()
    }

    #[inline]
    fn store(&self, at: usize, value: u64) {
        if let Some(word) = self.word(at) {
            // Each store is seen after those before it, also where the compiler could change their order.
            word.store(value, Ordering::Release);
        }
    }

    /// The device is about to read a frame into this slot.
    #[inline]
    pub fn begin(&mut self, slot: PacketRef) {
        for at in (0..NOTE_LEN).step_by(8) {
            self.store(NOTE + at, u64::from_ne_bytes([WIPED; 8]));
        }
        self.store(entry(slot.slot) + 8, READING | generation(slot));
        self.store(entry(slot.slot), self.next);
        self.next += 1;
    }

    /// That lies in the slot now.
    #[inline]
    pub fn put(&self, slot: PacketRef, content: Content) {
        self.store(entry(slot.slot) + 8, content.word() | generation(slot));
    }

    /// The slot is free, or about to be.
    #[inline]
    pub fn forget(&self, slot: u32) {
        self.store(entry(slot), 0);
    }

    /// The reader has a message about each entry so far.
    #[inline]
    pub fn pass(&self) {
        self.store(PASSED, self.next - 1);
    }

    /// The reader has a successor, which has no message yet.
    pub fn pass_nothing(&self) {
        self.store(PASSED, 0);
    }
}

#[inline]
fn entry(slot: u32) -> usize {
    ENTRIES + slot as usize * ENTRY_LEN
}

#[inline]
fn generation(slot: PacketRef) -> u64 {
    u64::from(slot.generation) << 48
}

/// A slot that a dead owner has not freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// All of the slot.
    pub slot: PacketRef,
    /// `None`: the owner died while the device read it.
    pub content: Option<Content>,
    /// The reader has a message about it.
    pub passed: bool,
}

/// What a dead owner has left in a pool, in the order in which it came. A sound owner was reading into the last one at most, so
/// nothing else is said of another.
pub fn left(view: &PoolView) -> Vec<Left> {
    read_left(view).unwrap_or_default()
}

fn read_left(view: &PoolView) -> Result<Vec<Left>, OutOfBounds> {
    let base = place(view).ok_or(OutOfBounds)?;
    let load = |at| Ok(view.segment.atomic_u64(base + at)?.load(Ordering::Acquire));
    let name = load(NAME)?;
    if name >> 32 != VERSION {
        return Ok(Vec::new());
    }
    let (passed, pool) = (load(PASSED)?, PoolId(name as u16));
    let mut entries = Vec::new();
    for slot in 0..view.slots as u32 {
        let (number, word) = (load(entry(slot))?, load(entry(slot) + 8)?);
        if number > 0 {
            entries.push((number, slot, word));
        }
    }
    entries.sort_unstable();
    let last = entries.len();
    let all = entries.into_iter().zip(1..).filter(|((_, _, word), nth)| word & READING == 0 || *nth == last);
    let left = all.map(|((number, slot, word), _)| Left {
        slot: PacketRef {
            pool,
            generation: (word >> 48) as u16,
            slot,
            offset: 0,
            len: view.slot_size as u32,
        },
        content: (word & READING == 0).then(|| Content::of(word)),
        passed: number <= passed,
    });
    Ok(left.collect())
}

#[cfg(test)]
mod tests;
