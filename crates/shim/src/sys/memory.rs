//! Memory: whether pointers of programs can be read, and mappings.

use super::{Errno, MAY_ASK, Result, call, getpid};
use core::ffi::{c_int, c_void};
#[cfg(target_arch = "x86_64")]
use core::sync::atomic::Ordering;

/// EFAULT for addresses that no program has mapped: the first page, and the kernel's half. Costs almost nothing,
/// so every pointer of a program is checked.
#[inline]
pub fn plausible<T>(pointer: *const T, len: usize) -> Result<()> {
    const LOWEST: usize = 4096;
    // A program's half ends at 2^47, or at 2^56 for programs that ask for it (five-level tables); at 2^48 or 2^52
    // on ARM.
    const END: usize = 1 << 56;
    let start = pointer as usize;
    match len == 0 || start >= LOWEST && start.checked_add(len).is_some_and(|end| end <= END) {
        true => Ok(()),
        false => Err(Errno(libc::EFAULT)),
    }
}

/// From now on the kernel is not asked whether memory is readable: the program might be killed for it.
pub fn ask_no_more() {
    MAY_ASK.store(false, Ordering::Relaxed);
}

/// EFAULT for unreadable memory: asks the kernel, for rare calls.
pub fn readable<T>(pointer: *const T, len: usize) -> Result<()> {
    let mut bytes = [0u8; 128];
    plausible(pointer, len)?;
    if !MAY_ASK.load(Ordering::Relaxed) {
        return Ok(());
    }
    let ours = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: len.min(128) };
    let theirs = libc::iovec { iov_base: pointer.cast_mut().cast(), iov_len: len.min(128) };
    // SAFETY: copies into our own bytes; the other side may be anything.
    let read = unsafe {
        call(
            libc::SYS_process_vm_readv,
            [getpid() as usize, &raw const ours as usize, 1, &raw const theirs as usize, 1, 0],
        )
    };
    match read {
        Ok(n) if n == ours.iov_len => Ok(()),
        Ok(_) | Err(Errno(libc::EFAULT)) => Err(Errno(libc::EFAULT)),
        // Not allowed to ask.
        Err(_) => Ok(()),
    }
}

/// Private zeroed memory; null if there is none.
pub fn map_anonymous(len: usize) -> *mut c_void {
    // SAFETY: a fresh private mapping.
    let ret = unsafe {
        call(
            libc::SYS_mmap,
            [
                0,
                len,
                (libc::PROT_READ | libc::PROT_WRITE) as usize,
                (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize,
                usize::MAX,
                0,
            ],
        )
    };
    ret.map_or(core::ptr::null_mut(), |p| p as *mut c_void)
}

/// Maps a part of a descriptor shared; writable or not.
pub fn map_shared(fd: c_int, offset: usize, len: usize, writable: bool) -> Result<*mut u8> {
    let write = if writable { libc::PROT_WRITE } else { 0 };
    // SAFETY: a fresh mapping.
    unsafe {
        call(
            libc::SYS_mmap,
            [0, len, (libc::PROT_READ | write) as usize, libc::MAP_SHARED as usize, fd as usize, offset],
        )
        .map(|p| p as *mut u8)
    }
}

/// Maps a descriptor shared and read-only over the mapping at `place`.
pub fn map_over(fd: c_int, place: *mut u8, len: usize) -> Result<()> {
    let flags = (libc::MAP_SHARED | libc::MAP_FIXED) as usize;
    let args = [place as usize, len, libc::PROT_READ as usize, flags, fd as usize, 0];
    // SAFETY: the caller's place is a mapping of this length, of the same kind of memory.
    unsafe { call(libc::SYS_mmap, args).map(drop) }
}
