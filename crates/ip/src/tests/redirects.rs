//! Redirects (RFC 4861 §8): whose are followed, and for how long.

use super::ipv6::{discovery, icmp6, packet6, solicited};
use super::*;
use core::net::Ipv6Addr;
use eft_base::address::link_local;

const US6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2);
const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const BETTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 7);
const BETTER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 7, 7]);
const FAR6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 8);
const CONFIG6: &str = "[[interface]]\nindex = 0\nname = \"eft0\"\naddresses = [\"fd77::2/64\"]\n\
    [[route]]\ndestination = \"::/0\"\ngateway = \"fe80::1\"\ninterface = \"eft0\"\n";

fn redirect(from: Ipv6Addr, target: Ipv6Addr, destination: Ipv6Addr, mac: Option<MacAddress>) -> Vec<u8> {
    let mut body = [target.octets(), destination.octets()].concat();
    if let Some(mac) = mac {
        body.extend([2, 1]);
        body.extend(mac.0);
    }
    packet6(from, US6, PROTOCOL_ICMPV6, 255, &icmp6(from, US6, 137, 0, [0; 4], &body))
}

/// The better router, or another host at its link address, says where it is.
fn answer(address: Ipv6Addr) -> Vec<u8> {
    let mut frame = discovery(address, US6, 136, 0x60, address, Some(BETTER_MAC));
    frame[6..12].copy_from_slice(&BETTER_MAC.0);
    frame
}

impl Bench {
    /// A router is known, and the addresses are sure.
    fn routed() -> Bench {
        let mut b = Bench::raw(false);
        b.configure(CONFIG6);
        for peer in PEERS {
            b.reborn(peer);
        }
        b.link(true, 60000);
        b.settle(10);
        let ours = link_local(OUR_MAC);
        b.arrive(&discovery(ROUTER, solicited(ours), 135, 0, ours, Some(THEIR_MAC)));
        b.arrive(&discovery(ROUTER, ours, 136, 0x60, ROUTER, Some(THEIR_MAC)));
        b.settle(1);
        b
    }

    fn settle(&mut self, seconds: u64) {
        for _ in 0..seconds * 20 {
            self.pass(Duration::from_millis(50));
            let out = self.drain();
            self.confirm(&out);
        }
    }

    /// The link address of the first hop to `destination`; `None`: it is asked for.
    fn first_hop(&mut self, destination: Ipv6Addr) -> Option<MacAddress> {
        let mut d = datagram(FAR, 0, 8);
        d.source = IpAddr::V6(US6).into();
        d.destination = IpAddr::V6(destination).into();
        self.send(ComponentId::UDP, 1, &d);
        let out = self.drain();
        let sends = out.iter().filter(|m| matches!(m, ToPeer::Nic(0, IpToNic::Send { .. })));
        let frames: Vec<Vec<u8>> = sends.map(|m| self.frame(m)).collect();
        self.confirm(&out);
        let data = frames.iter().find(|f| f[20] == PROTOCOL_UDP)?;
        Some(MacAddress(data[..6].try_into().unwrap()))
    }
}

#[test]
fn a_router_names_a_better_one_until_that_is_silent() {
    let mut b = Bench::routed();
    assert_eq!(b.first_hop(FAR6), Some(THEIR_MAC));
    b.arrive(&redirect(ROUTER, BETTER, FAR6, Some(BETTER_MAC)));
    assert_eq!((b.count(Counter::Redirected), b.first_hop(FAR6)), (1, Some(BETTER_MAC)));
    // Others are reached as before.
    let [.., other] = FAR6.segments();
    let other = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, other + 1);
    assert_eq!(b.first_hop(other), Some(THEIR_MAC));
    // It was asked at its first use, and does not answer: the router is used again, and may redirect again.
    b.settle(12);
    assert_eq!(b.first_hop(FAR6), Some(THEIR_MAC));
    b.arrive(&redirect(ROUTER, BETTER, FAR6, None));
    assert_eq!(b.first_hop(FAR6), None, "its link address is asked for");
    b.arrive(&answer(BETTER));
    b.settle(1);
    assert_eq!(b.first_hop(FAR6), Some(BETTER_MAC));
    // Routes that change are new: the router will say it again.
    b.configure(CONFIG6);
    assert_eq!(b.first_hop(FAR6), Some(THEIR_MAC));
}

#[test]
fn a_destination_may_be_a_neighbour_though_no_prefix_says_so() {
    let mut b = Bench::routed();
    b.arrive(&redirect(ROUTER, FAR6, FAR6, None));
    assert_eq!(b.first_hop(FAR6), None);
    b.arrive(&answer(FAR6));
    b.settle(1);
    assert_eq!(b.first_hop(FAR6), Some(BETTER_MAC));
}

#[test]
fn redirects_of_others_are_not_followed() {
    let mut b = Bench::routed();
    let mut forwarded = redirect(ROUTER, BETTER, FAR6, Some(BETTER_MAC));
    forwarded[21] = 254;
    let mut of_another_host = redirect(ROUTER, BETTER, FAR6, Some(BETTER_MAC));
    of_another_host[6..12].copy_from_slice(&BETTER_MAC.0);
    let neighbour = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1);
    let bad = [
        forwarded,
        of_another_host,
        redirect(BETTER, BETTER, FAR6, Some(BETTER_MAC)),
        redirect(neighbour, BETTER, FAR6, Some(BETTER_MAC)),
        // To us, of a neighbour, and of ourselves.
        redirect(ROUTER, link_local(OUR_MAC), FAR6, None),
        redirect(ROUTER, BETTER, neighbour, Some(BETTER_MAC)),
        redirect(ROUTER, BETTER, US6, Some(BETTER_MAC)),
    ];
    for (n, frame) in bad.iter().enumerate() {
        b.arrive(frame);
        assert_eq!((b.count(Counter::Redirected), b.first_hop(FAR6)), (0, Some(THEIR_MAC)), "{n}");
    }
    let dropped = b.count(Counter::DropDiscovery) + b.count(Counter::DropDiscoverySpoofed);
    assert_eq!(dropped, bad.len() as u64);
}
