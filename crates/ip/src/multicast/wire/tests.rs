use super::*;

fn group() -> IpAddr {
    IpAddr::from([239, 1, 2, 3])
}

#[test]
fn the_version_of_a_query_shows_in_its_length() {
    let v = |message: &[u8]| match parse(false, message) {
        Some(Message::Query(q)) => Some((q.version, q.delay.as_millis())),
        _ => None,
    };
    assert_eq!(v(&[0x11, 0, 0, 0, 0, 0, 0, 0]), Some((Version::First, 10000)));
    assert_eq!(v(&[0x11, 20, 0, 0, 0, 0, 0, 0]), Some((Version::Second, 2000)));
    assert_eq!(v(&[0x11, 20, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0]), Some((Version::Third, 2000)));
    // RFC 9776 §7.1: lengths between are none.
    assert_eq!(v(&[0x11, 20, 0, 0, 0, 0, 0, 0, 2]), None);
    assert_eq!(v(&[0x11, 20, 0, 0, 0, 0, 0, 0, 2, 125, 0, 1]), None, "the source is missing");
    assert_eq!(v(&[0x11, 20, 0, 0, 10, 0, 0, 1]), None, "that is no group");
}

#[test]
fn long_delays_are_floating_point_numbers() {
    assert_eq!([0, 127, 128, 129, 255].map(|n| float(n, 3, 4)), [0, 127, 128, 136, 31744]);
    assert_eq!(float(0x8000, 3, 12), 0x8000);
    assert_eq!(float(0xffff, 3, 12), 0x1fff << 10);
}

#[test]
fn reports_are_cut_to_the_mtu() {
    let sources: Vec<IpAddr> = (0..100).map(|n| IpAddr::from([10, 0, 0, n])).collect();
    let record = |kind| Record { kind, group: group(), sources: sources.clone() };
    let cut = reports(false, &[record(Kind::Allow)], 216);
    assert_eq!(cut.iter().map(Vec::len).collect::<Vec<_>>(), [216, 216]);
    // What is excluded is cut off (RFC 9776 §4.2.16).
    assert_eq!(reports(false, &[record(Kind::ToExclude)], 216).len(), 1);
    let small = Record { kind: Kind::ToExclude, group: group(), sources: vec![] };
    let [both] = &reports(false, &[small.clone(), small], 216)[..] else { panic!() };
    assert_eq!(both[..8], [0x22, 0, 0, 0, 0, 0, 0, 2]);
    assert_eq!(both[8..16], [4, 0, 0, 0, 239, 1, 2, 3]);
}

#[test]
fn no_bytes_make_it_panic() {
    let mut random = eft_base::Random::new(1);
    for _ in 0..20000 {
        let len = random.below(64) as usize;
        let mut bytes: Vec<u8> = (0..len).map(|_| random.next_u32() as u8).collect();
        for kind in [QUERY4, QUERY6, REPORT4_V2, REPORT6_V1] {
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            parse(false, &bytes);
            parse(true, &bytes);
        }
    }
}
