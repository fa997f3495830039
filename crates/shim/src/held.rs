//! Accepted connections without a descriptor of their own: most connections are short, and as long as threads sleep on the socket's
//! page alone (`crate::sleeping`), nobody needs one.
//!
//! Such a connection has a number that stands for nothing but itself: all of them are duplicates of one idle socket, which costs a
//! call where a pair of sockets, told to sockets and watched there, costs a dozen in three processes. Its page names the process as
//! its holder and says when it is closed; sockets closes what a process held that has ended. So it must get a descriptor of its own
//! ([`part`]) before anything can happen to the number that this process does not see, or that concerns the kernel's socket: a wait
//! in the kernel, a duplicate, another process. In a process that needs that for one, the next connections get theirs at once.

use crate::socket::{Socket, bit};
use crate::spin::{Spin, SpinGuard};
use crate::table::{self, Entry};
use crate::{confined, control, handlers, pair, process, sys};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use eft_messages::control::{Request, op};

/// Accepted connections after which it is tried again.
const RESPITE: u32 = 64;
/// Numbers below are those of standard input, output and error.
const FIRST: c_int = 3;

/// How many of the next accepted connections get descriptors of their own.
static HURRIED: AtomicU32 = AtomicU32::new(0);
/// Whether this process, or one of whose memory it is a copy, ever held a connection.
static IS_USED: AtomicBool = AtomicBool::new(false);
/// The idle socket and its peer, or -1.
static IDLE: AtomicI32 = AtomicI32::new(-1);
static PEER: AtomicI32 = AtomicI32::new(-1);
/// Held while connections get descriptors of their own.
static PARTING: Spin<()> = Spin::new(());

pub fn reset_lock() {
    PARTING.reset();
}

/// Whether connections of this process may be held.
#[inline]
pub fn is_used() -> bool {
    IS_USED.load(Ordering::Relaxed)
}

/// A number for a connection that is accepted with these flags, and the holder to name in its page. `None`: it gets a descriptor of
/// its own.
pub fn number(flags: c_int) -> Option<(c_int, u64)> {
    let one_less = |left: u32| left.checked_sub(1);
    if HURRIED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
        || flags & libc::SOCK_NONBLOCK != 0
        || confined::is_confined()
        || !handlers::waits_restart()
    {
        return None;
    }
    let Some((idle, connection)) = idle().zip(control::holder()) else {
        HURRIED.store(RESPITE, Ordering::Relaxed);
        return None;
    };
    IS_USED.store(true, Ordering::Relaxed);
    let command = if flags & libc::SOCK_CLOEXEC != 0 { libc::F_DUPFD_CLOEXEC } else { libc::F_DUPFD };
    let number = sys::fcntl(idle, command, 0).ok()? as c_int;
    if number < FIRST || !table::fits(number) {
        sys::close(number);
        return None;
    }
    Some((number, connection))
}

/// The idle socket, made at first use. Its peer stays open, so that it shows no hang-up.
fn idle() -> Option<c_int> {
    let known = IDLE.load(Ordering::Acquire);
    if known >= 0 {
        return Some(known);
    }
    let _guard = PARTING.lock();
    if IDLE.load(Ordering::Acquire) < 0 {
        if !process::owns_memory() {
            return None;
        }
        let [near, far] = sys::pair().ok()?;
        for (made, place) in [(far, &PEER), (near, &IDLE)] {
            let hidden = sys::move_high(made, true).unwrap_or(made);
            table::set(hidden, Entry::Hidden);
            place.store(hidden, Ordering::Release);
        }
    }
    Some(IDLE.load(Ordering::Acquire))
}

/// One of the shim's numbers was moved.
pub fn moved(from: c_int, to: c_int) -> bool {
    [&IDLE, &PEER]
        .iter()
        .any(|place| place.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok())
}

/// In a fresh child: connections that it accepts are its own.
pub fn forget() {
    for place in [&IDLE, &PEER] {
        let fd = place.swap(-1, Ordering::AcqRel);
        if fd >= 0 {
            table::forget(fd);
            sys::close(fd);
        }
    }
}

/// Somebody is about to wait in the kernel for the descriptor.
#[inline]
pub fn hurry(fd: c_int, socket: &Socket) {
    if is_used() && socket.page.holder().is_some() {
        HURRIED.store(RESPITE, Ordering::Relaxed);
        part_one(fd, socket);
    }
}

/// Somebody is about to watch this number in the kernel.
#[inline]
pub fn part_to_wait(fd: c_int) {
    if is_used()
        && let Some(Ok(socket)) = table::socket(fd)
    {
        hurry(fd, socket);
    }
}

/// Something is about to happen to this number that this process does not see, or that concerns the kernel's socket.
#[inline]
pub fn part(fd: c_int) {
    if is_used()
        && let Some(Ok(socket)) = table::socket(fd)
        && socket.page.holder().is_some()
    {
        part_one(fd, socket);
    }
}

/// The same of all numbers. A child that borrows its parent's memory has none.
pub fn part_all() {
    if is_used() && process::owns_memory() {
        table::numbers(FIRST, c_int::MAX).for_each(part);
    }
}

/// For the close of a held connection's number: as long as this is kept, no other thread puts a descriptor in its place, which would
/// outlive the number.
pub fn closing(socket: &Socket) -> Option<SpinGuard<'static, ()>> {
    (is_used() && socket.page.holder().is_some()).then(|| PARTING.lock())
}

/// Gives a held connection a descriptor of its own. Where that fails it stays as it is: its process is out of descriptors.
#[cold]
fn part_one(fd: c_int, socket: &Socket) {
    let _guard = PARTING.lock();
    let incarnation = socket.page.incarnation();
    let is_there = || table::get(fd) == Entry::Eft { slot: socket.slot, incarnation };
    if socket.page.holder().is_none() || !is_there() {
        return;
    }
    let Ok((near, far, inode)) = pair::make() else { return };
    // Without a stack there is nobody to tell, and the descriptor hangs up.
    let request = Request {
        op: op::ACCEPTED,
        slot: socket.slot,
        value: inode,
        args: [incarnation, 0, 0, 0],
        ..Request::default()
    };
    let _ = control::tell(request, Some(far));
    sys::close(far);
    let flags = if sys::is_cloexec(fd) { libc::O_CLOEXEC } else { 0 };
    // Another thread may have closed the number; then its next owner keeps it, and the descriptor's end tells of the close.
    if is_there() && sys::dup3(near, fd, flags).is_ok() {
        socket.page.end_hold(inode);
    }
    sys::close(near);
    socket.put_bits(bit::PATIENT, true);
}
