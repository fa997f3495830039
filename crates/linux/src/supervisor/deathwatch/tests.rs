use super::*;
use crate::memory;
use eft_channel::status::{STATUS_LEN, Status};
use rustix::event::{PollFd, PollFlags, poll};

/// Pages as a server's: what it writes, and what the supervisor sees.
fn page() -> (Status, Status) {
    let fd = memory::create("life", STATUS_LEN).unwrap();
    let map = |writable| Status::new(memory::map(&fd, writable).unwrap()).unwrap();
    (map(true), map(false))
}

/// Sleeps until deaths are told.
fn wait(watch: &Deathwatch) {
    let until = rustix::time::Timespec { tv_sec: 20, tv_nsec: 0 };
    let mut fds = [PollFd::new(watch.descriptor(), PollFlags::IN)];
    assert_eq!(poll(&mut fds, Some(&until)).unwrap(), 1, "nothing is told");
    watch.take();
}

#[test]
fn each_of_several_deaths_is_told() {
    let watch = Deathwatch::start().unwrap();
    let pages: Vec<_> = (0..3).map(|_| page()).collect();
    for (own, seen) in &pages {
        own.life_word().store(7 | libc::FUTEX_WAITERS, Ordering::Release);
        watch.add(seen.life_word());
        watch.add(seen.life_word());
    }
    for (own, _) in &pages {
        // What the kernel does at a death.
        own.life_word().store(libc::FUTEX_OWNER_DIED, Ordering::Release);
        futex::wake(&own.life_word());
        wait(&watch);
    }
    let (own, seen) = &pages[0];
    own.life_word().store(8 | libc::FUTEX_WAITERS, Ordering::Release);
    watch.add(seen.life_word());
    own.life_word().store(libc::FUTEX_OWNER_DIED, Ordering::Release);
    futex::wake(&own.life_word());
    wait(&watch);
}
