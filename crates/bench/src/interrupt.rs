//! SIGINT, SIGTERM and SIGHUP, for work that has started what must be ended with it.

use anyhow::{Result, bail};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

const SIGNALS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// The signal that came; 0: none.
static ARRIVED: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: i32) {
    ARRIVED.store(signal, Relaxed);
}

/// From now on the first of these signals does not end the process: [`check`] tells of it. The second one ends it. Programs that
/// it starts get the signals as always, which would not be so if they were blocked.
pub fn heed() {
    for signal in SIGNALS {
        // SAFETY: plain arguments that live through the calls; the handler only stores to an atomic.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note as extern "C" fn(i32) as usize;
            action.sa_flags = libc::SA_RESTART | libc::SA_RESETHAND;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// An error if one of the signals has come, so that everything is dropped on the way out.
pub fn check() -> Result<()> {
    match ARRIVED.load(Relaxed) {
        0 => Ok(()),
        libc::SIGINT => bail!("ended by SIGINT"),
        libc::SIGTERM => bail!("ended by SIGTERM"),
        _ => bail!("ended by SIGHUP"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_told_and_does_not_end_the_process() {
        heed();
        assert!(check().is_ok());
        // SAFETY: a signal to this thread, which handles it.
        unsafe { libc::raise(libc::SIGHUP) };
        assert_eq!(check().unwrap_err().to_string(), "ended by SIGHUP");
        ARRIVED.store(0, Relaxed);
    }
}
