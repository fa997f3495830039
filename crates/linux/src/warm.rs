//! Maps what a program file consists of, while nobody waits: each page that is executed or read for the first time costs a
//! microsecond otherwise, and a newborn server runs through a hundred of them.

use eft_host::clock;
use rustix::mm::{Advice, madvise};
use std::hash::RandomState;
use std::hint::black_box;
use std::mem::MaybeUninit;

/// What a server needs of the stack until it serves, and some more.
const STACK: usize = 128 << 10;
const PAGE: usize = 4096;

/// Does what costs a process more the first time: asking the processor (in a virtual machine the host answers, 6 us for each of three
/// questions), finding the kernel's clock, drawing the seed of hashes, and touching the stack (a page fault for each 4 KiB).
pub fn use_once() {
    #[cfg(target_arch = "x86_64")]
    black_box(eft_base::processor::has_avx2());
    black_box(clock::now());
    black_box(RandomState::new());
    touch_stack();
}

#[inline(never)]
fn touch_stack() {
    let mut stack = [MaybeUninit::<u8>::uninit(); STACK];
    stack.iter_mut().step_by(PAGE).for_each(|byte| _ = black_box(byte.write(0)));
}

/// Maps the pages of this program and its libraries that can be read. They are in the page cache, so that takes no memory but
/// for page tables. Must be called before the sandbox is entered; failures do not matter.
pub fn map_program() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (begin, end, writable) in maps.lines().filter_map(of_file) {
        let advice = if writable { Advice::LinuxPopulateWrite } else { Advice::LinuxPopulateRead };
        // SAFETY: it changes no content, and the range is one of this process's mappings.
        let _ = unsafe { madvise(begin as *mut _, end - begin, advice) };
    }
}

/// The range of a line of proc_pid_maps(5) that maps a file and can be read, and whether it can be written, too.
fn of_file(line: &str) -> Option<(usize, usize, bool)> {
    let mut words = line.split_ascii_whitespace();
    let (range, rights) = (words.next()?, words.next()?);
    let (begin, end) = range.split_once('-')?;
    let number = |hex| usize::from_str_radix(hex, 16).ok();
    let is_file = words.nth(3)?.starts_with('/');
    (is_file && rights.starts_with('r')).then_some((number(begin)?, number(end)?, rights.starts_with("rw")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_files_are_found() {
        let text = "55d0a000-55d0c000 r-xp 00001000 fd:01 17    /usr/bin/eft (deleted)";
        assert_eq!(of_file(text), Some((0x55d0_a000, 0x55d0_c000, false)));
        let data = "7f00-7f10 rw-p 00001000 fd:01 17 /usr/bin/eft";
        assert_eq!(of_file(data), Some((0x7f00, 0x7f10, true)));
        for other in [
            "55d0a000-55d0c000 ---p 00001000 fd:01 17 /usr/bin/eft",
            "55d0a000-55d0c000 rw-p 00000000 00:00 0 [heap]",
            "55d0a000-55d0c000 rw-p 00000000 00:00 0",
            "nonsense",
            "",
        ] {
            assert_eq!(of_file(other), None, "{other}");
        }
    }

    #[test]
    fn a_program_goes_on_when_it_is_mapped() {
        map_program();
        use_once();
    }
}
