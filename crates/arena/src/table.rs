//! Tables of an arena: an item's image is saved before the item changes, and the item is sealed with a checksum
//! afterwards.

use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut, Index, IndexMut, Range};
use core::sync::atomic::{Ordering, compiler_fence};

use eft_channel::Segment;

use super::fuse::Fuse;
use super::layout::{Layout, OPEN_AT, TableLayout, UNDO_HEAD, UndoHead};
use super::sum::{Flip, Pair, SUM_LEN, Sum, Sums, Way, find, words_mut};
use crate::Plain;

/// Items of one kind. Every index is checked.
pub struct Table<T> {
    segment: Segment,
    /// How many items are initialized.
    len: usize,
    /// How many items fit.
    capacity: usize,
    /// Offsets in the segment.
    items: usize,
    sums: usize,
    undo: usize,
    turn: Rc<Cell<u64>>,
    /// The items whose images are in the undo area, in order.
    saved: Vec<u32>,
    /// A bit for each of those items. None is set while a fuse is lit: then every access takes the slow path.
    marks: Vec<u64>,
    fuse: Fuse,
    way: Way,
    /// Whether an item with a changed bit is what was sealed, apart from that bit.
    mends: bool,
    kind: PhantomData<T>,
}

/// What became of an item while it was in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Soundness {
    /// It is as it was last committed.
    Intact,
    /// It is so again: a bit had changed.
    Mended,
    Damaged,
}

impl Soundness {
    pub fn is_sound(self) -> bool {
        self != Soundness::Damaged
    }
}

impl<T: Plain> Table<T> {
    /// `table` is the index in [`Layout::items`]; the segment is as long as the layout says.
    pub(crate) fn new(
        segment: &Segment,
        layout: &Layout,
        table: usize,
        [len, count]: [usize; 2],
        turn: &Rc<Cell<u64>>,
        fuse: &Fuse,
        sealed: bool,
    ) -> Self {
        let base = layout.offset(table, count);
        let TableLayout { sums, undo, .. } = TableLayout::of(size_of::<T>(), count);
        Table {
            segment: segment.clone(),
            len,
            capacity: count,
            items: base,
            sums: base + sums,
            undo: base + undo,
            turn: turn.clone(),
            saved: Vec::new(),
            marks: vec![0; count.div_ceil(64)],
            fuse: fuse.clone(),
            way: Way::best(layout.sums),
            mends: sealed && layout.sums == Sums::Second,
            kind: PhantomData,
        }
    }

    /// How many items are initialized.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many items fit.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Initializes items behind the present ones ([`super::Arena::growth`]), from the last one to the first.
    pub fn grow(&mut self, items: Range<u32>, item: T) {
        self.len = items.end as usize;
        for i in items.rev() {
            self.make(i, item);
        }
    }

    #[inline]
    fn at(&self, index: u32) -> *mut T {
        assert!((index as usize) < self.len, "block index");
        let offset = self.items + index as usize * size_of::<T>();
        // SAFETY: `Arena::open` checked that the whole table lies in the segment.
        unsafe { self.segment.as_ptr().add(offset).cast::<T>() }
    }

    fn sum_at(&self, index: u32) -> *mut Sum {
        let offset = self.sums + index as usize * SUM_LEN;
        // SAFETY: as in `at`, which every caller calls first.
        unsafe { self.segment.as_ptr().add(offset).cast::<Sum>() }
    }

    /// Whether the item was sealed with this checksum. Its words are loaded one by one, as they were stored: a load of both would
    /// wait until they are in the cache.
    #[inline(always)]
    fn has_sum(&self, index: u32, sum: Pair) -> bool {
        let first = self.sum_at(index).cast::<u64>();
        // SAFETY: as in `save`; nothing is changed.
        unsafe { first.read_volatile() == sum.0 && first.add(1).read_volatile() == sum.1 }
    }

    /// Saves the image of an item that is about to change for the first time in this turn.
    #[inline(never)]
    fn save(&mut self, index: u32) {
        if self.fuse.is_lit() {
            return self.save_or_die(index);
        }
        self.keep_image(index, |_| ());
        self.marks[index as usize / 64] |= 1 << (index % 64);
    }

    /// The same while a fuse is lit. The item gets no mark, so that its next change counts as an access, too.
    #[cold]
    fn save_or_die(&mut self, index: u32) {
        self.fuse.burn();
        if !self.saved.contains(&index) {
            self.keep_image(index, |table| table.fuse.burn());
        }
    }

    /// `die` may end the server, before any store.
    #[inline(always)]
    fn keep_image(&mut self, index: u32, die: impl Fn(&Self)) {
        let item = self.at(index);
        let n = self.saved.len();
        assert!(n < self.capacity, "every item has room for its image");
        let entry = self.undo + n * (UNDO_HEAD + size_of::<T>());
        // SAFETY: the item, its sum and the entry lie in the segment (`at`, the assertion above), do not overlap, and
        // are aligned to 8, since the segment and all lengths are. No reference to any of them exists, because `self`
        // is borrowed exclusively.
        unsafe {
            let head = self.segment.as_ptr().add(entry).cast::<UndoHead>();
            let sum = self.way.sum_and_copy(&*item, &mut *head.add(1).cast::<T>());
            assert!(self.has_sum(index, sum), "item {index} was changed by a stray write");
            die(self);
            (*head).index = index as u64;
            die(self);
            compiler_fence(Ordering::SeqCst);
            (&raw mut (*head).turn).write_volatile(self.turn.get());
        }
        compiler_fence(Ordering::SeqCst);
        die(self);
        self.saved.push(index);
    }

    /// Gives every item that changed in this turn its checksum. Nothing may change between this and the commit.
    #[inline]
    pub fn seal(&mut self) {
        if !self.saved.is_empty() {
            self.seal_saved();
        }
    }

    fn seal_saved(&mut self) {
        for n in 0..self.saved.len() {
            let index = self.saved[n];
            self.reseal(index);
            self.marks[index as usize / 64] &= !(1 << (index % 64));
        }
        self.saved.clear();
    }

    /// From now on no item is imaged or sealed, so that changes do not survive a death. The table must be sealed
    /// before. A successor must not take a changed item for a damaged one and change it back.
    pub fn leave_open(&mut self) {
        self.segment.write(OPEN_AT, &1u64.to_le_bytes()).expect("length was checked");
        // All marks are set, as if every image existed: an access costs the same test of a mark as before.
        self.marks.fill(u64::MAX);
    }

    #[inline]
    fn reseal(&mut self, index: u32) {
        let (first, second) = self.way.sum(&self[index]);
        let sum = self.sum_at(index).cast::<u64>();
        self.fuse.burn();
        // SAFETY: as in `save`; a sum is two words.
        unsafe { sum.write(first) };
        self.fuse.burn_in_tests();
        // SAFETY: as above.
        unsafe { sum.add(1).write(second) };
    }

    /// Whether an item is as it was last committed. For an arena that is being opened.
    pub fn is_intact(&self, index: u32) -> bool {
        self.has_sum(index, self.way.sum(&self[index]))
    }

    /// The same, after a single changed bit of the item or of its checksum was changed back: the only one that makes both fit
    /// each other and the item valid. For an arena that is being opened.
    pub fn mend(&mut self, index: u32, is_valid: impl Fn(&T) -> bool) -> Soundness {
        if self.is_intact(index) {
            return Soundness::Intact;
        }
        if !self.mends {
            return Soundness::Damaged;
        }
        let damaged = self[index];
        // SAFETY: as in `save`; nothing is changed.
        let sum = unsafe { *self.sum_at(index) };
        let mut valid = find(words_mut(&mut { damaged }), sum).into_iter().filter_map(|flip| {
            let mut item = damaged;
            if let Flip::Word(at, bit) = flip {
                words_mut(&mut item)[at] ^= 1 << bit;
            }
            is_valid(&item).then_some(item)
        });
        let (Some(item), None) = (valid.next(), valid.next()) else {
            return Soundness::Damaged;
        };
        self.make(index, item);
        Soundness::Mended
    }

    /// Overwrites an item with a new one. For an arena that is being opened.
    pub fn make(&mut self, index: u32, item: T) {
        self.at(index);
        let at = self.items + index as usize * size_of::<T>();
        self.fuse.write_item(&self.segment, at, item.as_bytes());
        self.reseal(index);
    }
}

/// One item of a table. Only a mutable borrow counts as a change.
pub struct Item<'a, T: Plain> {
    table: &'a mut Table<T>,
    index: u32,
}

impl<T: Plain> Table<T> {
    #[inline]
    pub fn item(&mut self, index: u32) -> Item<'_, T> {
        Item { table: self, index }
    }
}

impl<T: Plain> Deref for Item<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // A read is an access, too. A release build does not check the fuse here.
        if cfg!(debug_assertions) {
            self.table.fuse.burn();
        }
        &self.table[self.index]
    }
}

impl<T: Plain> DerefMut for Item<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.table[self.index]
    }
}

impl<T: Plain> Index<u32> for Table<T> {
    type Output = T;
    #[inline]
    fn index(&self, index: u32) -> &T {
        // SAFETY: in bounds; aligned, as the segment is to 64 bytes and all lengths are multiples of 8; any bit pattern is
        // an item; the arena is mapped writable by this server alone, and this borrow is tied to that of `self`.
        unsafe { &*self.at(index) }
    }
}

impl<T: Plain> IndexMut<u32> for Table<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        let marked = self.marks.get(index as usize / 64).is_some_and(|m| m >> (index % 64) & 1 != 0);
        if !marked {
            self.save(index);
        }
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { &mut *self.at(index) }
    }
}
