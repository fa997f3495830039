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
    let numbers = [its.as_raw_fd(), place.domain];
    let mut command = Command::new("/proc/self/exe");
    command.arg0("eft").args(["proxy", "--link", &its.as_raw_fd().to_string()]).current_dir("/").env_clear();
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
            for number in numbers {
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

pub fn run(arguments: &ProxyArguments) -> Result<()> {
    start::settle();
    // SAFETY: `leave_behind` passed this descriptor, and nothing else uses it.
    let link = unsafe { OwnedFd::from_raw_fd(arguments.link) };
    start::serve(link).context("cannot serve the program")
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
