//! Futexes on shared words: waking one, sleeping on several.

use eft_base::Instant;
use std::sync::atomic::AtomicU32;

/// Words that one `futex_waitv` can watch (FUTEX_WAITV_MAX).
pub const WAIT_MAX: usize = 128;

/// Wakes everybody who sleeps on `word`, in any process.
pub fn wake(word: &AtomicU32) {
    // SAFETY: FUTEX_WAKE does not write to the word.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, 0, 0, 0);
    }
}

#[repr(C)]
struct Waiter {
    value: u64,
    address: u64,
    flags: u32,
    reserved: u32,
}

const FUTEX2_SIZE_U32: u32 = 2;

/// A set of words to sleep on.
#[derive(Default)]
pub struct WaitSet {
    waiters: Vec<Waiter>,
}

impl WaitSet {
    pub fn clear(&mut self) {
        self.waiters.clear();
    }

    /// Sleep only while `word` still has `value`. Words beyond [`WAIT_MAX`] are not taken.
    pub fn add(&mut self, word: &AtomicU32, value: u32) -> bool {
        if self.waiters.len() >= WAIT_MAX {
            return false;
        }
        self.waiters.push(Waiter {
            value: value as u64,
            address: word.as_ptr() as u64,
            flags: FUTEX2_SIZE_U32,
            reserved: 0,
        });
        true
    }

    /// Sleeps until a word changes and is woken, `until` passes, or a signal comes.
    pub fn wait(&self, until: Option<Instant>) {
        let timeout = until.map(|t| libc::timespec {
            tv_sec: (t.0 / 1_000_000_000) as _,
            tv_nsec: (t.0 % 1_000_000_000) as _,
        });
        let timeout_ptr = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the waiters and the timeout live through the call; the words are only read.
        unsafe {
            libc::syscall(
                libc::SYS_futex_waitv,
                self.waiters.as_ptr(),
                self.waiters.len(),
                0,
                timeout_ptr,
                libc::CLOCK_MONOTONIC,
            );
        }
    }
}
