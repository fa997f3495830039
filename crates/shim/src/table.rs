//! The table of this process's descriptor numbers.
//!
//! A flat array of words, so that a call on a foreign descriptor costs one load. Entries change
//! only in a process that owns its memory (see `process`).

use crate::domain::domain;
use crate::socket::Socket;
use crate::sys::{Errno, Result};
use crate::{holder, process, sys};
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};
use eft_channel::dirty::DIRTY_SLOTS;

/// Numbers from here on are never eft's.
pub const NUMBERS: usize = 1 << 20;

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Not ours: files, pipes, kernel sockets that stay so.
    Foreign,
    /// A kernel socket of an Internet domain that may yet become an eft socket. `plain`: certainly no option
    /// was set, so there is none to carry over. `begun`: a datagram socket that has sent on the loopback.
    /// `segment`: TCP_MAXSEG was set, which the kernel does not always show. `congestion`: TCP_CONGESTION was, perhaps to what the
    /// kernel begins with and eft does not.
    Undecided { stream: bool, inet6: bool, plain: bool, begun: bool, segment: bool, congestion: bool },
    /// An eft socket.
    Eft { slot: u32, incarnation: u32 },
    /// A NETLINK_ROUTE socket, answered by the shim.
    Netlink { port: u32 },
    /// An epoll set. `looker`: one more than the number of its looker, 0 as long as it has none, [`UNSEEN`] if it never gets one.
    Set { looker: u32 },
    /// The shim's own; programs do not see it.
    Hidden,
}

pub const UNSEEN: u32 = 1 << 24;

const UNDECIDED: u64 = 1;
const EFT: u64 = 2;
const HIDDEN: u64 = 3;
const NETLINK: u64 = 4;
const SET: u64 = 5;
/// An entry has 24 bits for the slot.
const SLOT_MAX: u32 = (1 << 24) - 1;
const _: () = assert!(DIRTY_SLOTS - 1 <= SLOT_MAX as usize);

impl Entry {
    fn encode(self) -> u64 {
        match self {
            Entry::Foreign => 0,
            Entry::Undecided { stream, inet6, plain, begun, segment, congestion } => {
                let bits = [stream, inet6, plain, begun, segment, congestion];
                let bits = bits.iter().rev().fold(0, |word, &bit| word << 1 | bit as u64);
                UNDECIDED | bits << 4
            }
            Entry::Eft { slot, incarnation } => {
                debug_assert!(slot <= SLOT_MAX);
                EFT | (slot as u64) << 8 | (incarnation as u64) << 32
            }
            Entry::Netlink { port } => NETLINK | (port as u64) << 32,
            Entry::Set { looker } => SET | (looker as u64) << 32,
            Entry::Hidden => HIDDEN,
        }
    }

    fn decode(word: u64) -> Entry {
        match word & 15 {
            UNDECIDED => Entry::Undecided {
                stream: word >> 4 & 1 != 0,
                inet6: word >> 5 & 1 != 0,
                plain: word >> 6 & 1 != 0,
                begun: word >> 7 & 1 != 0,
                segment: word >> 8 & 1 != 0,
                congestion: word >> 9 & 1 != 0,
            },
            EFT => Entry::Eft { slot: (word >> 8) as u32 & SLOT_MAX, incarnation: (word >> 32) as u32 },
            NETLINK => Entry::Netlink { port: (word >> 32) as u32 },
            SET => Entry::Set { looker: (word >> 32) as u32 },
            HIDDEN => Entry::Hidden,
            _ => Entry::Foreign,
        }
    }
}

static TABLE: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());
/// One more than the highest number that was ever set, to bound scans.
static TOP: AtomicI32 = AtomicI32::new(0);

/// Makes the table. False if memory is out.
pub fn install() -> bool {
    let memory = sys::map_anonymous(NUMBERS * 8);
    TABLE.store(memory.cast(), Ordering::Release);
    !memory.is_null()
}

#[inline]
fn cell(fd: c_int) -> Option<&'static AtomicU64> {
    let table = TABLE.load(Ordering::Acquire);
    if table.is_null() || fd as u32 as usize >= NUMBERS {
        return None;
    }
    // SAFETY: within the table, which is never unmapped.
    Some(unsafe { &*table.add(fd as usize) })
}

#[inline]
pub fn get(fd: c_int) -> Entry {
    match cell(fd) {
        Some(cell) => match cell.load(Ordering::Relaxed) {
            0 => Entry::Foreign,
            word => Entry::decode(word),
        },
        None => Entry::Foreign,
    }
}

/// Sets an entry and keeps the sockets' counts. The caller made sure that this process owns its
/// memory.
fn put(fd: c_int, entry: Entry) {
    let Some(cell) = cell(fd) else { return };
    if let Entry::Eft { slot, .. } = entry
        && let Some(socket) = domain().and_then(|f| f.socket(slot))
    {
        socket.retain();
    }
    if entry != Entry::Foreign {
        TOP.fetch_max(fd + 1, Ordering::AcqRel);
    }
    let old = Entry::decode(cell.swap(entry.encode(), Ordering::AcqRel));
    if let Entry::Eft { slot, .. } = old
        && let Some(socket) = domain().and_then(|f| f.known_socket(slot))
    {
        let Some(hidden) = socket.release() else { return };
        holder::closed(socket);
        for hidden in hidden.into_iter().flatten() {
            forget(hidden);
            sys::close(hidden);
        }
    }
}

/// Notes what `fd` now is.
pub fn set(fd: c_int, entry: Entry) {
    if (get(fd) != Entry::Foreign || entry != Entry::Foreign) && process::owns_memory() {
        put(fd, entry);
    }
}

/// Options may have been set on an undecided socket.
pub fn touched(fd: c_int) {
    if let Entry::Undecided { stream, inet6, plain: true, begun, segment, congestion } = get(fd) {
        set(fd, Entry::Undecided { stream, inet6, plain: false, begun, segment, congestion });
    }
}

/// TCP_MAXSEG was set on an undecided stream.
pub fn segment_set(fd: c_int) {
    if let Entry::Undecided { stream: true, inet6, plain, begun, segment: false, congestion } = get(fd) {
        set(fd, Entry::Undecided { stream: true, inet6, plain, begun, segment: true, congestion });
    }
}

/// TCP_CONGESTION was set on an undecided stream.
pub fn congestion_set(fd: c_int) {
    if let Entry::Undecided { stream: true, inet6, plain, begun, segment, congestion: false } = get(fd) {
        set(fd, Entry::Undecided { stream: true, inet6, plain, begun, segment, congestion: true });
    }
}

/// An undecided datagram socket sends on the loopback: it stays in the kernel until it uses another address.
pub fn begun(fd: c_int) {
    if let Entry::Undecided { stream: false, inet6, plain, begun: false, segment, congestion } = get(fd) {
        set(fd, Entry::Undecided { stream: false, inet6, plain, begun: true, segment, congestion });
    }
}

/// `fd` is (about to be) closed.
pub fn forget(fd: c_int) {
    set(fd, Entry::Foreign);
}

/// Whether the program may see `fd`.
pub fn visible(fd: c_int) -> Result<()> {
    match get(fd) {
        Entry::Hidden => Err(Errno(libc::EBADF)),
        _ => Ok(()),
    }
}

/// Whether an eft socket could have this number.
pub fn fits(fd: c_int) -> bool {
    cell(fd).is_some()
}

/// The numbers in `from..=to` that are not foreign.
pub fn numbers(from: c_int, to: c_int) -> impl Iterator<Item = c_int> {
    let end = TOP.load(Ordering::Acquire).min(to.saturating_add(1));
    (from.max(0)..end).filter(|&fd| get(fd) != Entry::Foreign)
}

/// The eft socket at `fd`; `None` if it is not eft's. A socket whose slot the stack has reused (it lost the
/// connection) gives ECONNRESET.
#[inline]
pub fn socket(fd: c_int) -> Option<Result<&'static Socket>> {
    match get(fd) {
        Entry::Eft { slot, incarnation } => Some(validated(slot, incarnation)),
        _ => None,
    }
}

fn validated(slot: u32, incarnation: u32) -> Result<&'static Socket> {
    domain()
        .and_then(|f| f.known_socket(slot))
        .filter(|socket| socket.page.incarnation() == incarnation)
        .ok_or(Errno(libc::ECONNRESET))
}

#[cfg(test)]
mod tests;
