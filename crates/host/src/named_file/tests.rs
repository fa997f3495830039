use super::*;

#[test]
fn what_has_no_end_and_what_is_no_text_are_refused() {
    assert!(text("/dev/zero").unwrap_err().to_string().contains("16 MiB"));
    assert!(regular_text("/dev/zero").unwrap_err().to_string().contains("no regular file"));
    assert!(text_from(&[b'a', 0xff][..]).unwrap_err().to_string().contains("UTF-8"));
    assert_eq!(text_from(&b"abc"[..]).unwrap(), "abc");
    assert_eq!(at_most(&b"abc"[..], 3).unwrap(), b"abc");
    assert!(at_most(&b"abcd"[..], 3).is_err());
}
