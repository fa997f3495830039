//! Shared memory: memfds that are sealed against shrinking, and their mappings.

use crate::{Doing, Result};
use eft_channel::Segment;
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags, SeekFrom};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::CString;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

struct Mapping {
    pointer: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory; only `drop` acts on it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by `map`, and no reference is left (every `Segment` keeps the Arc).
        let _ = unsafe { rustix::mm::munmap(self.pointer.as_ptr().cast(), self.len) };
    }
}

/// Makes a segment of zeroes; its size cannot change any more.
pub fn create(name: &str, len: usize) -> Result<OwnedFd> {
    let c_name = CString::new(name).doing("segment name")?;
    let fd = rustix::fs::memfd_create(&c_name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .doing("cannot make shared memory (memfd_create)")?;
    rustix::fs::ftruncate(&fd, len as u64)
        .doing(format_args!("cannot size segment {name} to {len} bytes"))?;
    // Otherwise a process that gets a read-only descriptor could open it again for writing through /proc.
    rustix::fs::fchmod(&fd, Mode::RUSR).doing(format_args!("cannot protect segment {name}"))?;
    rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
        .doing(format_args!("cannot seal segment {name}"))?;
    Ok(fd)
}

/// Whether a descriptor that a program brought is such a segment of at least `len` bytes that can be mapped and
/// accessed without a fault: sealed against shrinking, not sealed against writing, with ordinary pages.
pub fn is_usable(fd: &OwnedFd, len: usize) -> bool {
    const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;
    let forbids = SealFlags::WRITE | SealFlags::FUTURE_WRITE;
    let sealed = rustix::fs::fcntl_get_seals(fd)
        .is_ok_and(|seals| seals.contains(SealFlags::SHRINK) && !seals.intersects(forbids));
    sealed
        && rustix::fs::fcntl_getfl(fd).is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDWR)
        && rustix::fs::fstatfs(fd).is_ok_and(|system| system.f_type == TMPFS_MAGIC)
        && rustix::fs::fstat(fd).is_ok_and(|stat| stat.st_size as u64 >= len as u64)
}

/// Bytes of a segment.
pub fn len(fd: &impl AsFd) -> Result<usize> {
    Ok(rustix::fs::fstat(fd).doing("cannot stat a segment")?.st_size as usize)
}

/// Names the ranges of a segment, of `len` bytes, in which anything was ever written. To read the others would make memory of them.
/// It allocates nothing.
pub fn each_written(fd: &impl AsFd, len: usize, heed: &mut dyn FnMut(Range<usize>)) {
    let place = |from: SeekFrom| rustix::fs::seek(fd, from).map(|at| at as usize);
    let mut at = 0;
    while at < len {
        match place(SeekFrom::Data(at as u64)) {
            Ok(begin) => {
                // There is always a hole behind the end.
                at = place(SeekFrom::Hole(begin as u64)).unwrap_or(len);
                heed(begin..at.min(len));
            }
            Err(Errno::NXIO) => return,
            // Whoever cannot be asked is read whole, from where that is known.
            Err(_) => return heed(at..len),
        }
    }
}

/// The number of a segment, which no other one of this machine has at the same time (its inode).
pub fn number(fd: &impl AsFd) -> Result<u64> {
    Ok(rustix::fs::fstat(fd).doing("cannot stat a segment")?.st_ino)
}

/// A descriptor of the same memory that cannot be mapped for writing.
pub fn read_only(fd: &impl AsFd) -> Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .doing("cannot reopen a segment read-only")
}

/// A segment, and a descriptor of it that cannot be mapped for writing. Shared, since a duplicate takes two system calls.
pub struct Both {
    pub own: Rc<OwnedFd>,
    pub shown: Rc<OwnedFd>,
}

impl Both {
    pub fn make(name: &str, len: usize) -> Result<Both> {
        Both::of(create(name, len)?)
    }

    pub fn of(own: OwnedFd) -> Result<Both> {
        let shown = read_only(&own)?;
        Ok(Both { own: Rc::new(own), shown: Rc::new(shown) })
    }
}

/// Maps a whole segment. The kernel gives its size, not the peer that sent it.
pub fn map(fd: &impl AsFd, writable: bool) -> Result<Segment> {
    map_len(fd, len(fd)?, writable)
}

/// Maps what has so many bytes, and keeps them as long as it is mapped: a sealed memfd, or the ring of a socket.
pub fn map_len(fd: &impl AsFd, len: usize, writable: bool) -> Result<Segment> {
    let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let pointer = unsafe {
        rustix::mm::mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED | MapFlags::NORESERVE, fd, 0)
    }
    .doing(format_args!("cannot map {len} bytes of shared memory"))?;
    let pointer =
        NonNull::new(pointer.cast::<u8>()).ok_or_else(|| crate::Error::System("mapped at zero".into()))?;
    let keep = Arc::new(Mapping { pointer, len });
    // SAFETY: mapped above with these rights, page-aligned, and unmapped when `keep` is dropped. A memfd is sealed
    // against shrinking, and the kernel keeps a ring that is mapped, so no access can fault.
    Ok(unsafe { Segment::from_raw(pointer, len, writable, keep) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_written_is_named() {
        const MEGABYTE: usize = 1 << 20;
        let file = create("test-written", 200 * MEGABYTE).unwrap();
        let written = || {
            let mut ranges = Vec::new();
            each_written(&file, 200 * MEGABYTE, &mut |range| ranges.push(range));
            ranges
        };
        assert_eq!(written(), []);
        let segment = map(&file, true).unwrap();
        for at in [0, 4095, 70 * MEGABYTE + 17, 200 * MEGABYTE - 1] {
            segment.write(at, &[1]).unwrap();
        }
        let ranges = written();
        assert_eq!(ranges.len(), 3, "{ranges:?}");
        for (range, at) in ranges.iter().zip([0, 70 * MEGABYTE + 17, 200 * MEGABYTE - 1]) {
            assert!(range.contains(&at) && range.len() < 4 * MEGABYTE, "{range:?} with {at}");
        }
        assert_eq!(ranges[2].end, 200 * MEGABYTE);
    }
}
