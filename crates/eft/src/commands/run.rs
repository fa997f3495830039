//! `eft run`: an unmodified program on a stack.
//!
//! Makes a domain, leaves its root connection and the preloaded library in the environment and a
//! custodian behind, and becomes the program. A program that cannot be preloaded gets a proxy; one that must not have one
//! (setuid) is refused with a clear error, so that it does not run on the kernel unnoticed.

pub mod preload;
mod rootless;
mod view;

use super::proxy::{self, Place};
use anyhow::{Context, Result, anyhow, bail};
use eft_channel::socket::LAYOUT_VERSION;
use eft_linux::custodian::shape;
use eft_linux::protocol::ArenaShape;
use eft_linux::{operator, scm};
use eft_messages::control::{REPLY_LEN, Reply, Request, op};
use preload::Way;
use rustix::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use zerocopy::{FromBytes, IntoBytes};

#[derive(clap::Args, Debug)]
pub struct RunArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// Start a stack for this program alone, in namespaces of its own, as any user; it ends with the program
    #[arg(long)]
    rootless: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// The domain connection is put at or above this number, out of the way of programs' own.
const DOMAIN_FD_MIN: i32 = 900;

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    /// There is no such program.
    #[error("{0:#}")]
    NotFound(anyhow::Error),
    /// The program exists but cannot be run, or not on a stack.
    #[error("{0:#}")]
    NotRunnable(anyhow::Error),
    /// `eft run` itself has failed.
    #[error("{0:#}")]
    Hindered(anyhow::Error),
}

impl From<anyhow::Error> for Refusal {
    fn from(why: anyhow::Error) -> Refusal {
        Refusal::Hindered(why)
    }
}

impl Refusal {
    /// The exit status, as `env` and shells use it.
    fn status(&self) -> u8 {
        match self {
            Refusal::Hindered(_) => 125,
            Refusal::NotRunnable(_) => 126,
            Refusal::NotFound(_) => 127,
        }
    }
}

pub fn run(arguments: &RunArguments) -> ExitCode {
    match arguments.rootless {
        true => rootless::run(arguments),
        false => ExitCode::from(run_on_stack(arguments)),
    }
}

/// Becomes the program. Returns the exit status if that fails.
fn run_on_stack(arguments: &RunArguments) -> u8 {
    let Err(refusal) = become_program(arguments);
    eprintln!("eft: {refusal}");
    refusal.status()
}

fn become_program(arguments: &RunArguments) -> Result<Infallible, Refusal> {
    let name = &arguments.stack.name;
    let program = find_program(&arguments.command[0])?;
    let shim = shim_path()?;
    let on_kernel = std::env::var_os("EFT_UNSHIMMED").is_some_and(|v| v == "allow");
    if proxy::is_here() {
        let why =
            "this process has a proxy, as it cannot be preloaded: it cannot start a program on another stack";
        return Err(Refusal::NotRunnable(anyhow!(why)));
    }
    let way = match preload::way(&program, &shim) {
        Err(why) if !on_kernel => return Err(Refusal::NotRunnable(why)),
        Ok(Way::Proxied) if on_kernel => Way::Preloaded(None),
        way => way.unwrap_or(Way::Preloaded(None)),
    };
    let fd = move_up(join(name)?)?;
    view::make(name);
    let place = Place { stack: OsStr::new(name), shim: &shim, domain: fd };
    let (argument0, others) = (&arguments.command[0], &arguments.command[1..]);
    let error = match way {
        Way::Preloaded(first) => {
            eft_linux::io_uring::deny().map_err(anyhow::Error::from)?;
            std::process::Command::new(&program)
                .arg0(argument0)
                .args(others)
                .env("LD_PRELOAD", preload::list(&shim, first))
                .env("EFT_SHIM", &shim)
                .env("EFT_STACK", name)
                .env("EFT_DOMAIN_FD", fd.to_string())
                .exec()
        }
        Way::Proxied => {
            let link = proxy::leave_behind(&place)?;
            eft_linux::io_uring::deny().map_err(anyhow::Error::from)?;
            proxy::become_program(&program, argument0, others, &place, link).map_err(Refusal::NotRunnable)?
        }
    };
    let kind = error.kind();
    let why = anyhow!(error).context(format!("cannot run {}", program.display()));
    Err(match kind {
        ErrorKind::NotFound => Refusal::NotFound(why),
        _ => Refusal::NotRunnable(why),
    })
}

/// Makes a domain and leaves its custodian behind; returns what the domain's processes inherit.
fn join(stack: &str) -> Result<OwnedFd> {
    let (link, shape, [arena, bell]) = new_domain(stack)?;
    let (near, far) = scm::pair().context("no socket to spare")?;
    let request = Request { version: LAYOUT_VERSION, op: op::ROOT, ..Request::default() };
    scm::send(&link, request.as_bytes(), &[far.as_fd()], false)
        .with_context(|| format!("stack `{stack}` does not answer"))?;
    super::custodian::leave_behind(stack, &shape, [link, far, arena, bell])?;
    Ok(near)
}

fn new_domain(stack: &str) -> Result<(OwnedFd, ArenaShape, [OwnedFd; 2])> {
    let fd = operator::connect(stack, &operator::applications_path(stack))?;
    let request = Request { version: LAYOUT_VERSION, op: op::NEW_DOMAIN, sequence: 1, ..Request::default() };
    let silent = || format!("stack `{stack}` does not answer");
    scm::send(&fd, request.as_bytes(), &[], false).with_context(silent)?;
    let mut bytes = [0u8; REPLY_LEN];
    let (n, fds) = scm::receive(&fd, &mut bytes, false).with_context(silent)?;
    let reply = Reply::read_from_bytes(&bytes[..n.min(REPLY_LEN)])
        .map_err(|_| anyhow!("stack `{stack}` closed the connection"))?;
    match reply.errno {
        0 => match fds.try_into() {
            Ok(both) => Ok((fd, shape(&reply), both)),
            Err(_) => {
                bail!("stack `{stack}` gave no memory: is there a limit of descriptors (ulimit -n)?")
            }
        },
        libc::EMFILE => {
            bail!("stack `{stack}` runs as many program domains as it may: end one, or raise limits.domains")
        }
        libc::EPROTONOSUPPORT => bail!("stack `{stack}` is of another version of eft: restart it"),
        e => bail!("stack `{stack}` refused: {}", std::io::Error::from_raw_os_error(e)),
    }
}

/// Duplicates a descriptor to a high number that survives exec.
fn move_up(fd: OwnedFd) -> Result<i32> {
    let raw = fd.as_raw_fd();
    for minimum in [DOMAIN_FD_MIN, 200, 64, 3] {
        // SAFETY: fcntl on our own descriptor.
        let up = unsafe { libc::fcntl(raw, libc::F_DUPFD, minimum) };
        if up >= 0 {
            return Ok(up);
        }
    }
    // The limit of descriptors is too low; keep this descriptor, without close-on-exec.
    let raw = fd.into_raw_fd();
    // SAFETY: as above.
    if unsafe { libc::fcntl(raw, libc::F_SETFD, 0) } < 0 {
        bail!("no descriptor to spare: raise `ulimit -n`");
    }
    Ok(raw)
}

fn shim_path() -> Result<PathBuf> {
    let exe = std::env::current_exe().context("cannot find eft's own program file")?;
    let path = exe.with_file_name("libeft.so");
    if !path.exists() {
        bail!("{} is missing: build it with `cargo build --release --workspace`", path.display());
    }
    Ok(path)
}

fn find_program(name: &OsString) -> Result<PathBuf, Refusal> {
    let path = Path::new(name);
    if path.components().count() > 1 {
        return match path.metadata() {
            Ok(m) if !m.is_file() => Err(Refusal::NotRunnable(anyhow!("{}: not a program", path.display()))),
            Ok(_) => executable(path.to_path_buf()),
            Err(e) if e.kind() == ErrorKind::NotFound => {
                Err(Refusal::NotFound(anyhow!("{}: {e}", path.display())))
            }
            Err(e) => Err(Refusal::NotRunnable(anyhow!("{}: {e}", path.display()))),
        };
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    let found: Vec<PathBuf> =
        std::env::split_paths(&search).map(|dir| dir.join(path)).filter(|p| p.is_file()).collect();
    // As in a shell: the first file that can be run, else the first that exists, for the error.
    match found.iter().find(|p| may_execute(p)).or(found.first()) {
        Some(program) => executable(program.clone()),
        None => Err(Refusal::NotFound(anyhow!("{}: command not found", path.display()))),
    }
}

fn may_execute(program: &Path) -> bool {
    rustix::fs::access(program, rustix::fs::Access::EXEC_OK).is_ok()
}

fn executable(program: PathBuf) -> Result<PathBuf, Refusal> {
    match may_execute(&program) {
        true => Ok(program),
        false => Err(Refusal::NotRunnable(anyhow!("{}: not executable", program.display()))),
    }
}
