//! Where libc's text lies, and a place in it that makes a system call.

use crate::real;
use core::ffi::{CStr, c_int, c_void};
use core::ops::Range;
use libc::{Elf64_Phdr, dl_phdr_info};

/// `syscall; ret`
const GATE: [u8; 3] = [0x0f, 0x05, 0xc3];
/// From this version on libc is one library. Before, threads were another one, which makes system calls with
/// all signals blocked.
const WHOLE: (u32, u32) = (2, 34);
/// Bytes of `getpid` in which its system call is found.
const GETPID_LEN: usize = 32;

pub struct LibcText {
    pub range: Range<usize>,
    /// The address of a `syscall; ret`.
    pub gate: usize,
}

/// `None`: this libc is not one that is known to make all its system calls from one piece of text.
pub fn of_libc() -> Option<LibcText> {
    // SAFETY: gives a NUL-terminated string.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    if version_of(version.to_str().ok()?)? < WHOLE {
        return None;
    }
    let getpid = real::getpid.get() as usize;
    let range = range_with(getpid)?;
    let len = GETPID_LEN.min(range.end - getpid);
    // SAFETY: within libc's text, which stays mapped.
    let code = unsafe { core::slice::from_raw_parts(getpid as *const u8, len) };
    let gate = getpid + gate_in(code)?;
    Some(LibcText { range, gate })
}

fn version_of(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn gate_in(code: &[u8]) -> Option<usize> {
    code.windows(GATE.len()).position(|bytes| bytes == GATE)
}

/// The executable segment, among those of a library at `base`, in which an address lies.
fn segment_with(address: usize, base: usize, headers: &[Elf64_Phdr]) -> Option<Range<usize>> {
    headers
        .iter()
        .filter(|h| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_X != 0)
        .map(|h| {
            let start = base.wrapping_add(h.p_vaddr as usize);
            start..start.saturating_add(h.p_memsz as usize)
        })
        .find(|range| range.contains(&address))
}

struct Search {
    address: usize,
    found: Option<Range<usize>>,
}

unsafe extern "C" fn visit(info: *mut dl_phdr_info, _len: usize, search: *mut c_void) -> c_int {
    // SAFETY: the linker's description of a library; `search` is that of `range_with`.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: as above.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize) };
    search.found = segment_with(search.address, info.dlpi_addr as usize, headers);
    search.found.is_some() as c_int
}

fn range_with(address: usize) -> Option<Range<usize>> {
    let mut search = Search { address, found: None };
    // SAFETY: `visit` gets a pointer of the type that it expects.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

#[cfg(test)]
mod tests;
