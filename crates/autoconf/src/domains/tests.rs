use super::*;

#[test]
fn names_stand_one_behind_another_and_are_padded() {
    let list = b"\x03lan\x00\x07example\x03org\x00\x00\x00";
    assert_eq!(read(list, false), ["lan", "example.org"]);
    assert_eq!(read(b"", false), Vec::<String>::new());
}

#[test]
fn a_pointer_leads_back_to_the_end_of_an_earlier_name() {
    // RFC 3397 §2.
    let list = b"\x03eng\x05apple\x03com\x00\x09marketing\xc0\x04";
    assert_eq!(read(list, true), ["eng.apple.com", "marketing.apple.com"]);
    assert_eq!(read(list, false), ["eng.apple.com"]);
}

#[test]
fn what_is_malformed_ends_the_list() {
    for end in
        [&b"\x05lan"[..], b"\x40x\x00", b"\xc0\x04", b"\xc0\xff", b"\xc0", b"\x03a b\x00", b"\x01\n\x00"]
    {
        let list = [b"\x02ok\x00", end].concat();
        assert_eq!(read(&list, true), ["ok"], "{end:?}");
    }
    let long: Vec<u8> = (0..5).flat_map(|_| [&[63][..], &[b'x'; 63]].concat()).chain([0]).collect();
    assert_eq!(read(&long, true), Vec::<String>::new());
    let many: Vec<u8> = (b'a'..=b'z').flat_map(|c| [1, c, 0]).collect();
    assert_eq!(read(&many, true).len(), DOMAINS_MAX);
}
