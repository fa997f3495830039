//! Arenas of layout 1: a magic number, and entries in a row, each with a checksum over itself and written when it changed.

use super::Entry;
use crate::state::State;
use eft_arena::Refused;
use eft_channel::Segment;
use zerocopy::{FromZeros, IntoBytes};

pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"eftflt\x01\0");
pub(super) const HEADER_LEN: usize = 64;
pub(super) const ENTRY_LEN: usize = size_of::<Entry>();

pub(super) fn is_one(arena: &Segment) -> bool {
    let mut magic = 0u64;
    arena.read(0, magic.as_mut_bytes()).is_ok() && magic == MAGIC
}

/// FNV-1a over all but the last word, where it lies.
pub(super) fn sum(entry: &Entry) -> u32 {
    let bytes = &entry.as_bytes()[..ENTRY_LEN - 4];
    bytes.iter().fold(0x811c_9dc5, |h: u32, b| (h ^ *b as u32).wrapping_mul(0x0100_0193))
}

/// The states that are whole.
pub(super) fn read(arena: &Segment) -> impl Iterator<Item = State> {
    let count = arena.len().saturating_sub(HEADER_LEN) / ENTRY_LEN;
    (0..count).filter_map(move |i| {
        let mut entry = Entry::new_zeroed();
        arena.read(HEADER_LEN + i * ENTRY_LEN, entry.as_mut_bytes()).ok()?;
        entry.state().filter(|_| entry.last == sum(&entry))
    })
}

/// Makes an empty segment an arena with these states.
pub(super) fn write<'a>(to: &Segment, states: impl Iterator<Item = &'a State>) -> Result<(), Refused> {
    for (i, state) in states.enumerate() {
        let mut entry = Entry::new(state);
        entry.last = sum(&entry);
        let at = HEADER_LEN + i * ENTRY_LEN;
        to.write(at, entry.as_bytes()).map_err(|_| Refused::Foreign)?;
    }
    to.write(0, MAGIC.as_bytes()).map_err(|_| Refused::Foreign)
}
