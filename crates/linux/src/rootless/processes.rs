//! The processes of a private stack: who starts, awaits and ends whom.

use super::{User, become_user, enter, own_mounts};
use crate::{Doing, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::time::Duration;

/// Signals that are passed on to the program.
const PASSED: [i32; 8] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGCONT,
    libc::SIGWINCH,
];
/// How long the stack may take to end in order after its program.
const PATIENCE: Duration = Duration::from_secs(2);

/// How the program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    Status(u8),
    Signal(i32),
    /// Before it began, or because the stack did; the reason is printed.
    Hindered,
}

impl Ended {
    /// From `wait`'s status.
    fn of(status: i32) -> Ended {
        match libc::WIFSIGNALED(status) {
            true => Ended::Signal(libc::WTERMSIG(status)),
            false => Ended::Status(libc::WEXITSTATUS(status) as u8),
        }
    }

    fn to_bytes(self) -> [u8; 2] {
        match self {
            Ended::Status(status) => [0, status],
            Ended::Signal(signal) => [1, signal as u8],
            Ended::Hindered => [2, 0],
        }
    }

    fn from_bytes(bytes: [u8; 2]) -> Ended {
        match bytes {
            [0, status] => Ended::Status(status),
            [1, signal] => Ended::Signal(signal.into()),
            _ => Ended::Hindered,
        }
    }
}

/// Runs a program on a stack of its own. `stack` runs the stack until it is told to end, and calls its argument when it
/// is ready; `program` becomes the program, or returns a status. Both run in child processes. This process must have one
/// thread.
pub fn run(stack: impl FnOnce(&dyn Fn()) -> Result<()>, program: impl FnOnce() -> u8) -> Result<Ended> {
    let user = User::current();
    enter(user)?;
    let (reader, writer) = pipe()?;
    let signals = block()?;
    let Some(init) = fork()? else {
        drop(reader);
        let ended = as_init(&writer, &signals, stack, program, user).unwrap_or_else(|e| {
            eprintln!("eft: {e}");
            Ended::Hindered
        });
        let _ = rustix::io::write(&writer, &ended.to_bytes());
        exit(0);
    };
    drop(writer);
    while wait(Some(init))?.is_none() {
        if let Some(signal) = next_signal(&signals, None) {
            kill(init, signal);
        }
    }
    let mut bytes = [2, 0];
    let _ = rustix::io::read(&reader, &mut bytes);
    unblock();
    Ok(Ended::from_bytes(bytes))
}

/// Starts the stack, then the program, and ends with either.
fn as_init(
    outside: &OwnedFd,
    signals: &libc::sigset_t,
    stack: impl FnOnce(&dyn Fn()) -> Result<()>,
    program: impl FnOnce() -> u8,
    user: User,
) -> Result<Ended> {
    end_with(outside);
    own_mounts()?;
    let (reader, writer) = pipe()?;
    let Some(supervisor) = fork()? else {
        drop(reader);
        as_supervisor(writer, stack);
    };
    drop(writer);
    let mut word = [0];
    if rustix::io::read(&reader, &mut word) != Ok(1) {
        // It has printed why.
        return Ok(Ended::Hindered);
    }
    let Some(program) = fork()? else {
        unblock();
        let status = become_user(user).map_or_else(
            |e| {
                eprintln!("eft: {e}");
                125
            },
            |()| program(),
        );
        exit(status.into());
    };
    let ended = attend(signals, program, supervisor)?;
    if ended != Ended::Hindered {
        kill(supervisor, libc::SIGTERM);
        let until = std::time::Instant::now() + PATIENCE;
        while wait(Some(supervisor))?.is_none() && std::time::Instant::now() < until {
            next_signal(signals, Some(Duration::from_millis(20)));
        }
    }
    Ok(ended)
}

/// Waits for the program's end and passes signals on. Orphans of the namespace become init's children, and are waited
/// for, too.
fn attend(signals: &libc::sigset_t, program: i32, supervisor: i32) -> Result<Ended> {
    loop {
        while let Some((pid, status)) = wait(None)? {
            if pid == program {
                return Ok(Ended::of(status));
            }
            if pid == supervisor {
                eprintln!("eft: the stack has ended, and its program with it");
                return Ok(Ended::Hindered);
            }
        }
        if let Some(signal) = next_signal(signals, None) {
            kill(program, signal);
        }
    }
}

fn as_supervisor(ready: OwnedFd, stack: impl FnOnce(&dyn Fn()) -> Result<()>) -> ! {
    // The signals of the terminal are the program's.
    // SAFETY: plain numbers.
    unsafe { libc::setpgid(0, 0) };
    unblock();
    let is_ready = || {
        let _ = rustix::io::write(&ready, b"!");
    };
    match stack(&is_ready) {
        Ok(()) => exit(0),
        Err(e) => {
            eprintln!("eft: {e}");
            exit(1)
        }
    }
}

/// Ends this process with the one that reads the other end of this pipe.
fn end_with(outside: &OwnedFd) {
    use rustix::event::{PollFd, PollFlags, poll};
    // SAFETY: plain numbers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // It may have ended before.
    let mut end = [PollFd::from_borrowed_fd(outside.as_fd(), PollFlags::empty())];
    let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut end, Some(&now)).is_ok_and(|n| n > 0) {
        exit(1);
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    pipe_with(PipeFlags::CLOEXEC).doing("pipe")
}

/// `None` in the child.
fn fork() -> Result<Option<i32>> {
    // SAFETY: this process has one thread, so the child may do everything.
    match unsafe { libc::fork() } {
        0 => Ok(None),
        pid @ 1.. => Ok(Some(pid)),
        _ => Err(std::io::Error::last_os_error()).doing("fork"),
    }
}

/// Ends a forked process without what is its parent's to do at exit.
fn exit(status: i32) -> ! {
    use std::io::Write;
    let _ = std::io::stdout().flush();
    // SAFETY: a plain number.
    unsafe { libc::_exit(status) }
}

/// A child that has ended, and its status; of a certain one, or of any.
fn wait(pid: Option<i32>) -> Result<Option<(i32, i32)>> {
    let mut status = 0;
    // SAFETY: a status of our own.
    match unsafe { libc::waitpid(pid.unwrap_or(-1), &raw mut status, libc::WNOHANG) } {
        0 => Ok(None),
        pid @ 1.. => Ok(Some((pid, status))),
        _ => Err(std::io::Error::last_os_error()).doing("wait"),
    }
}

fn kill(pid: i32, signal: i32) {
    // SAFETY: plain numbers; the process is an unawaited child.
    unsafe { libc::kill(pid, signal) };
}

fn set() -> libc::sigset_t {
    // SAFETY: a set of our own, filled by the calls for it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in PASSED.into_iter().chain([libc::SIGCHLD]) {
            libc::sigaddset(&raw mut set, signal);
        }
        set
    }
}

/// Keeps the signals for [`next_signal`].
fn block() -> Result<libc::sigset_t> {
    let set = set();
    // SAFETY: a set of our own. The disposition decides whether a blocked SIGCHLD is kept at all.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        match libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) {
            0 => Ok(set),
            _ => Err(std::io::Error::last_os_error()).doing("signals"),
        }
    }
}

fn unblock() {
    let set = set();
    // SAFETY: as above.
    unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Waits for a signal; returns it if it is to be passed on. The program gets those of the terminal itself.
fn next_signal(set: &libc::sigset_t, patience: Option<Duration>) -> Option<i32> {
    let limit = patience.unwrap_or(Duration::from_secs(3600));
    let limit = libc::timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    // SAFETY: structures of our own.
    let (signal, code) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        (libc::sigtimedwait(set, &raw mut info, &raw const limit), info.si_code)
    };
    (signal > 0 && signal != libc::SIGCHLD && code <= 0).then_some(signal)
}

#[cfg(test)]
mod tests;
