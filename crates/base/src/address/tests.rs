use super::*;

#[test]
fn the_first_and_the_last_address_of_a_network_are_not_host_addresses() {
    let is_host = |text: &str| text.parse::<Cidr>().unwrap().is_host();
    assert!(
        is_host("10.0.0.1/24") && is_host("10.0.1.0/23") && is_host("10.0.0.0/31") && is_host("10.0.0.0/32")
    );
    assert!(!is_host("10.0.0.0/24") && !is_host("10.0.0.255/24") && !is_host("10.0.1.255/23"));
}

#[test]
fn cidr_contains_its_network_and_nothing_else() {
    let c: Cidr = "10.77.0.2/24".parse().unwrap();
    assert!(c.contains("10.77.0.255".parse().unwrap()));
    assert!(!c.contains("10.77.1.0".parse().unwrap()));
    let all: Cidr = "0.0.0.0/0".parse().unwrap();
    assert!(all.contains("255.1.2.3".parse().unwrap()));
    assert!("10.0.0.1/33".parse::<Cidr>().is_err());
    assert_eq!(c.broadcast(), Some(Ipv4Addr::new(10, 77, 0, 255)));
}

#[test]
fn wire_address_round_trips() {
    for s in ["10.1.2.3", "2001:db8::1", "0.0.0.0"] {
        let a: IpAddr = s.parse().unwrap();
        assert_eq!(IpAddr::from(WireAddress::from(a)), a);
    }
}
