//! The folder of running stacks, as a file system of this mount namespace.

use crate::error::error;
use crate::{Doing, Result, operator};
use rustix::fs::{Mode, OFlags};
use rustix::mount::MountFlags;
use std::fs::{self, DirEntry};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::Path;

pub fn make() -> Result<()> {
    let folder = operator::run_dir();
    if !folder.is_dir() {
        let parent = folder.parent().unwrap_or(Path::new("/"));
        private_copy(parent)?;
        fs::create_dir(&folder).doing(format_args!("{}", folder.display()))?;
    }
    mount_empty(&folder)
}

fn mount_empty(folder: &Path) -> Result<()> {
    rustix::mount::mount("eft", folder, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"mode=755"))
        .doing(format_args!("{}", folder.display()))
}

/// Lays over a folder, in which this user may make none, one with the same entries.
fn private_copy(folder: &Path) -> Result<()> {
    let old = rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|e| error!(Missing, "{}: {e}", folder.display()))?;
    mount_empty(folder)?;
    for entry in fs::read_dir(path_of(&old)).into_iter().flatten().flatten() {
        // What cannot be shown again is not needed by the stack.
        let _ = show(&entry, &folder.join(entry.file_name()));
    }
    Ok(())
}

fn path_of(folder: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", folder.as_raw_fd())
}

fn show(entry: &DirEntry, to: &Path) -> std::io::Result<()> {
    let (from, kind) = (entry.path(), entry.file_type()?);
    if kind.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if kind.is_dir() {
        fs::create_dir(to)?;
    } else {
        fs::write(to, "")?;
    }
    Ok(rustix::mount::mount_bind_recursive(from, to)?)
}
