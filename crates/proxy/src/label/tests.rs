use super::*;

#[test]
fn labels_travel_with_datagrams_and_plain_reads_lose_them() {
    let (near, program) = sys::pair(libc::SOCK_SEQPACKET).unwrap();
    let mut labels = Labels::default();
    for (bytes, name) in [(&b"one"[..], &b"A"[..]), (b"two", b"B"), (b"", b"B"), (b"three", b"C")] {
        labels.send(&near, bytes, &encode(name, b"control")).unwrap();
    }
    let mut into = [0; 2];
    let (n, cut, label) = receive(&program, &mut into, libc::MSG_PEEK).unwrap();
    assert_eq!((n, cut, decode(&label)), (3, true, (&b"A"[..], &b"control"[..])));
    assert_eq!(sys::receive(&program, &mut [0; 9]), Ok(3));
    let (n, cut, label) = receive(&program, &mut [0; 9], 0).unwrap();
    assert_eq!((n, cut, decode(&label).0), (3, false, &b"B"[..]));
    let (n, _, label) = receive(&program, &mut [0; 9], 0).unwrap();
    assert_eq!((n, decode(&label).0), (0, &b"B"[..]));
    assert_eq!(receive(&program, &mut [0; 9], 0).unwrap().2, encode(b"C", b"control"));
    assert_eq!(receive(&program, &mut [0; 9], 0), Err(sys::AGAIN));
}

#[test]
fn what_is_no_label_says_nothing() {
    assert_eq!(decode(&[]), (&[][..], &[][..]));
    assert_eq!(decode(&[1]), (&[][..], &[][..]));
    assert_eq!(decode(&[255, 255, 0]), (&[][..], &[][..]));
    assert_eq!(decode(&[1, 0, 7, 9, 0]), (&[7][..], &[][..]));
}
