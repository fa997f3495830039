//! The operator's socket: each connection carries one JSON request and one JSON answer, with descriptors.
//!
//! It is `RUN/NAME/control.sock` and has mode 0600. `eft ps`, `stat`, `ss`, `kill`, `pf`, … are its clients.

use crate::error::error;
use crate::protocol::PACKET_MAX;
use crate::{Doing, Error, Result, memory, scm};
use eft_channel::socket::{Arena, Geometry};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{PidfdFlags, pidfd_open};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder in which running stacks have their sockets.
pub fn run_dir() -> PathBuf {
    std::env::var_os("EFT_RUN_DIR").map_or_else(|| PathBuf::from("/run/eft"), PathBuf::from)
}

pub fn stack_dir(name: &str) -> PathBuf {
    run_dir().join(name)
}

pub fn control_path(name: &str) -> PathBuf {
    stack_dir(name).join("control.sock")
}

pub fn applications_path(name: &str) -> PathBuf {
    stack_dir(name).join("apps.sock")
}

pub fn keeper_path(name: &str) -> PathBuf {
    stack_dir(name).join("keeper.sock")
}

pub fn seqpacket() -> Result<OwnedFd> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .doing("socket")
}

pub fn unix_address(path: &Path) -> Result<SocketAddrUnix> {
    SocketAddrUnix::new(path).doing(format_args!("{}", path.display()))
}

/// Makes a listening socket at `path` that only its owner can use.
pub fn listen(path: &Path) -> Result<OwnedFd> {
    use std::os::unix::fs::PermissionsExt;
    let what = || path.display().to_string();
    let fd = seqpacket()?;
    rustix::net::bind(&fd, &unix_address(path)?).doing(what())?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).doing(what())?;
    rustix::net::listen(&fd, 128).doing(what())?;
    Ok(fd)
}

/// A supervisor answers a simple question at once, even on a busy machine; one that is silent for so long hangs.
const PATIENCE: Duration = Duration::from_secs(3);

/// Connects to a stack's socket; a missing stack gets a clear error.
pub fn connect(name: &str, path: &Path) -> Result<OwnedFd> {
    let fd = seqpacket()?;
    // Nobody accepts, and too many wait already.
    set_socket_timeout(&fd, Timeout::Send, Some(PATIENCE)).doing("socket")?;
    rustix::net::connect(&fd, &unix_address(path)?).map_err(|e| match e {
        rustix::io::Errno::NOENT | rustix::io::Errno::CONNREFUSED => Error::Missing(format!(
            "there is no running stack `{name}`: start one with `eft up --name {name} …`"
        )),
        rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => Error::Denied(format!(
            "no permission to use stack `{name}`: its socket {} is its owner's",
            path.display()
        )),
        e => Error::System(format!("cannot reach stack `{name}`: {e}")),
    })?;
    Ok(fd)
}

/// How long a supervisor that was just killed may take to end: its memory is given back before its sockets.
const ENDING: Duration = Duration::from_millis(300);

/// Whether a stack of this name has a supervisor. A process that it was about to start when it died may still have its socket
/// open for a moment.
pub fn is_running(name: &str) -> bool {
    connect(name, &control_path(name)).is_ok_and(|fd| listener_stays(&fd))
}

/// Whether the process that listens at the other end of a connection lives, and goes on living.
fn listener_stays(connection: &OwnedFd) -> bool {
    match socket_peercred(connection) {
        Ok(listener) => {
            pidfd_open(listener.pid, PidfdFlags::empty()).is_ok_and(|process| !ends_within(&process, ENDING))
        }
        Err(_) => true,
    }
}

/// Whether the process of a pidfd has ended.
pub fn has_ended(process: &OwnedFd) -> bool {
    ends_within(process, Duration::ZERO)
}

fn ends_within(process: &OwnedFd, time: Duration) -> bool {
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    matches!(poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&time)), Ok(1..))
}

/// Sends a request to a stack and returns the answer. An answer with `error` becomes an error.
pub fn ask(name: &str, request: &Value) -> Result<(Value, Vec<OwnedFd>)> {
    ask_with(name, request, &[])
}

/// The same, with descriptors that belong to the request.
pub fn ask_with(name: &str, request: &Value, fds: &[&OwnedFd]) -> Result<(Value, Vec<OwnedFd>)> {
    let fd = connect(name, &control_path(name))?;
    let request = request.to_string();
    if request.len() > PACKET_MAX {
        let (size, most) = (request.len() / 1024, PACKET_MAX / 1024);
        return Err(Error::Invalid(format!(
            "{size} KiB are too much: a stack takes at most {most} KiB at once"
        )));
    }
    let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
    scm::send(&fd, request.as_bytes(), &fds, false).doing("control socket")?;
    await_answer(name, &fd)?;
    let mut buffer = vec![0; 256 * 1024];
    let (n, mut fds) = scm::receive(&fd, &mut buffer, false).doing("control socket")?;
    if n == 0 {
        return Err(Error::Protocol(format!("stack `{name}` closed the connection without an answer")));
    }
    let mut answer: Value = serde_json::from_slice(&buffer[..n]).doing("answer of the stack")?;
    if answer.get("in_memory").is_some() && !fds.is_empty() {
        answer = read_answer(&fds.remove(0))?;
    }
    match answer.get("error").and_then(Value::as_str) {
        Some(e) => Err(Error::Refused(e.to_string())),
        None => Ok((answer, fds)),
    }
}

/// The arena of a domain, to read only.
pub fn arena(name: &str, domain: u32) -> Result<Arena> {
    let (answer, fds) = ask(name, &json!({ "op": "domain", "domain": domain }))?;
    let of = |key: &str| answer["shape"][key].as_u64().map_or(0, |bytes| bytes as usize);
    let geometry = Geometry { slots: of("slots"), send_len: of("send_len"), receive_len: of("receive_len") };
    let arena = fds.first().ok_or_else(|| error!(Protocol, "the stack sent no arena"))?;
    Arena::new(memory::map(arena, false)?, geometry).map_err(|_| error!(Protocol, "the stack named no shape"))
}

/// Waits until there is an answer or the connection has ended: as long as it takes, if the supervisor answers others.
fn await_answer(name: &str, fd: &OwnedFd) -> Result<()> {
    while !is_readable(fd)? {
        let Ok(other) = connect(name, &control_path(name)) else { continue };
        let asked = scm::send(&other, br#"{"op":"info"}"#, &[], true);
        if asked.is_ok() && !is_readable(&other)? && !is_readable(fd)? {
            let pid = socket_peercred(fd).doing("control socket")?.pid.as_raw_nonzero().get();
            return Err(Error::Hangs { stack: name.into(), pid });
        }
    }
    Ok(())
}

/// Whether something can be read, waiting for as long as a supervisor may take to answer.
fn is_readable(fd: &OwnedFd) -> Result<bool> {
    let limit = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&limit)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(e) => Err(e).doing("control socket"),
    }
}

fn read_answer(fd: &OwnedFd) -> Result<Value> {
    let segment = crate::memory::map(fd, false)?;
    let mut bytes = vec![0; segment.len()];
    segment.read(0, &mut bytes).map_err(|_| Error::Protocol("answer of the stack".into()))?;
    serde_json::from_slice(&bytes).doing("answer of the stack")
}

/// For the supervisor: sends an answer; a large one goes through shared memory. Never waits for the client.
pub fn answer(to: &OwnedFd, value: &Value, fds: &[&OwnedFd]) {
    let text = value.to_string();
    if text.len() < 100_000 {
        let fds: Vec<_> = fds.iter().map(|f| f.as_fd()).collect();
        let _ = scm::send(to, text.as_bytes(), &fds, true);
        return;
    }
    let Ok(fd) = crate::memory::create("eft-answer", text.len()) else { return };
    if let Ok(segment) = crate::memory::map(&fd, true) {
        let _ = segment.write(0, text.as_bytes());
    }
    let _ = scm::send(to, br#"{"in_memory":true}"#, &[fd.as_fd()], true);
}

/// Whether no other running stack has this address. Waits for the other stacks' answers.
pub fn check_free(stack: &str, address: IpAddr) -> Result<()> {
    for other in running_stacks().into_iter().filter(|other| other != stack) {
        let Ok((info, _)) = ask(&other, &serde_json::json!({ "op": "info" })) else { continue };
        if info["devices"].to_string().contains(&format!("\"{address}/")) {
            return Err(Error::Busy(format!("{address} is in use: stack `{other}` has it")));
        }
    }
    Ok(())
}

/// The names of the running stacks.
pub fn running_stacks() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(run_dir()) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|e| e.file_name().into_string().ok())
        .filter(|name| connect(name, &control_path(name)).is_ok())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    /// A connection to a socket on which a child listens that ends after `time`; this process has the socket open, too.
    fn connection_to_a_child(time: Duration) -> OwnedFd {
        let path = std::env::temp_dir().join(format!("eft-listener-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let socket = seqpacket().unwrap();
        rustix::net::bind(&socket, &unix_address(&path).unwrap()).unwrap();
        // SAFETY: the child makes system calls only.
        if unsafe { libc::fork() } == 0 {
            let rest = libc::timespec { tv_sec: 0, tv_nsec: time.as_nanos() as i64 };
            // SAFETY: as above.
            unsafe {
                libc::listen(socket.as_raw_fd(), 1);
                libc::nanosleep(&raw const rest, std::ptr::null_mut());
                libc::_exit(0);
            }
        }
        let fd = seqpacket().unwrap();
        while rustix::net::connect(&fd, &unix_address(&path).unwrap()).is_err() {
            std::thread::yield_now();
        }
        std::fs::remove_file(&path).unwrap();
        std::mem::forget(socket);
        fd
    }

    #[test]
    fn a_supervisor_that_is_ending_runs_no_more() {
        assert!(!listener_stays(&connection_to_a_child(ENDING / 6)));
        assert!(listener_stays(&connection_to_a_child(ENDING * 3)));
    }
}
