//! Groups: which packets are taken, what routers are told, and copies of our own packets.

use super::*;
use core::net::Ipv6Addr;
use eft_messages::transport::{SEND_HOST_ONLY, SEND_NO_LOOP, membership};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
const GROUP6: Ipv6Addr = Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0, 7);
const CONFIG6: &str =
    "[[interface]]\nindex = 0\nname = \"eft0\"\naddresses = [\"10.77.0.2/24\", \"fd77::2/64\"]\n";

impl Bench {
    /// A step of udp's list, which ip must answer.
    fn step(&mut self, order: u32, step: u8, group: IpAddr, source: IpAddr) {
        let (group, source) = (group.into(), source.into());
        let message = TransportToIp::Group { order, step, interface: 0, group, source };
        self.transport_says(ComponentId::UDP, message);
        let answers = self.drain();
        assert_eq!(answers, [ToPeer::Transport(ComponentId::UDP, IpToTransport::Grouped { order })]);
    }

    fn join(&mut self, order: u32, group: IpAddr) {
        self.step(order, membership::EXCLUDE, group, group);
    }

    /// The frames that leave in this time, without their Ethernet headers; all are confirmed.
    fn said(&mut self, time: Duration) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let end = self.now + time;
        while self.now < end {
            self.pass(Duration::from_millis(50));
            let out = self.drain();
            for m in out.iter().filter(|m| matches!(m, ToPeer::Nic(0, IpToNic::Send { .. }))) {
                frames.push(self.frame(m)[14..].to_vec());
            }
            self.confirm(&out);
        }
        frames
    }

    fn arrive_at(&mut self, group: Ipv4Addr, protocol: u8, body: &[u8]) -> Vec<ToPeer> {
        let mut f = packet(protocol, 0, 1, body);
        let [_, b, c, d] = group.octets();
        f[..6].copy_from_slice(&[1, 0, 0x5e, b & 0x7f, c, d]);
        f[30..34].copy_from_slice(&group.octets());
        fix_header(&mut f);
        self.arrive(&f);
        self.drain()
    }
}

fn igmp(body: &[u8]) -> Vec<u8> {
    let mut b = body.to_vec();
    let sum = Checksum::new().add_bytes(&b).finish();
    b[2..4].copy_from_slice(&sum.to_be_bytes());
    b
}

fn general_query() -> Vec<u8> {
    igmp(&[0x11, 10, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0])
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn is_delivered(out: &[ToPeer]) -> bool {
    out.iter().any(|m| {
        matches!(m, ToPeer::Transport(ComponentId::UDP, IpToTransport::Deliver { interface: 0, .. }))
    })
}

#[test]
fn packets_to_a_group_arrive_while_somebody_is_a_member() {
    let mut b = Bench::met(false);
    let data = udp(5, 6, b"x");
    assert!(!is_delivered(&b.arrive_at(GROUP, PROTOCOL_UDP, &data)));
    b.step(1, membership::BEGIN, THEM.into(), THEM.into());
    b.join(2, GROUP.into());
    assert!(is_delivered(&b.arrive_at(GROUP, PROTOCOL_UDP, &data)));
    assert!(!is_delivered(&b.arrive_at(Ipv4Addr::new(239, 1, 2, 4), PROTOCOL_UDP, &data)));
    // Everybody's group needs no member.
    assert!(is_delivered(&b.arrive_at(Ipv4Addr::new(224, 0, 0, 1), PROTOCOL_UDP, &data)));
    // A segment to a group is invalid, and no echo request is answered.
    assert!(matches!(
        b.arrive_at(GROUP, PROTOCOL_TCP, &[0x50; 20])[..],
        [ToPeer::Nic(0, IpToNic::Done { .. })]
    ));
    b.step(3, membership::EXCLUDE, GROUP.into(), THEM.into());
    b.step(4, membership::ADD, GROUP.into(), THEM.into());
    assert!(!is_delivered(&b.arrive_at(GROUP, PROTOCOL_UDP, &data)), "its source is excluded");
    b.step(5, membership::INCLUDE, GROUP.into(), THEM.into());
    assert!(!is_delivered(&b.arrive_at(GROUP, PROTOCOL_UDP, &data)));
    b.step(6, membership::ADD, GROUP.into(), THEM.into());
    assert!(is_delivered(&b.arrive_at(GROUP, PROTOCOL_UDP, &data)), "it is included");
}

#[test]
fn joining_and_leaving_are_reported_with_a_router_alert() {
    let mut b = Bench::met(false);
    b.join(1, GROUP.into());
    let said = b.said(seconds(3));
    assert_eq!(said.len(), 2, "twice, since the robustness is 2");
    for packet in &said {
        // IHL 6, TTL 1, IGMP, from us to 224.0.0.22.
        assert_eq!((packet[0], packet[1], packet[8], packet[9]), (0x46, 0xc0, 1, 2));
        assert_eq!(Checksum::new().add_bytes(&packet[..24]).finish(), 0);
        assert_eq!(packet[12..24], [10, 77, 0, 2, 224, 0, 0, 22, 148, 4, 0, 0]);
        assert_eq!(Checksum::new().add_bytes(&packet[24..]).finish(), 0);
        assert_eq!((packet[24], &packet[32..]), (0x22, &[4, 0, 0, 0, 239, 1, 2, 3][..]));
    }
    b.step(2, membership::INCLUDE, GROUP.into(), GROUP.into());
    let said = b.said(seconds(3));
    assert_eq!(said.iter().map(|p| p[32]).collect::<Vec<_>>(), [3, 3], "a change to include nothing");
    assert_eq!(b.said(seconds(9)), Vec::<Vec<u8>>::new());
    b.assert_idle();
}

#[test]
fn queries_are_answered_within_their_time() {
    let mut b = Bench::met(false);
    b.join(1, GROUP.into());
    b.join(2, Ipv4Addr::new(239, 1, 2, 9).into());
    b.said(seconds(5));
    b.arrive_at(Ipv4Addr::new(224, 0, 0, 1), PROTOCOL_IGMP, &general_query());
    let said = b.said(seconds(1));
    assert_eq!(said.len(), 1, "one report of both");
    assert_eq!((said[0][31], said[0][32], said[0][40]), (2, 2, 2), "two records that exclude nothing");
    // About one group, from a router without an address.
    let about = igmp(&[0x11, 10, 0, 0, 239, 1, 2, 3, 2, 125, 0, 0]);
    b.arrive_at(GROUP, PROTOCOL_IGMP, &about);
    let said = b.said(seconds(1));
    assert_eq!((said.len(), said[0][31]), (1, 1));
    // A wrong checksum.
    b.arrive_at(Ipv4Addr::new(224, 0, 0, 1), PROTOCOL_IGMP, &[0x11, 10, 1, 1, 0, 0, 0, 0, 2, 125, 0, 0]);
    assert_eq!(b.said(seconds(5)), Vec::<Vec<u8>>::new());
    assert_eq!(b.count(Counter::DropMembership), 1);
}

#[test]
fn older_routers_hear_older_reports() {
    let mut b = Bench::met(false);
    b.join(1, GROUP.into());
    b.said(seconds(5));
    b.arrive_at(Ipv4Addr::new(224, 0, 0, 1), PROTOCOL_IGMP, &igmp(&[0x11, 10, 0, 0, 0, 0, 0, 0]));
    let said = b.said(seconds(1));
    assert_eq!((said.len(), said[0][24], &said[0][16..20]), (1, 0x16, &[239, 1, 2, 3][..]));
    b.step(2, membership::INCLUDE, GROUP.into(), GROUP.into());
    let said = b.said(seconds(5));
    assert_eq!((said.len(), said[0][24], &said[0][16..20]), (1, 0x17, &[224, 0, 0, 2][..]));
    // Another host's report is enough for them.
    b.join(3, GROUP.into());
    b.said(seconds(5));
    b.arrive_at(Ipv4Addr::new(224, 0, 0, 1), PROTOCOL_IGMP, &igmp(&[0x11, 100, 0, 0, 0, 0, 0, 0]));
    b.arrive_at(GROUP, PROTOCOL_IGMP, &igmp(&[0x16, 0, 0, 0, 239, 1, 2, 3]));
    assert_eq!(b.said(seconds(11)), Vec::<Vec<u8>>::new());
    // After a while without such queries the newest version is spoken again.
    b.pass(seconds(400));
    b.step(4, membership::INCLUDE, GROUP.into(), GROUP.into());
    assert_eq!(b.said(seconds(3))[0][24], 0x22);
}

#[test]
fn a_new_life_of_udp_keeps_what_it_names_and_no_more() {
    let mut b = Bench::met(false);
    let other = Ipv4Addr::new(239, 1, 2, 9);
    b.join(1, GROUP.into());
    b.join(2, other.into());
    b.said(seconds(5));
    b.reborn(ComponentId::UDP);
    assert!(is_delivered(&b.arrive_at(GROUP, PROTOCOL_UDP, &udp(5, 6, b"x"))), "while it is reborn");
    b.step(1, membership::BEGIN, THEM.into(), THEM.into());
    b.join(2, GROUP.into());
    // A message that comes twice, or late, changes nothing.
    b.step(1, membership::BEGIN, THEM.into(), THEM.into());
    b.step(3, membership::END, THEM.into(), THEM.into());
    assert!(is_delivered(&b.arrive_at(GROUP, PROTOCOL_UDP, &udp(5, 6, b"x"))));
    assert!(!is_delivered(&b.arrive_at(other, PROTOCOL_UDP, &udp(5, 6, b"x"))));
    let said = b.said(seconds(3));
    assert!(said.iter().all(|p| p[32..40] == [3, 0, 0, 0, 239, 1, 2, 9]), "only the other is left: {said:?}");
}

#[test]
fn a_link_that_comes_up_hears_everything_again() {
    let mut b = Bench::met(false);
    b.join(1, GROUP.into());
    b.said(seconds(5));
    b.nic_says(NicToIp::Link { mac: OUR_MAC, mtu: 1500, up: false, checksum: true, segment_max: 0 });
    b.link(true, 0);
    let out = b.drain();
    b.confirm(&out);
    let said = b.said(seconds(3));
    assert_eq!(said.iter().filter(|p| p[9] == 2 && p[32] == 4).count(), 2);
}

#[test]
fn members_get_copies_of_what_this_host_sends() {
    let delivered = |out: &[ToPeer]| out.iter().filter(|m| is_delivered(std::slice::from_ref(*m))).count();
    let framed = |out: &[ToPeer]| out.iter().filter(|m| matches!(m, ToPeer::Nic(..))).count();
    let mut b = Bench::met(false);
    b.send(ComponentId::UDP, 1, &datagram(GROUP, 0, 10));
    let out = b.drain();
    assert_eq!((delivered(&out), framed(&out)), (0, 1), "no member");
    b.join(1, GROUP.into());
    for (flags, copies, frames) in [(0, 1, 1), (SEND_NO_LOOP, 0, 1), (SEND_HOST_ONLY, 1, 0)] {
        b.send(ComponentId::UDP, 2 + flags as u32, &SendDescriptor { flags, ..datagram(GROUP, 0, 10) });
        let out = b.drain();
        assert_eq!((delivered(&out), framed(&out)), (copies, frames), "flags {flags}");
        b.confirm(&out);
        b.drain();
        b.give_back(&out);
    }
    // A broadcast is for us, too.
    b.send(ComponentId::UDP, 9, &datagram(Ipv4Addr::new(10, 77, 0, 255), 0, 10));
    let out = b.drain();
    assert_eq!((delivered(&out), framed(&out)), (1, 1));
}

#[test]
fn listeners_report_by_mld_from_their_link_local_address() {
    let mut b = Bench::met(false);
    b.configure(CONFIG6);
    b.said(seconds(3));
    b.join(1, GROUP6.into());
    let said = b.said(seconds(3));
    assert_eq!(said.len(), 2);
    let packet = &said[0];
    // A header of options with a router alert, then ICMPv6; one hop; to ff02::16.
    assert_eq!((packet[6], packet[7], packet[8], packet[9]), (0, 1, 0xfe, 0x80));
    assert_eq!((packet[24], packet[25], packet[39]), (0xff, 2, 0x16));
    assert_eq!(packet[40..48], [58, 0, 5, 2, 0, 0, 1, 0]);
    let from: [u8; 16] = packet[8..24].try_into().unwrap();
    let to: [u8; 16] = packet[24..40].try_into().unwrap();
    let sum = Checksum::new().add_pseudo_header(from.into(), to.into(), 58, packet.len() as u32 - 48);
    assert_eq!(sum.add_bytes(&packet[48..]).finish(), 0);
    assert_eq!((packet[48], packet[56]), (143, 4));
    assert_eq!(packet[60..76], GROUP6.octets());
}

#[test]
fn groups_that_a_new_life_of_udp_does_not_name_are_given_up() {
    let mut b = Bench::met(false);
    b.join(1, GROUP.into());
    b.said(seconds(5));
    b.reborn(ComponentId::UDP);
    assert_eq!(b.said(seconds(9)).len(), 0);
    assert_eq!(b.said(seconds(5)).iter().map(|p| p[32]).collect::<Vec<_>>(), [3, 3]);
    assert!(!is_delivered(&b.arrive_at(GROUP, PROTOCOL_UDP, &udp(5, 6, b"x"))));
}

/// Sender, and kind and group of each record, of a report by MLDv2.
fn report6(packet: &[u8]) -> (Ipv6Addr, Vec<(u8, Ipv6Addr)>) {
    let v6 = |bytes: &[u8]| Ipv6Addr::from(<[u8; 16]>::try_from(bytes).unwrap());
    assert_eq!((packet[40], packet[48]), (58, 143));
    let records = packet[56..].chunks(20).map(|record| (record[0], v6(&record[4..20])));
    (v6(&packet[8..24]), records.collect())
}

#[test]
fn the_groups_of_own_addresses_are_reported() {
    let reports = |said: Vec<Vec<u8>>| -> Vec<_> {
        said.iter().filter(|p| p[0] >> 4 == 6 && p[6] == 0).map(|p| report6(p)).collect()
    };
    let solicited = |a: Ipv6Addr| {
        let [.., high, low] = a.segments();
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | high & 0xff, low)
    };
    let mut b = Bench::met(false);
    b.configure(CONFIG6);
    let said = reports(b.said(seconds(5)));
    let link_local = said.last().unwrap().0;
    assert_eq!(link_local.segments()[0], 0xfe80);
    let mut both = [solicited(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2)), solicited(link_local)];
    both.sort();
    // While no address is sure, from none; and then again (RFC 3590 §4). All hosts' group is never reported.
    let counted = |said: &[(Ipv6Addr, Vec<(u8, Ipv6Addr)>)], from: Ipv6Addr| {
        let here = said.iter().filter(|report| report.0 == from).flat_map(|(_, records)| records);
        let mut records: Vec<_> = here.copied().collect();
        records.sort();
        records
    };
    let twice: Vec<_> = both.iter().flat_map(|group| [(4, *group); 2]).collect();
    assert_eq!((counted(&said, Ipv6Addr::UNSPECIFIED), counted(&said, link_local)), (twice.clone(), twice));
    let is_sure = said.iter().position(|(from, _)| *from == link_local).unwrap();
    assert!(said[is_sure..].iter().all(|(from, _)| *from == link_local));
    // A program is a member, too, and leaves: the host stays.
    b.join(1, both[0].into());
    b.step(2, membership::INCLUDE, both[0].into(), both[0].into());
    assert_eq!(reports(b.said(seconds(3))), []);
    b.reborn(ComponentId::UDP);
    assert_eq!(reports(b.said(seconds(15))), []);
    // Another address in place of the first.
    b.configure(&CONFIG6.replace("fd77::2", "fd77::1:3"));
    let said = reports(b.said(seconds(3)));
    let old = solicited(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2));
    let new = solicited(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 1, 3));
    assert_eq!(counted(&said, link_local), [(3, old), (3, old), (4, new), (4, new)]);
    // The link comes up again.
    b.nic_says(NicToIp::Link { mac: OUR_MAC, mtu: 1500, up: false, checksum: true, segment_max: 0 });
    b.link(true, 0);
    let mut both = [new, solicited(link_local)];
    both.sort();
    let twice: Vec<_> = both.iter().flat_map(|group| [(4, *group); 2]).collect();
    let said = reports(b.said(seconds(5)));
    assert_eq!((counted(&said, Ipv6Addr::UNSPECIFIED), counted(&said, link_local)), (twice.clone(), twice));
}
