//! Processes: starting a server, noticing deaths, ending all.

use super::StackConfig;
use super::member::Member;
use crate::protocol::CONTROL_FD;
use crate::{Doing, Result, scm};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Starts `eft serve NAME` with a control socket; returns the process and our end.
pub fn spawn(stack: &str, name: &str) -> Result<(Child, OwnedFd)> {
    let (child, ours) = spawn_with(&["serve", name, "--stack", stack], Stdio::piped(), true)?;
    if let Some(stderr) = &child.stderr {
        let _ = rustix::io::ioctl_fionbio(stderr, true);
    }
    Ok((child, ours))
}

/// Starts the keeper, which outlives us.
pub fn spawn_keeper(config: &StackConfig, tables: &[&str]) -> Result<(Child, OwnedFd)> {
    let patience = config.keep.as_secs().to_string();
    let mut arguments = vec!["keep", "--stack", &config.name, "--patience", &patience];
    tables.iter().for_each(|table| arguments.extend(["--table", table]));
    spawn_with(&arguments, Stdio::null(), false)
}

fn spawn_with(arguments: &[&str], stderr: Stdio, dies_with_us: bool) -> Result<(Child, OwnedFd)> {
    let (ours, theirs) = scm::pair().doing("control socket")?;
    // The file that this process runs, also when an upgrade has replaced or removed it: another version of eft may speak
    // another language.
    let mut command = Command::new("/proc/self/exe");
    if let Ok(path) = std::env::current_exe() {
        command.arg0(path);
    }
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        // Signals of the terminal are the supervisor's matter.
        .process_group(0);
    let fd = theirs.as_raw_fd();
    let parent = std::process::id() as i32;
    // SAFETY: only async-signal-safe calls between fork and exec.
    unsafe {
        command.pre_exec(move || {
            if dies_with_us {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            }
            if libc::getppid() != parent {
                return Err(std::io::Error::other("the supervisor died"));
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
            if fd == CONTROL_FD {
                libc::fcntl(fd, libc::F_SETFD, 0);
            } else if libc::dup2(fd, CONTROL_FD) < 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    let child = command.spawn().doing(format_args!("cannot start eft {}", arguments[..2].join(" ")))?;
    Ok((child, ours))
}

/// The members whose process ended, and how.
pub fn reap(members: &mut [Member]) -> Vec<(usize, String)> {
    let mut dead = Vec::new();
    for (i, member) in members.iter_mut().enumerate() {
        let Some(child) = &mut member.child else { continue };
        if let Ok(Some(status)) = child.try_wait() {
            let how = match (status.signal(), status.code()) {
                (Some(n), _) => format!("signal {n}"),
                (None, Some(c)) => format!("exit status {c}"),
                _ => "unknown".into(),
            };
            member.child = None;
            member.forget_process();
            dead.push((i, how));
        }
    }
    dead
}

/// Waits up to a second for all to end as told, then kills.
pub fn end_all(members: &mut [Member]) {
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        members.iter_mut().for_each(Member::flush);
        reap(members);
        if members.iter().all(|m| m.child.is_none()) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    for member in members {
        member.kill();
        if let Some(mut child) = member.child.take() {
            let _ = child.wait();
        }
    }
}
