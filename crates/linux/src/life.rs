//! How a server's death is told the moment it begins: by a robust futex (get_robust_list(2)).
//!
//! The kernel marks the word of a dying thread and wakes who sleeps on it before it takes the thread's memory apart, which
//! takes milliseconds when a thousand connections are mapped. A word can be written by whoever maps it, so the mark is only
//! a hint: a [`Witness`] asks the kernel.

use crate::{Doing, Result};
use eft_channel::Shared;
use eft_channel::status::Status;
use rustix::process::{Pid, getpriority_process, setpriority_process};
use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::ptr::{from_ref, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// `struct robust_list` of linux/futex.h.
#[repr(C)]
struct Link {
    next: AtomicPtr<Link>,
}

/// `struct robust_list_head` of linux/futex.h, and the only entry that its list ever has.
#[repr(C)]
struct Head {
    list: Link,
    /// From an entry to its word.
    offset: AtomicUsize,
    pending: AtomicPtr<Link>,
    entry: Link,
}

/// Bytes of `struct robust_list_head`.
const HEAD_LEN: usize = 3 * size_of::<usize>();

static HEAD: Head = Head {
    list: Link { next: AtomicPtr::new(null_mut()) },
    offset: AtomicUsize::new(0),
    pending: AtomicPtr::new(null_mut()),
    entry: Link { next: AtomicPtr::new(null_mut()) },
};

/// Gives the kernel the list of the calling thread, still empty. The C library's robust mutexes are not for this thread any
/// more; a server has none.
pub fn prepare() -> Result<()> {
    HEAD.list.next.store(from_ref(&HEAD.list).cast_mut(), Ordering::Relaxed);
    // SAFETY: the list is a cycle of one, and static.
    let done = unsafe { libc::syscall(libc::SYS_set_robust_list, from_ref(&HEAD), HEAD_LEN) };
    if done < 0 { Err(std::io::Error::last_os_error()).doing("robust list") } else { Ok(()) }
}

/// From now on this page tells the death of the calling thread, which has [prepared](prepare).
pub fn hold(status: &Status) {
    static KEPT: OnceLock<Shared<AtomicU32>> = OnceLock::new();
    let word: &AtomicU32 = KEPT.get_or_init(|| status.life_word());
    let offset = (from_ref(word) as usize).wrapping_sub(from_ref(&HEAD.entry) as usize);
    HEAD.offset.store(offset, Ordering::Relaxed);
    HEAD.entry.next.store(from_ref(&HEAD.list).cast_mut(), Ordering::Relaxed);
    // SAFETY: gettid(2) has no arguments. The kernel compares the number that the thread has in its own namespace.
    let thread = unsafe { libc::gettid() } as u32;
    // With this bit the kernel wakes sleepers.
    word.store(thread | libc::FUTEX_WAITERS, Ordering::Release);
    HEAD.list.next.store(from_ref(&HEAD.entry).cast_mut(), Ordering::Release);
}

/// Whether a word says that its owner lives.
pub fn is_held(word: u32) -> bool {
    word & libc::FUTEX_TID_MASK != 0 && word & libc::FUTEX_OWNER_DIED == 0
}

/// A thread that the kernel is taking apart (`PF_EXITING` of linux/sched.h).
const EXITING: u64 = 4;

/// Bytes of a `stat` file at most: 52 numbers and a name.
const STAT_MAX: usize = 2048;

/// What the kernel says of a process. It is opened while that process lives, so that a death is confirmed by one system call,
/// and never by what another process of the same number does.
pub struct Witness(File);

impl Witness {
    pub fn of(pid: u32) -> Option<Witness> {
        File::open(format!("/proc/{pid}/stat")).ok().map(Witness)
    }

    /// How the process ends, if it is about to end and executes no instruction of its program any more: its only thread has
    /// begun to exit, of which there is no way back. It may keep its memory and its descriptors for milliseconds.
    pub fn ending(&self) -> Option<String> {
        let mut stat = [0; STAT_MAX];
        let n = self.0.read_at(&mut stat, 0).ok()?;
        ending_by(str::from_utf8(&stat[..n]).ok()?)
    }
}

/// Keeps a process that sleeps, and is about to be given work by this thread, from being woken on this CPU, where it would
/// wait for this thread. Lasts until it [chooses its place](crate::serve).
pub fn wake_elsewhere(pid: u32) {
    let Some(pid) = Pid::from_raw(pid as i32) else { return };
    let Ok(mut all) = sched_getaffinity(None) else { return };
    all.unset(sched_getcpu());
    if all.count() > 0 {
        let _ = sched_setaffinity(Some(pid), &all);
    }
}

/// Lets everybody else run before a process. For one that is [ending](Witness::ending), since its successor may be among them; and
/// for one that prepares itself for later: a kernel without preemption looks only at its ticks, 4 ms apart, whether a server that
/// has been woken is to run instead of an equal.
pub fn step_aside(pid: u32) {
    schedule(pid, libc::SCHED_IDLE);
}

/// Ends that. The kernel takes it for a rise to the niceness of the process (sched(7)), so it needs the right to that.
pub fn step_forward(pid: u32) {
    schedule(pid, libc::SCHED_OTHER);
}

/// Whether this process has shown that it may raise priorities, so that a child that steps aside can be called back.
static MAY_RAISE: AtomicBool = AtomicBool::new(false);

/// Takes a niceness, which children inherit, if that is allowed.
pub fn take_niceness(nice: i32) {
    let before = getpriority_process(None);
    let taken = setpriority_process(None, nice).is_ok();
    MAY_RAISE.store(taken && before.is_ok_and(|before| before > nice), Ordering::Relaxed);
}

/// Whether a child that steps aside can be called back.
pub fn may_step_aside() -> bool {
    MAY_RAISE.load(Ordering::Relaxed)
}

fn schedule(pid: u32, policy: libc::c_int) {
    // SAFETY: all zeroes are a valid parameter, and the only one that these policies know.
    unsafe {
        let parameter: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(pid as i32, policy, &parameter);
    }
}

/// What [`Witness::ending`] says, from the content of its `stat` (proc_pid_stat(5)).
fn ending_by(stat: &str) -> Option<String> {
    let fields: Vec<&str> = stat.trim_end().rsplit_once(") ")?.1.split(' ').collect();
    // Numbered from 1 in the manual; the first two are cut off.
    let field = |n: usize| fields.get(n - 3)?.parse::<u64>().ok();
    let (flags, threads, code) = (field(9)?, field(20)?, field(52)?);
    (threads == 1 && flags & EXITING != 0).then(|| match (code & 0x7f, code >> 8) {
        (0, status) => format!("exit status {status}"),
        (signal, _) => format!("signal {signal}"),
    })
}

#[cfg(test)]
mod tests;
