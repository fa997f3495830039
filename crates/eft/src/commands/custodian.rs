//! `eft custodian`: what `eft run` leaves behind (see [`eft_linux::custodian`]). Never started by hand.

use anyhow::{Context, Result, anyhow, bail};
use eft_channel::socket::{Arena, Geometry};
use eft_linux::custodian::{self, Charge};
use eft_linux::memory;
use eft_linux::protocol::ArenaShape;
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

#[derive(clap::Args, Debug)]
pub struct CustodianArguments {
    #[arg(long)]
    stack: String,
    /// Connection, root, arena and bell
    #[arg(long, num_args = 4)]
    descriptors: Vec<i32>,
    /// Slots of the arena, bytes of a send ring, bytes of a receive ring
    #[arg(long, num_args = 3)]
    shape: Vec<usize>,
}

/// Starts a custodian that is not our child, so that the program that we become does not wait for it.
pub fn leave_behind(stack: &str, shape: &ArenaShape, descriptors: [OwnedFd; 4]) -> Result<()> {
    let numbers = descriptors.each_ref().map(AsRawFd::as_raw_fd);
    let mut command = Command::new("/proc/self/exe");
    command.arg0("eft").args(["custodian", "--stack", stack, "--descriptors"]);
    command.args(numbers.map(|n| n.to_string())).arg("--shape");
    command.args([shape.slots, shape.send_len, shape.receive_len].map(|n| n.to_string()));
    command.current_dir("/").env_remove("LD_PRELOAD");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: system calls only, in a child that has one thread.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            if libc::fork() > 0 {
                libc::_exit(0);
            }
            for number in numbers {
                libc::fcntl(number, libc::F_SETFD, 0);
            }
            Ok(())
        })
    };
    let mut child = command.spawn().context("cannot start the domain's custodian")?;
    child.wait().map(drop).context("cannot start the domain's custodian")
}

pub fn run(arguments: &CustodianArguments) -> Result<()> {
    let (&[link, root, arena, bell], &[slots, send_len, receive_len]) =
        (&arguments.descriptors[..], &arguments.shape[..])
    else {
        bail!("a custodian is started by `eft run`");
    };
    stand_aside(&[link, root, arena, bell]);
    // SAFETY: `eft run` passed these descriptors, and nothing else uses them.
    let [link, root, arena_fd, bell] =
        [link, root, arena, bell].map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    let segment = memory::map(&arena_fd, true)?;
    let arena = Arena::new(segment, Geometry { slots, send_len, receive_len })
        .map_err(|_| anyhow!("this is no arena"))?;
    let charge = Charge { stack: arguments.stack.clone(), link, root, arena, arena_fd, bell };
    Ok(custodian::run(charge)?)
}

/// Closes unrelated descriptors, makes room for every socket, and stays when a service is told to stop:
/// its programs may take a while to end.
fn stand_aside(own: &[i32]) {
    let mut own: Vec<u32> = own.iter().map(|fd| *fd as u32).collect();
    own.sort_unstable();
    let mut from = 3;
    for fd in own.into_iter().chain([u32::MAX]) {
        if fd > from {
            // SAFETY: nothing of ours is open beside these.
            unsafe { libc::syscall(libc::SYS_close_range, from, fd - 1, 0) };
        }
        from = fd.saturating_add(1);
    }
    // SAFETY: plain numbers, and structures of our own.
    unsafe {
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        let mut files: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut files) == 0 {
            files.rlim_cur = files.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &files);
        }
        libc::prctl(libc::PR_SET_NAME, c"eft-custodian".as_ptr(), 0, 0, 0);
    }
}
