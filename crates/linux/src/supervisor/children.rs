//! Processes: starting a server, noticing deaths, ending all.

use super::StackConfig;
use super::member::Member;
use super::process::Spawned;
use crate::protocol::{CONTROL_FD, PROTOCOL};
use crate::{Doing, Result, scm};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Starts `eft serve NAME…` from a program file, or from our own.
pub fn spawn(stack: &str, names: &[&str], program: Option<&Arc<OwnedFd>>) -> Result<Spawned> {
    let protocol = PROTOCOL.to_string();
    let mut arguments = vec!["serve"];
    arguments.extend(names);
    arguments.extend(["--stack", stack, "--protocol", &protocol]);
    let (mut child, controls) = spawn_with(program, &arguments, names.len(), Stdio::piped(), true)?;
    let stderr = child.stderr.take();
    if let Some(stderr) = &stderr {
        let _ = rustix::io::ioctl_fionbio(stderr, true);
    }
    Ok(Spawned { child, controls, stderr })
}

/// Bytes of messages that a server has not taken yet, with what the kernel needs for them: some 200,000 sockets' descriptors.
const CONTROL_BUFFER: usize = 8 << 20;

/// The lowest number of a descriptor that no server's control socket has.
const ABOVE_CONTROL: i32 = CONTROL_FD + 64;

/// The same file under a number that is not in the way of the control sockets.
pub fn above_control(file: OwnedFd) -> Result<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(&file, ABOVE_CONTROL).doing("the program's descriptor")
}

/// Starts the keeper, which outlives us.
pub fn spawn_keeper(config: &StackConfig, tables: &[&str]) -> Result<(Child, OwnedFd)> {
    let patience = config.keep.as_secs().to_string();
    let mut arguments = vec!["keep", "--stack", &config.name, "--patience", &patience];
    tables.iter().for_each(|table| arguments.extend(["--table", table]));
    let (child, mut controls) = spawn_with(None, &arguments, 1, Stdio::null(), false)?;
    Ok((child, controls.remove(0)))
}

fn spawn_with(
    program: Option<&Arc<OwnedFd>>,
    arguments: &[&str],
    controls: usize,
    stderr: Stdio,
    dies_with_us: bool,
) -> Result<(Child, Vec<OwnedFd>)> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..controls {
        let (one, other) = scm::pair().doing("control socket")?;
        // A newborn is told of every socket at once. Without the right to it, what does not fit waits with us.
        let _ = rustix::net::sockopt::set_socket_send_buffer_size_force(&one, CONTROL_BUFFER);
        ours.push(one);
        // Where none of them is in the way of another.
        theirs.push(above_control(other)?);
    }
    // Unless told otherwise the file that this process runs, also when an upgrade has replaced or removed it: another version
    // of eft may speak another language.
    let file = program.map_or("/proc/self/exe".into(), |fd| format!("/proc/self/fd/{}", fd.as_raw_fd()));
    let mut command = Command::new(file);
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
    let fds: Vec<i32> = theirs.iter().map(AsRawFd::as_raw_fd).collect();
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
            for (number, fd) in (CONTROL_FD..).zip(&fds) {
                if libc::dup2(*fd, number) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
    let child = command.spawn().doing(format_args!("cannot start eft {}", arguments[..2].join(" ")))?;
    Ok((child, ours))
}

/// How a process ended.
pub fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(n), _) => format!("signal {n}"),
        (None, Some(c)) => format!("exit status {c}"),
        _ => "unknown".into(),
    }
}

/// A member of each process that ended, and how it did.
pub fn reap(members: &mut [Member]) -> Vec<(usize, String)> {
    let mut dead = Vec::new();
    for i in 0..members.len() {
        let Some(child) = members[i].child.clone() else { continue };
        let ended = child.borrow_mut().try_wait();
        if let Ok(Some(status)) = ended {
            for member in members.iter_mut() {
                if member.child.take_if(|other| Rc::ptr_eq(other, &child)).is_some() {
                    member.forget_process();
                }
            }
            dead.push((i, how(status)));
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
        if let Some(child) = member.child.take() {
            let _ = child.borrow_mut().wait();
        }
    }
}
