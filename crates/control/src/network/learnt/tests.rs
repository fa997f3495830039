use super::super::Interface;
use super::*;
use alloc::vec;
use eft_autoconf::method::Method;
use eft_autoconf::router::{Address, Advertised, NameServer, OnLink, Router, Search};
use eft_base::Instant;

const LATER: Instant = Instant::from_millis(9_000_000);

fn network(auto: &[Method]) -> Network {
    let addresses = vec!["10.0.0.2/24".parse().unwrap()];
    Network {
        interfaces: vec![Interface { name: "eft0".into(), addresses, auto: auto.to_vec() }],
        ..Network::default()
    }
}

fn known() -> All {
    let mut a = Advertised::default();
    a.routers.push(Router { address: "fe80::1".parse().unwrap(), preference: 0, until: LATER });
    a.on_link.push(OnLink { network: "fd05::".parse().unwrap(), prefix_len: 64, valid: Some(LATER) });
    a.on_link.push(OnLink { network: "fd06::".parse().unwrap(), prefix_len: 64, valid: Some(LATER) });
    let address = "fd05::7".parse().unwrap();
    a.addresses.push(Address { address, valid: Some(LATER), preferred: None, conflicts: 0 });
    let search = |domain: &str| Search { domain: domain.into(), until: None };
    a.search = vec![search("lab.example"), search("x\nnameserver 192.0.2.66")];
    a.name_servers.push(NameServer { address: "fd05::53".parse().unwrap(), until: Some(LATER) });
    [("eft0".to_string(), known::Known { advertised: a, ..Default::default() })].into()
}

#[test]
fn what_is_learnt_stands_behind_what_is_configured() {
    let (whole, learnt) = network(&[Method::Slaac]).with(&known(), |_, _| true);
    let addresses: Vec<String> = whole.interfaces[0].addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.0.0.2/24", "fd05::7/64"]);
    let routes: Vec<_> = whole.routes.iter().map(|r| (r.destination.to_string(), r.gateway)).collect();
    let router: IpAddr = "fe80::1".parse().unwrap();
    assert_eq!(routes, [("fd06::/64".to_string(), None), ("::/0".to_string(), Some(router))]);
    assert_eq!((learnt.addresses.len(), learnt.routes.len(), learnt.name_servers.len()), (1, 2, 1));
    assert_eq!(learnt.search, ["lab.example"]);
    // ip's configuration says how the interface gets addresses, and by which the default route leads.
    let text = whole.ip_configuration(&[]);
    assert!(text.contains("auto = [\"slaac\"]") && text.contains("gateway = \"fe80::1\""), "{text}");
}

#[test]
fn what_does_not_fit_is_left_out() {
    // An interface that shall not learn, an address that it may not have, one that is there already, and too many.
    assert_eq!(network(&[]).with(&known(), |_, _| true), (network(&[]), Learnt::default()));
    let plain = network(&[Method::Slaac]);
    assert_eq!(plain.with(&known(), |_, _| false).1.addresses, []);
    let mut has = plain.clone();
    has.interfaces[0].addresses.push("fd05::7/48".parse().unwrap());
    assert_eq!(has.with(&known(), |_, _| true).1.addresses, []);
    let mut full = plain;
    for n in 0..ENTRIES_MAX - 1 {
        full.interfaces[0].addresses.push(alloc::format!("10.1.0.{}/24", n + 1).parse().unwrap());
    }
    assert_eq!(full.with(&known(), |_, _| true).1.addresses, []);
}

#[test]
fn a_configuration_of_an_older_release_learns_nothing() {
    let text = network(&[]).ip_configuration(&[]);
    assert!(!text.contains("auto"), "{text}");
}
