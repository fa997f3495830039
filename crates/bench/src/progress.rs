//! A count in a file that a program raises and a benchmark reads: what a load achieved, as the load itself knows it.
//!
//! Must never happen: a count that costs the load a system call each time.

use std::fs::File;
use std::io;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

pub struct Progress {
    count: NonNull<AtomicU64>,
}

// SAFETY: an atomic in shared memory, which stays mapped until the value is dropped.
unsafe impl Send for Progress {}
// SAFETY: as above.
unsafe impl Sync for Progress {}

impl Progress {
    /// Makes the file anew, with a count of 0.
    pub fn create(path: &Path) -> Result<Progress> {
        let make = || {
            let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
            file.set_len(size_of::<AtomicU64>() as u64)?;
            Progress::map(&file)
        };
        make().with_context(|| path.display().to_string())
    }

    pub fn open(path: &Path) -> Result<Progress> {
        let join = || {
            let file = File::options().read(true).write(true).open(path)?;
            if file.metadata()?.len() < size_of::<AtomicU64>() as u64 {
                bail!("this is no count");
            }
            Ok(Progress::map(&file)?)
        };
        join().with_context(|| path.display().to_string())
    }

    fn map(file: &File) -> io::Result<Progress> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping, which overlaps nothing.
        let memory =
            unsafe { mmap(std::ptr::null_mut(), size_of::<AtomicU64>(), protection, flags, file, 0)? };
        Ok(Progress { count: NonNull::new(memory.cast()).ok_or(io::Error::other("mapped at address 0"))? })
    }

    fn count(&self) -> &AtomicU64 {
        // SAFETY: mapped, page-aligned, of this size, and only ever used as an atomic.
        unsafe { self.count.as_ref() }
    }

    pub fn add(&self, n: u64) {
        self.count().fetch_add(n, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.count().load(Ordering::Relaxed)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // SAFETY: the mapping of this type; no reference to it is left.
        let _ = unsafe { munmap(self.count.as_ptr().cast(), size_of::<AtomicU64>()) };
    }
}

#[cfg(test)]
mod tests;
