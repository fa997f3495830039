use super::*;
use core::net::IpAddr;

const KEY: Key = Key([1, 2]);

fn client(last: u8) -> WireAddress {
    IpAddr::from([10, 0, 0, last]).into()
}

fn at(hours: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(hours * 3600)
}

#[test]
fn a_cookie_is_good_for_its_client_alone() {
    let cookie = Cookie::ours(KEY, client(1), at(1));
    assert_eq!(cookie.bytes().len(), 8);
    assert_eq!(cookie.judge(KEY, client(1), at(2)), Worth::Current);
    assert_eq!(cookie.judge(KEY, client(2), at(2)), Worth::Nothing);
    assert_eq!(cookie.judge(Key([1, 3]), client(1), at(2)), Worth::Nothing);
    let six: IpAddr = "fd00::1".parse().unwrap();
    assert_eq!(cookie.judge(KEY, six.into(), at(2)), Worth::Nothing);
}

#[test]
fn a_cookie_ages() {
    let cookie = Cookie::ours(KEY, client(1), at(1));
    assert_eq!(cookie.judge(KEY, client(1), at(25)), Worth::Old);
    assert_eq!(cookie.judge(KEY, client(1), at(49)), Worth::Nothing);
}

#[test]
fn an_option_of_an_invalid_length_is_ignored() {
    let data = [7; 20];
    let fits: Vec<usize> = (0..=20).filter(|len| Cookie::parse(&data[..*len]).is_some()).collect();
    assert_eq!(fits, [0, 4, 6, 8, 10, 12, 14, 16]);
    assert_eq!(Cookie::parse(&data[..6]).unwrap().bytes(), &data[..6]);
    assert!(Cookie::parse(&[]).unwrap().is_request());
}

#[test]
fn a_part_of_a_cookie_is_not_a_cookie() {
    let cookie = Cookie::ours(KEY, client(1), at(1));
    let part = Cookie::parse(&cookie.bytes()[..4]).unwrap();
    assert_eq!(part.judge(KEY, client(1), at(1)), Worth::Nothing);
}

#[test]
fn names_parse_back() {
    for which in [FastOpen::Off, FastOpen::Client, FastOpen::Server, FastOpen::Both] {
        assert_eq!(which.name().parse(), Ok(which));
    }
    assert!("on".parse::<FastOpen>().is_err());
}
