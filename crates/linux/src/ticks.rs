//! A timer on the CPU time of this process's main thread, which counts its ticks in the status page.
//!
//! By the ticks, the supervisor judges whether a server computes without progress. A tick counts only while the thread
//! itself runs, and that is intended: the CPU-time clock also counts time that a hypervisor took away, but a tick that
//! became due ten times meanwhile is delivered once. A server that sleeps, or is stopped, throttled or not scheduled,
//! has no ticks. A tick costs one signal, so a busy server spends about a ten-thousandth of its time on them.
//!
//! If neither a supervisor nor a keeper lives, nobody judges a server. One that works reads the end of its control socket
//! between its turns, and ends; one whose turn never ends does not, so its ticks end it. As long as turns end, a tick makes no
//! system call.

use crate::{Doing, Result};
use eft_channel::status::Status;
use eft_control::hang::TICK;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// The timer's signal, which is blocked in its handler and nowhere else.
pub const SIGNAL: libc::c_int = libc::SIGPROF;

/// The word in which the handler counts.
static WORD: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());

/// The word in which the server counts its turns. Null: it has not made one, or is none.
static TURNS: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());
/// What stood there at the last examination.
static TURNS_BEFORE: AtomicU64 = AtomicU64::new(0);

/// The socket whose end says that nobody is there any more; -1: none is watched.
static CONTROL: AtomicI32 = AtomicI32::new(-1);
/// Ticks until the control socket is examined again.
static UNTIL_EXAMINED: AtomicU32 = AtomicU32::new(EXAMINED_EVERY);
/// Half a second: far more than a server computes until it has read the end of its control socket.
const EXAMINED_EVERY: u32 = 50;
/// Whether the last examination found the end.
static HAD_ENDED: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_signal: libc::c_int) {
    // SAFETY: null, or a word of a page that stays mapped until the process ends.
    if let Some(word) = unsafe { WORD.load(Ordering::Relaxed).as_ref() } {
        word.fetch_add(1, Ordering::Relaxed);
    }
    if UNTIL_EXAMINED.fetch_sub(1, Ordering::Relaxed) == 1 {
        UNTIL_EXAMINED.store(EXAMINED_EVERY, Ordering::Relaxed);
        if !has_turned() {
            end_if_alone();
        }
    }
}

/// Whether a turn has ended since this was last asked.
fn has_turned() -> bool {
    // SAFETY: null, or a word of a page that stays mapped until the process ends.
    let turns = unsafe { TURNS.load(Ordering::Relaxed).as_ref() }.map(|turns| turns.load(Ordering::Relaxed));
    turns.is_some_and(|turns| TURNS_BEFORE.swap(turns, Ordering::Relaxed) != turns)
}

/// Ends the process if its control socket has ended, and had at the examination before. It is async-signal-safe, and leaves errno
/// as it was.
fn end_if_alone() {
    let control = CONTROL.load(Ordering::Relaxed);
    if control < 0 {
        return;
    }
    let mut watched = libc::pollfd { fd: control, events: 0, revents: 0 };
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: plain calls with pointers that live through them; ppoll and _exit are system calls and nothing else.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let ready = libc::ppoll(&mut watched, 1, &now, std::ptr::null());
        *errno = before;
        let has_ended = ready == 1 && watched.revents & libc::POLLHUP != 0;
        if HAD_ENDED.swap(has_ended.into(), Ordering::Relaxed) != 0 && has_ended {
            libc::_exit(ALONE);
        }
    }
}

/// The exit status of a server that nobody is left for.
const ALONE: i32 = 2;

/// From now on the process ends if it computes for long after the other end of this socket was closed.
pub fn end_with(control: BorrowedFd) {
    CONTROL.store(control.as_raw_fd(), Ordering::Relaxed);
}

/// From now on ticks are counted in this page, in which the server also counts its turns.
pub fn count_in(status: &Status) {
    static KEPT: OnceLock<[eft_channel::Shared<AtomicU64>; 2]> = OnceLock::new();
    let [ticks, turns] = KEPT.get_or_init(|| [status.tick_word(), status.heartbeat_word()]);
    for (pointer, word) in [(&WORD, ticks), (&TURNS, turns)] {
        let word: &AtomicU64 = word;
        pointer.store(std::ptr::from_ref(word).cast_mut(), Ordering::Relaxed);
    }
}

/// Starts the timer of the calling thread. Threads and programs that it starts have none.
pub fn start() -> Result<()> {
    let failed = || std::io::Error::last_os_error();
    let interval = libc::timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as _ };
    let every = libc::itimerspec { it_interval: interval, it_value: interval };
    // SAFETY: plain calls with valid arguments that live through them; the handler is async-signal-safe.
    let done = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        event.sigev_notify_thread_id = libc::gettid();
        let mut timer: libc::timer_t = std::mem::zeroed();
        libc::sigaction(SIGNAL, &action, std::ptr::null_mut()) == 0
            && libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &mut event, &mut timer) == 0
            && libc::timer_settime(timer, 0, &every, std::ptr::null_mut()) == 0
    };
    if done { Ok(()) } else { Err(failed()).doing("cannot start the timer on CPU time") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eft_host::clock;
    use std::os::fd::OwnedFd;
    use std::sync::LazyLock;
    use std::time::Duration;

    /// A process counts in one page only; each process that a test starts has its own copy of it.
    static STATUS: LazyLock<Status> = LazyLock::new(Status::heap);

    #[test]
    fn a_thread_that_computes_has_ticks_and_one_that_sleeps_has_none() {
        let status = &*STATUS;
        count_in(status);
        start().unwrap();
        let used = || {
            let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: plain call with a valid out pointer.
            unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
            Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
        };
        let begin = used();
        // Time may be stolen meanwhile, so there may be fewer ticks than the time says, but never more.
        while status.ticks() < 5 {
            assert!(used() - begin < Duration::from_secs(60), "no ticks");
            std::hint::black_box(clock::now());
        }
        let ticks = status.ticks();
        assert!((used() - begin + TICK).as_millis() as u64 >= ticks * TICK.as_millis() as u64);
        std::thread::sleep(TICK * 5);
        // Falling asleep may cost one tick.
        assert!(status.ticks() <= ticks + 1);
    }
    /// Starts a process that computes for ever, and that makes turns meanwhile or not. Returns its number, and the other end of
    /// its control socket.
    fn looping(turns: bool) -> (i32, OwnedFd) {
        let (ours, theirs) = crate::scm::pair().unwrap();
        let status = &*STATUS;
        // SAFETY: the child makes system calls, and then only computes.
        match unsafe { libc::fork() } {
            0 => {
                // Of what other tests have open, nothing may stay open by this process.
                // SAFETY: descriptors by number, of which this process uses one.
                unsafe {
                    libc::dup2(theirs.as_raw_fd(), 3);
                    libc::close_range(4, u32::MAX, 0);
                    end_with(BorrowedFd::borrow_raw(3));
                }
                count_in(status);
                start().unwrap();
                loop {
                    std::hint::black_box(clock::now());
                    if turns {
                        status.beat();
                    }
                }
            }
            child => (child, ours),
        }
    }

    /// The exit status, if it has ended.
    fn status_of(child: i32) -> Option<i32> {
        let mut status = 0;
        // SAFETY: plain call with a valid out pointer.
        match unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } {
            0 => None,
            _ => Some(libc::WEXITSTATUS(status)),
        }
    }

    #[test]
    fn who_computes_for_ever_ends_when_nobody_is_left() {
        let (child, control) = looping(false);
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!(status_of(child), None, "its supervisor lives");
        drop(control);
        let until = clock::now() + Duration::from_secs(60);
        let status = loop {
            match status_of(child) {
                None if clock::now() < until => std::thread::sleep(Duration::from_millis(10)),
                status => break status,
            }
        };
        // SAFETY: a signal to a child that may live on.
        unsafe { libc::kill(child, libc::SIGKILL) };
        assert_eq!(status, Some(ALONE));
    }

    #[test]
    fn whose_turns_end_is_left_to_find_it_out_by_itself() {
        let (child, control) = looping(true);
        drop(control);
        std::thread::sleep(Duration::from_secs(2));
        let status = status_of(child);
        // SAFETY: a signal to a child, which lives unless its status was found.
        unsafe { libc::kill(child, libc::SIGKILL) };
        assert_eq!(status, None);
    }
}
