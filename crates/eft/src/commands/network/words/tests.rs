use super::*;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(String::from).collect()
}

fn changed(asked: Result<Asked>) -> Change {
    match asked.unwrap() {
        Asked::Change(change) => change,
        other => panic!("{other:?}"),
    }
}

#[test]
fn addresses_as_ip_has_them() {
    let of = |line: &str| address(&words(line));
    assert_eq!(of("").unwrap(), Asked::Show { device: None });
    for line in ["show dev eft0", "ls eft0", "list dev eft0"] {
        assert_eq!(of(line).unwrap(), Asked::Show { device: Some("eft0".into()) }, "{line}");
    }
    let cidr: Cidr = "10.0.5.3/24".parse().unwrap();
    let interface = Some("eft0".to_string());
    assert_eq!(changed(of("add 10.0.5.3/24 dev eft0")), Change::AddAddress { address: cidr, interface });
    assert_eq!(changed(of("del 10.0.5.3/24")), Change::RemoveAddress { address: cidr, interface: None });
    assert_eq!(changed(of("flush")), Change::FlushAddresses { interface: None });
}

#[test]
fn routes_as_ip_has_them() {
    let of = |line: &str| route(&words(line), None);
    let Change::AddRoute(r) = changed(of("add default via 10.0.5.1 metric 7")) else { panic!() };
    assert_eq!((r.destination.to_string().as_str(), r.metric), ("0.0.0.0/0", 7));
    let Change::AddRoute(r) = changed(of("add default via fe80::1 dev eft0")) else { panic!() };
    assert_eq!((r.destination.to_string().as_str(), r.metric), ("::/0", 1024));
    let Change::AddRoute(r) = changed(of("add 192.0.2.7 dev eft0")) else { panic!() };
    assert_eq!((r.destination.to_string().as_str(), r.gateway), ("192.0.2.7/32", None));
    let Change::AddRoute(r) = changed(of("add 10.9.0.0/16 via 10.0.5.1 mtu 1400")) else { panic!() };
    assert_eq!((r.metric, r.metrics.mtu), (0, Some(1400)));
    let Change::AddRoute(r) = changed(of("add default via 10.0.5.1 initcwnd 20 advmss 1300")) else {
        panic!()
    };
    assert_eq!(r.metrics, Metrics { mtu: None, advmss: Some(1300), initcwnd: Some(20) });
    let Change::RemoveRoute(key) = changed(of("delete 10.9.0.0/16")) else { panic!() };
    assert_eq!((key.gateway, key.metric), (None, None));
    assert_eq!(changed(route(&words("flush"), Some(true))), Change::FlushRoutes { ipv6: Some(true) });
    let Change::RemoveRoute(key) = changed(route(&words("del default"), Some(true))) else { panic!() };
    assert!(key.destination.address.is_ipv6());
}

#[test]
fn what_is_wrong_is_one_line_that_names_the_word() {
    for line in [
        "ad 10.0.0.1/24",
        "add",
        "add 10.0.0.1",
        "add 10.0.0.1/33",
        "add 10.0.0.1/24 dev",
        "add 10.0.0.1/24 eft0",
        "del x dev y",
    ] {
        let error = address(&words(line)).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains("expected"), "{line}: {error}");
    }
    for line in [
        "add nowhere via 10.0.0.1",
        "add default via x",
        "add default metric -1",
        "add default mtu 65536",
        "del default mtu 1400",
        "add default advmss 70000",
        "add default initcwnd -1",
        "del default initcwnd 20",
        "add default by 10.0.0.1",
        "show via 10.0.0.1",
        "flush dev eft0",
    ] {
        let error = route(&words(line), None).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn neighbours_as_ip_has_them() {
    let of = |line: &str| neighbour(&words(line));
    let Change::AddNeighbour { mac, .. } = changed(of("add 10.0.5.7 lladdr 2:0:0:a:bb:CC dev eft0")) else {
        panic!()
    };
    assert_eq!(mac.0, MacAddress([2, 0, 0, 10, 0xbb, 0xcc]));
    let interface = Some("eft0".to_string());
    assert_eq!(changed(of("flush dev eft0")), Change::FlushNeighbours { interface });
    let wrong = [
        "add",
        "add 10.0.5.7",
        "add 10.0.5.7 lladdr 1:2:3",
        "add 10.0.5.7 lladdr 02:00:00:00:00:01:02",
        "add 10.0.5.7 lladdr +1:00:00:00:00:01",
        "add 10.0.5.0/24",
        "add x",
        "del 10.0.5.7 mac",
    ];
    for line in wrong {
        let error = of(line).unwrap_err().to_string();
        assert!(error.contains("expected") && error.lines().count() == 1, "{line}: {error}");
    }
}

#[test]
fn any_words_give_a_request_or_an_error() {
    let parts = [
        "add",
        "del",
        "show",
        "flush",
        "dev",
        "via",
        "metric",
        "lladdr",
        "02:00:00:00:00:01",
        "default",
        "10.0.0.1",
        "10.0.0.0/8",
        "fe80::1",
        "::/0",
        "eft0",
        "-1",
        "99999999999",
        "\u{0}",
        "é",
        "",
    ];
    let mut random = eft_base::Random::new(7);
    for _ in 0..20_000 {
        let n = random.next_u64() % 7;
        let line: Vec<String> =
            (0..n).map(|_| parts[(random.next_u64() % parts.len() as u64) as usize].to_string()).collect();
        let _ = (address(&line), route(&line, None), neighbour(&line));
    }
}
