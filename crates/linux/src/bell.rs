//! A domain's bell: an eventfd by which its programs wake a transport that sleeps on descriptors.
//!
//! Nobody reads it or looks at its count. It is watched edge-triggered, where each write is an event of its own. It is the
//! domain's alone: whoever of it fills or empties it keeps nobody else from ringing.

use crate::{Doing, Result};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsRawFd, OwnedFd};

pub fn create() -> Result<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).doing("eventfd")
}

/// Whether a descriptor that a program brought is an eventfd: of another kind it could keep whoever waits for it awake, or hold
/// him in a file system of the program's.
pub fn is_bell(fd: &OwnedFd) -> bool {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))
        .is_ok_and(|target| target.as_os_str() == "anon_inode:[eventfd]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_eventfd_is_a_bell() {
        assert!(is_bell(&create().unwrap()));
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let set = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC).unwrap();
        let file = std::fs::File::open("/proc/self/exe").unwrap().into();
        assert!([reader, writer, set, file].iter().all(|fd| !is_bell(fd)));
    }
}
