//! `eft packetdrill`: packetdrill's scripts, each on a stack of its own, in a network of its own.
//!
//! The user provides packetdrill itself. It runs as a program of the stack and loads `libeft_packetdrill.so`, which
//! gives it the stack's system calls and wire.

mod kernel_tools;
mod settings;
mod socket_table;
mod stack;

use anyhow::{Context, Result, bail};
pub use kernel_tools::{KernelToolArguments, kernel_tool};
use settings::{Settings, Version};
pub use stack::Stack;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any script takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// The name of packetdrill's own device: some scripts use it.
const DEVICE: &str = "tun0";
/// Runs its further arguments with the library of its first one before libeft.so.
const PRELOADED: &str = r#"LD_PRELOAD="$0:$LD_PRELOAD" exec "$@""#;

#[derive(clap::Args, Debug)]
pub struct PacketdrillArguments {
    /// The packetdrill program, which must be built before
    #[arg(long, default_value = "packetdrill")]
    program: PathBuf,
    /// Addresses of the scripts' packets and sockets: ipv4, ipv6, or ipv4 packets and IPv6 sockets (mapped)
    #[arg(long, default_value = "ipv4")]
    ip: Version,
    /// Bytes of the largest packet on the device; by default that of packetdrill's own runner: 1500, and 1520 for IPv6
    #[arg(long, value_parser = clap::value_parser!(u16).range(1280..))]
    mtu: Option<u16>,
    /// A further option for packetdrill; may be repeated
    #[arg(long, allow_hyphen_values = true)]
    option: Vec<String>,
    /// Scripts
    #[arg(required = true)]
    file: Vec<PathBuf>,
}

pub fn run(arguments: &PacketdrillArguments) -> Result<()> {
    own_network()?;
    be_prompt();
    let library = library()?;
    let path = kernel_tools::path()?;
    let mut failed = 0;
    for file in &arguments.file {
        match script(arguments, (&library, &path.1), file) {
            Ok(()) => println!("ok      {}", file.display()),
            Err(reason) => {
                failed += 1;
                println!("FAILED  {}: {}", file.display(), eft_base::text::one_line(&format!("{reason:#}")));
            }
        }
    }
    let passed = arguments.file.len() - failed;
    println!("packetdrill: {passed} of {} scripts passed", arguments.file.len());
    if failed == 0 { Ok(()) } else { bail!("{failed} scripts failed") }
}

/// Moves into a network namespace: scripts change the kernel's network settings, and the device must not be shared.
fn own_network() -> Result<()> {
    // SAFETY: changes the network namespace of this process, which has one thread so far; touches no memory.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        let error = std::io::Error::last_os_error();
        bail!("packetdrill wants a network of its own: {error} (run it as root)");
    }
    let done = Command::new("ip").args(["link", "set", "lo", "up"]).status();
    match done {
        Ok(status) if status.success() => Ok(()),
        _ => bail!("`ip link set lo up` failed: is iproute2 installed?"),
    }
}

/// Scripts give the time of a packet to the millisecond. Other programs must not delay the stack; packetdrill raises
/// its own priority.
fn be_prompt() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: affects this process; its children inherit it. Without the privilege scripts are only less exact.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const lowest) };
}

/// The library that packetdrill loads; it is beside this program.
fn library() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let library = program.with_file_name("libeft_packetdrill.so");
    match library.is_file() {
        true => Ok(library),
        false => bail!("{} is not there: build the workspace", library.display()),
    }
}

/// Runs one script; an error says why it fails.
fn script(arguments: &PacketdrillArguments, (library, path): (&Path, &OsStr), file: &Path) -> Result<()> {
    let file = file.canonicalize()?;
    let text = std::fs::read(&file)?;
    let settings = Settings::of(arguments.ip, arguments.mtu, &String::from_utf8_lossy(&text));
    let stack = Stack::start("packetdrill", DEVICE, &settings.stack())?;
    let mut said = tempfile::tempfile()?;
    let handle = |file: &File| file.try_clone().map(Stdio::from);
    let (folder, name) = (file.parent().expect("a file has a folder"), file.file_name().expect("and a name"));
    let program = match arguments.program.components().count() {
        1 => arguments.program.clone(),
        _ => arguments.program.canonicalize().with_context(|| arguments.program.display().to_string())?,
    };
    let child = Command::new(std::env::current_exe()?)
        .args(["run", "--name", &stack.name, "--", "/bin/sh", "-c", PRELOADED])
        .arg(library)
        .arg(program)
        .arg(format!("--so_filename={}", library.display()))
        .arg(format!("--so_flags={DEVICE},{}", stack.mac()?))
        // As in packetdrill's own runner: a connection that a script leaves open must not be reset at its end.
        .arg("--send_omit_free")
        .args(settings.options())
        .args(&arguments.option)
        .arg(name)
        .current_dir(folder)
        .env("PATH", path)
        .env(kernel_tools::STACK, &stack.name)
        .stdin(Stdio::null())
        .stdout(handle(&said)?)
        .stderr(handle(&said)?)
        .spawn()?;
    let ended = Process(child).wait();
    let mut words = String::new();
    let _ = said.rewind().and_then(|()| said.read_to_string(&mut words));
    match ended {
        Some(status) if status.success() => Ok(()),
        Some(status) if words.trim().is_empty() => bail!("{status}"),
        Some(_) => bail!(words),
        None => bail!("it did not end within {} s: {words}", PATIENCE.as_secs()),
    }
}

/// A process that ends when the value is dropped.
struct Process(Child);

impl Process {
    /// Waits for its end, for a limited time.
    fn wait(mut self) -> Option<std::process::ExitStatus> {
        let limit = Instant::now() + PATIENCE;
        while Instant::now() < limit {
            if let Ok(Some(status)) = self.0.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
