use super::*;

#[test]
fn the_hosts_addresses_are_its_own_and_others_are_not() {
    assert!(owns(Ipv4Addr::LOCALHOST.into()));
    assert!(!owns(Ipv4Addr::new(203, 0, 113, 77).into()));
}
