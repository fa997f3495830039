//! `eft proxy` and `eft enter`: programs that cannot be preloaded (see [`eft_proxy`]). Neither is started by hand: `eft run`
//! starts a proxy before it becomes such a program, and a preloaded program that would become one becomes `eft enter`.

use super::run::preload;
use anyhow::{Context, Result, anyhow};
use eft_proxy::start;
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

#[derive(clap::Args, Debug)]
pub struct ProxyArguments {
    /// The link to the process that becomes the program
    #[arg(long)]
    link: i32,
    /// Sockets that the program inherits
    #[arg(long)]
    inherited: Vec<i32>,
}

#[derive(clap::Args, Debug)]
pub struct EnterArguments {
    program: PathBuf,
    /// The program's arguments, its name first
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Where a program is at home.
pub struct Place<'a> {
    pub stack: &'a OsStr,
    pub shim: &'a Path,
    /// The connection that the domain's processes inherit.
    pub domain: i32,
}

/// Says in a program's environment that a proxy makes its calls.
const PROXIED: &str = "EFT_PROXIED";

/// Whether this process's calls are made by a proxy.
pub fn is_here() -> bool {
    std::env::var_os(PROXIED).is_some()
}

/// Starts a proxy that is not our child, so that the program that we become does not wait for it; returns the link to it.
pub fn leave_behind(place: &Place) -> Result<OwnedFd> {
    let (own, its) = start::link().context("no socket to spare")?;
    let inherited = sockets_to_inherit(place.domain)?;
    let mut numbers = vec![its.as_raw_fd(), place.domain];
    numbers.extend(inherited.iter().map(AsRawFd::as_raw_fd));
    let mut command = Command::new("/proc/self/exe");
    command.arg0("eft").args(["proxy", "--link", &its.as_raw_fd().to_string()]).current_dir("/").env_clear();
    for fd in &inherited {
        command.args(["--inherited", &fd.as_raw_fd().to_string()]);
    }
    command.env("LD_PRELOAD", place.shim).env("EFT_SHIM", place.shim).env("EFT_STACK", place.stack);
    command.env("EFT_DOMAIN_FD", place.domain.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: system calls only, in a child that has one thread.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            if libc::fork() > 0 {
                libc::_exit(0);
            }
            libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            for &number in &numbers {
                libc::fcntl(number, libc::F_SETFD, 0);
            }
            Ok(())
        })
    };
    let mut child = command.spawn().context("cannot start the program's proxy")?;
    child.wait().context("cannot start the program's proxy")?;
    Ok(own)
}

/// Hands our calls over to the proxy and becomes the program; returns if that fails.
pub fn become_program(
    program: &Path,
    name: &OsStr,
    arguments: &[OsString],
    place: &Place,
    link: OwnedFd,
) -> Result<std::io::Error> {
    start::submit(&link).with_context(|| {
        format!("{} cannot be preloaded (it is no program of glibc's dynamic linker)", program.display())
    })?;
    drop(link);
    // SAFETY: takes no addresses. The program must not keep its domain: the proxy does.
    unsafe { libc::fcntl(place.domain, libc::F_SETFD, libc::FD_CLOEXEC) };
    let mut command = Command::new(program);
    command.arg0(name).args(arguments).env(PROXIED, place.stack);
    for ours in ["EFT_SHIM", "EFT_STACK", "EFT_DOMAIN_FD", "LD_PRELOAD"] {
        command.env_remove(ours);
    }
    let others = preload::others(place.shim);
    if !others.is_empty() {
        command.env("LD_PRELOAD", others.join(OsStr::new(":")));
    }
    Ok(command.exec())
}

/// Duplicates of what the program inherits and may be the stack's: these are sockets of the kind that eft's descriptors are.
fn sockets_to_inherit(domain: i32) -> Result<Vec<OwnedFd>> {
    let of_kind = |fd: i32, name: i32, want: i32| {
        let (mut value, mut len) = (0, size_of::<i32>() as libc::socklen_t);
        // SAFETY: a number of ours, and its length.
        let done = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, (&raw mut value).cast(), &mut len) };
        done == 0 && value == want
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").context("cannot see what the program inherits")? {
        let Some(fd) = entry.ok().and_then(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) else {
            continue;
        };
        // SAFETY: takes no addresses.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        let is_inherited = fd != domain && flags >= 0 && flags & libc::FD_CLOEXEC == 0;
        if is_inherited
            && of_kind(fd, libc::SO_TYPE, libc::SOCK_SEQPACKET)
            && of_kind(fd, libc::SO_DOMAIN, libc::AF_UNIX)
        {
            // SAFETY: the descriptor stays open; the duplicate is nobody else's.
            let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
            if copy < 0 {
                return Err(std::io::Error::last_os_error()).context("no descriptor to spare");
            }
            // SAFETY: as above.
            found.push(unsafe { OwnedFd::from_raw_fd(copy) });
        }
    }
    Ok(found)
}

pub fn run(arguments: &ProxyArguments) -> Result<()> {
    start::settle();
    // SAFETY: `leave_behind` passed these descriptors, and nothing else uses them.
    let own = |fd: i32| unsafe { OwnedFd::from_raw_fd(fd) };
    let inherited: Vec<OwnedFd> = arguments.inherited.iter().map(|&fd| own(fd)).collect();
    start::serve(own(arguments.link), &inherited).context("cannot serve the program")
}

pub fn enter(arguments: &EnterArguments) -> ExitCode {
    let Err(why) = try_to_enter(arguments);
    eprintln!("eft: {why:#}");
    ExitCode::from(126)
}

fn try_to_enter(arguments: &EnterArguments) -> Result<Infallible> {
    let EnterArguments { program, arguments } = arguments;
    let of = |name| {
        std::env::var_os(name).ok_or_else(|| anyhow!("`eft enter` is started by a program on a stack"))
    };
    let (stack, shim, domain) = (of("EFT_STACK")?, of("EFT_SHIM")?, of("EFT_DOMAIN_FD")?);
    let domain = domain.to_str().and_then(|text| text.parse().ok()).context("EFT_DOMAIN_FD is no number")?;
    let place = Place { stack: &stack, shim: Path::new(&shim), domain };
    let (name, rest) =
        arguments.split_first().map_or((program.as_os_str(), &[][..]), |(n, r)| (n.as_os_str(), r));
    let link = leave_behind(&place)?;
    let why = become_program(program, name, rest, &place, link)?;
    Err(anyhow!(why).context(format!("cannot run {}", program.display())))
}
