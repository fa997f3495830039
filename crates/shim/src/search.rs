//! Which file a program's name means. No allocation: this also runs in vfork children.

use crate::sys;
use core::ffi::{CStr, c_char};

/// The file that `execvp` would run, into `found`; `None` if there is none.
///
/// # Safety
/// `file` must be NUL-terminated.
pub unsafe fn in_path(file: *const c_char, found: &mut [u8; 4096]) -> Option<&CStr> {
    // SAFETY: by the caller; getenv gives null or a NUL-terminated string.
    let (file, list) = unsafe {
        let list = libc::getenv(c"PATH".as_ptr());
        let list = match list.is_null() {
            true => c"/bin:/usr/bin",
            false => CStr::from_ptr(list),
        };
        (CStr::from_ptr(file).to_bytes(), list.to_bytes())
    };
    let single: &[u8] = b"";
    let slash = file.contains(&b'/');
    let directories = list.split(|&b| b == b':');
    for directory in directories.take(if slash { 1 } else { usize::MAX }) {
        let directory = if slash { single } else { directory };
        let separator: &[u8] = if directory.is_empty() { b"" } else { b"/" };
        let len = directory.len() + separator.len() + file.len();
        if len >= found.len() {
            continue;
        }
        found[..directory.len()].copy_from_slice(directory);
        found[directory.len()..directory.len() + separator.len()].copy_from_slice(separator);
        found[len - file.len()..len].copy_from_slice(file);
        found[len] = 0;
        // SAFETY: NUL-terminated just now.
        let executable = unsafe {
            sys::call(
                libc::SYS_faccessat,
                [libc::AT_FDCWD as usize, found.as_ptr() as usize, libc::X_OK as usize, 0, 0, 0],
            )
        };
        if executable.is_ok() {
            return CStr::from_bytes_until_nul(&found[..]).ok();
        }
    }
    None
}
