//! The application's two locks of a socket, one for each direction, in the socket's page.
//!
//! Robust, so that a holder that dies loses only the bytes that it had not published (positions are
//! published last); shared between the domain's processes; error-checking, so that a signal handler
//! that makes the call that it interrupted gets an error instead of waiting for itself.

use crate::sys::{Errno, Result};
use core::mem::MaybeUninit;
use eft_channel::socket::{RECEIVE_LOCK, SEND_LOCK, SHIM_WORDS, SocketPage};
use libc::pthread_mutex_t;

const _: () = assert!(size_of::<pthread_mutex_t>() <= RECEIVE_LOCK - SEND_LOCK);
const _: () = assert!(size_of::<pthread_mutex_t>() <= SHIM_WORDS - RECEIVE_LOCK);

/// Initialises both locks. Only the process that opened or accepted the socket may do that, before
/// the socket is shared.
pub fn init(page: &SocketPage) {
    for offset in [SEND_LOCK, RECEIVE_LOCK] {
        let mutex = page.header_ptr(offset).cast::<pthread_mutex_t>();
        let mut attr = MaybeUninit::uninit();
        // SAFETY: the attribute is ours; the mutex lies in the page, 64 bytes are set aside for it,
        // and nothing else uses it yet.
        unsafe {
            mutex.cast::<u8>().write_bytes(0, size_of::<pthread_mutex_t>());
            libc::pthread_mutexattr_init(attr.as_mut_ptr());
            libc::pthread_mutexattr_settype(attr.as_mut_ptr(), libc::PTHREAD_MUTEX_ERRORCHECK);
            libc::pthread_mutexattr_setpshared(attr.as_mut_ptr(), libc::PTHREAD_PROCESS_SHARED);
            libc::pthread_mutexattr_setrobust(attr.as_mut_ptr(), libc::PTHREAD_MUTEX_ROBUST);
            libc::pthread_mutex_init(mutex, attr.as_ptr());
            libc::pthread_mutexattr_destroy(attr.as_mut_ptr());
        }
    }
}

/// A held lock.
pub struct Guard(*mut pthread_mutex_t);

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: locked by this thread in `lock`.
        unsafe { libc::pthread_mutex_unlock(self.0) };
    }
}

/// Takes the lock at `offset` ([`SEND_LOCK`] or [`RECEIVE_LOCK`]).
///
/// `EDEADLK`: this thread holds it already, that is, we are in a signal handler that interrupted
/// the holder. The caller turns that into the error its call may have.
pub fn lock(page: &SocketPage, offset: usize) -> Result<Guard> {
    let mutex = page.header_ptr(offset).cast::<pthread_mutex_t>();
    // SAFETY: initialised when the socket was opened. If the domain overwrites it, glibc reports an
    // error or the domain hurts itself.
    match unsafe { libc::pthread_mutex_lock(mutex) } {
        0 => Ok(Guard(mutex)),
        libc::EOWNERDEAD => {
            // Bytes that the dead holder had not published are dropped: the positions do not
            // include them. SAFETY: we hold it.
            unsafe { libc::pthread_mutex_consistent(mutex) };
            if offset == SEND_LOCK {
                // It may have sent a plug without setting the word: set it, and the server takes
                // the plug out.
                page.write_plug().set();
            }
            Ok(Guard(mutex))
        }
        libc::EDEADLK => Err(Errno(libc::EDEADLK)),
        _ => Err(Errno(libc::ECONNRESET)),
    }
}
