use super::*;

/// Each number is where `struct sock_extended_err` has its field, as libc declares it.
#[test]
fn fields_lie_where_the_system_declares_them() {
    let (bytes, len) = Completed { first: 7, last: 9 }.extended(false);
    // SAFETY: plain numbers, and enough bytes.
    let said: libc::sock_extended_err = unsafe { core::ptr::read_unaligned(bytes.as_ptr().cast()) };
    assert_eq!((said.ee_errno, said.ee_origin, said.ee_type), (0, ORIGIN, 0));
    assert_eq!((said.ee_code, said.ee_info, said.ee_data), (COPIED, 7, 9));
    assert_eq!(len, 32);
    assert_eq!(Completed { first: 0, last: 0 }.extended(true).1, 44);
}
