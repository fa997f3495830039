use super::*;

fn routes() -> Routes {
    let text = b"[[interface]]\nindex = 0\nname = \"a\"\naddresses = [\"10.0.0.2/24\", \"10.0.0.3/24\"]\n\
            [[interface]]\nindex = 1\nname = \"b\"\naddresses = [\"192.168.1.2/16\"]\n\
            [[route]]\ndestination = \"0.0.0.0/0\"\ngateway = \"10.0.0.1\"\n\
            [[route]]\ndestination = \"10.0.0.128/25\"\ngateway = \"192.168.9.9\"\n";
    Routes::new(&Config::parse(text).unwrap())
}

#[test]
fn the_longest_prefix_wins() {
    let r = routes();
    let a = |s: &str| s.parse::<IpAddr>().unwrap();
    let way = |s: &str| r.hop(a("10.0.0.2"), a(s)).map(|h| (h.interface, h.next));
    assert_eq!(way("10.0.0.9"), Some((0, Next::Neighbour(a("10.0.0.9")))));
    assert_eq!(way("10.0.0.129"), Some((1, Next::Neighbour(a("192.168.9.9")))));
    assert_eq!(way("8.8.8.8"), Some((0, Next::Neighbour(a("10.0.0.1")))));
    assert_eq!(way("192.168.44.1"), Some((1, Next::Neighbour(a("192.168.44.1")))));
    assert_eq!(way("10.0.0.3"), Some((255, Next::Local)));
    assert_eq!(way("255.255.255.255"), Some((0, Next::Group(MacAddress::BROADCAST))));
    assert_eq!(way("192.168.255.255"), Some((1, Next::Group(MacAddress::BROADCAST))));
    assert_eq!(way("224.129.2.3"), Some((0, Next::Group(MacAddress([1, 0, 0x5e, 1, 2, 3])))));
    assert_eq!(way("127.0.0.1"), None);
    assert_eq!(way("0.0.0.0"), None);
    let hop = r.hop(a("10.0.0.2"), a("8.8.8.8")).unwrap();
    assert_eq!(r.source_for(hop, a("8.8.8.8")), Some(a("10.0.0.2")));
    assert!(!r.is_on_link(0, a("10.0.0.255")));
    assert!(r.is_on_link(0, a("10.0.0.200")));
    assert!(!r.is_on_link(1, a("10.0.0.200")));
}

#[test]
fn of_equal_prefixes_the_lowest_metric_wins() {
    let text = |metric: u32| {
        alloc::format!(
            "[[interface]]\nindex = 0\nname = \"a\"\naddresses = [\"10.0.0.2/24\", \"fd00::2/64\"]\n\
             [[route]]\ndestination = \"0.0.0.0/0\"\ngateway = \"10.0.0.1\"\nmetric = 10\n\
             [[route]]\ndestination = \"0.0.0.0/0\"\ngateway = \"10.0.0.9\"\nmetric = {metric}\n\
             [[route]]\ndestination = \"::/0\"\ngateway = \"fe80::9\"\ninterface = \"a\"\n\
             [[route]]\ndestination = \"172.16.0.0/12\"\ninterface = \"a\"\n"
        )
    };
    let a = |s: &str| s.parse::<IpAddr>().unwrap();
    let way = |metric, to: &str| {
        let r = Routes::new(&Config::parse(text(metric).as_bytes()).unwrap());
        r.hop(a("10.0.0.2"), a(to)).map(|h| h.next)
    };
    assert_eq!(way(9, "8.8.8.8"), Some(Next::Neighbour(a("10.0.0.9"))));
    assert_eq!(way(11, "8.8.8.8"), Some(Next::Neighbour(a("10.0.0.1"))));
    // Of equal metrics the first.
    assert_eq!(way(10, "8.8.8.8"), Some(Next::Neighbour(a("10.0.0.1"))));
    // A router's link-local address, in its link's zone.
    let router = in_zone(a("fe80::9"), 0);
    assert_eq!(way(10, "2001:db8::1"), Some(Next::Neighbour(router)));
    // Without a gateway the destination is a neighbour, and its answers count.
    assert_eq!(way(10, "172.16.5.5"), Some(Next::Neighbour(a("172.16.5.5"))));
    let r = Routes::new(&Config::parse(text(10).as_bytes()).unwrap());
    assert!(r.is_on_link(0, a("172.16.5.5")) && !r.is_on_link(0, a("8.8.8.8")));
}

#[test]
fn a_route_may_take_smaller_packets_than_its_link() {
    let text = |mtu: u16| {
        alloc::format!(
            "[[interface]]\nindex = 0\nname = \"a\"\naddresses = [\"10.0.0.2/24\", \"fd00::2/64\"]\n\
             [[route]]\ndestination = \"10.9.0.0/16\"\ngateway = \"10.0.0.1\"\nmtu = {mtu}\n\
             [[route]]\ndestination = \"::/0\"\ngateway = \"fd00::1\"\nmtu = 1280\n"
        )
    };
    let r = Routes::new(&Config::parse(text(1400).as_bytes()).unwrap());
    let a = |s: &str| s.parse::<IpAddr>().unwrap();
    let mtu = |to: &str| r.hop(a("0.0.0.0"), a(to)).map(|hop| hop.mtu);
    assert_eq!(mtu("10.9.0.1"), Some(1400));
    assert_eq!(mtu("10.0.0.1"), Some(u16::MAX));
    assert_eq!(mtu("2001:db8::1"), Some(1280));
    assert_eq!(
        Config::parse(text(575).as_bytes()).unwrap_err().to_string(),
        "route to 10.9.0.0/16: the MTU is at least 576 bytes, not 575"
    );
}

#[test]
fn a_route_says_the_mss_to_announce_and_the_initial_window() {
    let text = |metrics: &str| {
        alloc::format!(
            "[[interface]]\nindex = 0\nname = \"a\"\naddresses = [\"10.0.0.2/24\"]\n\
             [[route]]\ndestination = \"10.9.0.0/16\"\ngateway = \"10.0.0.1\"\n{metrics}\n"
        )
    };
    let parsed = |metrics: &str| Config::parse(text(metrics).as_bytes());
    let r = Routes::new(&parsed("advmss = 600\ninitcwnd = 11").unwrap());
    let hints = |to: &str| r.hints(to.parse().unwrap());
    assert_eq!(hints("10.9.0.1"), Hints { mss: 600, initial_segments: 11 });
    assert_eq!(hints("10.0.0.1"), Hints::default());
    assert_eq!(hints("10.8.0.1"), Hints::default());
    for (metrics, complaint) in [
        ("advmss = 87", "its MSS is from 88 to 65495 bytes, not 87"),
        ("advmss = 65496", "its MSS is from 88 to 65495 bytes, not 65496"),
        ("initcwnd = 0", "its initial window has at least one segment"),
    ] {
        let told = parsed(metrics).unwrap_err().to_string();
        assert_eq!(told, alloc::format!("route to 10.9.0.0/16: {complaint}"));
    }
}
