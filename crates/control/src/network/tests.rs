use super::*;
use alloc::vec;

fn cidr(text: &str) -> Cidr {
    text.parse().unwrap()
}

fn network() -> Network {
    let interface = |name: &str, addresses: &[&str]| Interface {
        name: name.into(),
        addresses: addresses.iter().map(|a| cidr(a)).collect(),
        auto: Vec::new(),
    };
    let interfaces =
        vec![interface("a", &["10.0.0.2/24", "10.0.0.3/24", "fd00::2/64"]), interface("b", &["10.1.0.2/16"])];
    Network::with_gateways(interfaces, &["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()])
}

fn add(address: &str, interface: &str) -> Change {
    Change::AddAddress { address: cidr(address), interface: Some(interface.into()) }
}

fn remove(address: &str, interface: &str) -> Change {
    Change::RemoveAddress { address: cidr(address), interface: Some(interface.into()) }
}

fn route(destination: &str, gateway: &str, metric: u32) -> Change {
    let gateway = Some(gateway.parse().unwrap());
    Change::AddRoute(Route {
        destination: cidr(destination),
        gateway,
        interface: None,
        metric,
        metrics: Metrics::default(),
    })
}

fn key(destination: &str) -> RouteKey {
    RouteKey { destination: cidr(destination), gateway: None, interface: None, metric: None }
}

/// A refused change changes nothing, and the reason is one line.
fn refused(n: &mut Network, change: Change) -> String {
    let before = n.clone();
    let error = n.apply(change).unwrap_err().to_string();
    assert_eq!((&before, error.lines().count()), (&*n, 1), "{error}");
    error
}

#[test]
fn addresses_come_and_go() {
    let mut n = network();
    n.apply(add("10.1.7.7/16", "b")).unwrap();
    assert_eq!(n.interfaces[1].addresses.len(), 2);
    assert!(refused(&mut n, add("10.1.7.7/24", "b")).contains("already"));
    assert!(refused(&mut n, add("10.9.0.1/24", "c")).contains("this stack has a, b"));
    let nowhere = Change::AddAddress { address: cidr("10.9.0.1/24"), interface: None };
    assert!(refused(&mut n, nowhere).contains("which device"));
    assert!(refused(&mut n, remove("10.1.7.7/24", "b")).contains("it has 10.1.0.2/16, 10.1.7.7/16"));
    n.apply(remove("10.1.7.7/16", "b")).unwrap();
    assert_eq!(n, network());
}

#[test]
fn routes_whose_gateway_is_out_of_reach_go_with_the_address() {
    let mut n = network();
    n.apply(route("10.9.0.0/16", "10.1.0.1", 0)).unwrap();
    // Another address in the gateway's network remains.
    assert_eq!(n.apply(remove("10.0.0.2/24", "a")).unwrap(), []);
    let gone = n.apply(remove("10.0.0.3/24", "a")).unwrap();
    assert_eq!(gone.len(), 1);
    assert_eq!(gone[0].destination, cidr("0.0.0.0/0"));
    let gone = n.apply(Change::FlushAddresses { interface: Some("b".into()) }).unwrap();
    assert_eq!(gone[0].destination, cidr("10.9.0.0/16"));
    assert_eq!(n.routes.len(), 1);
}

#[test]
fn routes_come_and_go() {
    let mut n = network();
    assert!(refused(&mut n, route("0.0.0.0/0", "10.0.0.9", 0)).contains("route to default already"));
    n.apply(route("0.0.0.0/0", "10.0.0.9", 5)).unwrap();
    assert!(refused(&mut n, route("10.9.0.1/16", "10.0.0.9", 0)).contains("10.9.0.0/16"));
    assert!(refused(&mut n, Change::RemoveRoute(key("10.8.0.0/16"))).contains("no route to 10.8.0.0/16"));
    assert!(
        refused(&mut n, Change::RemoveRoute(key("10.1.0.0/16"))).contains("belongs to address 10.1.0.2/16")
    );
    let second = RouteKey { metric: Some(5), interface: Some("a".into()), ..key("0.0.0.0/0") };
    n.apply(Change::RemoveRoute(second)).unwrap();
    assert_eq!(n, network());
    n.apply(Change::FlushRoutes { ipv6: Some(true) }).unwrap();
    assert_eq!(n.routes.len(), 1);
    n.apply(Change::FlushRoutes { ipv6: None }).unwrap();
    assert!(n.routes.is_empty());
}

#[test]
fn there_are_limits() {
    let mut n = network();
    for i in 0..=ENTRIES_MAX {
        let _ = n.apply(add(&format!("10.1.9.{}/16", i + 1), "b"));
        let _ = n.apply(route(&format!("10.50.{i}.0/24"), "10.1.0.1", 0));
    }
    assert_eq!(n.interfaces.iter().map(|i| i.addresses.len()).sum::<usize>(), ENTRIES_MAX);
    assert_eq!(n.routes.len(), ENTRIES_MAX);
    assert!(refused(&mut n, add("10.1.10.1/16", "b")).contains("at most"));
    assert!(refused(&mut n, route("10.60.0.0/16", "10.1.0.1", 0)).contains("at most"));
}

#[test]
fn the_text_for_ip_names_everything() {
    let mut n = network();
    n.apply(Change::AddRoute(Route {
        destination: cidr("172.16.0.0/12"),
        gateway: None,
        interface: Some("b".into()),
        metric: 3,
        metrics: Metrics { mtu: Some(1400), advmss: Some(1300), initcwnd: Some(20) },
    }))
    .unwrap();
    let text = n.ip_configuration(&["tcp".into()]);
    for part in [
        "transports = [\"tcp\"]",
        "index = 1\nname = \"b\"\naddresses = [\"10.1.0.2/16\"]",
        "gateway = \"fd00::1\"",
        "destination = \"172.16.0.0/12\"\nmetric = 3\nmtu = 1400\nadvmss = 1300\ninitcwnd = 20\ninterface = \"b\"\n",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn neighbours_come_and_go() {
    let mut n = network();
    let address = "10.1.0.9".parse().unwrap();
    let mac = |last: u8| MacText(MacAddress([2, 0, 0, 0, 0, last]));
    let b = || Some(String::from("b"));
    for last in [1, 2] {
        n.apply(Change::AddNeighbour { address, mac: mac(last), interface: b() }).unwrap();
    }
    assert_eq!(n.neighbours, [Neighbour { address, mac: mac(2), interface: "b".into() }]);
    let text = "[[neighbour]]\naddress = \"10.1.0.9\"\nmac = \"02:00:00:00:00:02\"\ninterface = \"b\"\n";
    assert!(n.ip_configuration(&[]).contains(text));
    let other = Change::RemoveNeighbour { address, interface: Some("a".into()) };
    assert!(refused(&mut n, other).contains("10.1.0.9 on a is not configured"));
    n.apply(Change::FlushNeighbours { interface: Some("a".into()) }).unwrap();
    assert_eq!(n.neighbours.len(), 1);
    n.apply(Change::RemoveNeighbour { address, interface: b() }).unwrap();
    assert_eq!(n, network());
    for i in 0..=NEIGHBOURS_MAX as u32 {
        let address = IpAddr::from((0x0a01_1000 + i).to_be_bytes());
        let _ = n.apply(Change::AddNeighbour { address, mac: mac(1), interface: b() });
    }
    assert_eq!(n.neighbours.len(), NEIGHBOURS_MAX);
    n.apply(Change::FlushNeighbours { interface: None }).unwrap();
    assert_eq!(n, network());
}
