//! poll and epoll_wait by number: the kernel's interface, with answers completed as libc's are (`crate::poll`).

use super::select::Sets;
use super::{polling, signals};
use crate::{dispatch, errno, poll, sys};
use core::ffi::{c_int, c_long};
use core::time::Duration;
use libc::{epoll_event, fd_set, pollfd, timespec, timeval};

/// `None`: another call.
///
/// # Safety
/// As the system call says.
pub unsafe fn known(number: c_long, args: [usize; 6]) -> Option<c_int> {
    // SAFETY: by the caller.
    unsafe {
        match number {
            libc::SYS_ppoll => Some(ppoll(args)),
            libc::SYS_epoll_pwait => {
                let limit = u64::try_from(args[3] as c_int).ok().map(Duration::from_millis);
                let limited =
                    |left| with(args, 3, polling::milliseconds(left) as usize, libc::SYS_epoll_pwait);
                let (set, events, count) = (args[0] as c_int, args[1] as *mut epoll_event, args[2] as c_int);
                Some(polling::wait_events(set, events, count, limit, limited))
            }
            libc::SYS_epoll_pwait2 => Some(epoll_pwait2(args)),
            libc::SYS_pselect6 => {
                polling::watch_set(args[0] as c_int, args[1] as *const fd_set);
                pselect6(args)
            }
            _ => older(number, args),
        }
    }
}

/// Calls that only some architectures have.
#[cfg(target_arch = "x86_64")]
unsafe fn older(number: c_long, args: [usize; 6]) -> Option<c_int> {
    let [a, b, c, d, ..] = args;
    // SAFETY: by the caller.
    unsafe {
        match number {
            libc::SYS_poll => Some(polling::poll(a as _, b as _, c as _)),
            libc::SYS_epoll_wait => Some(polling::epoll_wait(a as _, b as _, c as _, d as _)),
            libc::SYS_select => {
                polling::watch_set(a as c_int, b as *const fd_set);
                let sets = Sets { count: a as c_int, sets: [b, c, d].map(|set| set as *mut fd_set) };
                polling::with_urgent(&sets, args[4] as *mut timeval, |list, left| {
                    let list = [list.as_mut_ptr() as usize, list.len(), polling::milliseconds(left) as usize];
                    kernel(libc::SYS_poll, [list[0], list[1], list[2], 0, 0, 0])
                })
            }
            _ => None,
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn older(_number: c_long, _args: [usize; 6]) -> Option<c_int> {
    None
}

/// The kernel's call, with SIGSYS taken out of its mask.
unsafe fn kernel(number: c_long, args: [usize; 6]) -> c_int {
    // SAFETY: by the caller.
    let done = unsafe {
        match dispatch::signals::by_number(number, args) {
            Some(done) => sys::check(done),
            None => sys::call(number, args),
        }
    };
    errno::long(done) as c_int
}

/// The same with another argument at `place`.
unsafe fn with(mut args: [usize; 6], place: usize, value: usize, number: c_long) -> c_int {
    args[place] = value;
    // SAFETY: by the caller.
    unsafe { kernel(number, args) }
}

unsafe fn ppoll(args: [usize; 6]) -> c_int {
    let (list, count) = (args[0] as *mut pollfd, args[1] as libc::nfds_t);
    // SAFETY: by the caller.
    unsafe {
        let limit = signals::duration(args[2] as *const timespec);
        let (Some(list), Ok(limit)) = (polling::list(list, count), limit) else {
            // The kernel reports the error, and the time left of the limit.
            return polling::answered(list, kernel(libc::SYS_ppoll, args), count);
        };
        poll::wait(list, limit, |list, left| {
            let mut left = left.map(signals::timespec_of);
            let left = left.as_mut().map_or(0, |left| &raw mut *left as usize);
            let [.., mask, len, unused] = args;
            kernel(libc::SYS_ppoll, [list.as_mut_ptr() as usize, list.len(), left, mask, len, unused])
        })
    }
}

/// `None`: the kernel can answer.
unsafe fn pselect6(args: [usize; 6]) -> Option<c_int> {
    let [count, read, write, except, limit, mask] = args;
    let sets = Sets { count: count as c_int, sets: [read, write, except].map(|set| set as *mut fd_set) };
    // SAFETY: by the caller: the mask comes with its length.
    unsafe {
        let limit = signals::duration(limit as *const timespec).ok()?;
        let [mask, len] = if mask == 0 { [0, 0] } else { (mask as *const [usize; 2]).read_unaligned() };
        sets.wait(limit, |list, left| {
            let mut left = left.map(signals::timespec_of);
            let left = left.as_mut().map_or(0, |left| &raw mut *left as usize);
            kernel(libc::SYS_ppoll, [list.as_mut_ptr() as usize, list.len(), left, mask, len, 0])
        })
    }
}

unsafe fn epoll_pwait2(args: [usize; 6]) -> c_int {
    // SAFETY: by the caller.
    unsafe {
        let Ok(limit) = signals::duration(args[3] as *const timespec) else {
            return kernel(libc::SYS_epoll_pwait2, args);
        };
        polling::wait_events(args[0] as c_int, args[1] as *mut epoll_event, args[2] as c_int, limit, |left| {
            let left = left.map(signals::timespec_of);
            let left = left.as_ref().map_or(0, |left| &raw const *left as usize);
            with(args, 3, left, libc::SYS_epoll_pwait2)
        })
    }
}
