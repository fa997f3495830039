//! Whether the library can be preloaded into a program, and which library must come before it.
//!
//! A program without the library would silently run on the kernel's network. So its file is checked first,
//! and whether its dynamic linker loads the library.

use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The kernel's limit on nested interpreters.
const SCRIPT_DEPTH: u32 = 5;

/// What would happen to a program that is not on the stack.
const OTHERWISE: &str = "so it would run on the kernel's network, not on the stack";

/// `Ok`: the library can be preloaded, after the given other one if there is one: AddressSanitizer's
/// run time ends a program in which it is not first.
pub fn kind(program: &Path, shim: &Path) -> Result<Option<PathBuf>> {
    let Some((program, linker)) = linker(program, SCRIPT_DEPTH)? else { return Ok(None) };
    let name = linker.file_name().and_then(OsStr::to_str).unwrap_or_default();
    if name.starts_with("ld-musl") {
        let shown = program.display();
        bail!("{shown} uses the musl C library, and libeft.so is made for glibc, {OTHERWISE}");
    }
    // Other linkers might run the program instead of listing what they would load.
    if !name.starts_with("ld-linux") {
        return Ok(None);
    }
    let told = Command::new(&program)
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .env("LD_PRELOAD", list(shim, None))
        .output();
    let Ok(told) = told else { return Ok(None) };
    let crashed = told.status.signal().map(|_| "the dynamic linker crashes on it".to_string());
    if let Some(why) = rejected(&String::from_utf8_lossy(&told.stderr), shim).or(crashed) {
        bail!(
            "{} cannot be loaded ({why}): build it anew; {} would run on the kernel's network, not on the stack",
            shim.display(),
            program.display()
        );
    }
    Ok(sanitizer(&String::from_utf8_lossy(&told.stdout)))
}

/// The value of LD_PRELOAD: the user's own entries stay, after the library.
pub fn list(shim: &Path, first: Option<PathBuf>) -> OsString {
    let old = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    // The library of the stack on which `eft run` itself runs.
    let outer = std::env::var_os("EFT_SHIM").unwrap_or_default();
    let old = old.to_string_lossy();
    let others = old
        .split([':', ' '])
        .filter(|item| !item.is_empty() && OsStr::new(item) != shim && OsStr::new(item) != outer)
        .map(OsString::from);
    let all: Vec<OsString> =
        first.map(PathBuf::into_os_string).into_iter().chain([shim.into()]).chain(others).collect();
    all.join(OsStr::new(":"))
}

/// The ELF file that will run, and the dynamic linker that it names. `None` if neither can be told: the
/// kernel will say what is wrong.
fn linker(program: &Path, depth: u32) -> Result<Option<(PathBuf, PathBuf)>> {
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
            (Some(interpreter), 1..) => linker(Path::new(interpreter), depth - 1),
            _ => Ok(None),
        };
    }
    if !head.starts_with(b"\x7fELF") {
        return Ok(None);
    }
    let Some(linker) = interpreter(&head) else {
        bail!("{shown} is statically linked: nothing can be preloaded into it, {OTHERWISE}");
    };
    if has_go_note(&head) && !calls_are_handed_over() {
        bail!(
            "{shown} is a Go program: it makes its system calls past the C library, and this kernel cannot hand them over (Syscall User Dispatch), {OTHERWISE}"
        );
    }
    Ok(Some((program.to_path_buf(), linker)))
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
mod tests {
    use super::*;

    #[test]
    fn the_linkers_words_are_understood() {
        let said = "ERROR: ld.so: object '/x/libeft.so' from LD_PRELOAD cannot be preloaded (file too short): ignored.\n";
        assert_eq!(rejected(said, Path::new("/x/libeft.so")).as_deref(), Some("file too short"));
        assert_eq!(rejected(said, Path::new("/y/libeft.so")), None);
        let loaded = "\tlinux-vdso.so.1 (0x00007ffe)\n\tlibasan.so.8 => /lib/libasan.so.8 (0x00007f)\n";
        assert_eq!(sanitizer(loaded), Some(PathBuf::from("/lib/libasan.so.8")));
        assert_eq!(sanitizer("\tlibc.so.6 => /lib/libc.so.6 (0x00007f)\n"), None);
    }
}
