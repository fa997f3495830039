use super::*;
use message::parse;

const NOW: Instant = Instant::from_millis(1_000_000);
const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn discovery() -> Discovery {
    Discovery::new("eft0".into(), Identity([1, 2]), Advertised::default())
}

fn prefix(text: &str, valid_s: u32, preferred_s: u32) -> Prefix {
    let cidr: Cidr = text.parse().unwrap();
    let IpAddr::V6(prefix) = cidr.address else { panic!() };
    Prefix { prefix, prefix_len: cidr.prefix_len, on_link: true, autonomous: true, valid_s, preferred_s }
}

fn advertising(prefixes: Vec<Prefix>) -> Advertisement {
    Advertisement { router_s: 1800, prefixes, ..Default::default() }
}

/// A message as radvd sends it: lifetime 1800, one prefix, two name servers.
fn bytes() -> Vec<u8> {
    let mut m = vec![134, 0, 0, 0, 64, 0x48, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    m.extend([1, 1, 2, 0, 0, 0, 0, 1]);
    m.extend([3, 4, 64, 0xc0, 0, 0, 14, 16, 0, 0, 7, 8, 0, 0, 0, 0]);
    m.extend("2001:db8:5::".parse::<Ipv6Addr>().unwrap().octets());
    m.extend([25, 5, 0, 0, 0, 0, 2, 88]);
    m.extend("2001:db8:5::53".parse::<Ipv6Addr>().unwrap().octets());
    m.extend("2001:db8:5::54".parse::<Ipv6Addr>().unwrap().octets());
    m
}

#[test]
fn an_advertisement_is_read() {
    let read = parse(&bytes()).unwrap();
    assert_eq!((read.router_s, read.preference, read.managed, read.other), (1800, 1, false, true));
    assert_eq!(read.prefixes, [prefix("2001:db8:5::/64", 3600, 1800)]);
    let servers = ["2001:db8:5::53", "2001:db8:5::54"].map(|a| (a.parse::<Ipv6Addr>().unwrap(), 600));
    assert_eq!(read.name_servers, servers);
}

#[test]
fn what_is_cut_short_or_has_an_empty_option_is_none() {
    let whole = bytes();
    let ends = [16, 24, 56, 96];
    for len in 0..whole.len() {
        assert_eq!(parse(&whole[..len]).is_some(), ends.contains(&len), "{len} bytes");
    }
    let mut empty = whole.clone();
    empty[17] = 0;
    assert_eq!(parse(&empty), None);
    let mut code = whole;
    code[1] = 1;
    assert_eq!(parse(&code), None);
}

#[test]
fn a_prefix_gives_an_address_a_route_and_a_router_while_they_live() {
    let mut d = discovery();
    d.receive(NOW, ROUTER, &parse(&bytes()).unwrap());
    let known = crate::known::Known { advertised: d.advertised.clone(), ..Default::default() };
    let [address] = known.addresses()[..] else { panic!("{known:?}") };
    assert_eq!(address.cidr.network().to_string(), "2001:db8:5::/64");
    assert_eq!((address.valid, address.preferred), (Some(NOW + seconds(3600)), Some(NOW + seconds(1800))));
    let routes: Vec<_> =
        known.routes().iter().map(|r| (r.destination.to_string(), r.gateway, r.metric)).collect();
    assert_eq!(routes, [("2001:db8:5::/64".into(), None, 1024), ("::/0".into(), Some(ROUTER.into()), 1023)]);
    assert_eq!(known.name_servers().len(), 2);
    // The name servers end first, then the router, at last the prefix.
    let mut random = Random::new(1);
    for (end, left) in [(600, (1, 1, 1, 0)), (1800, (0, 1, 1, 0)), (3600, (0, 0, 0, 0))] {
        let at = NOW + seconds(end);
        assert_eq!(d.deadline(Instant(at.0 - 1)), Some(at));
        d.expire(at, &mut random);
        let a = &d.advertised;
        assert_eq!(
            (a.routers.len(), a.on_link.len(), a.addresses.len(), a.name_servers.len()),
            left,
            "{end}"
        );
    }
}

#[test]
fn only_sound_prefixes_give_addresses() {
    let mut d = discovery();
    d.receive(
        NOW,
        ROUTER,
        &advertising(vec![
            prefix("fe80::/64", 3600, 1800),
            prefix("ff02::/64", 3600, 1800),
            prefix("::/64", 3600, 1800),
            prefix("2001:db8:1::/48", 3600, 1800),
            prefix("2001:db8:2::/64", 1800, 3600),
            prefix("2001:db8:3::/64", 0, 0),
            Prefix { autonomous: false, ..prefix("2001:db8:4::/64", 3600, 1800) },
        ]),
    );
    assert_eq!(d.advertised.addresses, []);
    let networks: Vec<_> =
        d.advertised.on_link.iter().map(|p| (p.network.segments()[2], p.prefix_len)).collect();
    assert_eq!(networks, [(1, 48), (2, 64), (4, 64)]);
    // Off the link: the address alone.
    d.receive(
        NOW,
        ROUTER,
        &advertising(vec![Prefix { on_link: false, ..prefix("2001:db8:6::/64", 3600, 1800) }]),
    );
    assert_eq!(d.advertised.prefix_len_of(d.advertised.addresses[0].address), 128);
}

#[test]
fn an_advertisement_shortens_a_life_to_two_hours_at_most() {
    let mut d = discovery();
    let mut say = |valid_s| {
        d.receive(NOW, ROUTER, &advertising(vec![prefix("2001:db8::/64", valid_s, 0)]));
        d.advertised.addresses[0].valid.map(|at| (at - NOW).as_secs())
    };
    assert_eq!(say(3600), Some(3600));
    // (e) 2: less than two hours remain, and it says less: ignored.
    assert_eq!(say(60), Some(3600));
    // (e) 1: longer than what remains, or than two hours.
    assert_eq!(say(5000), Some(5000));
    assert_eq!(say(90_000), Some(90_000));
    assert_eq!(say(8000), Some(8000));
    // (e) 3: two hours.
    assert_eq!(say(1), Some(7200));
    assert_eq!(say(u32::MAX), None);
    assert_eq!(say(1), Some(7200));
}

#[test]
fn a_router_that_resigns_goes() {
    let mut d = discovery();
    d.receive(NOW, ROUTER, &advertising(vec![]));
    assert_eq!(d.advertised.routers.len(), 1);
    d.receive(NOW, ROUTER, &Advertisement::default());
    assert_eq!(d.advertised.routers, []);
}

#[test]
fn floods_find_limits() {
    let mut d = discovery();
    for n in 0..1000u16 {
        let router = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, n);
        let mut a = advertising(vec![prefix(&format!("2001:db8:{n:x}::/64"), 3600, 1800)]);
        a.name_servers = vec![(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n), 600)];
        d.receive(NOW, router, &a);
    }
    let a = &d.advertised;
    let lens = (a.routers.len(), a.on_link.len(), a.addresses.len(), a.name_servers.len());
    assert_eq!(lens, (ROUTERS_MAX, PREFIXES_MAX, ADDRESSES_MAX, NAME_SERVERS_MAX));
}

#[test]
fn routers_are_solicited_at_growing_intervals_until_one_answers() {
    let (mut d, mut random) = (discovery(), Random::new(7));
    d.start(NOW, &mut random);
    let mut at = d.deadline(NOW).unwrap();
    assert!(at - NOW < seconds(1));
    let mut waits = Vec::new();
    for _ in 0..14 {
        assert!(d.expire(at, &mut random));
        let next = d.deadline(at).unwrap();
        waits.push((next - at).as_secs_f64());
        at = next;
    }
    let ideal = |n: i32| (4.0 * 2f64.powi(n)).min(3600.0);
    assert!(
        waits.iter().enumerate().all(|(n, w)| (0.89..1.11).contains(&(w / ideal(n as i32)))),
        "{waits:?}"
    );
    d.receive(at, ROUTER, &advertising(vec![]));
    assert!(!d.expire(at, &mut random));
    assert_eq!(d.deadline(at), Some(at + seconds(1800)));
}

#[test]
fn another_hosts_address_is_replaced_a_few_times() {
    let mut d = discovery();
    let a = advertising(vec![prefix("2001:db8::/64", 3600, 1800)]);
    d.receive(NOW, ROUTER, &a);
    let mut tried = Vec::new();
    while let Some(address) = d.advertised.addresses.first().map(|a| a.address) {
        assert!(!tried.contains(&address));
        tried.push(address);
        d.conflict(address);
    }
    assert_eq!(tried.len(), 1 + RETRIES_MAX as usize);
    d.receive(NOW, ROUTER, &a);
    assert_eq!(d.advertised.addresses, []);
}

#[test]
fn a_successor_goes_on_from_the_text() {
    let mut d = discovery();
    d.receive(NOW, ROUTER, &parse(&bytes()).unwrap());
    let known = crate::known::Known { advertised: d.advertised.clone(), ..Default::default() };
    let all: crate::known::All = [("eft0".to_string(), known)].into();
    assert_eq!(crate::known::parse(&crate::known::text(&all)), all);
    assert_eq!(crate::known::parse(b"nonsense"), Default::default());
    let newer = br#"{"eft0":{"lease":null,"more":[1]}}"#;
    assert_eq!(crate::known::parse(newer)["eft0"], Default::default());
}

#[test]
fn domains_of_the_search_list_live_and_end() {
    let mut m = bytes();
    m.extend(b"\x1f\x03\0\0\0\0\x02\x58\x03lan\0\x07example\0\0\0");
    let mut d = discovery();
    d.receive(NOW, ROUTER, &parse(&m).unwrap());
    let known = crate::known::Known { advertised: d.advertised.clone(), ..Default::default() };
    assert_eq!(known.search(), ["lan", "example"]);
    // A lifetime of zero takes one away, and time does.
    let end = Advertisement { search: vec![("lan".into(), 0)], ..Default::default() };
    d.receive(NOW, ROUTER, &end);
    assert_eq!(d.advertised.search.len(), 1);
    d.expire(NOW + seconds(600), &mut Random::new(1));
    assert_eq!(d.advertised.search.len(), 0);
}
