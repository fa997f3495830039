//! DHCP clients through the engine: messages before there is an address, trial of an address, and what is not believed.

use super::*;
use core::net::Ipv6Addr;
use eft_autoconf::known::{self, All};
use eft_component::Answer;

const CONFIG: &str = "[[interface]]\nindex = 0\nname = \"eft0\"\naddresses = []\nauto = [\"dhcp4\"]\n";
const CONFIG6: &str = "[[interface]]\nindex = 0\nname = \"eft0\"\naddresses = []\nauto = [\"dhcp6\"]\n";
const LENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 9);
const LENT6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 9);
/// Where a message begins in a frame: behind the headers of Ethernet, IPv4 and UDP.
const AT: usize = 14 + 20 + 8;
const AT6: usize = 14 + 40 + 8;

impl Bench {
    fn asking(config: &str) -> Bench {
        let mut b = Bench::raw(true);
        b.configure(config);
        for peer in PEERS {
            b.reborn(peer);
        }
        b.link(true, 60000);
        let out = b.drain();
        b.confirm(&out);
        b
    }

    /// The frames that are sent within this time, and what the supervisor is told.
    fn within(&mut self, time: Duration) -> (Vec<Vec<u8>>, Vec<All>) {
        self.pass(time);
        let out = self.drain();
        let asked = out.iter().any(|m| matches!(m, ToPeer::Filter(_)));
        assert!(!asked, "the filter is not asked");
        let sends = out.iter().filter(|m| matches!(m, ToPeer::Nic(0, IpToNic::Send { .. })));
        let frames = sends.map(|m| self.frame(m)).collect();
        let told = out.iter().filter_map(|m| match m {
            ToPeer::Answer(Answer { key, value }) if key == "autoconf" => Some(known::parse(value)),
            _ => None,
        });
        let told = told.collect();
        self.confirm(&out);
        (frames, told)
    }

    /// The server answers a client's frame.
    fn answer(&mut self, request: &[u8], kind: u8) -> PacketRef {
        let frame = server(request, kind);
        self.arrive(&frame)
    }

    /// The address is acknowledged; it is being tried out.
    fn acknowledged() -> Bench {
        let mut b = Bench::asking(CONFIG);
        let (frames, _) = b.within(Duration::from_secs(1));
        b.answer(&frames[0], 2);
        let (frames, _) = b.within(Duration::ZERO);
        b.answer(&frames[0], 5);
        b
    }
}

/// A server's answer to a client's frame, which goes to the address that it lends.
fn server(request: &[u8], kind: u8) -> Vec<u8> {
    let mut m = request[AT..AT + 240].to_vec();
    m[0] = 2;
    m[16..20].copy_from_slice(&LENT.octets());
    m.extend([53, 1, kind, 54, 4, 10, 77, 0, 1, 51, 4, 0, 0, 2, 88, 1, 4, 255, 255, 255, 0]);
    m.extend([3, 4, 10, 77, 0, 1, 6, 4, 10, 77, 0, 53, 255]);
    let mut frame = packet(PROTOCOL_UDP, 0, 7, &udp(67, 68, &m));
    frame[30..34].copy_from_slice(&LENT.octets());
    fix_header(&mut frame);
    frame
}

#[test]
fn an_address_is_lent_before_there_is_any() {
    let mut b = Bench::asking(CONFIG);
    let (frames, _) = b.within(Duration::from_secs(1));
    let [discover] = &frames[..] else { panic!("{} frames", frames.len()) };
    assert_eq!((&discover[..6], &discover[12..14]), (&[255; 6][..], &[8, 0][..]));
    assert_eq!((&discover[26..30], &discover[30..34]), (&[0; 4][..], &[255; 4][..]));
    assert_eq!(&discover[34..38], &[0, 68, 0, 67]);
    assert_eq!(discover[AT + 28..AT + 34], OUR_MAC.0);
    assert!(checksum_holds(discover));
    b.answer(discover, 2);
    let (frames, _) = b.within(Duration::ZERO);
    let [request] = &frames[..] else { panic!("{} frames", frames.len()) };
    b.answer(request, 5);
    // It is tried out by ARP, from no address; then the supervisor is told.
    let (frames, told) = b.within(Duration::from_millis(899));
    assert!(frames.len() == 3 && told.is_empty());
    for probe in &frames {
        assert_eq!(
            (&probe[12..14], &probe[28..32], &probe[38..42]),
            (&[8, 6][..], &[0; 4][..], &LENT.octets()[..])
        );
    }
    let (_, told) = b.within(Duration::from_millis(1));
    let known = &told[0]["eft0"];
    assert_eq!(known.addresses()[0].cidr.to_string(), "10.77.0.9/24");
    assert_eq!(known.routes()[0].gateway, Some(THEM.into()));
    assert_eq!(known.name_servers(), [IpAddr::from([10, 77, 0, 53])]);
    assert_eq!((b.count(Counter::DhcpOut), b.count(Counter::DhcpIn)), (2, 2));
}

#[test]
fn what_no_server_sent_to_this_client_is_not_believed() {
    let mut b = Bench::asking(CONFIG);
    let (frames, _) = b.within(Duration::from_secs(1));
    let good = server(&frames[0], 2);
    // Other ports, another exchange, another client, a fragment, a wrong length.
    for (at, value) in [(35, 66), (37, 69), (AT + 4, !good[AT + 4]), (AT + 30, 77), (20, 0x20), (39, 255)] {
        let mut bad = good.clone();
        bad[at] = value;
        fix_header(&mut bad);
        b.arrive(&bad);
    }
    b.arrive(&good[..200]);
    let (frames, told) = b.within(Duration::from_secs(2));
    assert_eq!((frames.len(), told.len()), (0, 0), "nothing is requested");
    b.arrive(&good);
    assert_eq!(b.within(Duration::ZERO).0.len(), 1);
    // An interface that has its address from elsewhere.
    let mut b = Bench::new(true);
    b.arrive(&good);
    b.pass(Duration::from_secs(1));
    assert_eq!(b.count(Counter::DhcpIn), 0);
}

#[test]
fn an_address_that_another_host_has_is_declined() {
    for claim in [(THEIR_MAC, LENT, US), (THEIR_MAC, Ipv4Addr::UNSPECIFIED, LENT)] {
        let mut b = Bench::acknowledged();
        b.within(Duration::from_millis(400));
        let (mac, from, to) = claim;
        b.arp(ARP_REQUEST, mac, from, to);
        let (frames, told) = b.within(Duration::from_millis(100));
        let [decline] = &frames[..] else { panic!("{} frames", frames.len()) };
        assert_eq!((decline[AT + 242], told.len()), (4, 0), "a decline, and no address");
        let (frames, told) = b.within(Duration::from_secs(9));
        assert_eq!((frames.len(), told.len()), (0, 0), "RFC 2131 §3.1: it waits");
        assert_eq!(b.count(Counter::AddressesGivenUp), 1);
    }
    // Our own probe, returned by a bridge, is no claim.
    let mut b = Bench::acknowledged();
    b.within(Duration::from_millis(400));
    b.arp(ARP_REQUEST, OUR_MAC, Ipv4Addr::UNSPECIFIED, LENT);
    assert_eq!(b.within(Duration::from_secs(1)).1.len(), 1);
}

#[test]
fn what_was_lent_is_given_back_at_the_end() {
    let mut b = Bench::acknowledged();
    b.within(Duration::from_secs(1));
    b.configure(&CONFIG.replace("[]", "[\"10.77.0.9/24\"]"));
    b.within(Duration::from_secs(1));
    b.arp(ARP_REQUEST, THEIR_MAC, THEM, LENT);
    b.within(Duration::from_secs(1));
    let event = Configure { key: "release".into(), value: Vec::new() };
    b.with(|ip, cx, out| ip.event(cx, event, out));
    let (frames, told) = b.within(Duration::ZERO);
    let release = frames.iter().find(|f| f[12..14] == [8, 0]).expect("a message");
    assert_eq!((release[AT + 242], &release[26..34]), (7, &[10, 77, 0, 9, 10, 77, 0, 1][..]));
    assert_eq!(told, [All::new()]);
}

#[test]
fn a_client_of_ipv6_asks_all_servers_from_its_link_local_address() {
    let mut b = Bench::asking(CONFIG6);
    let (frames, _) = b.within(Duration::from_secs(5));
    let is_ours = |f: &&Vec<u8>| f[12..14] == [0x86, 0xdd] && f[20] == PROTOCOL_UDP;
    let solicit = frames.iter().find(is_ours).expect("a solicitation");
    assert_eq!(solicit[..6], [0x33, 0x33, 0, 1, 0, 2]);
    let ours = eft_base::address::link_local(OUR_MAC);
    assert_eq!((&solicit[22..38], &solicit[54..58]), (&ours.octets()[..], &[2, 34, 2, 35][..]));
    assert_eq!(solicit[AT6], 1);
    // An advertisement of a server, with the best preference, is requested at once.
    let duid = &solicit[AT6 + 4..AT6 + 4 + 4 + 18];
    let mut m = vec![2, solicit[AT6 + 1], solicit[AT6 + 2], solicit[AT6 + 3]];
    m.extend(duid);
    m.extend([0, 2, 0, 4, 9, 9, 9, 9, 0, 7, 0, 1, 255]);
    let at = solicit.windows(4).position(|w| w == [0, 3, 0, 12]).expect("an association");
    m.extend([0, 3, 0, 40]);
    m.extend(&solicit[at + 4..at + 8]);
    m.extend([0; 8]);
    m.extend([0, 5, 0, 24]);
    m.extend(LENT6.octets());
    m.extend([0, 0, 1, 0, 0, 0, 2, 0]);
    let server = eft_base::address::link_local(THEIR_MAC);
    let mut datagram = vec![2, 35, 2, 34, 0, 8 + m.len() as u8, 0, 0];
    datagram.extend(&m);
    let sum = Checksum::new()
        .add_pseudo_header(server.into(), ours.into(), PROTOCOL_UDP, datagram.len() as u32)
        .add_bytes(&datagram)
        .finish();
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    b.arrive(&ipv6::packet6(server, ours, PROTOCOL_UDP, 1, &datagram));
    let (frames, _) = b.within(Duration::ZERO);
    let request = frames.iter().find(is_ours).expect("a request");
    assert_eq!(request[AT6], 3);
    assert!(request.windows(16).any(|w| w == LENT6.octets()));
}
