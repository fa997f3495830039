//! Whose memory this is: the process's own, fresh from a fork, or borrowed by a vfork child.
//!
//! A vfork child shares its parent's memory but has descriptors of its own, so it must not touch
//! the table. A child made by a bare `clone` has its own memory but ran no fork handlers. One word
//! distinguishes them: it holds the process's number, and the kernel wipes its page in every child
//! that gets a copy of the memory (`MADV_WIPEONFORK`), but not in one that shares it.

use crate::sys;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::sync::OnceLock;

static OWNER: AtomicPtr<AtomicI32> = AtomicPtr::new(core::ptr::null_mut());

/// What other modules have to do when the process forks; `init` registers them.
pub struct Hooks {
    /// In the parent: so that no lock is held by a thread that the child does not have.
    pub lock: fn(),
    /// In both, after `lock`.
    pub unlock: fn(),
    /// In a child that ran no fork handlers: no thread holds a lock in it.
    pub reset_locks: fn(),
    /// In every child that got a copy of the memory.
    pub begin: fn(),
}

static HOOKS: OnceLock<Hooks> = OnceLock::new();

fn call(hook: impl Fn(&Hooks) -> fn()) {
    if let Some(hooks) = HOOKS.get() {
        hook(hooks)();
    }
}

extern "C" fn before_fork() {
    call(|hooks| hooks.lock);
}

extern "C" fn after_fork_parent() {
    call(|hooks| hooks.unlock);
}

extern "C" fn after_fork_child() {
    call(|hooks| hooks.unlock);
    begin();
}

/// Sets up the word and the fork handlers. False if memory is out.
pub fn install(hooks: Hooks) -> bool {
    let _ = HOOKS.set(hooks);
    let page = sys::map_anonymous(4096);
    if page.is_null() {
        return false;
    }
    // SAFETY: our own fresh page.
    unsafe {
        let _ = sys::call(libc::SYS_madvise, [page as usize, 4096, libc::MADV_WIPEONFORK as usize, 0, 0, 0]);
        libc::pthread_atfork(Some(before_fork), Some(after_fork_parent), Some(after_fork_child));
    }
    OWNER.store(page.cast(), Ordering::Release);
    owner().store(sys::getpid(), Ordering::Relaxed);
    true
}

fn owner() -> &'static AtomicI32 {
    static NONE: AtomicI32 = AtomicI32::new(0);
    let pointer = OWNER.load(Ordering::Acquire);
    if pointer.is_null() {
        return &NONE;
    }
    // SAFETY: the page stays mapped for good.
    unsafe { &*pointer }
}

/// The first thing in a process that got a copy of its parent's memory.
fn begin() {
    owner().store(sys::getpid(), Ordering::Relaxed);
    call(|hooks| hooks.begin);
}

/// The number of this process, or of one of whose memory it is a copy.
pub fn number() -> u32 {
    owner().load(Ordering::Relaxed) as u32
}

/// Whether this process may change the shim's tables: true except in a vfork child. Called only
/// before a change, since it costs a system call.
pub fn owns_memory() -> bool {
    match owner().load(Ordering::Relaxed) {
        0 => {
            call(|hooks| hooks.reset_locks);
            begin();
            true
        }
        pid => pid == sys::getpid(),
    }
}
