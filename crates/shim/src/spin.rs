//! A lock for the few tables that change rarely. Unlike std's it can be reset in a forked child, and
//! it holds back signals: a handler that needed it would wait for the thread that it interrupted.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

pub struct Spin<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only under the lock.
unsafe impl<T: Send> Sync for Spin<T> {}

impl<T> Spin<T> {
    pub const fn new(value: T) -> Self {
        Spin { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    pub fn lock(&self) -> SpinGuard<'_, T> {
        let quiet = Quiet::enter();
        while self.held.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
        SpinGuard { lock: self, _quiet: quiet }
    }

    /// In a forked child, which has one thread: the holder, if any, was left behind.
    pub fn reset(&self) {
        self.held.store(false, Ordering::Release);
    }
}

pub struct SpinGuard<'a, T> {
    lock: &'a Spin<T>,
    // Dropped after the lock was given up.
    _quiet: Quiet,
}

/// All signals of this thread are held back while it lives.
pub struct Quiet {
    before: libc::sigset_t,
}

impl Quiet {
    pub fn enter() -> Quiet {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets are ours.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Quiet { before: before.assume_init() }
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // SAFETY: saved in `enter`.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, core::ptr::null_mut()) };
    }
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.held.store(false, Ordering::Release);
    }
}
