//! `select` with a third set, that of urgent data: the kernel does not know which eft streams have some, so it is made a `poll`
//! (`crate::poll`) if such a stream is in that set.

use crate::errno;
use crate::sys::{self, Errno};
use crate::{poll, table, urgent};
use core::ffi::c_int;
use core::time::Duration;
use libc::{
    POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLPRI, POLLRDBAND, POLLRDNORM, POLLWRBAND, POLLWRNORM,
    fd_set, pollfd,
};
use std::time::Instant;

/// Descriptors that libc's sets hold. Larger sets are left to the kernel.
const MOST: usize = libc::FD_SETSIZE;
const BITS: usize = usize::BITS as usize;

/// What poll says of a descriptor that select reports in the first, second and third set (Linux's fs/select.c).
const ANSWERS: [i16; 3] = [
    POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR,
    POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR,
    POLLPRI,
];
const QUESTIONS: [i16; 3] = [POLLIN, POLLOUT, POLLPRI];

/// The three sets of a call, each null or valid for its numbers.
pub struct Sets {
    pub count: c_int,
    pub sets: [*mut fd_set; 3],
}

impl Sets {
    /// # Safety
    /// The set must be valid for `fd`, and not null.
    unsafe fn word(set: *mut fd_set, fd: c_int) -> *mut usize {
        // SAFETY: by the caller: a bit for each number, in whole words.
        unsafe { set.cast::<usize>().add(fd as usize / BITS) }
    }

    fn has(&self, set: usize, fd: c_int) -> bool {
        let set = self.sets[set];
        // SAFETY: the program's set, which has as many bits as there are numbers.
        !set.is_null() && unsafe { Self::word(set, fd).read() } >> (fd as usize % BITS) & 1 != 0
    }

    fn put(&self, set: usize, fd: c_int, on: bool) {
        let set = self.sets[set];
        if set.is_null() {
            return;
        }
        let bit = 1 << (fd as usize % BITS);
        // SAFETY: as above.
        unsafe {
            let word = Self::word(set, fd);
            word.write(if on { word.read() | bit } else { word.read() & !bit });
        }
    }

    /// Whether urgent data of an eft stream are waited for.
    fn asks_for_urgent(&self) -> bool {
        let bytes = self.count.max(0) as usize / 8;
        if self.sets[2].is_null() || self.sets.iter().any(|set| sys::plausible(*set, bytes).is_err()) {
            return false;
        }
        let mut asked = table::numbers(0, self.count - 1).filter(|fd| self.has(2, *fd));
        asked.any(|fd| table::socket(fd).is_some_and(|found| found.is_ok_and(|socket| socket.is_stream())))
    }

    /// The list for `poll`, and its length.
    fn list(&self, list: &mut [pollfd; MOST]) -> usize {
        let mut len = 0;
        for fd in 0..self.count {
            let asked = (0..3).filter(|set| self.has(*set, fd)).fold(0, |all, set| all | QUESTIONS[set]);
            if asked != 0 {
                list[len] = pollfd { fd, events: asked, revents: 0 };
                len += 1;
            }
        }
        len
    }

    /// Reads the answers into the sets. Returns how many bits are set.
    fn answer(&self, list: &[pollfd]) -> c_int {
        let mut ready = 0;
        for (given, set) in list.iter().flat_map(|given| (0..3).map(move |set| (given, set))) {
            if given.events & QUESTIONS[set] != 0 {
                let on = given.revents & ANSWERS[set] != 0;
                self.put(set, given.fd.max(!given.fd), on);
                ready += on as c_int;
            }
        }
        ready
    }

    /// Waits as `select` does; `call` is the kernel's `poll`. `None`: the kernel can answer.
    pub fn wait(
        &self,
        limit: Option<Duration>,
        mut call: impl FnMut(&mut [pollfd], Option<Duration>) -> c_int,
    ) -> Option<c_int> {
        if !(1..=MOST as c_int).contains(&self.count) || !self.asks_for_urgent() {
            return None;
        }
        let mut list = [pollfd { fd: -1, events: 0, revents: 0 }; MOST];
        let len = self.list(&mut list);
        let list = &mut list[..len];
        list.iter().filter(|asked| asked.events & POLLPRI != 0).for_each(|asked| urgent::watch(asked.fd));
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let ready = poll::wait(list, left, &mut call);
            if ready < 0 {
                return Some(ready);
            }
            if list.iter().any(|given| given.revents & POLLNVAL != 0) {
                return Some(errno::int(Err(Errno(libc::EBADF))));
            }
            if ready == 0 || list.iter().any(is_answer) {
                return Some(self.answer(list));
            }
            // A hang-up is nothing to the second and third set: it is not waited for again. Poll ignores negative numbers.
            list.iter_mut().filter(|given| given.revents != 0).for_each(|given| given.fd = !given.fd);
        }
    }
}

/// Whether some set has a bit for it.
fn is_answer(given: &pollfd) -> bool {
    (0..3).any(|set| given.events & QUESTIONS[set] != 0 && given.revents & ANSWERS[set] != 0)
}
