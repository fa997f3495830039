//! Processes: starts servers, notices deaths, ends all.

use super::StackConfig;
use super::member::Member;
use super::process::{Process, Running, Spawned};
use crate::namespaces::{self, Namespaces};
use crate::protocol::{AHEAD, CONTROL_FD, PROTOCOL};
use crate::{Doing, Result, scm};
use eft_host::clock;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Starts `eft serve NAME…` from a program file, or from the supervisor's own, now or `ahead` of its time, in a predecessor's
/// namespaces or in new ones.
pub fn spawn(
    stack: &str,
    names: &[&str],
    program: Option<&Arc<OwnedFd>>,
    namespaces: Option<&Namespaces>,
    ahead: bool,
) -> Result<Spawned> {
    let protocol = PROTOCOL.to_string();
    let mut arguments = vec!["serve"];
    arguments.extend(names);
    arguments.extend(["--stack", stack, "--protocol", &protocol]);
    let passed = namespaces.map_or(&[][..], Namespaces::fds);
    let count = passed.len().to_string();
    let environment = [ahead.then_some((AHEAD, "yes")), Some((namespaces::COUNT, count.as_str()))];
    let environment: Vec<_> = environment.into_iter().flatten().collect();
    let (mut child, controls) =
        spawn_with(program, &arguments, names.len(), passed, Stdio::piped(), &environment)?;
    let stderr = child.stderr.take();
    if let Some(stderr) = &stderr {
        let _ = rustix::io::ioctl_fionbio(stderr, true);
    }
    Ok(Spawned { child, controls, stderr })
}

/// Bytes of messages that a server has not taken yet, as the kernel counts them: enough for the descriptors of some
/// 200,000 sockets.
const CONTROL_BUFFER: usize = 8 << 20;

/// Descriptors from this number on are never a server's control socket.
const ABOVE_CONTROL: i32 = CONTROL_FD + 64;

/// The same file under a number that no control socket takes.
pub fn above_control(file: OwnedFd) -> Result<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(&file, ABOVE_CONTROL).doing("the program's descriptor")
}

/// Starts the keeper, which outlives the supervisor.
pub fn spawn_keeper(config: &StackConfig, tables: &[&str]) -> Result<(Child, OwnedFd)> {
    let patience = config.keep.as_secs().to_string();
    let mut arguments = vec!["keep", "--stack", &config.name, "--patience", &patience];
    tables.iter().for_each(|table| arguments.extend(["--table", table]));
    let (child, mut controls) = spawn_with(None, &arguments, 1, &[], Stdio::null(), &[])?;
    Ok((child, controls.remove(0)))
}

fn spawn_with(
    program: Option<&Arc<OwnedFd>>,
    arguments: &[&str],
    controls: usize,
    namespaces: &[OwnedFd],
    stderr: Stdio,
    variables: &[(&str, &str)],
) -> Result<(Child, Vec<OwnedFd>)> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..controls {
        let (one, other) = scm::pair().doing("control socket")?;
        // A newborn server gets every socket at once. Without the right to enlarge the buffer, what does not fit waits
        // in the supervisor.
        let _ = rustix::net::sockopt::set_socket_send_buffer_size_force(&one, CONTROL_BUFFER);
        ours.push(one);
        // The numbers of the control sockets stay free for `dup2`.
        theirs.push(above_control(other)?);
    }
    // The file is that of this process unless `program` names another, even if an upgrade has replaced or removed it:
    // another version of eft may speak another protocol.
    let file = program.map_or("/proc/self/exe".into(), |fd| format!("/proc/self/fd/{}", fd.as_raw_fd()));
    let mut command = Command::new(file);
    if let Ok(path) = std::env::current_exe() {
        command.arg0(path);
    }
    command
        .args(arguments)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        // The supervisor handles the terminal's signals for all.
        .process_group(0);
    let to = (CONTROL_FD..).zip(theirs.iter()).chain((namespaces::FIRST..).zip(namespaces));
    let fds: Vec<(i32, i32)> = to.map(|(number, fd)| (number, fd.as_raw_fd())).collect();
    let parent = std::process::id() as i32;
    // SAFETY: only async-signal-safe calls between fork and exec.
    unsafe {
        command.pre_exec(move || {
            // No signal at this process's death: the servers run on, for a successor that adopts them. A server that nobody
            // adopts reads the end of its control socket, and ends.
            if libc::getppid() != parent {
                return Err(std::io::Error::other("the supervisor died"));
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
            for (number, fd) in &fds {
                if libc::dup2(*fd, *number) < 0 {
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

/// A process that has ended, and one of the members that ran in it.
pub struct Dead {
    pub member: usize,
    pub how: String,
    /// To be [buried](bury).
    pub process: Process,
}

/// The processes that have ended. What the kernel keeps of them takes it up to a millisecond to clear away, for which no
/// successor waits.
pub fn ended(members: &mut [Member]) -> Vec<Dead> {
    those(members, Running::ending)
}

/// This process, which executes nothing any more and ends so, while the kernel takes its memory apart.
pub fn dying(members: &mut [Member], pid: u32, how: &str) -> Option<Dead> {
    those(members, |process| (process.id() == pid).then(|| how.to_string())).pop()
}

/// The processes that `how` says have ended; their members have none any more.
fn those(members: &mut [Member], how: impl Fn(&Running) -> Option<String>) -> Vec<Dead> {
    let mut dead = Vec::new();
    for i in 0..members.len() {
        let Some(process) = members[i].child.clone() else { continue };
        let Some(how) = how(&process.borrow()) else { continue };
        for member in members.iter_mut() {
            if member.child.take_if(|other| Rc::ptr_eq(other, &process)).is_some() {
                member.forget_process();
            }
        }
        dead.push(Dead { member: i, how, process });
    }
    dead
}

/// Clears away what the kernel keeps of a process that has ended. False: it is still being taken apart.
pub fn bury(dead: &Process) -> bool {
    dead.borrow_mut().bury()
}

/// Waits up to a second until all have ended as they were told, then kills the rest.
pub fn end_all(members: &mut [Member]) {
    let until = clock::now() + Duration::from_secs(1);
    while clock::now() < until {
        members.iter_mut().for_each(Member::flush);
        for dead in ended(members) {
            bury(&dead.process);
        }
        if members.iter().all(|m| m.child.is_none()) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    for member in members {
        member.kill();
        if let Some(child) = member.child.take() {
            child.borrow_mut().wait();
        }
    }
}
