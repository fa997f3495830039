//! Room for a newborn server's engine on its heap. A page that is touched for the first time costs 1 to 5 us, and tcp derives 1
//! KB for each connection while they all wait; a huge page costs 90 us.

use std::hint::black_box;

/// Bytes from which glibc maps an allocation by itself; it takes no larger number on 64-bit machines.
const MAPPED_FROM: libc::c_int = 32 << 20;
/// Free bytes at the heap's end that are not given back.
const KEPT: libc::c_int = 64 << 20;
/// Bytes of a huge page, where there are any.
const HUGE: usize = 2 << 20;
/// Bytes of an ordinary page.
const PAGE: usize = 4096;
/// More than the allocator needs for itself between two allocations.
const MARGIN: usize = 64;

/// Makes the next allocations lie in a huge page. With `touched`, its memory is there afterwards.
pub fn make_room(touched: bool) {
    #[cfg(target_env = "gnu")]
    // SAFETY: plain numbers.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
    }
    let mut room: Vec<u8> = Vec::with_capacity(2 * HUGE);
    let before = room.as_ptr().align_offset(HUGE);
    let page = &mut room.spare_capacity_mut()[before..before + HUGE];
    // SAFETY: the range lies within the allocation; the advice changes no content.
    unsafe { libc::madvise(page.as_mut_ptr().cast(), HUGE, libc::MADV_HUGEPAGE) };
    if touched {
        page.iter_mut().step_by(PAGE).for_each(|byte| _ = black_box(byte.write(0)));
    }
    drop(room);
    // What lies before the huge page is never touched, so it takes no memory.
    let filling: Vec<u8> = Vec::with_capacity(before.saturating_sub(MARGIN));
    std::mem::forget(black_box(filling));
}
