//! The layout of an arena, and the test whether an arena is empty, of this layout, older, newer or foreign.

use core::sync::atomic::{Ordering, compiler_fence};
use eft_channel::Segment;
use thiserror::Error;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::fuse::Fuse;
use super::sum::{SUM_LEN, Sum, Sums};

/// Bytes before the first table.
pub(crate) const HEADER_LEN: usize = 4096;
/// The offset of a word that is 1 if items were changed without new checksums ([`crate::Table::leave_open`]).
pub(crate) const OPEN_AT: usize = 3064;
/// The offset of the header's double. Arenas of earlier builds have zeros there.
const DOUBLE_AT: usize = 3072;
const _: () = assert!(crate::docket::END <= OPEN_AT && DOUBLE_AT + size_of::<Double>() <= HEADER_LEN);
/// Every table begins at a multiple of this, and so does every item whose length is a multiple of it.
const LINE: usize = 64;
/// The most tables of one arena.
const TABLES_MAX: usize = 4;

/// The header in front of an image in the undo area.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct UndoHead {
    /// Written last.
    pub turn: u64,
    pub index: u64,
}

pub(crate) const UNDO_HEAD: usize = size_of::<UndoHead>();

/// Describes the content of an arena.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Identifies the engine.
    pub magic: [u8; 8],
    pub version: u32,
    /// Bytes of an item of each table.
    pub items: &'static [usize],
    pub sums: Sums,
}

impl Layout {
    /// Bytes of an arena of `count` items in each table.
    pub const fn arena_len(&self, count: usize) -> usize {
        self.offset(self.items.len(), count)
    }

    /// The offset at which a table begins.
    pub(crate) const fn offset(&self, table: usize, count: usize) -> usize {
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
pub(crate) struct TableLayout {
    pub sums: usize,
    pub undo: usize,
    end: usize,
}

impl TableLayout {
    pub const fn of(item: usize, count: usize) -> TableLayout {
        let sums = (item * count).next_multiple_of(LINE);
        let undo = sums + (SUM_LEN * count).next_multiple_of(LINE);
        TableLayout { sums, undo, end: undo + (UNDO_HEAD + item) * count.next_multiple_of(LINE) }
    }
}

/// The header of the arena.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Header {
    pub magic: u64,
    pub version: u32,
    pub tables: u32,
    pub count: u64,
    /// The turn that is not committed yet.
    pub turn: u64,
    /// Key of initial sequence numbers (RFC 6528) and of hash tables.
    pub secret: [u64; 2],
    /// Lives of the engine so far.
    pub lives: u64,
    pub items: [u64; TABLES_MAX],
    /// How many items of each table were ever initialized. The bytes behind them are as the supervisor provided them.
    /// 0: all items are initialized, as earlier builds did at once. Use [`super::growth::made`], for the word may be damaged.
    pub made: u64,
}

/// A copy of what never changes in the header, with a checksum: without it, a changed bit there would cost the whole arena.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Double {
    magic: u64,
    version: u32,
    tables: u32,
    count: u64,
    secret: [u64; 2],
    items: [u64; TABLES_MAX],
    sum: Sum,
}

impl Double {
    fn of(header: &Header) -> Double {
        let Header { magic, version, tables, count, secret, items, .. } = *header;
        let mut double = Double { magic, version, tables, count, secret, items, sum: [0; 2] };
        double.sum = Sums::Second.of(&double);
        double
    }

    fn is_intact(&self) -> bool {
        self.sum == Sums::Second.of(&Double { sum: [0; 2], ..*self })
    }
}

/// Writes the header, and before it its double.
pub(crate) fn write_header(segment: &Segment, header: &Header, fuse: &Fuse) {
    fuse.write(segment, DOUBLE_AT, Double::of(header).as_bytes());
    compiler_fence(Ordering::SeqCst);
    fuse.write(segment, 0, header.as_bytes());
}

/// The header of an arena: what never changes in it, as its double says, if it has an intact one.
pub(crate) fn header(segment: &Segment) -> Option<Header> {
    let (mut header, mut double) = (Header::new_zeroed(), Double::new_zeroed());
    segment.read(0, header.as_mut_bytes()).ok()?;
    segment.read(DOUBLE_AT, double.as_mut_bytes()).ok()?;
    let is_written = header.as_bytes().iter().any(|b| *b != 0);
    if is_written && double.is_intact() {
        let Double { magic, version, tables, count, secret, items, .. } = double;
        header = Header { magic, version, tables, count, secret, items, ..header };
    }
    Some(header)
}

pub(crate) const MADE: usize = core::mem::offset_of!(Header, made);
pub(crate) const TURN: usize = core::mem::offset_of!(Header, turn);

/// Why an arena is refused, unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// Its layout is older. It is converted into another arena (`convert` of tcp and udp), so that its old version can
    /// use it again if the successor fails.
    #[error(
        "the arena has layout {theirs}, and this eft keeps layout {ours}: give it a new arena to convert it into"
    )]
    Older { theirs: u32, ours: u32 },
    /// A later version of eft wrote it.
    #[error(
        "the arena has layout {theirs}, and this eft knows no later one than {ours}: start the eft that wrote it"
    )]
    Newer { theirs: u32, ours: u32 },
    /// Another component wrote it, or it is for another number of sockets.
    #[error("the arena is of another component, or for another number of sockets: start the stack anew")]
    Foreign,
}

/// The kind of an arena, found before anything in it is trusted or changed.
pub(crate) enum Kind {
    Empty,
    Ours(Header),
    Not(Refused),
}

pub(crate) fn kind(segment: &Segment, layout: &Layout, count: usize) -> Kind {
    let Some(header) = header(segment) else {
        return Kind::Not(Refused::Foreign);
    };
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

/// Whether [`Arena::open`](crate::Arena::open) would take the segment. Changes nothing.
pub fn examine(segment: &Segment, layout: &Layout, count: usize) -> Result<(), Refused> {
    match kind(segment, layout, count) {
        Kind::Not(refused) => Err(refused),
        Kind::Empty | Kind::Ours(_) => Ok(()),
    }
}

pub(crate) fn new_header(layout: &Layout, count: usize, seed: u64) -> Header {
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
        made: 0,
    }
}
