//! What a process still does when a signal ends it: a fault in the middle of a call, or the supervisor's question to one that
//! hangs. A panic needs none of this, since it unwinds.
//!
//! The handler runs on a stack of its own, since the other one may be what is at fault. Whatever it is given to do may fault, too:
//! then the process ends at once, of the signal that came first. Only processes that [prepare] have a handler.
//!
//! The kernel tells the death ([`crate::life`]) when the thread exits, so after this.

use crate::{Doing, Result};
use eft_host::clock;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::time::Duration;

/// What a server is asked with that hangs. Its default action ends a process, too, and nothing else sends it.
pub const HANGS: libc::c_int = libc::SIGXCPU;

/// What a fault leads to.
const FAULTS: [libc::c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];

/// Bytes of the handler's stack. What is written there copies a packet.
const STACK_LEN: usize = 1 << 20;

/// Of what a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    Signal(libc::c_int),
    Hang,
}

/// What is to be done at a death.
struct Last<'a>(&'a mut dyn FnMut(Death));

/// What the handler calls; null between two calls.
static LAST: AtomicPtr<Last<'static>> = AtomicPtr::new(null_mut());

/// The signal of which the process is dying; 0: none.
static DYING: AtomicI32 = AtomicI32::new(0);

/// Makes a call. If a signal ends the process in it, `last` is called before: wherever the process was, even in the middle of an
/// allocation, so it must neither allocate nor lock. It is called by one thread, this one.
pub fn during(last: &mut dyn FnMut(Death), call: &mut dyn FnMut()) {
    let mut last = Last(last);
    LAST.store((&raw mut last).cast(), Ordering::Release);
    let forget = Forget;
    call();
    drop(forget);
}

/// Nothing is called any more.
struct Forget;

impl Drop for Forget {
    fn drop(&mut self) {
        LAST.store(null_mut(), Ordering::Release);
    }
}

extern "C" fn die(signal: libc::c_int) {
    let first = DYING.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
    if let Err(first) = first {
        end_of(first);
    }
    let last = LAST.swap(null_mut(), Ordering::Acquire);
    // SAFETY: null, or what `during` has on its stack: it has not returned, since it would have put null there, and nothing else
    // uses it meanwhile.
    if let Some(last) = unsafe { last.as_mut() } {
        (last.0)(if signal == HANGS { Death::Hang } else { Death::Signal(signal) });
    }
    end_of(signal);
}

/// Ends the process as if it had no handler; one that hangs as the supervisor would.
fn end_of(signal: libc::c_int) {
    let signal = if signal == HANGS { libc::SIGKILL } else { signal };
    // SAFETY: plain numbers and a set that lives through the calls, which are async-signal-safe.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, null_mut());
        libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal);
    }
}

/// Gives the calling thread a stack for handlers, and the process the handler.
pub fn prepare() -> Result<()> {
    let failed = || std::io::Error::last_os_error();
    // SAFETY: a new mapping at an address of the kernel's choice, which stays; the handler is made for a signal at any place.
    let done = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let at = libc::mmap(null_mut(), STACK_LEN, rights, flags, -1, 0);
        let stack = libc::stack_t { ss_sp: at, ss_flags: 0, ss_size: STACK_LEN };
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = die as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_ONSTACK;
        // The supervisor's question changes nothing any more.
        libc::sigaddset(&mut action.sa_mask, HANGS);
        at != libc::MAP_FAILED
            && libc::sigaltstack(&stack, null_mut()) == 0
            && FAULTS.iter().chain(&[HANGS]).all(|signal| libc::sigaction(*signal, &action, null_mut()) == 0)
    };
    if done { Ok(()) } else { Err(failed()).doing("cannot prepare for fatal signals") }
}

/// From now on, the process hangs if it computes for so long. The kernel asks it then.
pub fn ask_after(limit: Duration) -> Result<()> {
    let used = clock::process_cpu(std::process::id()).unwrap_or_default();
    let Rlimit { maximum, .. } = getrlimit(Resource::Cpu);
    let current = Some((used + limit).as_secs().max(1));
    setrlimit(Resource::Cpu, Rlimit { current, maximum }).doing("cannot limit the CPU time")
}

#[cfg(test)]
mod tests;
