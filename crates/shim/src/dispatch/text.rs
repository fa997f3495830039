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

unsafe extern "C" fn look(info: *mut dl_phdr_info, _len: usize, search: *mut c_void) -> c_int {
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
    // SAFETY: `look` takes what it is given here.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: u32, flags: u32, at: u64, len: u64) -> Elf64_Phdr {
        Elf64_Phdr {
            p_type: kind,
            p_flags: flags,
            p_offset: at,
            p_vaddr: at,
            p_paddr: at,
            p_filesz: len,
            p_memsz: len,
            p_align: 4096,
        }
    }

    #[test]
    fn only_the_executable_segment_around_the_address() {
        let headers = [
            header(libc::PT_LOAD, libc::PF_R, 0, 0x2000),
            header(libc::PT_LOAD, libc::PF_R | libc::PF_X, 0x2000, 0x3000),
            header(libc::PT_LOAD, libc::PF_R, 0x5000, 0x1000),
            header(libc::PT_GNU_STACK, libc::PF_R | libc::PF_X, 0, 0x9000),
        ];
        assert_eq!(segment_with(0x12000, 0x10000, &headers), Some(0x12000..0x15000));
        assert_eq!(segment_with(0x14fff, 0x10000, &headers), Some(0x12000..0x15000));
        for outside in [0x10000, 0x11fff, 0x15000, 0x2000] {
            assert_eq!(segment_with(outside, 0x10000, &headers), None);
        }
    }

    #[test]
    fn a_gate_is_a_call_and_a_return() {
        let getpid = [0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0xc3, 0x66];
        assert_eq!(gate_in(&getpid), Some(5));
        assert_eq!(gate_in(&getpid[..7]), None);
        assert_eq!(gate_in(&[0x0f, 0x05, 0x48, 0x3d]), None);
    }

    #[test]
    fn versions() {
        assert!(version_of("2.33") < Some(WHOLE));
        assert!(version_of("2.36") > Some(WHOLE));
        assert!(version_of("2.4") < Some(WHOLE));
        assert_eq!(version_of("2.35.9000"), Some((2, 35)));
        assert_eq!(version_of("?"), None);
    }

    /// The range found holds libc and neither this program nor the dynamic linker.
    #[test]
    fn this_process() {
        let found = of_libc().expect("Debian's libc has one");
        assert!(found.range.contains(&found.gate));
        assert!(found.range.contains(&(libc::write as *const () as usize)));
        assert!(!found.range.contains(&(version_of as *const () as usize)));
        // SAFETY: NUL-terminated name.
        let linker = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__tls_get_addr".as_ptr()) } as usize;
        assert!(linker != 0 && !found.range.contains(&linker));
    }
}
