//! Arenas of layout 1: a magic number, and entries in a row, each with a checksum over itself and written when it changed.

use super::{Entry, LAYOUT, States, examine};
use crate::config::FilterConfig;
use crate::state::State;
use eft_arena::{Refused, copy_of};
use eft_channel::Segment;
use zerocopy::{FromZeros, IntoBytes};

const MAGIC: u64 = u64::from_le_bytes(*b"eftflt\x01\0");
const HEADER_LEN: usize = 64;
const ENTRY_LEN: usize = size_of::<Entry>();

pub(super) fn is_one(arena: &Segment) -> bool {
    let mut magic = 0u64;
    arena.read(0, magic.as_mut_bytes()).is_ok() && magic == MAGIC
}

/// FNV-1a over all but the last word, where it lies.
fn sum(entry: &Entry) -> u32 {
    let bytes = &entry.as_bytes()[..ENTRY_LEN - 4];
    bytes.iter().fold(0x811c_9dc5, |h: u32, b| (h ^ *b as u32).wrapping_mul(0x0100_0193))
}

/// The states that are whole.
fn read(arena: &Segment) -> impl Iterator<Item = State> {
    let count = arena.len().saturating_sub(HEADER_LEN) / ENTRY_LEN;
    (0..count).filter_map(move |i| {
        let mut entry = Entry::new_zeroed();
        arena.read(HEADER_LEN + i * ENTRY_LEN, entry.as_mut_bytes()).ok()?;
        entry.state().filter(|_| entry.last == sum(&entry))
    })
}

/// Converts the arena of an older eft into `new`, which is empty; `old` stays as it is.
pub fn convert(old: &Segment, new: Segment, config: &FilterConfig) -> Result<(), Refused> {
    if !is_one(old) {
        return Err(examine(old, config).err().unwrap_or(Refused::Foreign));
    }
    let (mut states, _) = States::open(new, config.states, config.seed);
    for state in read(old) {
        if states.find(&state.flow).is_none() {
            states.insert(state);
        }
    }
    states.commit();
    Ok(())
}

/// Takes a conversion back: what `ours` holds goes into `to`, which is empty, in the layout of `like`.
pub fn revert(ours: &Segment, like: &Segment, to: Segment, config: &FilterConfig) -> Result<(), Refused> {
    if !is_one(like) {
        return Err(Refused::Foreign);
    }
    let copy = copy_of(ours, &LAYOUT, config.states).ok_or(Refused::Foreign)?;
    let (states, _) = States::open(copy, config.states, config.seed);
    for (i, state) in states.iter().enumerate() {
        let mut entry = Entry::new(state);
        entry.last = sum(&entry);
        let at = HEADER_LEN + i * ENTRY_LEN;
        to.write(at, entry.as_bytes()).map_err(|_| Refused::Foreign)?;
    }
    to.write(0, MAGIC.as_bytes()).map_err(|_| Refused::Foreign)
}

#[cfg(test)]
mod tests;
