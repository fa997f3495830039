//! A private view of the host's name resolution files, with the stack's name server: for programs that read them
//! themselves (Go, dig, node), and those whose C library reads them unseen by the preloaded library.
//!
//! The program gets its own mount namespace, in which mounts of the host still appear. It needs CAP_SYS_ADMIN;
//! without it, the library answers opens of these files. No namespace is made under a filter of system calls, as
//! services have it: the filter may kill a process that mounts.

use eft_base::resolver::{FILES, Names};
use eft_linux::operator;
use serde_json::json;
use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions, Permissions};
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::ptr::null;

/// Makes the view, as far as there is something to show and this process may.
pub fn make(stack: &str) {
    if !is_filtered()
        && let Some((servers, search)) = names(stack)
        && private_mounts().is_ok()
    {
        let names = Names { servers: &servers, search: &search };
        for (path, view) in FILES {
            let host = std::fs::read_to_string(path).unwrap_or_default();
            // On failure the library answers opens of this file.
            let _ = show(path, &view(&host, &names));
        }
    }
}

/// Whether this process has a filter (seccomp).
fn is_filtered() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() != "0"))
}

/// The stack's name servers and search list, as they are now; `None`: it has no name server.
fn names(stack: &str) -> Option<(Vec<IpAddr>, Vec<String>)> {
    let (info, _) = operator::ask(stack, &json!({ "op": "info" })).ok()?;
    let words = |key: &str| info[key].as_array().into_iter().flatten().filter_map(|w| w.as_str());
    let servers: Vec<IpAddr> = words("nameservers").filter_map(|w| w.parse().ok()).collect();
    (!servers.is_empty()).then(|| (servers, words("search").map(String::from).collect()))
}

fn private_mounts() -> std::io::Result<()> {
    // SAFETY: takes no addresses.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    mount(c"none", c"/", libc::MS_SLAVE | libc::MS_REC)
}

/// Replaces a file by a text. The text is in an unnamed file that lives as long as the mount.
fn show(path: &str, text: &str) -> std::io::Result<()> {
    let (place, mut file) = fresh_file()?;
    let shown = (|| {
        file.write_all(text.as_bytes())?;
        file.set_permissions(Permissions::from_mode(0o644))?;
        mount(&CString::new(place.as_os_str().as_encoded_bytes())?, &CString::new(path)?, libc::MS_BIND)
    })();
    let _ = std::fs::remove_file(&place);
    shown
}

fn fresh_file() -> std::io::Result<(PathBuf, File)> {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let name = format!("eft-names-{}-{}", std::process::id(), time.as_nanos());
    let place = std::env::temp_dir().join(name);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&place)?;
    Ok((place, file))
}

fn mount(from: &CStr, to: &CStr, flags: libc::c_ulong) -> std::io::Result<()> {
    // SAFETY: NUL-terminated names; no type, no data.
    match unsafe { libc::mount(from.as_ptr(), to.as_ptr(), null(), flags, null()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}
