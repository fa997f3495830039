//! The signals by which a supervisor is told something.

use super::ending::Ending;
use super::say::say;
use super::{Supervisor, children};
use crate::{Doing, Result};
use std::os::fd::{FromRawFd, OwnedFd};

/// Makes the signals readable from a descriptor, where they no longer interrupt anything.
pub fn block() -> Result<OwnedFd> {
    // SAFETY: plain signal-set calls on a local set.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for s in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR2, libc::SIGCHLD] {
            libc::sigaddset(&mut set, s);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 {
            return Err(std::io::Error::last_os_error()).doing("signalfd");
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// A signal, as signalfd(2) tells of it.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    number: i32,
    /// What it comes from: `SI_KERNEL` for a key of the terminal, at most 0 for a process.
    code: i32,
    sender: u32,
}

impl Arrived {
    fn from_bytes(info: &[u8; size_of::<libc::signalfd_siginfo>()]) -> Arrived {
        let word = |at: usize| info[at..at + 4].try_into().map(i32::from_ne_bytes).unwrap_or_default();
        Arrived { number: word(0), code: word(8), sender: word(12) as u32 }
    }

    /// The process that sent it, unless that is the `parent`, which knows what it does.
    fn stranger(&self, parent: u32) -> Option<u32> {
        Some(self.sender).filter(|sender| self.code <= 0 && *sender != 0 && *sender != parent)
    }

    fn name(&self) -> &'static str {
        match self.number {
            libc::SIGTERM => "SIGTERM",
            libc::SIGINT => "SIGINT",
            libc::SIGHUP => "SIGHUP",
            libc::SIGUSR2 => "SIGUSR2",
            _ => "a signal",
        }
    }
}

impl Supervisor {
    pub(super) fn take_signals(&mut self) {
        let mut info = [0; size_of::<libc::signalfd_siginfo>()];
        while let Ok(n) = rustix::io::read(&self.signals, &mut info)
            && n == info.len()
        {
            let arrived = Arrived::from_bytes(&info);
            match arrived.number {
                libc::SIGUSR2 => self.ending = self.ending.or(Some(Ending::HandOver)),
                libc::SIGTERM | libc::SIGINT | libc::SIGHUP => self.ending = Some(Ending::Whole),
                // A child; or it is not what signalfd(2) says, and no reason to end a stack.
                _ => continue,
            }
            self.name_sender(arrived);
        }
        let ended = children::ended(&mut self.members);
        self.have_died(ended);
        self.reap_newcomer();
    }

    /// Says who ends the stack, so that a stack whose end nobody meant can be explained.
    fn name_sender(&self, arrived: Arrived) {
        let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as u32);
        if let Some(sender) = arrived.stranger(parent) {
            let program = std::fs::read_to_string(format!("/proc/{sender}/comm")).unwrap_or_default();
            let program = eft_base::text::one_line(&program);
            let program = if program.is_empty() { "which has ended".into() } else { program };
            let signal = arrived.name();
            say!("eft {}: ends by {signal} of process {sender} ({program})", self.config.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(code: i32, sender: u32) -> Arrived {
        let mut info = [0; size_of::<libc::signalfd_siginfo>()];
        info[0..4].copy_from_slice(&libc::SIGTERM.to_ne_bytes());
        info[8..12].copy_from_slice(&code.to_ne_bytes());
        info[12..16].copy_from_slice(&sender.to_ne_bytes());
        Arrived::from_bytes(&info)
    }

    #[test]
    fn a_process_that_is_not_the_parent_is_named() {
        assert_eq!(from(libc::SI_USER, 40).stranger(39), Some(40));
        assert_eq!(from(libc::SI_QUEUE, 40).stranger(39), Some(40));
        assert_eq!(from(libc::SI_USER, 40).stranger(40), None, "the parent");
        assert_eq!(from(libc::SI_KERNEL, 0).stranger(39), None, "a key of the terminal");
        assert_eq!(from(libc::SI_USER, 0).stranger(39), None, "a process of another PID namespace");
        assert_eq!(from(libc::SI_USER, 40).name(), "SIGTERM");
    }
}
