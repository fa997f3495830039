use super::*;

fn sorted(own: &[&str], addresses: &[&str]) -> Vec<String> {
    let parse = |list: &[&str]| list.iter().map(|a| a.parse().unwrap()).collect::<Vec<IpAddr>>();
    let mut all = parse(addresses);
    sort_for(&mut all, &parse(own));
    all.iter().map(ToString::to_string).collect()
}

const LO: [&str; 2] = ["127.0.0.1", "::1"];

/// After the examples of RFC 6724 §10.2.
#[test]
fn addresses_are_tried_in_the_order_of_the_rules() {
    let global = [&LO[..], &["10.0.5.2", "2001:db8:1::2", "fe80::2"]].concat();
    // Higher precedence: IPv6 before IPv4.
    assert_eq!(sorted(&global, &["198.51.100.121", "2001:db8:1::1"]), ["2001:db8:1::1", "198.51.100.121"]);
    // An address without a source comes last.
    let old = [&LO[..], &["10.0.5.2"]].concat();
    assert_eq!(sorted(&old, &["2001:db8:1::1", "198.51.100.121"]), ["198.51.100.121", "2001:db8:1::1"]);
    // With none but a link-local one, scopes differ.
    let link = [&LO[..], &["10.0.5.2", "fe80::2"]].concat();
    assert_eq!(sorted(&link, &["2001:db8:1::1", "198.51.100.121"]), ["198.51.100.121", "2001:db8:1::1"]);
    // Unique local addresses: both labels match only among themselves; to a global one IPv4 is better.
    let ula = [&LO[..], &["10.0.5.2", "fd05::2", "fe80::2"]].concat();
    assert_eq!(sorted(&ula, &["2001:db8:1::1", "198.51.100.121"]), ["198.51.100.121", "2001:db8:1::1"]);
    assert_eq!(sorted(&ula, &["2001:db8:1::1", "fd05::1"]), ["fd05::1", "2001:db8:1::1"]);
    // The longest prefix, and else the order in which they came.
    let own = [&LO[..], &["2001:db8:1::2"]].concat();
    assert_eq!(sorted(&own, &["2001:db8:3ffe::1", "2001:db8:1::1"]), ["2001:db8:1::1", "2001:db8:3ffe::1"]);
    assert_eq!(sorted(&global, &["198.51.100.2", "10.0.5.9"]), ["198.51.100.2", "10.0.5.9"]);
    // The loopback.
    assert_eq!(sorted(&global, &["127.0.0.1", "::1"]), ["::1", "127.0.0.1"]);
    assert_eq!(sorted(&old, &["::1", "127.0.0.1"]), ["::1", "127.0.0.1"]);
}

#[test]
fn policies_are_of_the_longest_prefix() {
    for (address, expected) in [
        ("::1", (50, 0)),
        ("2001:db8::1", (40, 1)),
        ("::ffff:10.0.0.1", (35, 4)),
        ("2002::1", (30, 2)),
        ("2001::1", (5, 5)),
        ("fd77::1", (3, 13)),
        ("::10.0.0.1", (1, 3)),
        ("fec0::1", (1, 11)),
        ("3ffe::1", (1, 12)),
    ] {
        assert_eq!(policy(address.parse().unwrap()), expected, "{address}");
    }
}
