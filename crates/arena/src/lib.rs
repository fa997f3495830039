//! The durable arena of an engine: a versioned header, and tables of plain data without pointers.
//!
//! **Turns.** The changes of a turn take effect all at once, when [`Arena::commit`] ends it. The first time that an item is
//! borrowed for change in a turn, its checksum is verified and its image goes into the table's undo area; at the commit the
//! changed items get new checksums, and then one store of the turn's number invalidates every image. A server that dies before
//! that leaves images of the uncommitted turn, and [`Arena::open`] restores them.
//!
//! Only the death of the process matters, so program order is enough: compiler fences, no others.
//!
//! **Damage.** An item that was changed by other code fails its checksum. In the middle of a turn an assertion then ends the
//! server; when the arena is opened, [`Table::mend`] finds the bit that has changed and changes it back. If more has changed,
//! only that item is given up.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod copies;
pub mod docket;
mod fuse;
mod growth;
mod layout;
mod layout2;
mod sum;
mod table;
#[cfg(test)]
mod tests;

use crate::docket::{Docket, Finding};
use alloc::rc::Rc;
use alloc::vec;
use core::cell::Cell;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use eft_channel::Segment;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

pub use copies::{copies, copy_of};
pub use fuse::{FUSE_BURNT, Fuse};
pub use layout::examine;
pub use layout::{Layout, Refused};
pub use layout2::{new_v2, read_v2, write_v2};
pub use sum::Sums;
pub use table::{Item, Soundness, Table};

use growth::{CHUNK, made};
use layout::{
    Header, Kind, MADE, OPEN_AT, TURN, TableLayout, UNDO_HEAD, UndoHead, kind, new_header, write_header,
};
use sum::SUM_LEN;

/// What a table may hold.
pub trait Plain: FromBytes + IntoBytes + Immutable + KnownLayout + Copy {}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout + Copy> Plain for T {}

/// An arena in use by its owner.
pub struct Arena {
    segment: Segment,
    layout: Layout,
    count: usize,
    turn: Rc<Cell<u64>>,
    fuse: Fuse,
    pub secret: [u64; 2],
    /// Whether it holds a predecessor's state.
    pub reborn: bool,
    /// How many items of each table are initialized.
    made: usize,
    /// Whether its header is written.
    established: bool,
    /// Whether the predecessor sealed what it changed.
    sealed: bool,
}

impl Arena {
    /// Opens an arena of `count` items: initializes it, with secrets from `seed`, if it is empty; else undoes what was not
    /// committed. The caller must still check or initialize the tables' items.
    ///
    /// Panics if the segment is shorter than [`Layout::arena_len`] says or not writable, which is a mistake in the server's
    /// setup.
    pub fn open(segment: Segment, layout: Layout, count: usize, seed: u64) -> Result<Arena, Refused> {
        Arena::open_with(segment, layout, count, seed, Fuse::default())
    }

    /// The same with a fuse, which may be lit.
    pub fn open_with(
        segment: Segment,
        layout: Layout,
        count: usize,
        seed: u64,
        fuse: Fuse,
    ) -> Result<Arena, Refused> {
        segment.range_mut(0, layout.arena_len(count)).expect("the arena has the length that was asked for");
        let (header, reborn) = match kind(&segment, &layout, count) {
            Kind::Ours(header) => (Header { lives: header.lives.wrapping_add(1), ..header }, true),
            Kind::Empty => (new_header(&layout, count, seed), false),
            Kind::Not(refused) => return Err(refused),
        };
        let made = if reborn { made(&segment, &layout, count, &header) } else { 0 };
        let sealed = Arena::open_mark(&segment).load(Ordering::Relaxed) == 0;
        let arena = Arena {
            segment,
            layout,
            count,
            turn: Rc::new(Cell::new(header.turn)),
            fuse,
            secret: header.secret,
            reborn,
            made,
            established: reborn,
            sealed,
        };
        for table in 0..layout.items.len() {
            arena.roll_back(table);
        }
        if reborn {
            // The images are restored, and the next turn has none yet.
            compiler_fence(Ordering::SeqCst);
            let turn = after(header.turn);
            arena.turn.set(turn);
            write_header(&arena.segment, &Header { turn, made: made as u64, ..header }, &arena.fuse);
        }
        Ok(arena)
    }

    /// Not 0 if the owner left items open ([`Table::leave_open`]).
    fn open_mark(segment: &Segment) -> &AtomicU64 {
        segment.atomic_u64(OPEN_AT).expect("length was checked")
    }

    /// The items of each table to be initialized next, from the last one to the first; then the caller calls [`Arena::keep`].
    /// Empty if there is no more room.
    pub fn growth(&self) -> Range<u32> {
        self.made as u32..(self.made + CHUNK).min(self.count) as u32
    }

    /// Records that all items before `end` are initialized.
    pub fn keep(&mut self, end: u32) {
        self.made = end as usize;
        if self.established {
            self.fuse.burn();
            compiler_fence(Ordering::SeqCst);
            let made: &AtomicU64 = self.segment.atomic_u64(MADE).expect("length was checked");
            made.store(end as u64, Ordering::Release);
            compiler_fence(Ordering::SeqCst);
        }
    }

    /// Writes the header of a new arena, once its first items are initialized: an arena whose owner dies before that
    /// counts as empty. All items are sealed.
    pub fn establish(&mut self) {
        self.established = true;
        self.fuse.burn();
        Arena::open_mark(&self.segment).store(0, Ordering::Relaxed);
        if !self.reborn {
            let made = self.made as u64;
            let header = Header { secret: self.secret, made, ..new_header(&self.layout, self.count, 0) };
            compiler_fence(Ordering::SeqCst);
            write_header(&self.segment, &header, &self.fuse);
        }
    }

    /// Restores the images of the uncommitted turn.
    fn roll_back(&self, table: usize) {
        let item = self.layout.items[table];
        let base = self.layout.offset(table, self.count);
        let TableLayout { sums, undo, .. } = TableLayout::of(item, self.count);
        let mut image = vec![0u64; item / 8];
        for n in 0..self.made {
            let mut head = UndoHead::new_zeroed();
            let at = base + undo + n * (UNDO_HEAD + item);
            self.segment.read(at, head.as_mut_bytes()).expect("length was checked");
            let i = head.index as usize;
            if head.turn != self.turn.get() || head.turn == 0 || i >= self.count {
                break;
            }
            self.segment.read(at + UNDO_HEAD, image.as_mut_bytes()).expect("length was checked");
            self.fuse.write_item(&self.segment, base + i * item, image.as_bytes());
            let sum = self.layout.sums.of_words(&image);
            self.fuse.write(&self.segment, base + sums + i * SUM_LEN, sum.as_bytes());
        }
    }

    /// The items of a table, which is given by its index in [`Layout::items`]. Call once per table.
    pub fn table<T: Plain>(&self, table: usize) -> Table<T> {
        assert_eq!(self.layout.items[table], size_of::<T>());
        const { assert!(align_of::<T>() <= 8 && size_of::<T>().is_multiple_of(8)) };
        Table::new(
            &self.segment,
            &self.layout,
            table,
            [self.made, self.count],
            &self.turn,
            &self.fuse,
            self.sealed,
        )
    }

    /// Ends the turn: one store makes its changes valid. Every table must be sealed before ([`Table::seal`]).
    pub fn commit(&self) {
        let next = after(self.turn.get());
        self.fuse.burn();
        compiler_fence(Ordering::SeqCst);
        let turn: &AtomicU64 = self.segment.atomic_u64(TURN).expect("length was checked");
        turn.store(next, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
        self.turn.set(next);
        self.fuse.burn();
    }

    /// The docket, and what it says about the predecessor's death.
    pub fn docket(&self) -> (Docket, Finding) {
        Docket::open_with(self.segment.clone(), self.fuse.clone())
    }

    /// For tests of sudden death: see [`Fuse`].
    pub fn fuse(&self) -> Fuse {
        self.fuse.clone()
    }
}

/// The number of the next turn. A stray write may have left any number, so it wraps. 0 is not the number of a turn,
/// because an undo area that was never written holds 0.
fn after(turn: u64) -> u64 {
    turn.wrapping_add(1).max(1)
}
