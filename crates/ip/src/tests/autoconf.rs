//! Interfaces that get addresses from routers: what is asked, what is believed, and what the supervisor is told.

use super::ipv6::{discovery, icmp6, packet6, solicited};
use super::*;
use core::net::Ipv6Addr;
use eft_autoconf::known::{self, All, Known};
use eft_base::address::link_local;
use eft_component::Answer;

const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const FAR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 8);
const CONFIG: &str = "[[interface]]\nindex = 0\nname = \"eft0\"\naddresses = []\nauto = [\"slaac\"]\n";

/// One prefix that lives for an hour, half of it preferred.
fn advertisement(from: Ipv6Addr, hop_limit: u8, prefix: &str) -> Vec<u8> {
    let mut body = vec![0; 8];
    body.extend([3, 4, 64, 0xc0, 0, 0, 14, 16, 0, 0, 7, 8, 0, 0, 0, 0]);
    body.extend(prefix.parse::<Ipv6Addr>().unwrap().octets());
    let message = icmp6(from, ALL_NODES, ICMPV6_ROUTER_ADVERTISEMENT, 0, [64, 0, 7, 8], &body);
    packet6(from, ALL_NODES, PROTOCOL_ICMPV6, hop_limit, &message)
}

impl Bench {
    fn learning() -> Bench {
        let mut b = Bench::raw(true);
        b.tell("identity", b"00000000000000010000000000000002");
        b.configure(CONFIG);
        for peer in PEERS {
            b.reborn(peer);
        }
        b.link(true, 60000);
        let out = b.drain();
        b.confirm(&out);
        b
    }

    fn tell(&mut self, key: &str, value: &[u8]) {
        let event = Configure { key: key.into(), value: value.into() };
        self.with(|ip, cx, out| ip.event(cx, event, out));
    }

    /// What the supervisor is told, and the frames that are sent.
    fn told(&mut self) -> (Vec<All>, Vec<Vec<u8>>) {
        let out = self.drain();
        let sends = out.iter().filter(|m| matches!(m, ToPeer::Nic(0, IpToNic::Send { .. })));
        let frames = sends.map(|m| self.frame(m)).collect();
        self.confirm(&out);
        let told = out.iter().filter_map(|m| match m {
            ToPeer::Answer(Answer { key, value }) if key == "autoconf" => Some(known::parse(value)),
            _ => None,
        });
        (told.collect(), frames)
    }

    /// The source that ip chooses for a connection.
    fn source_toward(&mut self, destination: IpAddr) -> Option<IpAddr> {
        let before = self.drain();
        self.confirm(&before);
        let unspecified = IpAddr::V6(Ipv6Addr::UNSPECIFIED).into();
        let m = TransportToIp::Route {
            request: request(1),
            source: unspecified,
            destination: destination.into(),
        };
        self.transport_says(ComponentId::TCP, m);
        let out = self.drain();
        out.iter().find_map(|m| match m {
            ToPeer::Transport(_, IpToTransport::Routed { errno: 0, source, .. }) => Some((*source).into()),
            _ => None,
        })
    }

    /// Does what the supervisor does when it is told something: configures what is known.
    fn put_in_force(&mut self, known: &Known) {
        let addresses: Vec<String> = known.addresses().iter().map(|a| format!("\"{}\"", a.cidr)).collect();
        let mut text = CONFIG.replace("addresses = []", &format!("addresses = [{}]", addresses.join(", ")));
        for r in known.routes().iter().filter_map(|r| Some((r.destination, r.gateway?))) {
            text += &format!(
                "[[route]]\ndestination = \"{}\"\ngateway = \"{}\"\ninterface = \"eft0\"\n",
                r.0, r.1
            );
        }
        self.configure(&text);
        assert_eq!(self.ip.last_error(), None);
    }
}

fn solicitations(frames: &[Vec<u8>]) -> Vec<&Vec<u8>> {
    frames.iter().filter(|f| f[20] == PROTOCOL_ICMPV6 && f[54] == ICMPV6_ROUTER_SOLICITATION).collect()
}

#[test]
fn routers_are_asked_at_growing_intervals_until_one_answers() {
    let mut b = Bench::learning();
    let mut times = Vec::new();
    for _ in 0..300 {
        b.pass(Duration::from_millis(100));
        let frames = b.told().1;
        for f in solicitations(&frames) {
            times.push(b.now);
            assert_eq!(f[..6], [0x33, 0x33, 0, 0, 0, 2], "to all routers");
            // From our link-local address, of which no other host has said that it is its own.
            if times.len() > 1 {
                assert_eq!((f[22..38] == link_local(OUR_MAC).octets(), &f[62..64]), (true, &[1, 1][..]));
                assert_eq!(f[64..70], OUR_MAC.0);
            }
        }
    }
    assert_eq!(times.len(), 4, "at 0..1, then after about 4, 8 and 16 s");
    b.arrive(&advertisement(ROUTER, 255, "2001:db8:5::"));
    b.told();
    b.pass(Duration::from_secs(100));
    assert_eq!(solicitations(&b.told().1).len(), 0);
}

#[test]
fn what_a_router_advertises_is_told_and_then_in_force() {
    let mut b = Bench::learning();
    b.arrive(&advertisement(ROUTER, 255, "2001:db8:5::"));
    let (told, _) = b.told();
    let [all] = &told[..] else { panic!("{told:?}") };
    let known = &all["eft0"];
    let [address] = known.addresses()[..] else { panic!("{known:?}") };
    b.put_in_force(known);
    // It asks whether another host has the address.
    let IpAddr::V6(ours) = address.cidr.address else { panic!() };
    let (_, frames) = b.told();
    let asks = |f: &&Vec<u8>| f[54] == ICMPV6_NEIGHBOUR_SOLICITATION && f[62..78] == ours.octets();
    assert_eq!(frames.iter().filter(asks).count(), 1);
    assert_eq!(b.source_toward(FAR.into()), Some(ours.into()));
    // The same again changes lifetimes, which are told at most twice in a second.
    for _ in 0..100 {
        b.now += Duration::from_millis(10);
        b.arrive(&advertisement(ROUTER, 255, "2001:db8:5::"));
    }
    let again = b.told().0.len();
    assert!((1..=3).contains(&again), "told {again} times");
}

#[test]
fn what_no_router_on_the_link_sent_is_not_believed() {
    let mut b = Bench::learning();
    b.arrive(&advertisement(ROUTER, 254, "2001:db8:5::"));
    b.arrive(&advertisement(FAR, 255, "2001:db8:5::"));
    b.arrive(&advertisement(link_local(OUR_MAC), 255, "2001:db8:5::"));
    let mut short = advertisement(ROUTER, 255, "2001:db8:5::");
    short.truncate(short.len() - 1);
    b.arrive(&short);
    let mut wrong = advertisement(ROUTER, 255, "2001:db8:5::");
    wrong[60] ^= 1;
    b.arrive(&wrong);
    b.pass(Duration::from_secs(1));
    assert_eq!((b.told().0, b.count(Counter::RouterAdvertisements)), (vec![], 0));
    // An interface that shall not learn.
    let mut b = Bench::new(true);
    b.arrive(&advertisement(ROUTER, 255, "2001:db8:5::"));
    assert_eq!(b.told().0, []);
}

#[test]
fn a_deprecated_address_gives_way_and_one_that_ends_is_told() {
    let mut b = Bench::learning();
    b.arrive(&advertisement(ROUTER, 255, "2001:db8:5::"));
    b.told();
    b.pass(Duration::from_secs(1000));
    b.arrive(&advertisement(ROUTER, 255, "2001:db8:6::"));
    let (told, _) = b.told();
    let known = told.last().unwrap()["eft0"].clone();
    b.put_in_force(&known);
    b.told();
    let [old, new] = known.addresses()[..] else { panic!("{known:?}") };
    let near = |a: IpAddr| match a {
        IpAddr::V6(a) => IpAddr::V6((a.to_bits() ^ 1).into()),
        IpAddr::V4(_) => a,
    };
    assert_eq!(b.source_toward(near(old.cidr.address)), Some(old.cidr.address));
    // The first one's preferred lifetime of 1800 s ends, then its valid one of 3600 s.
    b.pass(Duration::from_secs(801));
    assert_eq!(b.source_toward(near(old.cidr.address)), Some(new.cidr.address));
    b.told();
    b.pass(Duration::from_secs(1800));
    let (told, _) = b.told();
    let left: Vec<_> = told.last().unwrap()["eft0"].addresses().iter().map(|a| a.cidr).collect();
    assert_eq!(left, [new.cidr]);
}

#[test]
fn an_address_that_another_host_has_is_replaced_by_another_of_the_network() {
    let mut b = Bench::learning();
    b.arrive(&advertisement(ROUTER, 255, "2001:db8:5::"));
    let known = b.told().0.remove(0)["eft0"].clone();
    b.put_in_force(&known);
    b.told();
    let taken = known.addresses()[0].cidr;
    let IpAddr::V6(a) = taken.address else { panic!() };
    // RFC 4862 §5.4.3: another host tries the same address.
    b.arrive(&discovery(Ipv6Addr::UNSPECIFIED, solicited(a), ICMPV6_NEIGHBOUR_SOLICITATION, 0, a, None));
    b.pass(Duration::from_millis(600));
    let told = b.told().0;
    let [all] = &told[..] else { panic!("{told:?}") };
    let now = all["eft0"].addresses()[0].cidr;
    assert!(now != taken && now.network() == taken.network(), "{now}");
    assert_eq!(b.count(Counter::AddressesGivenUp), 1);
}

#[test]
fn a_successor_goes_on_with_what_was_known() {
    let mut b = Bench::learning();
    b.arrive(&advertisement(ROUTER, 255, "2001:db8:5::"));
    let all = b.told().0.remove(0);
    let mut next = Bench::raw(true);
    next.now = b.now + Duration::from_secs(3599);
    next.tell("autoconf", &known::text(&all));
    next.tell("identity", b"00000000000000010000000000000002");
    next.put_in_force(&all["eft0"]);
    for peer in PEERS {
        next.reborn(peer);
    }
    next.link(true, 60000);
    // It tells that the router's lifetime is over, and not that the address's is.
    next.pass(Duration::from_millis(1));
    next.pass(Duration::from_secs(2));
    let told = next.told().0;
    assert_eq!(told.last(), Some(&All::new()));
    // Nonsense is as if nothing were known.
    for nonsense in [&b"{"[..], b"[]", b"{\"eft0\":{\"advertised\":7}}", b"\xff"] {
        let mut b = Bench::raw(true);
        b.tell("autoconf", nonsense);
        b.configure(CONFIG);
        assert_eq!(b.ip.last_error(), None);
    }
}
