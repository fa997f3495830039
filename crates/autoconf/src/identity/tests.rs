use super::*;

fn cidr(text: &str) -> Cidr {
    text.parse().unwrap()
}

#[test]
fn an_address_is_stable_and_differs_by_network_interface_counter_and_secret() {
    let one = Identity([1, 2]);
    let of = |id: Identity, net, name, n| id.address_in(&cidr(net), name, n).unwrap();
    let first = of(one, "2001:db8::/64", "eth0", 0);
    assert_eq!(first, of(one, "2001:db8::/64", "eth0", 0));
    assert!(cidr("2001:db8::/64").contains(first.into()));
    let suffix = |a: Ipv6Addr| a.to_bits() as u64;
    for other in [
        of(one, "2001:db8:1::/64", "eth0", 0),
        of(one, "2001:db8::/64", "eth1", 0),
        of(one, "2001:db8::/64", "eth0", 1),
        of(Identity([1, 3]), "2001:db8::/64", "eth0", 0),
    ] {
        assert_ne!(suffix(first), suffix(other));
    }
    assert_eq!(one.address_in(&cidr("10.0.0.0/8"), "eth0", 0), None);
}

#[test]
fn reserved_identifiers_are_known() {
    for reserved in
        [0, 0x0200_5eff_fe00_0000, 0x0200_5eff_feff_ffff, 0xfdff_ffff_ffff_ff80, 0xfdff_ffff_ffff_ffff]
    {
        assert!(is_reserved(reserved), "{reserved:x}");
    }
    for free in [1, 0x0200_5eff_fd00_0000, 0xfdff_ffff_ffff_ff7f, 0xfe00_0000_0000_0000] {
        assert!(!is_reserved(free), "{free:x}");
    }
}

#[test]
fn identifiers_of_dhcp_have_their_form() {
    let id = Identity::parse("00000000000000010000000000000002").unwrap();
    assert_eq!(id, Identity([1, 2]));
    assert_eq!(Identity::parse("1"), None);
    let client = id.client_id("eth0");
    assert_eq!((client.len(), client[0]), (1 + 4 + 18, 255));
    assert_eq!(client[5..7], [0, 4]);
    assert_eq!(client[5..], id.client_id("eth1")[5..]);
    assert_ne!(client[1..5], id.client_id("eth1")[1..5]);
}
