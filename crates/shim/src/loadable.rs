//! Whether the dynamic linker would load the shim into a program.
//!
//! A statically linked, foreign or privileged program would silently run on the kernel's network. So each program is checked
//! first, and such a one gets a proxy or is refused. No allocation: this also runs in vfork children.

use crate::{dispatch, sys};
use core::ffi::{CStr, c_int};

const ELF_MAGIC: [u8; 4] = *b"\x7fELF";
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
const PROGRAM_HEADERS_MAX: usize = 64;
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;
/// As the kernel's limit on nested interpreters.
const SCRIPT_DEPTH: u32 = 5;

/// Why the shim would not be loaded.
#[derive(Clone, Copy)]
pub enum Reason {
    /// A proxy can make its calls.
    Alone(&'static str),
    /// Nobody can.
    Beyond(&'static str),
}

/// `Ok` also if the check is impossible (the exec itself then reports the error).
pub fn check(path: &CStr) -> Result<(), Reason> {
    check_nested(path, SCRIPT_DEPTH)
}

fn check_nested(path: &CStr, depth: u32) -> Result<(), Reason> {
    // SAFETY: NUL-terminated path.
    let opened = unsafe {
        sys::call(
            libc::SYS_openat,
            [
                libc::AT_FDCWD as usize,
                path.as_ptr() as usize,
                (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK) as usize,
                0,
                0,
                0,
            ],
        )
    };
    let Ok(fd) = opened else {
        return Ok(());
    };
    let verdict = check_open(fd as c_int, path, depth);
    sys::close(fd as c_int);
    verdict
}

/// As [`check`], of an open file.
pub fn check_fd(fd: c_int) -> Result<(), Reason> {
    check_open(fd, c"", SCRIPT_DEPTH)
}

fn check_open(fd: c_int, path: &CStr, depth: u32) -> Result<(), Reason> {
    if is_privileged(fd) {
        return Err(Reason::Beyond("is setuid, setgid or has file capabilities"));
    }
    let mut head = [0u8; 256];
    // SAFETY: our buffer.
    let n = unsafe { sys::read_into(fd, head.as_mut_ptr(), head.len(), Some(0)) }.unwrap_or(0);
    let head = &head[..n];
    if head.starts_with(b"#!") {
        return match (interpreter(head), depth) {
            (Some(next), 1..) => check_nested(CStr::from_bytes_until_nul(&next).unwrap_or(c""), depth - 1),
            _ => Ok(()),
        };
    }
    if !head.starts_with(&ELF_MAGIC) || head.len() < 64 {
        return Ok(());
    }
    check_elf(fd, head, path)
}

fn check_elf(fd: c_int, head: &[u8], path: &CStr) -> Result<(), Reason> {
    let u16_at = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    if head[4] != 2 || u16_at(18) != MACHINE {
        return Err(Reason::Beyond("is built for another architecture"));
    }
    let mut offset = [0; 8];
    offset.copy_from_slice(&head[32..40]);
    let (mut at, size) = (i64::from_le_bytes(offset), u16_at(54) as i64);
    let mut linker = None;
    for _ in 0..(u16_at(56) as usize).min(PROGRAM_HEADERS_MAX) {
        let mut header = [0u8; 56];
        // SAFETY: our buffer.
        let n = unsafe { sys::read_into(fd, header.as_mut_ptr(), 56, Some(at)) };
        if n != Ok(56) {
            break;
        }
        let mut place = [0; 8];
        place.copy_from_slice(&header[8..16]);
        let place = i64::from_le_bytes(place);
        if header[..4] == PT_INTERP.to_le_bytes() {
            linker = Some(place);
        }
        if header[..4] == PT_NOTE.to_le_bytes() && has_go_note(fd, place) && !dispatch::is_armed() {
            return Err(Reason::Alone(
                "is a Go program: it makes its system calls past the C library, and this kernel cannot hand them over",
            ));
        }
        at = at.saturating_add(size);
    }
    if let Some(place) = linker {
        return check_linker(fd, place);
    }
    // The dynamic linker itself, run by hand, loads the shim into what it runs.
    let name = path.to_bytes().rsplit(|&b| b == b'/').next().unwrap_or(&[]);
    if name.starts_with(b"ld-linux") || name.starts_with(b"ld.so") {
        return Ok(());
    }
    // So do valgrind's tools, which are static.
    if path.to_bytes().windows(10).any(|w| w == b"/valgrind/") && name.ends_with(b"-linux") {
        return Ok(());
    }
    Err(Reason::Alone("is statically linked"))
}

fn check_linker(fd: c_int, at: i64) -> Result<(), Reason> {
    let mut linker = [0u8; 128];
    // SAFETY: our buffer.
    let n = unsafe { sys::read_into(fd, linker.as_mut_ptr(), 128, Some(at)) }.unwrap_or(0);
    let linker = linker[..n].split(|&b| b == 0).next().unwrap_or(&[]);
    if linker.windows(7).any(|w| w == b"ld-musl") {
        return Err(Reason::Alone("is linked with another C library (musl)"));
    }
    Ok(())
}

/// Whether the Go linker's note with the build's id is among the notes at `at`. (Programs with cgo have the note there;
/// others are linked statically.)
fn has_go_note(fd: c_int, at: i64) -> bool {
    let mut notes = [0u8; 512];
    // SAFETY: our buffer.
    let n = unsafe { sys::read_into(fd, notes.as_mut_ptr(), notes.len(), Some(at)) }.unwrap_or(0);
    // A note: length of its name, length of its content, type, name.
    notes[..n]
        .windows(16)
        .step_by(4)
        .any(|note| note[..4] == 4u32.to_le_bytes() && note[8..] == *b"\x04\0\0\0Go\0\0")
}

/// Whether the kernel would start this file with other privileges than the caller's, so that the
/// linker ignores LD_PRELOAD.
fn is_privileged(fd: c_int) -> bool {
    // SAFETY: all zeroes is a stat; `stat` is ours; the other calls take no addresses.
    unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        let done = sys::call(libc::SYS_fstat, [fd as usize, &raw mut stat as usize, 0, 0, 0, 0]);
        if done.is_err() {
            return false;
        }
        let id = |number| sys::call(number, [0; 6]).unwrap_or(0) as u32;
        let (uid, gid) = (id(libc::SYS_getuid), id(libc::SYS_getgid));
        let new_uid = match stat.st_mode & libc::S_ISUID {
            0 => id(libc::SYS_geteuid),
            _ => stat.st_uid,
        };
        let new_gid = match stat.st_mode & (libc::S_ISGID | libc::S_IXGRP) {
            mode if mode == libc::S_ISGID | libc::S_IXGRP => stat.st_gid,
            _ => id(libc::SYS_getegid),
        };
        if new_uid != uid || new_gid != gid {
            return true;
        }
        let mut capabilities = [0u8; 64];
        uid != 0
            && sys::call(
                libc::SYS_fgetxattr,
                [
                    fd as usize,
                    c"security.capability".as_ptr() as usize,
                    capabilities.as_mut_ptr() as usize,
                    capabilities.len(),
                    0,
                    0,
                ],
            )
            .is_ok()
    }
}

/// The interpreter that a `#!` line names, NUL-terminated.
fn interpreter(head: &[u8]) -> Option<[u8; 256]> {
    let line = head[2..].split(|&b| b == b'\n').next()?;
    let word = line.split(|&b| b == b' ' || b == b'\t').find(|word| !word.is_empty())?;
    let mut path = [0; 256];
    path.get_mut(..word.len())?.copy_from_slice(word);
    Some(path)
}
