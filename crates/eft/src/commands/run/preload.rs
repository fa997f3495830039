//! Whether the library can be preloaded into a program, and which library must come before it.
//!
//! A program without the library would silently run on the kernel's network. So its file is checked first,
//! and whether its dynamic linker loads the library. If it cannot be preloaded, a proxy makes its calls.

use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The kernel's limit on nested interpreters.
const SCRIPT_DEPTH: u32 = 5;

/// `e_machine` of this build's programs.
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;

/// What would happen to a program that is not on the stack.
const OTHERWISE: &str = "so it would run on the kernel's network, not on the stack";

/// How a program comes onto the stack.
#[derive(Debug, PartialEq, Eq)]
pub enum Way {
    /// With the library, after the given other one if there is one: AddressSanitizer's run time ends a program in which it is
    /// not first.
    Preloaded(Option<PathBuf>),
    /// It cannot be preloaded.
    Proxied,
}

pub fn way(program: &Path, shim: &Path) -> Result<Way> {
    let (program, linker) = match ground(program, SCRIPT_DEPTH)? {
        Ground::Linked(program, linker) => (program, linker),
        Ground::Alone => return Ok(Way::Proxied),
        Ground::Unknown => return Ok(Way::Preloaded(None)),
    };
    let name = linker.file_name().and_then(OsStr::to_str).unwrap_or_default();
    if name.starts_with("ld-musl") {
        return Ok(Way::Proxied);
    }
    // Other linkers might run the program instead of listing what they would load.
    if !name.starts_with("ld-linux") {
        return Ok(Way::Preloaded(None));
    }
    let told = Command::new(&program)
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .env("LD_PRELOAD", list(shim, None))
        .output();
    let Ok(told) = told else { return Ok(Way::Preloaded(None)) };
    let crashed = told.status.signal().map(|_| "the dynamic linker crashes on it".to_string());
    if let Some(why) = rejected(&String::from_utf8_lossy(&told.stderr), shim).or(crashed) {
        bail!(
            "{} cannot be loaded ({why}): build it anew; {} would run on the kernel's network, not on the stack",
            shim.display(),
            program.display()
        );
    }
    Ok(Way::Preloaded(sanitizer(&String::from_utf8_lossy(&told.stdout))))
}

/// The value of LD_PRELOAD: the user's own entries stay, after the library.
pub fn list(shim: &Path, first: Option<PathBuf>) -> OsString {
    let all: Vec<OsString> =
        first.map(PathBuf::into_os_string).into_iter().chain([shim.into()]).chain(others(shim)).collect();
    all.join(OsStr::new(":"))
}

/// The user's own entries.
pub fn others(shim: &Path) -> Vec<OsString> {
    let old = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    // The library of the stack on which `eft run` itself runs.
    let outer = std::env::var_os("EFT_SHIM").unwrap_or_default();
    let old = old.to_string_lossy();
    old.split([':', ' '])
        .filter(|item| !item.is_empty() && OsStr::new(item) != shim && OsStr::new(item) != outer)
        .map(OsString::from)
        .collect()
}

/// What a program stands on.
enum Ground {
    /// The ELF file that will run, and the dynamic linker that it names.
    Linked(PathBuf, PathBuf),
    /// The ELF file makes its system calls itself.
    Alone,
    /// Neither can be told: the kernel will say what is wrong.
    Unknown,
}

fn ground(program: &Path, depth: u32) -> Result<Ground> {
    let shown = program.display();
    let metadata = program.metadata().with_context(|| shown.to_string())?;
    if metadata.mode() & 0o6000 != 0 {
        bail!("{shown} is setuid or setgid: the loader ignores LD_PRELOAD for it, {OTHERWISE}");
    }
    let mut head = Vec::new();
    let file = std::fs::File::open(program).with_context(|| shown.to_string())?;
    file.take(4096).read_to_end(&mut head).with_context(|| shown.to_string())?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = String::from_utf8_lossy(line.split(|b| *b == b'\n').next().unwrap_or_default());
        return match (line.split_whitespace().next(), depth) {
            (Some(interpreter), 1..) => ground(Path::new(interpreter), depth - 1),
            _ => Ok(Ground::Unknown),
        };
    }
    if !head.starts_with(b"\x7fELF") {
        return Ok(Ground::Unknown);
    }
    match interpreter(&head) {
        // It makes its calls past the C library, and this kernel cannot hand them over to the library.
        Some(_) if has_go_note(&head) && !calls_are_handed_over() => Ok(Ground::Alone),
        Some(linker) => Ok(Ground::Linked(program.to_path_buf(), linker)),
        None if head.get(18..20) != Some(&MACHINE.to_le_bytes()) => {
            bail!("{shown} is built for another architecture, {OTHERWISE}")
        }
        None => Ok(Ground::Alone),
    }
}

/// Why the dynamic linker skips the library: it prints that on standard error and goes on.
fn rejected(said: &str, shim: &Path) -> Option<String> {
    let shim = shim.to_string_lossy();
    let line = said.lines().find(|line| line.contains("cannot be preloaded") && line.contains(&*shim))?;
    let reason = line.split_once("cannot be preloaded (").and_then(|(_, rest)| rest.split_once("):"));
    Some(reason.map_or("the dynamic linker rejects it", |(reason, _)| reason).to_string())
}

/// AddressSanitizer's shared run time among what the dynamic linker would load (`NAME => PATH (ADDRESS)`).
fn sanitizer(loaded: &str) -> Option<PathBuf> {
    let line = loaded
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("libasan.so") || line.starts_with("libclang_rt.asan"))?;
    line.split_whitespace().nth(2).filter(|path| path.starts_with('/')).map(PathBuf::from)
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

/// The dynamic linker that an ELF file names (PT_INTERP); an empty path if its name lies further back.
fn interpreter(elf: &[u8]) -> Option<PathBuf> {
    let u16_at = |i: usize| elf.get(i..i + 2).map(|b| u16::from_le_bytes([b[0], b[1]]) as usize);
    let u32_at = |i: usize| elf.get(i..i + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let wide = elf.get(4) == Some(&2);
    let (offset, size, count, place) = match wide {
        true => (u32_at(32)? as usize, u16_at(54)?, u16_at(56)?, 8),
        false => (u32_at(28)? as usize, u16_at(42)?, u16_at(44)?, 4),
    };
    let header = (0..count).map(|i| offset + i * size).find(|&at| u32_at(at) == Some(3))?;
    let name = elf.get(u32_at(header + place)? as usize..).unwrap_or_default();
    let name = name.split(|&b| b == 0).next().unwrap_or_default();
    Some(PathBuf::from(String::from_utf8_lossy(name).into_owned()))
}

#[cfg(test)]
mod tests;
