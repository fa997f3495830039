//! Epoll sets whose marks the shim looks at before it waits in the kernel (`eft_channel::lookers`).
//!
//! A stream that only one set waits for gets marks instead of tokens while the program is awake, so its descriptor may not show
//! input that is there. Therefore:
//! - before anybody waits for such a socket otherwise (in a read, by poll or select, in a second set, by SIGIO, in another
//!   process that was given it), the socket is taken out ([`part`]): it gets tokens from then on;
//! - a set that is itself waited for or handed on, or in which two threads wait at once, gets tokens again ([`bar`]); so does one
//!   whose answers must be corrected (`crate::poll`), and one of a process that is confined;
//! - one-shot and exclusive registrations, and such for POLLPRI, get tokens;
//! - what nobody takes gets its token after some milliseconds, which helps those whose calls the shim does not see.
//!
//! A program with EFT_LOOK=0 in its environment gets tokens alone, which is what the two are compared by.
//!
//! Everything that is no input (room to write, the end of the stream, kernel descriptors) shows in the kernel as ever, so every
//! few waits look there, too.

mod arrived;
mod cells;
pub mod inside;
mod queue;
mod report;

use crate::domain::{Domain, domain};
use crate::socket::{Socket, bit};
use crate::spin::Spin;
use crate::table::{self, Entry, UNSEEN};
use crate::{confined, error_watch, process, sys, tokens};
use arrived::Arrived;
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use eft_channel::lookers::{LOOKERS_MAX, Looker, MARKS, Told};
use libc::epoll_event;
use queue::Queue;

/// Registrations that get tokens.
const PLAIN_ONLY: u32 = (libc::EPOLLONESHOT | libc::EPOLLEXCLUSIVE | libc::EPOLLPRI) as u32;

/// What this process knows of the looker of the same number.
struct Own {
    /// The process that claimed it here: another one after a fork.
    owner: AtomicU32,
    /// A thread waits in the set.
    is_inside: AtomicBool,
    /// Counts claims and releases.
    life: AtomicU32,
    waits: AtomicU32,
    /// Slots whose marks are being taken.
    arrived: Arrived,
    /// Slots that had marks, or whose input was not all taken.
    queue: Queue,
}

static OWN: [Own; LOOKERS_MAX] = [const {
    Own {
        owner: AtomicU32::new(0),
        is_inside: AtomicBool::new(false),
        life: AtomicU32::new(0),
        waits: AtomicU32::new(0),
        arrived: Arrived::new(),
        queue: Queue::new(),
    }
}; LOOKERS_MAX];

/// Held while a looker is claimed or given back.
static CLAIMS: Spin<()> = Spin::new(());

/// Whether this process, or one of whose memory it is a copy, ever had a looker.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// Whether the program has not refused marks.
static IS_WANTED: AtomicBool = AtomicBool::new(true);

pub fn reset_lock() {
    CLAIMS.reset();
}

/// At the start of the program.
pub fn begin() {
    // SAFETY: NUL-terminated name; the value is read at once.
    let is_refused = unsafe {
        let value = libc::getenv(c"EFT_LOOK".as_ptr());
        !value.is_null() && CStr::from_ptr(value) == c"0"
    };
    IS_WANTED.store(!is_refused, Ordering::Relaxed);
}

/// Whether sockets of this process may have lookers.
#[inline]
pub fn is_used() -> bool {
    IS_USED.load(Ordering::Relaxed)
}

/// The program made an epoll set.
pub fn made(set: c_int) {
    if set >= 0 && IS_WANTED.load(Ordering::Relaxed) && table::fits(set) {
        table::set(set, Entry::Set { looker: 0 });
    }
}

/// The looker of a set of this process.
fn number_of(set: c_int) -> Option<u32> {
    match table::get(set) {
        Entry::Set { looker: looker @ 1..UNSEEN } => Some(looker - 1),
        _ => None,
    }
}

fn own(number: u32) -> Option<&'static Own> {
    OWN.get(number as usize)
}

/// The looker of the set, claimed if it has none yet.
fn claim(domain: &Domain, set: c_int) -> Option<u32> {
    if let Some(number) = number_of(set) {
        let is_ours = own(number).is_some_and(|own| own.owner.load(Ordering::Relaxed) == process::number());
        if !is_ours {
            bar(set);
        }
        return is_ours.then_some(number);
    }
    if table::get(set) != (Entry::Set { looker: 0 }) || !process::owns_memory() {
        return None;
    }
    let _guard = CLAIMS.lock();
    let slots = domain.arena.geometry().slots;
    let find = |claims: &dyn Fn(&Looker) -> bool| {
        (0..LOOKERS_MAX as u32).find(|&number| {
            let is_free = own(number).is_some_and(|own| !own.is_inside.load(Ordering::Acquire));
            is_free && domain.arena.looker(number).is_some_and(claims)
        })
    };
    let me = process::number();
    if !cells::install(slots) {
        return None;
    }
    let number = find(&|looker| looker.claim(me))
        .or_else(|| find(&|looker| looker.inherit(sys::is_gone) && looker.claim(me)))?;
    let own = own(number)?;
    if !own.arrived.install(slots) || !own.queue.install(slots) {
        let looker = domain.arena.looker(number)?;
        looker.leave();
        looker.give_back();
        return None;
    }
    own.owner.store(me, Ordering::Relaxed);
    own.life.fetch_add(1, Ordering::AcqRel);
    IS_USED.store(true, Ordering::Relaxed);
    table::set(set, Entry::Set { looker: number + 1 });
    Some(number)
}

/// The program registered an eft descriptor. True: marks tell of its input.
pub fn attach(set: c_int, fd: c_int, event: epoll_event) -> bool {
    let (Some(domain), Some(Ok(socket))) = (domain(), table::socket(fd)) else { return false };
    let is_plain = socket.is_stream() && !socket.has(bit::LISTENING | bit::PARTED);
    if !is_plain || event.events & PLAIN_ONLY != 0 || error_watch::is_watching() || confined::is_confined() {
        return false;
    }
    let Some(number) = claim(domain, set) else { return false };
    let Some(cell) = cells::cell(socket.slot) else { return false };
    let is_elsewhere = socket.page.looker().is_some_and(|other| other != number)
        || cell.is_of(number, socket.page.incarnation()) && cell.fd() != fd;
    if is_elsewhere {
        return false;
    }
    cell.set(number, fd, socket.page.incarnation(), event);
    socket.page.set_looker(Some(number));
    if socket.page.receivable() > 0
        && domain
            .arena
            .looker(number)
            .is_some_and(|looker| socket.page.tell(socket.slot, looker) != Told::Marked)
    {
        tokens::ask(socket);
    }
    true
}

/// The program took an eft descriptor out of the set.
pub fn detach(set: c_int, fd: c_int) {
    if let (Some(number), Some(Ok(socket))) = (number_of(set), table::socket(fd))
        && let Some(cell) =
            cells::cell(socket.slot).filter(|cell| cell.is_of(number, socket.page.incarnation()))
        && cell.fd() == fd
    {
        cell.clear();
        if socket.page.looker() == Some(number) {
            socket.page.set_looker(None);
        }
    }
}

/// Somebody else is about to wait for the socket: it gets tokens from now on, and one for the input that is there.
#[inline]
pub fn part(socket: &Socket) {
    if socket.page.looker().is_some() {
        socket.set_bits(bit::PARTED);
        socket.page.set_looker(None);
        tokens::ask(socket);
    }
}

/// A thread took a token of the socket, maybe the one that was to wake a thread in its set.
#[inline]
pub fn took_token(socket: &Socket) {
    if let Some(number) = socket.page.looker()
        && let Some(domain) = domain()
        && let Some(looker) = domain.arena.looker(number)
        && looker.took_ring()
        && let Some(other) = looker
            .marks()
            .flat_map(|mark| sharing(domain, mark))
            .find_map(|slot| domain.known_socket(slot).filter(|other| tokens::is_lacking(other)))
    {
        tokens::ask(other);
    }
}

/// A call looks at these numbers: sets among them are waited for otherwise than by the shim.
pub fn bar_all(numbers: impl Iterator<Item = c_int>) {
    numbers.for_each(bar);
}

/// The set must be right in the kernel from now on.
pub fn bar(set: c_int) {
    if let Entry::Set { looker } = table::get(set)
        && looker != UNSEEN
    {
        table::set(set, Entry::Set { looker: UNSEEN });
        if looker > 0 {
            release(looker - 1);
        }
    }
}

/// The set is about to be closed.
pub fn closing(set: c_int) {
    if let Some(number) = number_of(set)
        && own(number).is_some_and(|own| own.owner.load(Ordering::Relaxed) == process::number())
        && process::owns_memory()
    {
        release(number);
    }
}

/// Gives a looker back. What was marked gets tokens. One that was inherited by a fork stays its process's, which notices.
fn release(number: u32) {
    let (Some(domain), Some(own)) = (domain(), own(number)) else { return };
    let Some(looker) = domain.arena.looker(number) else { return };
    let _guard = CLAIMS.lock();
    own.life.fetch_add(1, Ordering::AcqRel);
    looker.leave();
    for slot in 0..domain.arena.touched() {
        let Some(cell) = cells::cell(slot) else { continue };
        cell.unqueue(number);
        if cell.number() != Some(number) {
            continue;
        }
        cell.clear();
        if let Some(socket) = domain.known_socket(slot)
            && socket.page.looker() == Some(number)
        {
            socket.page.set_looker(None);
            tokens::ask(socket);
        }
    }
    own.queue.clear();
    if own.owner.swap(0, Ordering::Relaxed) == process::number() {
        looker.give_back();
    }
}

/// Slots that share a mark.
fn sharing(domain: &Domain, mark: usize) -> impl Iterator<Item = u32> {
    (mark as u32..domain.arena.touched()).step_by(MARKS)
}
