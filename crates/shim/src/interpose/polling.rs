//! poll, which needs us only in programs with an error queue (`crate::poll`).

use crate::{poll as watched, real};
use core::ffi::c_int;
use core::time::Duration;
use libc::{nfds_t, pollfd, size_t};

/// The program's list, if it is one that we must look at.
///
/// # Safety
/// As for `poll`.
pub unsafe fn list<'a>(list: *mut pollfd, count: nfds_t) -> Option<&'a mut [pollfd]> {
    if !watched::is_watching() || count == 0 || list.is_null() {
        return None;
    }
    // SAFETY: by the caller.
    Some(unsafe { core::slice::from_raw_parts_mut(list, count as usize) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(all: *mut pollfd, count: nfds_t, limit: c_int) -> c_int {
    // SAFETY: the program's call, as are all below.
    unsafe {
        let Some(list) = list(all, count) else {
            return real::poll.get()(all, count, limit);
        };
        let limit = u64::try_from(limit).ok().map(Duration::from_millis);
        watched::wait(list, limit, |list, left| {
            // Rounded up, so that the call is not over too early.
            let left =
                left.map_or(-1, |left| left.as_micros().div_ceil(1000).min(c_int::MAX as u128) as c_int);
            real::poll.get()(list.as_mut_ptr(), list.len() as nfds_t, left)
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
