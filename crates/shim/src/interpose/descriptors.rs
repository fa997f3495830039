//! close, dup, fcntl, ioctl and epoll_ctl.

use crate::table::{self, Entry};
use crate::{control_calls, epoll, errno, fdops, held, looking, real, rights, sys};
use core::ffi::{c_int, c_uint, c_ulong, c_void};
use libc::epoll_event;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    match table::get(fd) {
        // SAFETY: the program's call, as are all below.
        Entry::Foreign => unsafe { real::close.get()(fd) },
        _ => errno::int(fdops::close(fd)),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup(fd: c_int) -> c_int {
    errno::int(table::visible(fd).and_then(|()| {
        held::part(fd);
        // SAFETY: as above.
        let copy = errno::of(unsafe { real::dup.get()(fd) })?;
        fdops::duplicated(fd, copy);
        Ok(copy)
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(from: c_int, to: c_int) -> c_int {
    // SAFETY: as above.
    errno::int(fdops::dup_onto(from, to, || unsafe { real::dup2.get()(from, to) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    // SAFETY: as above.
    errno::int(fdops::dup_onto(from, to, || unsafe { real::dup3.get()(from, to, flags) }))
}

/// A descriptor that another process has, or this one. One of a connection that another process holds without a descriptor of its own
/// (`crate::held`) cannot be taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pidfd_getfd(process: c_int, target: c_int, flags: c_uint) -> c_int {
    held::part(target);
    let args = [process as usize, target as usize, flags as usize, 0, 0, 0];
    // SAFETY: numbers alone.
    errno::int(unsafe { sys::call(libc::SYS_pidfd_getfd, args) }.map(|taken| {
        rights::adopt_one(taken as c_int);
        taken as c_int
    }))
}

// The third argument of fcntl and ioctl is a word in a register, whether the caller passed one or
// not.

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(fd: c_int, command: c_int, arg: usize) -> c_int {
    errno::int(fdops::fcntl(fd, command, arg))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl64(fd: c_int, command: c_int, arg: usize) -> c_int {
    errno::int(fdops::fcntl(fd, command, arg))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, arg: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe {
        match control_calls::ioctl(fd, request, arg) {
            Some(done) => errno::int(done),
            None => real::ioctl.get()(fd, request, arg),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    errno::int(fdops::close_range(first, last, flags))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn closefrom(low: c_int) {
    let _ = fdops::close_range(low.max(0) as c_uint, c_uint::MAX, 0);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_create(size: c_int) -> c_int {
    // SAFETY: as above.
    let set = unsafe { real::epoll_create.get()(size) };
    looking::made(set);
    set
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: as above.
    let set = unsafe { real::epoll_create1.get()(flags) };
    looking::made(set);
    set
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_ctl(
    set: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        held::part_to_wait(fd);
        let done = real::epoll_ctl.get()(set, operation, fd, event);
        if done == 0 {
            // For EPOLL_CTL_DEL the kernel does not read the event.
            let given = operation != libc::EPOLL_CTL_DEL && !event.is_null();
            let event = given.then(|| event.read_unaligned());
            match table::get(fd) {
                Entry::Undecided { .. } => epoll::note(set, operation, fd, event),
                Entry::Eft { .. } => epoll::registered(set, fd, event),
                Entry::Set { .. } => looking::bar(fd),
                _ => {}
            }
        }
        done
    }
}
