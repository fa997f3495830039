//! Which pages of a mapping a process has touched. A program's sockets lie in mappings of a terabyte, almost all of which nobody
//! touches: their pages cannot be looked at one by one.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

pub const PAGE: u64 = 4096;
/// Entries of `pagemap` that are read at once.
const AT_ONCE: u64 = 32 * 1024;
/// In an entry of `pagemap`: the page is in memory.
const PRESENT: u64 = 1 << 63;
/// `PAGEMAP_SCAN` and `PAGE_IS_PRESENT` of linux/fs.h, Linux 6.7.
const SCAN: libc::Ioctl = 0xc060_6610_u32 as libc::Ioctl;
const IS_PRESENT: u64 = 1 << 3;
const REGIONS: usize = 256;

/// `struct page_region` of linux/fs.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// `struct pm_scan_arg` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_len: u64,
    pages_max: u64,
    inverted: u64,
    mask: u64,
    any_of: u64,
    wanted: u64,
}

/// The addresses of the pages of `range` that are in memory. `pagemap` is the process's file of that name.
pub fn touched(pagemap: &File, range: &Range<u64>) -> Vec<u64> {
    scan(pagemap, range).unwrap_or_else(|| read(pagemap, range))
}

/// `None`: this kernel cannot.
fn scan(pagemap: &File, range: &Range<u64>) -> Option<Vec<u64>> {
    let mut pages = Vec::new();
    let mut from = range.start;
    while from < range.end {
        let mut regions = [Region::default(); REGIONS];
        let mut scan = Scan {
            size: size_of::<Scan>() as u64,
            start: from,
            end: range.end,
            regions: regions.as_mut_ptr() as u64,
            regions_len: REGIONS as u64,
            mask: IS_PRESENT,
            wanted: IS_PRESENT,
            ..Scan::default()
        };
        // SAFETY: the argument is laid out as the kernel expects it, and has room for so many regions.
        let count = unsafe { libc::ioctl(pagemap.as_raw_fd(), SCAN, &raw mut scan) };
        let some = regions.get(..usize::try_from(count).ok()?)?;
        pages.extend(some.iter().flat_map(|region| (region.start..region.end).step_by(PAGE as usize)));
        // It always advances, or this would never end.
        from = scan.walk_end.max(from + PAGE);
    }
    Some(pages)
}

fn read(pagemap: &File, range: &Range<u64>) -> Vec<u64> {
    let mut pages = Vec::new();
    let mut entries = vec![0; AT_ONCE as usize * 8];
    let mut from = range.start;
    while from < range.end {
        let count = AT_ONCE.min((range.end - from) / PAGE);
        let Ok(read @ 8..) = pagemap.read_at(&mut entries[..count as usize * 8], from / PAGE * 8) else {
            break;
        };
        let (all, _) = entries[..read].as_chunks();
        let present = all.iter().enumerate().filter(|(_, entry)| u64::from_ne_bytes(**entry) & PRESENT != 0);
        pages.extend(present.map(|(i, _)| from + i as u64 * PAGE));
        from += read as u64 / 8 * PAGE;
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touched_pages_of_a_large_mapping_are_found() {
        const LEN: u64 = 1 << 36;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new memory, at an address of the kernel's choice.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), LEN as usize, rights, flags, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        let begin = memory as u64;
        // SAFETY: it is ours, and no huge pages are made of it.
        assert_eq!(unsafe { libc::madvise(memory, LEN as usize, libc::MADV_NOHUGEPAGE) }, 0);
        // More regions than are asked for at once.
        let written: Vec<u64> = (0..2 * REGIONS as u64 + 1).map(|i| begin + i * 40 * PAGE).collect();
        // SAFETY: each lies in the mapping.
        written.iter().for_each(|at| unsafe { (*at as *mut u8).write_volatile(1) });
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        assert_eq!(touched(&pagemap, &(begin..begin + LEN)), written);
        let first = begin..begin + 41 * PAGE;
        assert_eq!(read(&pagemap, &first), written[..2]);
        if let Some(scanned) = scan(&pagemap, &first) {
            assert_eq!(scanned, written[..2]);
        }
        // SAFETY: nobody uses it any more.
        unsafe { libc::munmap(memory, LEN as usize) };
    }
}
