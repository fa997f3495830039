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

/// How far below its top the main thread's stack is looked for: no mapping of another kind is nearer, since the kernel leaves
/// at least 128 MB for that stack (`mmap_base`).
const STACK_LOOKED_AT: usize = 64 << 20;

/// Whether these bytes lie in the main thread's stack, above this function and below what the kernel put there for the program:
/// all of that is mapped.
fn is_on_main_stack(start: usize, len: usize) -> bool {
    let here = 0u8;
    // SAFETY: a lookup.
    let top = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
    is_in_use(&raw const here as usize, top, start, len)
}

/// Whether bytes lie in the used part of a stack whose top is at `top`, for a function that runs at `here`.
fn is_in_use(here: usize, top: usize, start: usize, len: usize) -> bool {
    let runs_on_it = top.checked_sub(here).is_some_and(|used| used < STACK_LOOKED_AT);
    runs_on_it && start >= here && start.checked_add(len).is_some_and(|end| end <= top)
}

/// EFAULT for unreadable memory: asks the kernel, unless it is a variable of the main thread, as options mostly are.
pub fn readable<T>(pointer: *const T, len: usize) -> Result<()> {
    let mut bytes = [0u8; 128];
    plausible(pointer, len)?;
    if !MAY_ASK.load(Ordering::Relaxed) || is_on_main_stack(pointer as usize, len) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_used_part_of_the_main_stack_needs_no_question() {
        let (here, top) = (0x7ffd_0000_1000, 0x7ffd_0002_0000);
        assert!(is_in_use(here, top, here, 4) && is_in_use(here, top, top - 4, 4));
        assert!(!is_in_use(here, top, here - 1, 4), "below what is used");
        assert!(!is_in_use(here, top, top - 3, 4), "beyond the top");
        assert!(!is_in_use(here, top, here, usize::MAX), "so many are nowhere");
        assert!(!is_in_use(0x7f00_0000_0000, top, here, 4), "it runs on another stack");
        assert!(!is_in_use(top + 1, top, top + 2, 4), "nothing is known of the top");
    }

    #[test]
    fn another_threads_stack_is_not_the_main_one() {
        let value = 7u32;
        assert!(!is_on_main_stack(&raw const value as usize, 4), "tests run in threads of their own");
        assert_eq!(readable(&raw const value, 4), Ok(()));
    }
}
