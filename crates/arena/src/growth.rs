//! How many items of an arena are initialized. Items are initialized when they are first needed, so that a short table takes
//! little memory and little time to take over.

use eft_channel::Segment;

use super::layout::{Header, Layout, TableLayout};
use super::sum::SUM_LEN;

/// How many items are initialized at a time.
pub(crate) const CHUNK: usize = 64;

/// How many items of each table are initialized.
///
/// The header's number has no checksum, so the items must bear it out. They do not if a bit of it has changed, or if the
/// predecessor died between the last step of growing and the new number; then a number that either would explain counts if
/// the items bear it out. Else all items count as initialized and are checked.
pub(crate) fn made(segment: &Segment, layout: &Layout, count: usize, header: &Header) -> usize {
    let stored = header.made;
    let possible = |n: u64| usize::try_from(n).ok().filter(|n| is_possible(*n, count));
    let grown = possible(stored).map(|n| (n + CHUNK).min(count) as u64);
    let flipped = (0..u64::BITS).map(|bit| stored ^ 1 << bit);
    core::iter::once(stored)
        .chain(grown)
        .chain(flipped)
        .filter_map(possible)
        .find(|n| is_borne_out(segment, layout, count, *n))
        .unwrap_or(count)
}

/// Whether an engine writes such a number.
fn is_possible(made: usize, count: usize) -> bool {
    made == count || made > 0 && made < count && made.is_multiple_of(CHUNK)
}

/// Whether the last of so many items is initialized, and the one behind it is not.
fn is_borne_out(segment: &Segment, layout: &Layout, count: usize, made: usize) -> bool {
    let is_written =
        |i: usize| (0..layout.items.len()).any(|table| is_written(segment, layout, count, table, i));
    is_written(made - 1) && (made == count || !is_written(made))
}

/// Whether anything was ever written to an item or to its checksum.
fn is_written(segment: &Segment, layout: &Layout, count: usize, table: usize, index: usize) -> bool {
    let item = layout.items[table];
    let base = layout.offset(table, count);
    let places =
        [(base + index * item, item), (base + TableLayout::of(item, count).sums + index * SUM_LEN, SUM_LEN)];
    places.into_iter().any(|(at, len)| {
        let mut bytes = alloc::vec![0; len];
        segment.read(at, &mut bytes).is_ok() && bytes.iter().any(|b| *b != 0)
    })
}
