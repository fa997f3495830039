use super::*;

#[test]
fn only_sigsys_is_taken_out() {
    assert_eq!(stripped(u64::MAX), Some(!(1 << 30)));
    assert_eq!(stripped(1 << 30 | 1), Some(1));
    assert_eq!(stripped(!(1 << 30)), None);
}

#[test]
fn masks_of_waits() {
    assert_eq!(waiting(libc::SYS_ppoll), Some(Waiting::Mask(3)));
    assert_eq!(waiting(libc::SYS_pselect6), Some(Waiting::Pair(5)));
    assert_eq!(waiting(libc::SYS_poll), None);
}

/// An unarmed process changes nothing.
#[test]
fn not_armed() {
    let args = [libc::SIG_SETMASK as usize, 0, 0, MASK_LEN, 0, 0];
    // SAFETY: no addresses.
    assert_eq!(unsafe { by_number(libc::SYS_rt_sigprocmask, args) }, None);
}
