use super::*;

#[test]
fn an_option_of_an_invalid_length_is_ignored() {
    let data = [7; 20];
    let fits: Vec<usize> = (0..=20).filter(|len| Cookie::parse(&data[..*len]).is_some()).collect();
    assert_eq!(fits, [0, 4, 6, 8, 10, 12, 14, 16]);
    assert_eq!(Cookie::parse(&data[..6]).unwrap().bytes(), &data[..6]);
    assert!(Cookie::parse(&[]).unwrap().is_request());
}

#[test]
fn names_parse_back() {
    for bits in 0..0x800 {
        let which = FastOpen::of_linux(bits);
        assert_eq!(which.to_string().parse(), Ok(which));
    }
    assert_eq!("both".parse(), Ok(FastOpen::BOTH));
    assert_eq!("server,all-listeners,server-no-cookie".parse(), Ok(FastOpen::of_linux(0x602)));
    for text in ["on", "", "off,client", "client,", "0x3"] {
        assert!(text.parse::<FastOpen>().is_err(), "{text:?}");
    }
}

#[test]
fn bits_are_those_of_linux() {
    assert_eq!(FastOpen::of_linux(0x70403).to_string(), "client,server,all-listeners");
    assert_eq!(FastOpen::of_linux(0).to_string(), "off");
}
