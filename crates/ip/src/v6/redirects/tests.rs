use super::*;
use core::net::Ipv6Addr;

fn v6(last: u16) -> IpAddr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, last).into()
}

#[test]
fn the_oldest_are_forgotten_and_those_whose_hop_is_silent() {
    let mut redirects = Redirects::default();
    let destination = |n: u16| IpAddr::V6(Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, n));
    for n in 0..=REDIRECTS_MAX as u16 {
        redirects.put(0, destination(n), v6(n % 2));
    }
    assert_eq!(redirects.next(0, destination(0)), None);
    assert_eq!((redirects.next(0, destination(1)), redirects.next(1, destination(1))), (Some(v6(1)), None));
    redirects.put(0, destination(1), v6(2));
    assert!(redirects.leads_to(0, v6(1)) && !redirects.leads_to(1, v6(1)));
    redirects.forget(0, v6(1));
    assert_eq!((redirects.next(0, destination(1)), redirects.next(0, destination(3))), (Some(v6(2)), None));
    assert!(!redirects.leads_to(0, v6(1)));
    // Another router for the only destination that a neighbour leads to.
    assert!(redirects.leads_to(0, v6(2)));
    redirects.put(0, destination(1), v6(0));
    assert!(!redirects.leads_to(0, v6(2)) && redirects.leads_to(0, v6(0)));
    redirects.forget(0, v6(0));
    assert!(redirects.by_destination.is_empty() && redirects.by_hop.is_empty());
}
