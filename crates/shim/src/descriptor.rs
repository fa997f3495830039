//! The descriptor of an eft socket: made, and put in the place of another under all its numbers.

use crate::socket::{Socket, bit};
use crate::sys::{self, Errno, Result};
use crate::table::{self, Entry};
use crate::{beside, confined, epoll, lock, pair, process, readiness, standard};
use core::ffi::c_int;

/// Begins a slot's use in this domain: initializes its locks, before it is shared.
pub fn begin(socket: &Socket) {
    lock::init(&socket.page);
}

/// The table entry of a socket.
pub fn entry(socket: &Socket) -> Entry {
    Entry::Eft { slot: socket.slot, incarnation: socket.page.incarnation() }
}

/// Puts `with` under `number`, keeping close-on-exec and epoll registrations.
pub fn replace(with: c_int, number: c_int, entry: Entry) {
    epoll::take_out(number);
    let cloexec = sys::is_cloexec(number);
    let flags = if cloexec { libc::O_CLOEXEC } else { 0 };
    if sys::dup3(with, number, flags).is_ok() {
        table::set(number, entry);
        standard::follow(number);
    }
    epoll::put_back(number);
}

/// Returns the flags.
pub fn copy_status_flags(from: c_int, to: c_int) -> c_int {
    let wanted = (libc::O_NONBLOCK | libc::O_ASYNC) as usize;
    let flags = sys::fcntl(from, libc::F_GETFL, 0).unwrap_or(0) & wanted;
    if flags != 0 {
        let _ = sys::fcntl(to, libc::F_SETFL, flags);
    }
    flags as c_int
}

/// Who gets SIGIO, and which signal instead (fcntl(2): F_SETOWN, F_SETOWN_EX, F_SETSIG): as set on `from`. Returns whether there is
/// somebody.
pub fn copy_owner(from: c_int, to: c_int) -> bool {
    /// `F_GETOWN_EX`, `F_SETOWN_EX`, `F_GETSIG` and `F_SETSIG`.
    const GET_OWNER: c_int = 16;
    const SET_OWNER: c_int = 15;
    const GET_SIGNAL: c_int = 11;
    const SET_SIGNAL: c_int = 10;
    // `struct f_owner_ex`: what the number is of, and the number.
    let mut owner: [c_int; 2] = [0; 2];
    let is_owned = sys::fcntl(from, GET_OWNER, owner.as_mut_ptr() as usize).is_ok() && owner[1] != 0;
    if is_owned {
        let _ = sys::fcntl(to, SET_OWNER, owner.as_ptr() as usize);
    }
    if let Ok(signal) = sys::fcntl(from, GET_SIGNAL, 0)
        && signal != 0
    {
        let _ = sys::fcntl(to, SET_SIGNAL, signal);
    }
    is_owned
}

pub fn numbers_of(socket: &Socket) -> impl Iterator<Item = c_int> {
    let own = entry(socket);
    table::numbers(0, c_int::MAX).filter(move |&number| table::get(number) == own)
}

/// Makes a listener or datagram socket silent whose far ends are all gone. An error if that is impossible.
///
/// While a stack is away, the domain's custodian keeps such descriptors silent. If both were killed, the kernel reports a
/// hang-up, and a program that waits for them spins: there is nothing to accept, and programs do not close a listener for
/// that. So a call that finds nothing replaces the descriptor by a fresh one, whose far end this process keeps; each
/// process does that for itself. The program then sleeps until it is restarted; its connections are over, as always.
pub fn fall_silent(fd: c_int, socket: &Socket) -> Result<()> {
    if confined::is_confined() || !process::owns_memory() {
        return Err(Errno(libc::ENETDOWN));
    }
    if sys::poll(fd, libc::POLLIN, Some(0))? & libc::POLLHUP == 0 {
        return Ok(());
    }
    let (near, far, inode) = pair::make()?;
    let kept = sys::move_high(far, true).unwrap_or(far);
    table::set(kept, Entry::Hidden);
    if socket.has(bit::LISTENING) {
        readiness::stop(near);
    }
    // The token's messages went with the old descriptor.
    for socket in beside::all(socket) {
        socket.token.retire(|| false);
    }
    socket.page.set_inode(inode);
    copy_status_flags(fd, near);
    for number in numbers_of(socket) {
        replace(near, number, entry(socket));
    }
    sys::close(near);
    Ok(())
}
