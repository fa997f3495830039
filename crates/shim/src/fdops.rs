//! close and the dup family, where they affect eft's descriptor numbers.
//!
//! Programs do not see the shim's own descriptors: closing one gives EBADF, ranges leave them out,
//! and a dup onto one moves it away first.

use crate::domain::domain;
use crate::socket::{Hidden, bit};
use crate::sys::{self, Errno, Result};
use crate::table::{self, Entry};
use crate::{
    control, epoll, errno, held, linger, looking, loopback, owner, process, real, sleeping, standard,
};
use core::ffi::{c_int, c_uint};
use core::sync::atomic::Ordering;

/// `close`.
pub fn close(fd: c_int) -> Result<c_int> {
    let (mut listener, mut closing) = (None, None);
    match table::get(fd) {
        Entry::Hidden => return Err(Errno(libc::EBADF)),
        Entry::Undecided { .. } if process::owns_memory() => epoll::forget(fd),
        Entry::Set { .. } => looking::closing(fd),
        Entry::Eft { .. } => {
            if let Some(Ok(socket)) = table::socket(fd) {
                linger::wait(socket);
                listener = Some(socket).filter(|s| loopback::is_shadowed_listener(s));
                closing = held::closing(socket);
            }
        }
        _ => {}
    }
    // Before the number is free: another thread may get it at once.
    table::forget(fd);
    let closed = match closing {
        // The program's call, but no thread is cancelled in it.
        Some(_guard) => {
            sys::close(fd);
            Ok(0)
        }
        // SAFETY: the program's call.
        None => errno::of(unsafe { real::close.get()(fd) }),
    };
    standard::follow(fd);
    if let Some(listener) = listener {
        loopback::await_close(listener);
    }
    closed
}

/// Notes that `to` is now a duplicate of `from`.
pub fn duplicated(from: c_int, to: c_int) {
    // Options set through one number apply to the other.
    table::touched(from);
    let entry = match table::get(from) {
        Entry::Hidden => Entry::Foreign,
        Entry::Set { .. } => {
            looking::bar(from);
            table::get(from)
        }
        entry => entry,
    };
    table::set(to, entry);
    standard::follow(to);
}

/// The shim's own numbers from `low` on, in order.
pub fn hidden_from(low: c_int) -> Vec<c_int> {
    table::numbers(low, c_int::MAX).filter(|&fd| table::get(fd) == Entry::Hidden).collect()
}

/// `dup2` and `dup3`: `call` does it.
pub fn dup_onto(from: c_int, to: c_int, call: impl FnOnce() -> c_int) -> Result<c_int> {
    table::visible(from)?;
    held::part(from);
    if from == to {
        return errno::of(call());
    }
    make_way(to);
    looking::closing(to);
    let done = errno::of(call())?;
    duplicated(from, to);
    Ok(done)
}

/// Moves a hidden descriptor off a number that the program wants. In a vfork child, whose table is
/// the parent's, the number in the parent stays as it is; only the child's goes.
fn make_way(to: c_int) {
    if table::get(to) != Entry::Hidden || !process::owns_memory() {
        return;
    }
    let cloexec = sys::is_cloexec(to);
    let command = if cloexec { libc::F_DUPFD_CLOEXEC } else { libc::F_DUPFD };
    let Ok(moved) = sys::fcntl(to, command, to as usize + 1).or_else(|_| sys::fcntl(to, command, 3)) else {
        return;
    };
    let moved = moved as c_int;
    table::set(moved, Entry::Hidden);
    if control::domain_fd() == to {
        control::set_domain_fd(moved);
        crate::exec::note_domain_fd(moved);
    } else if control::connection_fd() == to {
        control::set_connection_fd(moved);
    } else if !held::moved(to, moved) && !domain().is_some_and(|domain| domain.move_descriptor(to, moved)) {
        for fd in table::numbers(0, c_int::MAX) {
            if let Some(Ok(socket)) = table::socket(fd) {
                for which in Hidden::BOTH {
                    let place = socket.loopback(which);
                    let _ = place.compare_exchange(to, moved, Ordering::AcqRel, Ordering::Acquire);
                }
            }
        }
    }
}

/// `close_range`: everything in `first..=last` but the shim's own.
pub fn close_range(first: c_uint, last: c_uint, flags: c_int) -> Result<c_int> {
    if first > last {
        return Err(Errno(libc::EINVAL));
    }
    let keep_open = flags & libc::CLOSE_RANGE_CLOEXEC as c_int != 0;
    let limit = last.min(c_int::MAX as c_uint) as c_int;
    let start = first.min(c_int::MAX as c_uint) as c_int;
    let mut from = first;
    for fd in table::numbers(start, limit) {
        if table::get(fd) != Entry::Hidden {
            if !keep_open {
                looking::closing(fd);
                table::forget(fd);
            }
            continue;
        }
        let hidden = fd as c_uint;
        if hidden > from {
            range(from, hidden - 1, flags)?;
        }
        from = hidden + 1;
    }
    if from <= last {
        range(from, last, flags)?;
    }
    (start..=limit.min(2)).for_each(standard::follow);
    Ok(0)
}

fn range(first: c_uint, last: c_uint, flags: c_int) -> Result<c_int> {
    // SAFETY: the program's call.
    errno::of(unsafe { real::close_range.get()(first, last, flags) })
}

/// Which signal tells of events, and whom (fcntl(2)). The kernel keeps both of a descriptor.
const F_SETSIG: c_int = 10;
const F_SETOWN_EX: c_int = 15;

/// `fcntl`, with its third argument as a word.
pub fn fcntl(fd: c_int, command: c_int, arg: usize) -> Result<c_int> {
    table::visible(fd)?;
    if !matches!(command, libc::F_GETFL | libc::F_GETFD | libc::F_SETFD) {
        held::part(fd);
    }
    // SAFETY: the program's call.
    let done = errno::of(unsafe { real::fcntl64.get()(fd, command, arg) })?;
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => duplicated(fd, done),
        libc::F_SETFL => {
            mirror_nonblocking(fd, arg as c_int & libc::O_NONBLOCK != 0);
            if arg as c_int & libc::O_ASYNC != 0 {
                sleeping::watch(fd);
            }
        }
        F_SETSIG => table::touched(fd),
        libc::F_SETOWN | F_SETOWN_EX => owned(fd),
        libc::F_SETFD => mirror_cloexec(fd, arg as c_int & libc::FD_CLOEXEC != 0),
        _ => {}
    }
    Ok(done)
}

/// A descriptor has got an owner.
pub fn owned(fd: c_int) {
    table::touched(fd);
    owner::changed(fd);
}

/// For processes that may not ask the kernel.
pub fn mirror_nonblocking(fd: c_int, on: bool) {
    if let Some(Ok(socket)) = table::socket(fd) {
        socket.put_bits(bit::NONBLOCKING, on);
    }
}

/// The hidden listeners survive an exec if their visible descriptor does.
pub fn mirror_cloexec(fd: c_int, on: bool) {
    if let Some(Ok(socket)) = table::socket(fd) {
        let hidden = Hidden::BOTH.into_iter().filter_map(|which| socket.loopback_fd(which));
        hidden.for_each(|hidden| sys::set_cloexec(hidden, on));
    }
}
