use super::*;

const SECRET: Key = Key([1, 2]);

fn v4(last: u8) -> WireAddress {
    IpAddr::from([10, 248, 0, last]).into()
}

fn own(last: u8) -> WireAddress {
    IpAddr::from([192, 168, 0, last]).into()
}

fn at(hours: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(hours * 3600)
}

/// Known answers: what Linux makes of these keys and addresses.
#[test]
fn cookies_are_those_of_linux() {
    let keys: CookieKeys = "a0bf63f7-ed803d81-cd641d30-cebc4a90".parse().unwrap();
    let hex = |cookie: Cookie| u64::from_be_bytes(cookie.bytes().try_into().unwrap());
    assert_eq!(hex(keys.make(v4(2), own(2))), 0x00ab_aaab_e8e9_54c2);
    assert_eq!(hex(keys.make(v4(3), own(2))), 0x1313_a2da_994a_0951);
    assert_eq!(hex(keys.make(v4(3), own(3))), 0x76d2_c1c5_30f5_1f79);
    let zero: CookieKeys = "0-0-0-0".parse().unwrap();
    assert_eq!(hex(zero.make(v4(2), own(2))), 0x93b7_aa4f_550f_8a1a);
    let default: CookieKeys = "a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4".parse().unwrap();
    let (client, server): (IpAddr, IpAddr) =
        ("fd3d:fa7b:d17d::1".parse().unwrap(), "fd3d:0a0b:17d6::1".parse().unwrap());
    assert_eq!(hex(default.make(client.into(), server.into())), 0xc1d1_e974_2a47_a9bc);
}

#[test]
fn a_key_is_the_same_as_text_and_as_bytes() {
    let bytes = b"\xf7\x63\xbf\xa0\x81\x3d\x80\xed\x30\x1d\x64\xcd\x90\x4a\xbc\xce";
    assert_eq!("a0bf63f7-ed803d81-cd641d30-cebc4a90".parse().ok(), CookieKeys::from_bytes(bytes));
    let two = "a0bf63f7-ed803d81-cd641d30-cebc4a90,1-2-3-4".parse::<CookieKeys>().unwrap();
    let mut both = bytes.to_vec();
    both.extend([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]);
    assert_eq!(CookieKeys::from_bytes(&both), Some(two));
    let text = "a0bf63f7-ed803d81-cd641d30-cebc4a90,00000001-00000002-00000003-00000004";
    assert_eq!(two.to_string(), text);
    for len in [0, 1, 15, 17, 31, 33] {
        assert_eq!(CookieKeys::from_bytes(&[7; 40][..len]), None, "{len}");
    }
}

#[test]
fn what_is_no_key_is_refused() {
    for text in [
        "",
        "1-2-3",
        "1-2-3-4-5",
        "1-2-3-x",
        "1-2-3-123456789",
        "1-2-3-+4",
        "1-2-3-4,",
        "1-2-3-4,1-2-3-4,1-2-3-4",
    ] {
        assert!(text.parse::<CookieKeys>().is_err(), "{text:?}");
    }
}

#[test]
fn a_cookie_is_good_for_its_client_at_its_address_alone() {
    let keys = CookieKeys::of_day(SECRET, at(1));
    let cookie = keys.make(v4(1), own(1));
    assert_eq!(cookie.bytes().len(), 8);
    assert_eq!(keys.judge(&cookie, v4(1), own(1)), Worth::Current);
    assert_eq!(keys.judge(&cookie.in_option(true), v4(1), own(1)), Worth::Current);
    assert_eq!(keys.judge(&cookie, v4(2), own(1)), Worth::Nothing);
    assert_eq!(keys.judge(&cookie, v4(1), own(2)), Worth::Nothing);
    assert_eq!(CookieKeys::of_day(Key([1, 3]), at(1)).judge(&cookie, v4(1), own(1)), Worth::Nothing);
    let part = Cookie::parse(&cookie.bytes()[..4]).unwrap();
    assert_eq!(keys.judge(&part, v4(1), own(1)), Worth::Nothing);
}

#[test]
fn a_cookie_of_the_second_key_is_old() {
    let old: CookieKeys = "1-2-3-4".parse().unwrap();
    let cookie = old.make(v4(1), own(1));
    let both: CookieKeys = "5-6-7-8,1-2-3-4".parse().unwrap();
    assert_eq!(both.judge(&cookie, v4(1), own(1)), Worth::Old);
    let new: CookieKeys = "5-6-7-8".parse().unwrap();
    assert_eq!(new.judge(&cookie, v4(1), own(1)), Worth::Nothing);
}

#[test]
fn keys_of_our_own_change_daily() {
    let cookie = CookieKeys::of_day(SECRET, at(1)).make(v4(1), own(1));
    let judged = |hours| CookieKeys::of_day(SECRET, at(hours)).judge(&cookie, v4(1), own(1));
    assert_eq!([2, 25, 49].map(judged), [Worth::Current, Worth::Old, Worth::Nothing]);
}
