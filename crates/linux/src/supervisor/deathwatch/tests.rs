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
fn wait(watch: &Deathwatch) -> Vec<u32> {
    let until = rustix::time::Timespec { tv_sec: 20, tv_nsec: 0 };
    let mut fds = [PollFd::new(watch.descriptor(), PollFlags::IN)];
    assert_eq!(poll(&mut fds, Some(&until)).unwrap(), 1, "nothing is told");
    watch.take().into_iter().map(|(pid, _)| pid).collect()
}

/// Numbers that no process has.
const NOBODY: u32 = 1 << 30;

fn hold(page: &Status) {
    page.life_word().store(7 | libc::FUTEX_WAITERS, Ordering::Release);
}

/// What the kernel does at a death.
fn mark(page: &Status) {
    page.life_word().store(libc::FUTEX_WAITERS | libc::FUTEX_OWNER_DIED, Ordering::Release);
    futex::wake(&page.life_word());
}

#[test]
fn each_of_several_deaths_is_told() {
    let watch = Deathwatch::start().unwrap();
    let pages: Vec<_> = (0..3).map(|_| page()).collect();
    for (n, (own, seen)) in (NOBODY..).zip(&pages) {
        hold(own);
        watch.add(seen.life_word(), n);
    }
    for (n, (own, _)) in (NOBODY..).zip(&pages) {
        mark(own);
        assert_eq!(wait(&watch), [n]);
    }
    // A successor has the page of its predecessor.
    let (own, seen) = &pages[0];
    for n in [NOBODY + 4, NOBODY + 5] {
        hold(own);
        watch.add(seen.life_word(), n);
    }
    mark(own);
    assert_eq!(wait(&watch), [NOBODY + 5]);
}

#[test]
fn one_that_is_forgotten_is_not_told() {
    let watch = Deathwatch::start().unwrap();
    let [one, other] = [page(), page()];
    for (n, (own, seen)) in (NOBODY..).zip([&one, &other]) {
        hold(own);
        watch.add(seen.life_word(), n);
    }
    watch.forget(NOBODY);
    mark(&one.0);
    mark(&other.0);
    assert_eq!(wait(&watch), [NOBODY + 1]);
}

/// A stray write may mark the word of a server that lives on.
#[test]
fn one_that_lives_keeps_its_place_on_the_cpu() {
    let watch = Deathwatch::start().unwrap();
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let (own, seen) = page();
    hold(&own);
    watch.add(seen.life_word(), child.id());
    mark(&own);
    assert_eq!(wait(&watch), [child.id()]);
    // SAFETY: it takes a number and touches no memory.
    let policy = unsafe { libc::sched_getscheduler(child.id() as i32) };
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(policy, libc::SCHED_OTHER);
}
