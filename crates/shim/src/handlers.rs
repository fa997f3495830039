//! Whether calls go on after the program's signal handlers.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};

/// Whether every signal handler of the process asks for interrupted calls to be restarted.
pub fn all_restart() -> bool {
    (1..=64).all(restarts)
}

/// Whether all handlers do that which may run while a call waits. Those of faults come with SA_RESTART in hardly any program.
pub fn waits_restart() -> bool {
    const FAULTS: [c_int; 6] =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];
    let known = KNOWN.load(Ordering::Acquire);
    match known & STATE {
        0 => {
            let restart = (1..=64).filter(|signal| !FAULTS.contains(signal)).all(restarts);
            let now = known | if restart { YES } else { NO };
            // If a handler was changed meanwhile, the next call asks again.
            let _ = KNOWN.compare_exchange(known, now, Ordering::AcqRel, Ordering::Relaxed);
            restart
        }
        state => state == YES,
    }
}

/// The program has changed a handler.
pub fn changed() {
    let _ = KNOWN
        .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |known| Some((known | STATE).wrapping_add(1)));
}

/// What is known of the handlers: nothing, or one of two states; above it a count of changes.
static KNOWN: AtomicU32 = AtomicU32::new(0);
const STATE: u32 = 3;
const YES: u32 = 1;
const NO: u32 = 2;

fn restarts(signal: c_int) -> bool {
    // SAFETY: all zeroes is a sigaction; only read back.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        libc::sigaction(signal, core::ptr::null(), &mut action) != 0
            || action.sa_sigaction == libc::SIG_DFL
            || action.sa_sigaction == libc::SIG_IGN
            || action.sa_flags & libc::SA_RESTART != 0
    }
}
