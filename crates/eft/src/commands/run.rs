//! `eft run`: an unmodified program on a stack.
//!
//! Makes a family, leaves its root connection and the preloaded library in the environment, and
//! becomes the program. Whatever cannot be preloaded is refused with a clear word instead of running
//! on the kernel unnoticed.

use eft_channel::socket::LAYOUT_VERSION;
use eft_linux::{operator, scm};
use eft_messages::control::{REPLY_LEN, Reply, Request, op};
use rustix::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use zerocopy::{FromBytes, IntoBytes};

#[derive(clap::Args, Debug)]
pub struct RunArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// The family connection is put at or above this number, out of the way of programs' own.
const FAMILY_FD_MIN: i32 = 900;

pub fn run(arguments: &RunArguments) -> Result<(), String> {
    let name = &arguments.stack.name;
    let program = find_program(&arguments.command[0])?;
    check_preloadable(&program)?;
    let shim = shim_path()?;
    let connection = new_family(name)?;
    let fd = move_up(connection)?;
    let mut preload = shim.clone().into_os_string();
    if let Some(old) = std::env::var_os("LD_PRELOAD").filter(|o| !o.is_empty()) {
        preload.push(":");
        preload.push(old);
    }
    eft_linux::io_uring::deny().map_err(|e| e.to_string())?;
    let error = std::process::Command::new(&program)
        .arg0(&arguments.command[0])
        .args(&arguments.command[1..])
        .env("LD_PRELOAD", preload)
        .env("EFT_SHIM", &shim)
        .env("EFT_STACK", name)
        .env("EFT_FAMILY_FD", fd.to_string())
        .exec();
    Err(format!("cannot run {}: {error}", program.display()))
}

fn new_family(stack: &str) -> Result<OwnedFd, String> {
    let fd = operator::connect(stack, &operator::applications_path(stack)).map_err(|e| e.to_string())?;
    let request = Request { version: LAYOUT_VERSION, op: op::NEW_FAMILY, sequence: 1, ..Request::default() };
    let gone = |e| format!("stack `{stack}` does not answer: {e}");
    scm::send(&fd, request.as_bytes(), &[], false).map_err(gone)?;
    let mut bytes = [0u8; REPLY_LEN];
    let (n, _) = scm::receive(&fd, &mut bytes, false).map_err(gone)?;
    let reply = Reply::read_from_bytes(&bytes[..n.min(REPLY_LEN)])
        .map_err(|_| format!("stack `{stack}` closed the connection"))?;
    match reply.errno {
        0 => Ok(fd),
        libc::EMFILE => Err(format!(
            "stack `{stack}` runs as many program families as it may: end one, or raise limits.families"
        )),
        libc::EPROTONOSUPPORT => Err(format!("stack `{stack}` is of another version of eft: restart it")),
        e => Err(format!("stack `{stack}` refused: {}", std::io::Error::from_raw_os_error(e))),
    }
}

/// Duplicates a descriptor to a high number that survives exec.
fn move_up(fd: OwnedFd) -> Result<i32, String> {
    let raw = fd.as_raw_fd();
    for minimum in [FAMILY_FD_MIN, 200, 64, 3] {
        // SAFETY: fcntl on our own descriptor.
        let up = unsafe { libc::fcntl(raw, libc::F_DUPFD, minimum) };
        if up >= 0 {
            return Ok(up);
        }
    }
    // The limit of descriptors is absurdly low; keep the one there is, without close-on-exec.
    let raw = fd.into_raw_fd();
    // SAFETY: as above.
    if unsafe { libc::fcntl(raw, libc::F_SETFD, 0) } < 0 {
        return Err("no descriptor to spare: raise `ulimit -n`".into());
    }
    Ok(raw)
}

fn shim_path() -> Result<PathBuf, String> {
    let exe = std::env::current_exe().map_err(|e| format!("cannot find eft's own program file: {e}"))?;
    let path = exe.with_file_name("libeft.so");
    if !path.exists() {
        return Err(format!(
            "{} is missing: build it with `cargo build --release --workspace`",
            path.display()
        ));
    }
    Ok(path)
}

fn find_program(name: &OsString) -> Result<PathBuf, String> {
    let path = Path::new(name);
    if path.components().count() > 1 {
        return match path.metadata() {
            Ok(m) if m.is_file() => Ok(path.to_path_buf()),
            Ok(_) => Err(format!("{}: not a program", path.display())),
            Err(e) => Err(format!("{}: {e}", path.display())),
        };
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&search)
        .map(|dir| dir.join(path))
        .find(|p| p.metadata().is_ok_and(|m| m.is_file() && m.mode() & 0o111 != 0))
        .ok_or_else(|| format!("{}: command not found", path.display()))
}

/// Refuses programs into which no library can be preloaded.
fn check_preloadable(program: &Path) -> Result<(), String> {
    let shown = program.display();
    let metadata = program.metadata().map_err(|e| format!("{shown}: {e}"))?;
    if metadata.mode() & 0o6000 != 0 {
        return Err(format!(
            "{shown} is setuid or setgid: the loader ignores LD_PRELOAD for it, so it would run on the kernel's network, not on the stack"
        ));
    }
    let mut head = [0u8; 4096];
    let n = {
        use std::io::Read;
        let mut file = std::fs::File::open(program).map_err(|e| format!("{shown}: {e}"))?;
        file.read(&mut head).map_err(|e| format!("{shown}: {e}"))?
    };
    let head = &head[..n];
    if let Some(line) = head.strip_prefix(b"#!") {
        let line =
            String::from_utf8_lossy(line.split(|b| *b == b'\n').next().unwrap_or_default()).into_owned();
        let interpreter = line.split_whitespace().next().unwrap_or_default().to_string();
        return check_preloadable(Path::new(&interpreter));
    }
    if head.starts_with(b"\x7fELF") && !has_interpreter(head) {
        return Err(format!(
            "{shown} is statically linked: nothing can be preloaded into it, so it would run on the kernel's network, not on the stack"
        ));
    }
    if head.starts_with(b"\x7fELF") && has_go_note(head) && !calls_are_handed_over() {
        return Err(format!(
            "{shown} is a Go program: it makes its system calls past the C library, and this kernel cannot hand them over (Syscall User Dispatch), so it would run on the kernel's network, not on the stack"
        ));
    }
    Ok(())
}

/// Whether the library will see the system calls that a program makes past libc.
fn calls_are_handed_over() -> bool {
    const PR_SET_SYSCALL_USER_DISPATCH: libc::c_int = 59;
    // SAFETY: switches off what is not on; takes no addresses.
    cfg!(target_arch = "x86_64") && unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0) } == 0
}

/// The Go linker's note with the build's id; it stands among the first bytes of the file. (Length of the name, length of
/// the content, type, name.)
fn has_go_note(elf: &[u8]) -> bool {
    elf.windows(16)
        .step_by(4)
        .any(|note| note[..4] == 4u32.to_le_bytes() && note[8..] == *b"\x04\0\0\0Go\0\0")
}

/// Whether an ELF file names a dynamic loader (PT_INTERP).
fn has_interpreter(elf: &[u8]) -> bool {
    let u16_at = |i: usize| elf.get(i..i + 2).map(|b| u16::from_le_bytes([b[0], b[1]]) as usize);
    let u32_at = |i: usize| elf.get(i..i + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let wide = elf.get(4) == Some(&2);
    let (offset, size, count) = if wide {
        (u32_at(32).map(|o| o as usize), u16_at(54), u16_at(56))
    } else {
        (u32_at(28).map(|o| o as usize), u16_at(42), u16_at(44))
    };
    let (Some(offset), Some(size), Some(count)) = (offset, size, count) else { return false };
    (0..count).any(|i| u32_at(offset + i * size) == Some(3))
}
