use super::*;

const HOST: Ipv6Addr = Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 9);

fn message(target: Ipv6Addr, destination: Ipv6Addr, options: &[u8]) -> Vec<u8> {
    [&[137, 0, 0, 0, 0, 0, 0, 0][..], &target.octets(), &destination.octets(), options].concat()
}

#[test]
fn a_redirect_names_a_router_or_the_destination_itself() {
    let router: Ipv6Addr = "fe80::7".parse().unwrap();
    let mac = MacAddress([2, 0, 0, 0, 0, 7]);
    let option = [&[2, 1][..], &mac.0].concat();
    let said = parse(&message(router, HOST, &option), 3);
    assert_eq!(said, Some(Message { target: with_zone(router, 3), destination: HOST, mac: Some(mac) }));
    let said = parse(&message(HOST, HOST, &[]), 3);
    assert_eq!(said, Some(Message { target: HOST, destination: HOST, mac: None }));
    let other: Ipv6Addr = "fd99::8".parse().unwrap();
    let group: Ipv6Addr = "ff05::1".parse().unwrap();
    for (bad, why) in [
        (message(other, HOST, &[]), "another host"),
        (message(group, group, &[]), "a group"),
        (message(router, HOST, &[2, 0]), "an option without length"),
        (message(router, HOST, &[])[..39].to_vec(), "too short"),
        (message("fe80:5::7".parse().unwrap(), HOST, &[]), "an address with a zone"),
    ] {
        assert_eq!(parse(&bad, 3), None, "{why}");
    }
    let mut bad = message(router, HOST, &[]);
    bad[1] = 1;
    assert_eq!(parse(&bad, 3), None, "an unknown code");
}
