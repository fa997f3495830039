//! Older layouts of the filter's arena, and how each becomes the present one.

use super::{Entry, LAYOUT, States, examine, layout1};
use crate::config::FilterConfig;
use crate::state::State;
use eft_arena::{Fuse, Layout, Refused, Sums, copy_of};
use eft_channel::Segment;

/// The present layout with checksums that do not tell which bit has changed.
const LAYOUT_2: Layout =
    Layout { magic: *b"eft-flt\0", version: 2, items: &[size_of::<Entry>()], sums: Sums::First };

/// The states of an arena with a header, which stays as it is.
fn read(layout: Layout, arena: &Segment, config: &FilterConfig) -> Result<States, Refused> {
    let copy = copy_of(arena, &layout, config.states).ok_or(Refused::Foreign)?;
    Ok(States::open_as(layout, copy, config.states, config.seed, Fuse::default()).0)
}

/// Makes an empty segment an arena with these states.
fn write(layout: Layout, states: impl Iterator<Item = State>, to: Segment, config: &FilterConfig) {
    let (mut new, _) = States::open_as(layout, to, config.states, config.seed, Fuse::default());
    for state in states {
        if new.find(&state.flow).is_none() {
            new.insert(state);
        }
    }
    new.commit();
}

/// Converts the arena of an older eft into `new`, which is empty; `old` stays as it is.
pub fn convert(old: &Segment, new: Segment, config: &FilterConfig) -> Result<(), Refused> {
    match examine(old, config) {
        Err(Refused::Older { theirs: 1, .. }) => write(LAYOUT, layout1::read(old), new, config),
        Err(Refused::Older { theirs: 2, .. }) => {
            write(LAYOUT, read(LAYOUT_2, old, config)?.iter().copied(), new, config)
        }
        refused => return Err(refused.err().unwrap_or(Refused::Foreign)),
    }
    Ok(())
}

/// Takes a conversion back: what `ours` holds goes into `to`, which is empty, in the layout of `like`.
pub fn revert(ours: &Segment, like: &Segment, to: Segment, config: &FilterConfig) -> Result<(), Refused> {
    let states = read(LAYOUT, ours, config)?;
    match examine(like, config) {
        Err(Refused::Older { theirs: 1, .. }) => layout1::write(&to, states.iter()),
        Err(Refused::Older { theirs: 2, .. }) => {
            write(LAYOUT_2, states.iter().copied(), to, config);
            Ok(())
        }
        _ => Err(Refused::Foreign),
    }
}

#[cfg(test)]
mod tests;
