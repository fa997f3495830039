use super::*;

fn a(s: &str) -> Ipv6Addr {
    s.parse().unwrap()
}

#[test]
fn groups_and_identifiers() {
    assert_eq!(link_group(a("ff02::1:ff12:3456")), Some(MacAddress([0x33, 0x33, 0xff, 0x12, 0x34, 0x56])));
    assert_eq!(link_group(a("2001:db8::1")), None);
    assert_eq!(solicited_node(a("2001:db8::ab12:3456"), 2), a("ff02:2::1:ff12:3456"));
}

#[test]
fn what_a_host_may_have() {
    let check = |s: &str| {
        let cidr: Cidr = s.parse().unwrap();
        let IpAddr::V6(a) = cidr.address else { panic!() };
        check_host(&cidr, a)
    };
    assert_eq!(check("2001:db8::2/64"), Ok(()));
    assert_eq!(check("fe80::2/64"), Ok(()));
    for bad in [
        "ff02::1/64",
        "::/64",
        "::1/128",
        "::ffff:10.0.0.1/96",
        "fe80::2/10",
        "fe80:5::2/64",
        "2001:db8::2/0",
    ] {
        assert!(check(bad).is_err(), "{bad}");
    }
}

/// RFC 6724 §10.1.
#[test]
fn the_source_fits_the_destination() {
    let choose = |to: &str, ours: &[&str]| {
        choose_source(a(to), ours.iter().map(|s| (IpAddr::V6(a(s)), false))).map(|a| a.to_string())
    };
    let both = ["fe80:2::1", "2001:db8:1::1"];
    assert_eq!(choose("2001:db8:1::9", &both).unwrap(), "2001:db8:1::1");
    assert_eq!(choose("fe80:2::9", &both).unwrap(), "fe80:2::1");
    assert_eq!(choose("ff02:2::1", &both).unwrap(), "fe80:2::1");
    assert_eq!(choose("ff05::1", &both).unwrap(), "2001:db8:1::1");
    assert_eq!(choose("2001:db8:2::9", &["2001:db8:1::1", "2001:db8:2::1"]).unwrap(), "2001:db8:2::1");
    assert_eq!(choose("2001:db8:1::9", &["fe80:2::1"]).unwrap(), "fe80:2::1");
    assert_eq!(choose("2001:db8:1::9", &[]), None);
}

/// RFC 6724 §5, rule 3: after the scope, before the prefix.
#[test]
fn a_deprecated_source_is_used_if_there_is_no_other() {
    let choose = |to: &str, ours: &[(&str, bool)]| {
        choose_source(a(to), ours.iter().map(|(s, old)| (IpAddr::V6(a(s)), *old))).unwrap().to_string()
    };
    let ours = [("2001:db8:1::1", true), ("2001:db8:2::1", false), ("fe80:2::1", false)];
    assert_eq!(choose("2001:db8:1::9", &ours), "2001:db8:2::1");
    assert_eq!(choose("2001:db8:1::1", &ours), "2001:db8:1::1");
    assert_eq!(choose("2001:db8:1::9", &[ours[0], ours[2]]), "2001:db8:1::1");
}
