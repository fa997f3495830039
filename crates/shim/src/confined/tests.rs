use super::*;

#[test]
fn filters_are_counted_and_expected() {
    assert_eq!(filters(b"Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t3\nThreads:\t1\n"), Some(3));
    assert_eq!(filters(b"Name:\tx\n"), None);
    expect(libc::SYS_prctl, &[libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0, 0]);
    expect(libc::SYS_seccomp, &[libc::SECCOMP_GET_ACTION_AVAIL as usize, 0, 0, 0, 0, 0]);
    assert!(!is_confined());
    expect(libc::SYS_seccomp, &[libc::SECCOMP_SET_MODE_FILTER as usize, 0, 0, 0, 0, 0]);
    assert!(is_confined());
}
