//! poll and epoll_wait, whose answers lack errors (`crate::poll`).

use super::select::Sets;
use crate::{epoll, error_watch, looking, poll, real, sleeping, sys, table, urgent};
use core::ffi::c_int;
use core::time::Duration;
use libc::{epoll_event, fd_set, nfds_t, pollfd, size_t, timeval};
use std::time::Instant;

/// The program's list, if it must be checked.
///
/// # Safety
/// As for `poll`.
pub unsafe fn list<'a>(list: *mut pollfd, count: nfds_t) -> Option<&'a mut [pollfd]> {
    if count == 0 || sys::plausible(list, count as usize).is_err() {
        return None;
    }
    // SAFETY: by the caller.
    let list = unsafe { core::slice::from_raw_parts_mut(list, count as usize) };
    sleeping::watch_all(list.iter().map(|asked| asked.fd));
    looking::bar_all(list.iter().map(|asked| asked.fd));
    list.iter().filter(|asked| asked.events & libc::POLLPRI != 0).for_each(|asked| urgent::watch(asked.fd));
    error_watch::is_watching().then_some(list)
}

/// `select` and its kin look at these numbers.
///
/// # Safety
/// `set` must be as for `select`.
pub unsafe fn watch_set(count: c_int, set: *const fd_set) {
    const BITS: usize = usize::BITS as usize;
    // No bytes at all are plausible, too.
    if count <= 0 || set.is_null() || sys::plausible(set, count as usize / 8).is_err() {
        return;
    }
    // SAFETY: by the caller: as many bits as there are numbers, in whole words. The program may have allocated more than
    // libc's type has.
    let has =
        |fd: c_int| unsafe { *set.cast::<usize>().add(fd as usize / BITS) >> (fd as usize % BITS) & 1 != 0 };
    sleeping::watch_all(table::numbers(0, count - 1).filter(|fd| has(*fd)));
    if looking::is_used() {
        looking::bar_all(table::numbers(0, count - 1).filter(|fd| has(*fd)));
    }
}

/// Completes the kernel's answer about `count` descriptors.
///
/// # Safety
/// As for `poll`, which returned `ready`.
pub unsafe fn answered(list: *mut pollfd, ready: c_int, count: nfds_t) -> c_int {
    if ready > 0 {
        // SAFETY: the kernel has written there.
        poll::complete(unsafe { core::slice::from_raw_parts_mut(list, count as usize) });
    }
    ready
}

/// `epoll_wait` and its kin: `call` is the kernel's, with what is left of the limit.
///
/// # Safety
/// As for `epoll_wait`.
pub unsafe fn wait_events(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    limit: Option<Duration>,
    mut call: impl FnMut(Option<Duration>) -> c_int,
) -> c_int {
    // SAFETY: by the caller.
    let mut kernel = |limit| unsafe { wait_in_kernel(set, events, limit, &mut call) };
    let has_room = count > 0 && sys::plausible(events, count as usize).is_ok();
    match if has_room { looking::inside::enter(set) } else { None } {
        // SAFETY: by the caller.
        Some(inside) => unsafe { inside.wait(events, count as usize, limit, kernel) },
        None => kernel(limit),
    }
}

/// The same, with the kernel's answer, completed.
unsafe fn wait_in_kernel(
    set: c_int,
    events: *mut epoll_event,
    limit: Option<Duration>,
    mut call: impl FnMut(Option<Duration>) -> c_int,
) -> c_int {
    let mut clock = epoll::Limit::new(limit);
    loop {
        let looks = epoll::prepare(set);
        let left = match looks {
            true => {
                clock.begin();
                Some(clock.left().map_or(poll::LOOK, |left| left.min(poll::LOOK)))
            }
            false => clock.left(),
        };
        let ready = call(left);
        if ready < 0 || (ready == 0 && !looks) {
            return ready;
        }
        // SAFETY: the kernel has written so many.
        let left = epoll::answered(set, unsafe { core::slice::from_raw_parts_mut(events, ready as usize) });
        if left > 0 || clock.is_over() {
            return left as c_int;
        }
    }
}

/// Milliseconds as `poll` takes them, rounded up, so that the call is not over too early.
pub fn milliseconds(left: Option<Duration>) -> c_int {
    left.map_or(-1, |left| left.as_micros().div_ceil(1000).min(c_int::MAX as u128) as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    limit: c_int,
) -> c_int {
    // SAFETY: the program's call.
    unsafe {
        let limit = u64::try_from(limit).ok().map(Duration::from_millis);
        wait_events(set, events, count, limit, |left| {
            real::epoll_wait.get()(set, events, count, milliseconds(left))
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(all: *mut pollfd, count: nfds_t, limit: c_int) -> c_int {
    // SAFETY: the program's call, as are all below.
    unsafe {
        let Some(list) = list(all, count) else {
            return answered(all, real::poll.get()(all, count, limit), count);
        };
        let limit = u64::try_from(limit).ok().map(Duration::from_millis);
        poll::wait(list, limit, |list, left| {
            real::poll.get()(list.as_mut_ptr(), list.len() as nfds_t, milliseconds(left))
        })
    }
}

/// `poll` of programs that were compiled with _FORTIFY_SOURCE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __poll_chk(list: *mut pollfd, count: nfds_t, limit: c_int, len: size_t) -> c_int {
    // SAFETY: as above; libc ends a program whose list is shorter than it says.
    unsafe {
        match len / size_of::<pollfd>() < count as usize {
            true => libc::abort(),
            false => poll(list, count, limit),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    limit: *mut timeval,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        watch_set(count, read);
        let sets = Sets { count, sets: [read, write, except] };
        let answered = with_urgent(&sets, limit, |list, left| {
            real::poll.get()(list.as_mut_ptr(), list.len() as nfds_t, milliseconds(left))
        });
        answered.unwrap_or_else(|| real::select.get()(count, read, write, except, limit))
    }
}

/// `select` if its third set has a stream: `call` is the kernel's `poll`. As the kernel's, it leaves what is left of the limit.
///
/// # Safety
/// The limit must be null or valid.
pub unsafe fn with_urgent(
    sets: &Sets,
    limit: *mut timeval,
    call: impl FnMut(&mut [pollfd], Option<Duration>) -> c_int,
) -> Option<c_int> {
    // SAFETY: by the caller.
    let asked = unsafe { limit.as_mut() };
    let limit = match asked.as_deref() {
        Some(&timeval { tv_sec: seconds @ 0.., tv_usec: micros @ 0.. }) => {
            Some(Duration::from_secs(seconds as u64) + Duration::from_micros(micros as u64))
        }
        // The kernel reports the error.
        Some(_) => return None,
        None => None,
    };
    let begun = Instant::now();
    let answered = sets.wait(limit, call)?;
    if let (Some(asked), Some(limit)) = (asked, limit) {
        let left = limit.saturating_sub(begun.elapsed());
        *asked = timeval { tv_sec: left.as_secs() as _, tv_usec: left.subsec_micros() as _ };
    }
    Some(answered)
}
