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
