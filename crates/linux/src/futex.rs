//! Futexes on shared words: waking the sleepers of one, sleeping on several.

use eft_base::Instant;
use std::sync::atomic::AtomicU32;

/// How many words one `futex_waitv` can watch (FUTEX_WAITV_MAX).
pub const WAIT_MAX: usize = 128;

/// Wakes every thread that sleeps on `word`, in any process.
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

    /// Adds a word; the set sleeps only while it has `value`. False: the set already has [`WAIT_MAX`] words.
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

    /// Sleeps until a word's sleepers are woken, `until` passes, or a signal comes. Returns at once if a word has
    /// another value. False: this kernel cannot sleep so.
    pub fn wait(&self, until: Option<Instant>) -> bool {
        let timeout = until.map(|t| libc::timespec {
            tv_sec: (t.0 / 1_000_000_000) as _,
            tv_nsec: (t.0 % 1_000_000_000) as _,
        });
        let timeout_ptr = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the waiters and the timeout live through the call; the words are only read.
        let woken = unsafe {
            libc::syscall(
                libc::SYS_futex_waitv,
                self.waiters.as_ptr(),
                self.waiters.len(),
                0,
                timeout_ptr,
                libc::CLOCK_MONOTONIC,
            )
        };
        let passing = [libc::EAGAIN, libc::EINTR, libc::ETIMEDOUT];
        woken >= 0 || std::io::Error::last_os_error().raw_os_error().is_some_and(|why| passing.contains(&why))
    }
}
