//! The host's name service files, changed to the stack's name server, for programs that read them.
//!
//! `eft run` mounts such views where it may. Elsewhere, and after a `chroot`, an open gives a file in memory.

use crate::domain::domain;
use crate::sys::{self, Errno, Result};
use core::ffi::{CStr, c_char, c_int};
use core::net::IpAddr;
use eft_base::resolver::{FILES, Names};

/// The descriptor that an open of `path` gives; `None`: it is another file, or not opened for reading, or
/// needs no change.
///
/// # Safety
/// `path` must be null or NUL-terminated.
pub unsafe fn open(path: *const c_char, flags: c_int) -> Option<Result<c_int>> {
    if path.is_null() || flags & (libc::O_ACCMODE | libc::O_PATH | libc::O_DIRECTORY) != libc::O_RDONLY {
        return None;
    }
    // Cheap for all other paths: few others begin like these.
    // SAFETY: by the caller; each byte is read only if those before it are not the end.
    if unsafe { *path != b'/' as c_char || *path.add(1) != b'e' as c_char } {
        return None;
    }
    // SAFETY: by the caller.
    let path = unsafe { CStr::from_ptr(path) };
    let (_, view) = FILES.iter().find(|(name, _)| name.as_bytes() == path.to_bytes())?;
    let first: IpAddr = domain()?.info().0.nameserver.into();
    if first.is_unspecified() {
        return None;
    }
    let names = Names { servers: &[first], search: &[] };
    let text = view(&String::from_utf8_lossy(&of_host(path)), &names);
    Some(in_memory(text.as_bytes(), flags & libc::O_CLOEXEC != 0))
}

/// The host's file, past the symbols of this library; empty if there is none.
fn of_host(path: &CStr) -> Vec<u8> {
    let mut bytes = Vec::new();
    let args = [libc::AT_FDCWD as usize, path.as_ptr() as usize, libc::O_CLOEXEC as usize, 0, 0, 0];
    // SAFETY: NUL-terminated path.
    let Ok(fd) = (unsafe { sys::call(libc::SYS_openat, args) }) else {
        return bytes;
    };
    let mut piece = [0; 4096];
    // SAFETY: our buffer.
    while let Ok(n @ 1..) = unsafe { sys::read_into(fd as c_int, piece.as_mut_ptr(), piece.len(), None) } {
        bytes.extend_from_slice(&piece[..n]);
    }
    sys::close(fd as c_int);
    bytes
}

fn in_memory(bytes: &[u8], cloexec: bool) -> Result<c_int> {
    let flags = if cloexec { libc::MFD_CLOEXEC } else { 0 };
    // SAFETY: a NUL-terminated name, and bytes that are ours.
    unsafe {
        let fd = sys::call(libc::SYS_memfd_create, [c"names".as_ptr() as usize, flags as usize, 0, 0, 0, 0])?;
        let args = [fd, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0];
        match sys::call(libc::SYS_pwrite64, args) {
            Ok(n) if n == bytes.len() => Ok(fd as c_int),
            _ => {
                sys::close(fd as c_int);
                Err(Errno(libc::ENOMEM))
            }
        }
    }
}
