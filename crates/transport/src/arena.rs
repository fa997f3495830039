//! The durable arena of a transport: a versioned header, and tables of plain data without pointers.
//!
//! **Turns.** What changes in a turn counts when [`Arena::commit`] has ended it, all at once. The first time that an
//! item is borrowed for change in a turn, its checksum is verified and its image goes into the table's undo area; at the
//! commit the changed items get new checksums, and then one store of the turn's number makes every image worthless. A
//! server that dies before leaves images of the turn that was not committed, and [`Arena::open`] puts them back.
//!
//! Only the death of the process matters, so the order of the program is enough: compiler fences, no others.
//!
//! **Damage.** An item that was changed past this file fails its checksum. In the middle of a turn that ends the server
//! (an assertion); when the arena is opened [`Table::is_intact`] says so, and the item alone is given up.

use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut, Index, IndexMut};
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use eft_channel::Segment;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Bytes before the first table.
const HEADER_LEN: usize = 4096;
/// Tables begin at multiples of it, and so does every item whose length is one.
const LINE: usize = 64;
/// Tables of one arena at most.
const TABLES_MAX: usize = 4;

/// What may lie in a table.
pub trait Plain: FromBytes + IntoBytes + Immutable + KnownLayout + Copy {}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout + Copy> Plain for T {}

/// What an arena holds.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Whose it is.
    pub magic: [u8; 8],
    pub version: u32,
    /// Bytes of an item of each table.
    pub items: &'static [usize],
}

impl Layout {
    /// Bytes of an arena of `count` items in each table.
    pub const fn arena_len(&self, count: usize) -> usize {
        self.offset(self.items.len(), count)
    }

    /// Where a table begins.
    const fn offset(&self, table: usize, count: usize) -> usize {
        let mut at = HEADER_LEN;
        let mut i = 0;
        while i < table {
            at += TableLayout::of(self.items[i], count).end;
            i += 1;
        }
        at
    }
}

/// Offsets within a table.
struct TableLayout {
    sums: usize,
    undo: usize,
    end: usize,
}

impl TableLayout {
    const fn of(item: usize, count: usize) -> TableLayout {
        let sums = (item * count).next_multiple_of(LINE);
        let undo = sums + (SUM_LEN * count).next_multiple_of(LINE);
        TableLayout { sums, undo, end: undo + (UNDO_HEAD + item) * count.next_multiple_of(LINE) }
    }
}

/// Starts the arena.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    magic: u64,
    version: u32,
    tables: u32,
    count: u64,
    /// The turn that is not committed yet.
    turn: u64,
    /// Key of initial sequence numbers (RFC 6528) and of hash tables.
    secret: [u64; 2],
    /// Lives of the engine so far.
    lives: u64,
    items: [u64; TABLES_MAX],
}

const TURN: usize = core::mem::offset_of!(Header, turn);

/// Why an arena is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Its layout is older: it is converted into another arena (`convert` of tcp and udp), so that who wrote it can go on
    /// with it if the successor fails.
    Older { theirs: u32, ours: u32 },
    /// A later version of eft made it.
    Newer { theirs: u32, ours: u32 },
    /// Something else made it, or for another number of sockets.
    Foreign,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Refused::Older { theirs, ours } => write!(
                f,
                "the arena has layout {theirs}, and this eft keeps layout {ours}: give it a new arena to convert it into"
            ),
            Refused::Newer { theirs, ours } => write!(
                f,
                "the arena has layout {theirs}, and this eft knows no later one than {ours}: start the eft that wrote it"
            ),
            Refused::Foreign => write!(
                f,
                "the arena is of another component, or for another number of sockets: start the stack anew"
            ),
        }
    }
}

/// What an arena is, before anything of it is believed or changed.
enum Kind {
    Empty,
    Ours(Header),
    Not(Refused),
}

fn kind(segment: &Segment, layout: &Layout, count: usize) -> Kind {
    let mut header = Header::new_zeroed();
    if segment.read(0, header.as_mut_bytes()).is_err() {
        return Kind::Not(Refused::Foreign);
    }
    if header.as_bytes().iter().all(|b| *b == 0) {
        return Kind::Empty;
    }
    let (theirs, ours) = (header.version, layout.version);
    let items = |h: &Header| h.items.iter().zip(layout.items).all(|(a, b)| *a == *b as u64);
    if header.magic != u64::from_le_bytes(layout.magic) {
        Kind::Not(Refused::Foreign)
    } else if theirs > ours {
        Kind::Not(Refused::Newer { theirs, ours })
    } else if theirs < ours {
        Kind::Not(Refused::Older { theirs, ours })
    } else if header.count != count as u64
        || header.tables as usize != layout.items.len()
        || !items(&header)
        || segment.len() < layout.arena_len(count)
    {
        Kind::Not(Refused::Foreign)
    } else {
        Kind::Ours(header)
    }
}

/// Whether [`Arena::open`] would take the segment. Changes nothing.
pub(crate) fn examine(segment: &Segment, layout: &Layout, count: usize) -> Result<(), Refused> {
    match kind(segment, layout, count) {
        Kind::Not(refused) => Err(refused),
        Kind::Empty | Kind::Ours(_) => Ok(()),
    }
}

/// An arena in use by its owner.
pub(crate) struct Arena {
    segment: Segment,
    layout: Layout,
    count: usize,
    turn: Rc<Cell<u64>>,
    fuse: Fuse,
    pub secret: [u64; 2],
    /// It held a predecessor's state.
    pub reborn: bool,
}

impl Arena {
    /// Opens an arena of `count` items: makes it new, with secrets from `seed`, if it is empty; else takes back what
    /// was not committed. The tables' items are still to be checked, or to be made.
    ///
    /// Panics if the segment is shorter than [`Layout::arena_len`] says or not writable, which is a mistake of
    /// whoever set the server up.
    pub fn open(segment: Segment, layout: Layout, count: usize, seed: u64) -> Result<Arena, Refused> {
        segment.range_mut(0, layout.arena_len(count)).expect("the arena has the length that was asked for");
        let (header, reborn) = match kind(&segment, &layout, count) {
            Kind::Ours(header) => (Header { lives: header.lives.wrapping_add(1), ..header }, true),
            Kind::Empty => (new_header(&layout, count, seed), false),
            Kind::Not(refused) => return Err(refused),
        };
        let arena = Arena {
            segment,
            layout,
            count,
            turn: Rc::new(Cell::new(header.turn)),
            fuse: Fuse::default(),
            secret: header.secret,
            reborn,
        };
        for table in 0..layout.items.len() {
            arena.roll_back(table);
        }
        if reborn {
            // The images were put back; of the next turn there is none.
            compiler_fence(Ordering::SeqCst);
            let turn = after(header.turn);
            arena.turn.set(turn);
            arena.write_header(&Header { turn, ..header });
        }
        Ok(arena)
    }

    fn write_header(&self, header: &Header) {
        self.segment.write(0, header.as_bytes()).expect("length was checked");
    }

    /// A new arena gets its header when its items were made: a death before leaves it empty.
    pub fn establish(&mut self) {
        if !self.reborn {
            let header = Header { secret: self.secret, ..new_header(&self.layout, self.count, 0) };
            compiler_fence(Ordering::SeqCst);
            self.write_header(&header);
        }
    }

    /// Puts the images of the turn that was not committed back.
    fn roll_back(&self, table: usize) {
        let item = self.layout.items[table];
        let base = self.layout.offset(table, self.count);
        let TableLayout { sums, undo, .. } = TableLayout::of(item, self.count);
        let mut image = vec![0u64; item / 8];
        for n in 0..self.count {
            let mut head = UndoHead::new_zeroed();
            let at = base + undo + n * (UNDO_HEAD + item);
            self.segment.read(at, head.as_mut_bytes()).expect("length was checked");
            let i = head.index as usize;
            if head.turn != self.turn.get() || head.turn == 0 || i >= self.count {
                break;
            }
            self.segment.read(at + UNDO_HEAD, image.as_mut_bytes()).expect("length was checked");
            self.segment.write(base + i * item, image.as_bytes()).expect("length was checked");
            let sum = sum(&image);
            self.segment.write(base + sums + i * SUM_LEN, sum.as_bytes()).expect("length was checked");
        }
    }

    /// A table's items, by its place in [`Layout::items`]. To be asked for once.
    pub fn table<T: Plain>(&self, table: usize) -> Table<T> {
        assert_eq!(self.layout.items[table], size_of::<T>());
        const { assert!(align_of::<T>() <= 8 && size_of::<T>().is_multiple_of(8)) };
        let base = self.layout.offset(table, self.count);
        let TableLayout { sums, undo, .. } = TableLayout::of(size_of::<T>(), self.count);
        Table {
            segment: self.segment.clone(),
            count: self.count,
            items: base,
            sums: base + sums,
            undo: base + undo,
            turn: self.turn.clone(),
            saved: Vec::new(),
            marks: vec![0; self.count.div_ceil(64)],
            fuse: self.fuse.clone(),
            kind: PhantomData,
        }
    }

    /// Ends the turn: the one store that makes it count. Every table must be sealed ([`Table::seal`]).
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

    /// For tests of dying: see [`Fuse`].
    pub fn fuse(&self) -> Fuse {
        self.fuse.clone()
    }
}

/// The number of the next turn. A stray write may have left any number, so it wraps; 0 is none's, since that is what an undo
/// area holds that was never written.
fn after(turn: u64) -> u64 {
    turn.wrapping_add(1).max(1)
}

fn new_header(layout: &Layout, count: usize, seed: u64) -> Header {
    let mut random = eft_base::Random::new(seed);
    let mut items = [0; TABLES_MAX];
    items.iter_mut().zip(layout.items).for_each(|(to, len)| *to = *len as u64);
    Header {
        magic: u64::from_le_bytes(layout.magic),
        version: layout.version,
        tables: layout.items.len() as u32,
        count: count as u64,
        turn: 1,
        secret: [random.next_u64(), random.next_u64()],
        lives: 1,
        items,
    }
}

/// Kills after a number of accesses, for tests: an engine that panics in the middle of a turn is as dead as one that the
/// kernel kills there, as far as its arena goes.
#[derive(Clone, Default)]
pub struct Fuse(Arc<AtomicU64>);

impl Fuse {
    /// The `steps`-th access from now on does not return. 0: none does.
    pub fn light(&self, steps: u64) {
        self.0.store(steps, Ordering::Relaxed);
    }

    /// How much is left.
    pub fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn is_lit(&self) -> bool {
        self.left() > 0
    }

    /// One access.
    pub fn burn(&self) {
        if self.is_lit() {
            self.0.store(self.left() - 1, Ordering::Relaxed);
            assert!(self.is_lit(), "{FUSE_BURNT}");
        }
    }
}

/// What a [`Fuse`] says at its end.
pub const FUSE_BURNT: &str = "killed by a fuse";

/// Before an image in the undo area.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct UndoHead {
    /// Written last.
    turn: u64,
    index: u64,
}

const UNDO_HEAD: usize = size_of::<UndoHead>();
const SUM_LEN: usize = size_of::<Sum>();

type Sum = [u64; 2];

/// Items of one kind. Indexing is checked.
pub(crate) struct Table<T> {
    segment: Segment,
    count: usize,
    /// Offsets in the segment.
    items: usize,
    sums: usize,
    undo: usize,
    turn: Rc<Cell<u64>>,
    /// Whose images the undo area holds, in order.
    saved: Vec<u32>,
    /// A bit for each of them, unless a fuse is lit: then every access takes the long way.
    marks: Vec<u64>,
    fuse: Fuse,
    kind: PhantomData<T>,
}

impl<T: Plain> Table<T> {
    pub fn len(&self) -> usize {
        self.count
    }

    fn at(&self, index: u32) -> *mut T {
        assert!((index as usize) < self.count, "block index");
        let offset = self.items + index as usize * size_of::<T>();
        // SAFETY: `Arena::open` checked that the whole table lies in the segment.
        unsafe { self.segment.as_ptr().add(offset).cast::<T>() }
    }

    /// The checksum that an item should have.
    #[inline(always)]
    fn sum_of(&self, index: u32) -> Sum {
        let item = self.at(index).cast::<u64>();
        // SAFETY: an item lies there (`at`), aligned to 8 and a multiple of 8 long (`Arena::table`), plain data all of it,
        // and nobody changes it meanwhile: whoever does has `self` exclusively.
        sum(unsafe { core::slice::from_raw_parts(item, const { size_of::<T>() / 8 }) })
    }

    fn sum_at(&self, index: u32) -> *mut Sum {
        let offset = self.sums + index as usize * SUM_LEN;
        // SAFETY: as above; `at` is asked first wherever this is.
        unsafe { self.segment.as_ptr().add(offset).cast::<Sum>() }
    }

    /// Keeps the image of an item that is about to change for the first time in this turn.
    #[inline(never)]
    fn save(&mut self, index: u32) {
        self.fuse.burn();
        if self.fuse.is_lit() && self.saved.contains(&index) {
            return;
        }
        let item = self.at(index);
        let n = self.saved.len();
        assert!(n < self.count, "every item has room for its image");
        let entry = self.undo + n * (UNDO_HEAD + size_of::<T>());
        // SAFETY: item, sum and entry lie in the segment (`at`, the assertion above), do not overlap, and are aligned to 8
        // as the segment and all lengths are; nobody has a reference to any of them, since `self` is borrowed
        // exclusively.
        unsafe {
            assert!(self.sum_of(index) == *self.sum_at(index), "item {index} was changed by a stray write");
            let head = self.segment.as_ptr().add(entry).cast::<UndoHead>();
            core::ptr::copy_nonoverlapping(item, head.add(1).cast::<T>(), 1);
            (*head).index = index as u64;
            compiler_fence(Ordering::SeqCst);
            (&raw mut (*head).turn).write_volatile(self.turn.get());
        }
        compiler_fence(Ordering::SeqCst);
        self.saved.push(index);
        if !self.fuse.is_lit() {
            self.marks[index as usize / 64] |= 1 << (index % 64);
        }
    }

    /// Gives every item that changed in this turn its checksum. Nothing may change until the commit.
    pub fn seal(&mut self) {
        while let Some(index) = self.saved.pop() {
            self.fuse.burn();
            self.reseal(index);
            self.marks[index as usize / 64] &= !(1 << (index % 64));
        }
    }

    fn reseal(&mut self, index: u32) {
        let sum = self.sum_of(index);
        // SAFETY: as in `save`.
        unsafe { *self.sum_at(index) = sum };
    }

    /// Whether an item is what was last committed. For an arena that is being opened.
    pub fn is_intact(&self, index: u32) -> bool {
        // SAFETY: as in `save`, and nothing is changed.
        unsafe { self.sum_of(index) == *self.sum_at(index) }
    }

    /// Makes an item anew, whatever it was. For an arena that is being opened.
    pub fn make(&mut self, index: u32, item: T) {
        // SAFETY: as in `save`.
        unsafe { self.at(index).write(item) };
        self.reseal(index);
    }
}

/// One item of a table: it counts as changed only when it is.
pub(crate) struct Item<'a, T: Plain> {
    table: &'a mut Table<T>,
    index: u32,
}

impl<T: Plain> Table<T> {
    pub fn item(&mut self, index: u32) -> Item<'_, T> {
        Item { table: self, index }
    }
}

impl<T: Plain> Deref for Item<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // Reading is an access, too; a release build has no fuse to look at here.
        if cfg!(debug_assertions) {
            self.table.fuse.burn();
        }
        &self.table[self.index]
    }
}

impl<T: Plain> DerefMut for Item<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.table[self.index]
    }
}

impl<T: Plain> Index<u32> for Table<T> {
    type Output = T;
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

/// Two sums over lanes, the second of the first: a changed bit always shows in the first, a change of order in the
/// second. Additions only, so that a compiler makes vectors of them.
#[inline(always)]
fn sum(words: &[u64]) -> Sum {
    const LANES: usize = 4;
    let (mut a, mut b) = ([0u64; LANES], [0u64; LANES]);
    let (chunks, rest) = words.as_chunks::<LANES>();
    for chunk in chunks {
        for i in 0..LANES {
            a[i] = a[i].wrapping_add(chunk[i]);
            b[i] = b[i].wrapping_add(a[i]);
        }
    }
    for (i, word) in rest.iter().enumerate() {
        a[i] = a[i].wrapping_add(*word);
        b[i] = b[i].wrapping_add(a[i]);
    }
    // Zeroed memory must not have the sum zero.
    let mut sums = [words.len() as u64 | 1 << 63, !0];
    for i in 0..LANES {
        let turn = i as u32 * 15;
        sums[0] = sums[0].wrapping_add(a[i].rotate_left(turn));
        sums[1] = sums[1].wrapping_add(b[i].rotate_left(turn));
    }
    sums
}

/// The arena of layout 2: a header and blocks in a row, without checksums.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct HeaderV2 {
    magic: u64,
    version: u32,
    block_len: u32,
    blocks: u64,
    secret: [u64; 2],
    lives: u64,
}

/// What an arena of layout 2 holds: its secret and its blocks. `None` if it is none.
pub(crate) fn read_v2<T: Plain>(
    old: &Segment,
    magic: [u8; 8],
    count: usize,
) -> Option<([u64; 2], impl Iterator<Item = T>)> {
    let mut header = HeaderV2::new_zeroed();
    old.read(0, header.as_mut_bytes()).ok()?;
    let known = header.magic == u64::from_le_bytes(magic)
        && header.version == 2
        && header.block_len as usize == size_of::<T>()
        && header.blocks == count as u64
        && old.len() >= HEADER_LEN + count * size_of::<T>();
    let block = move |i: usize| {
        let mut block = T::new_zeroed();
        old.read(HEADER_LEN + i * size_of::<T>(), block.as_mut_bytes()).ok()?;
        Some(block)
    };
    known.then(|| (header.secret, (0..count).filter_map(block)))
}

/// Makes an empty segment an arena of layout 2.
pub(crate) fn write_v2<T: Plain>(
    to: &Segment,
    magic: [u8; 8],
    secret: [u64; 2],
    blocks: impl Iterator<Item = T>,
) -> Result<(), Refused> {
    let mut count = 0;
    for block in blocks {
        let at = HEADER_LEN + count * size_of::<T>();
        to.write(at, block.as_bytes()).map_err(|_| Refused::Foreign)?;
        count += 1;
    }
    let header = HeaderV2 {
        magic: u64::from_le_bytes(magic),
        version: 2,
        block_len: size_of::<T>() as u32,
        blocks: count as u64,
        secret,
        lives: 1,
    };
    to.write(0, header.as_bytes()).map_err(|_| Refused::Foreign)
}

/// An arena of layout 2.
#[cfg(test)]
pub(crate) fn new_v2<T: Plain>(magic: [u8; 8], secret: [u64; 2], blocks: &[T]) -> Segment {
    let segment = Segment::heap(HEADER_LEN + size_of_val(blocks));
    write_v2(&segment, magic, secret, blocks.iter().copied()).unwrap();
    segment
}

/// A copy of an arena that may be opened without changing it; `None` if it is not of this layout.
pub(crate) fn copy_of(segment: &Segment, layout: &Layout, count: usize) -> Option<Segment> {
    let Kind::Ours(_) = kind(segment, layout, count) else { return None };
    let len = layout.arena_len(count);
    let copy = Segment::heap(len);
    segment.copy_to(0, &copy, 0, len).ok()?;
    Some(copy)
}

/// Copies of all items of a table, for whoever may only read; `None` if this is no arena of this layout.
pub(crate) fn copies<T: Plain>(
    segment: &Segment,
    layout: Layout,
    table: usize,
) -> Option<impl Iterator<Item = T>> {
    let mut header = Header::new_zeroed();
    segment.read(0, header.as_mut_bytes()).ok()?;
    let count = usize::try_from(header.count).ok().filter(|n| *n <= segment.len())?;
    let Kind::Ours(_) = kind(segment, &layout, count) else { return None };
    let base = layout.offset(table, count);
    Some((0..count).filter_map(move |i| {
        let mut item = T::new_zeroed();
        segment.read(base + i * size_of::<T>(), item.as_mut_bytes()).ok()?;
        Some(item)
    }))
}

#[cfg(test)]
mod tests;
