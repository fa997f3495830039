//! Copies of arenas and of their items, for those who only read.

use eft_channel::Segment;

use super::growth::made;
use super::layout::{HEADER_LEN, Kind, Layout, TableLayout, UNDO_HEAD, header, kind};
use super::sum::SUM_LEN;
use crate::Plain;

/// A copy of an arena, which can be opened without changing the original; `None` if it is not of this layout.
pub fn copy_of(segment: &Segment, layout: &Layout, count: usize) -> Option<Segment> {
    let Kind::Ours(header) = kind(segment, layout, count) else { return None };
    let copy = Segment::heap(layout.arena_len(count));
    segment.copy_to(0, &copy, 0, HEADER_LEN).ok()?;
    // The copy holds only initialized items. Images exist only of these.
    let made = made(segment, layout, count, &header);
    for (table, item) in layout.items.iter().enumerate() {
        let base = layout.offset(table, count);
        let TableLayout { sums, undo, .. } = TableLayout::of(*item, count);
        for (at, len) in [(0, *item), (sums, SUM_LEN), (undo, UNDO_HEAD + *item)] {
            segment.copy_to(base + at, &copy, base + at, made * len).ok()?;
        }
    }
    Some(copy)
}

/// Copies of all initialized items of a table, for readers; `None` if this is not an arena of this layout.
pub fn copies<T: Plain>(segment: &Segment, layout: Layout, table: usize) -> Option<impl Iterator<Item = T>> {
    let count = usize::try_from(header(segment)?.count).ok().filter(|n| *n <= segment.len())?;
    let Kind::Ours(header) = kind(segment, &layout, count) else { return None };
    let base = layout.offset(table, count);
    Some((0..made(segment, &layout, count, &header)).filter_map(move |i| {
        let mut item = T::new_zeroed();
        segment.read(base + i * size_of::<T>(), item.as_mut_bytes()).ok()?;
        Some(item)
    }))
}
