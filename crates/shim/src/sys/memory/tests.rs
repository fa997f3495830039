use super::*;

const PAGE: usize = 4096;

#[test]
fn what_a_program_may_read_is_told_from_what_it_may_not() {
    let two = map_anonymous(2 * PAGE).cast::<u8>();
    assert!(!two.is_null());
    // SAFETY: the second of our own two pages, which nothing uses.
    let args = [two as usize + PAGE, PAGE, libc::PROT_NONE as usize, 0, 0, 0];
    unsafe { call(libc::SYS_mprotect, args) }.unwrap();
    let end = two.wrapping_add(PAGE);
    for len in [1, 4, 7, 8, 9, 128, PAGE] {
        assert_eq!(
            readable(end.wrapping_sub(len), len),
            Ok(()),
            "{len} bytes up to the end of what is readable"
        );
        assert_eq!(readable(two, len), Ok(()), "{len} bytes at its begin");
        let beyond = end.wrapping_sub(len.min(LOOKED_AT) - 1);
        assert_eq!(readable(beyond, len), Err(Errno(libc::EFAULT)), "{len} bytes, one of them beyond");
        assert_eq!(readable(end, len), Err(Errno(libc::EFAULT)), "{len} bytes beyond");
    }
    assert_eq!(readable(end, 0), Ok(()), "nothing is read");
    assert_eq!(readable(core::ptr::null::<u8>(), 4), Err(Errno(libc::EFAULT)));
}

#[test]
fn looking_changes_no_signal() {
    let blocked = || {
        let mut set = [0u64; 1];
        let args = [0, 0, set.as_mut_ptr() as usize, 8, 0, 0];
        // SAFETY: writes a set of signals there.
        unsafe { call(libc::SYS_rt_sigprocmask, args) }.unwrap();
        set
    };
    let before = blocked();
    assert_eq!(readable(&raw const before, 8), Ok(()));
    let all = [u64::MAX];
    assert_eq!(readable(all.as_ptr(), 8), Ok(()));
    assert_eq!(blocked(), before);
}
