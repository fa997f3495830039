use super::*;

#[test]
fn a_header_is_read_as_libc_writes_it() {
    // SAFETY: all zeroes is an empty message; both types have the same size.
    let bytes = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_name = 0x1000 as _;
        message.msg_namelen = 16;
        message.msg_iov = 0x2000 as _;
        message.msg_iovlen = 3;
        message.msg_control = 0x3000 as _;
        message.msg_controllen = 40;
        std::mem::transmute::<libc::msghdr, [u8; HEADER]>(message)
    };
    let (name, parts, control) = (0x1000, 0x2000, 0x3000);
    let want = Header { at: 7, name, name_len: 16, parts, count: 3, control, control_len: 40 };
    assert_eq!(decode(7, &bytes), want);
    assert_eq!(size_of::<libc::mmsghdr>(), ENTRY);
}

#[test]
fn hostile_lengths_are_refused() {
    assert_eq!(parts_of(&[1, u64::MAX]), Err(Errno(libc::EINVAL)));
    assert_eq!(parts_of(&[1, 1 << 62, 2, 1 << 62]), Err(Errno(libc::EINVAL)));
    assert_eq!(parts_of(&[1, u64::MAX, 2, 2]), Err(Errno(libc::EINVAL)));
    assert_eq!(parts_of(&[1, 5, 2, 6]), Ok(vec![(1, 5), (2, 6)]));
}

#[test]
fn bytes_are_scattered_in_order() {
    let pieces = scatter(b"abcdef", &vec![(10, 2), (20, 0), (30, 3), (40, 9)]);
    assert_eq!(pieces, [(10, &b"ab"[..]), (20, b""), (30, b"cde"), (40, b"f")]);
    assert_eq!(scatter(b"abc", &vec![(10, 2)]), [(10, &b"ab"[..])]);
}
