//! The control sockets of a process that sleeps: a sleep on descriptors tells of them, others have to look.

use super::{Asleep, Parking};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use std::os::fd::BorrowedFd;

impl Parking {
    /// The control socket of this server has ended, and would end every sleep on descriptors.
    pub fn forget_control(&mut self, server: usize) {
        if let Some(set) = &self.epoll {
            // SAFETY: a server keeps its control socket open as long as it runs.
            let _ = epoll::delete(set, unsafe { BorrowedFd::borrow_raw(self.servers[server].control) });
        }
    }

    /// Looks at the control sockets now, of which the sleep on descriptors tells.
    pub fn look_at_control(&mut self) {
        self.control_readable |= self.epoll.is_none() && self.look();
    }

    /// Whether a control socket has something to read, of which its end is the last.
    pub(super) fn look(&self) -> bool {
        // SAFETY: a server keeps its control socket open as long as it runs.
        let control = |s: &Asleep| unsafe { BorrowedFd::borrow_raw(s.control) };
        let all: Vec<BorrowedFd> = self.servers.iter().filter(|s| !s.retired).map(control).collect();
        let mut all: Vec<PollFd> = all.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        matches!(poll(&mut all, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1..))
    }
}
