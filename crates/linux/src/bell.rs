//! A domain's bell: an eventfd by which its programs wake a transport that sleeps on descriptors.
//!
//! The eventfd is never read, and its count does not matter: it is watched edge-triggered, where each write is an event
//! of its own. Only its domain has it, so a program that fills or empties it keeps no other domain from ringing.

use crate::{Doing, Result};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsRawFd, OwnedFd};

pub fn create() -> Result<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).doing("eventfd")
}

/// Whether a descriptor that a program brought is an eventfd. A descriptor of another kind could keep its waiter awake
/// all the time, or block it in a file system of the program's.
pub fn is_bell(fd: &OwnedFd) -> bool {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))
        .is_ok_and(|target| target.as_os_str() == "anon_inode:[eventfd]")
}

#[cfg(test)]
mod tests;
