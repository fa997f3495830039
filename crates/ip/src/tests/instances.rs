//! Several instances of each transport: a local port, or the whole connection, says which of them gets a packet.

use super::*;
use core::net::Ipv6Addr;
use eft_base::{Role, WireAddress, ports};
use eft_messages::transport::membership;

const TCP1: ComponentId = ComponentId::new(Role::Tcp, 1);
const UDP1: ComponentId = ComponentId::new(Role::Udp, 1);
const TRANSPORTS: [ComponentId; 4] = [ComponentId::TCP, TCP1, ComponentId::UDP, UDP1];
const NAMES: &str = "transports = [\"tcp\", \"tcp1\", \"udp\", \"udp1\"]\n";

/// Two instances of each transport.
fn two_of_each(config: &str) -> Bench {
    let mut b = Bench::raw(false);
    b.out = Outbox::with_room(&[&TRANSPORTS[..], &PEERS[2..]].concat(), 1024);
    b.configure(&format!("{NAMES}{config}"));
    TRANSPORTS.iter().chain(&PEERS[3..]).for_each(|peer| b.reborn(*peer));
    b.link(true, 60000);
    let announcements = b.drain();
    b.confirm(&announcements);
    b
}

fn owner(role: Role, port: u16) -> ComponentId {
    ComponentId::new(role, ports::owner(port, 2))
}

/// Who has a connection of a local port with this peer.
fn connection_owner(port: u16, peer: (Ipv4Addr, u16)) -> ComponentId {
    let peer = (IpAddr::V4(peer.0).into(), peer.1);
    ComponentId::new(Role::Tcp, ports::connection_owner(port, peer, 2))
}

fn tcp(from: u16, to: u16) -> Vec<u8> {
    let mut segment = vec![0; 20];
    segment[..2].copy_from_slice(&from.to_be_bytes());
    segment[2..4].copy_from_slice(&to.to_be_bytes());
    segment[12..14].copy_from_slice(&[0x50, TCP_ACK]);
    segment
}

impl Bench {
    /// Which transports got something, and give it back.
    fn receivers(&mut self) -> Vec<ComponentId> {
        let mut receivers = Vec::new();
        for message in self.drain() {
            if let ToPeer::Transport(
                peer,
                IpToTransport::Deliver { packet, .. } | IpToTransport::Error { packet, .. },
            ) = message
            {
                receivers.push(peer);
                self.transport_says(peer, TransportToIp::Done { packet });
            }
        }
        for message in self.drain() {
            if let ToPeer::Nic(0, IpToNic::Done { packet }) = message {
                self.nic.free(packet);
            }
        }
        receivers
    }
}

#[test]
fn a_segment_goes_to_the_instance_that_has_its_connection() {
    let mut b = two_of_each(CONFIG);
    let mut seen = Vec::new();
    for from in 1000..1040 {
        b.arrive(&packet(PROTOCOL_TCP, 0, 1, &tcp(from, 80)));
        let owner = connection_owner(80, (THEM, from));
        assert_eq!(b.receivers(), [owner], "{from}");
        seen.push(owner.instance);
    }
    assert!(seen.contains(&0) && seen.contains(&1));
    b.assert_idle();
}

#[test]
fn a_packet_goes_to_the_instance_that_has_its_local_port() {
    let mut b = two_of_each(CONFIG);
    let mut seen = Vec::new();
    for port in (1..100).chain(40000..40020) {
        b.arrive(&packet(PROTOCOL_TCP, 0, 1, &tcp(443, port)));
        let its = if port < 32768 { connection_owner(port, (THEM, 443)) } else { owner(Role::Tcp, port) };
        assert_eq!(b.receivers(), [its], "{port}");
        b.arrive(&packet(PROTOCOL_UDP, 0, 1, &udp(53, port, b"x")));
        assert_eq!(b.receivers(), [owner(Role::Udp, port)], "{port}");
        seen.push(ports::owner(port, 2));
    }
    assert!(seen.contains(&0) && seen.contains(&1));
    b.assert_idle();
}

#[test]
fn fragments_go_where_the_whole_datagram_would() {
    let mut b = two_of_each(CONFIG);
    for port in 1..20 {
        let datagram = udp(53, port, &[7; 100]);
        b.arrive(&packet(PROTOCOL_UDP, 0x2000, port, &datagram[..64]));
        b.arrive(&packet(PROTOCOL_UDP, 8, port, &datagram[64..]));
        assert_eq!(b.receivers(), [owner(Role::Udp, port)], "{port}");
    }
}

#[test]
fn packets_of_ipv6_go_by_their_port_too() {
    let us = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2);
    let mut b = two_of_each("[[interface]]\nindex = 0\nname = \"eft0\"\naddresses = [\"fd77::2/64\"]\n");
    b.pass(Duration::from_secs(3));
    b.drain();
    for port in 1..20u16 {
        let body = udp(53, port, b"x");
        let mut p = vec![0x60, 0, 0, 0, 0, body.len() as u8, PROTOCOL_UDP, 64];
        p.extend(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1).octets());
        p.extend(us.octets());
        p.extend(body);
        b.arrive(&ethernet(ETHERTYPE_IPV6, &p));
        assert_eq!(b.receivers(), [owner(Role::Udp, port)], "{port}");
    }
}

#[test]
fn an_error_goes_to_the_instance_that_sent_what_it_quotes() {
    let mut b = two_of_each(CONFIG);
    for port in 1..40 {
        let mut sent = packet(PROTOCOL_TCP, 0, 1, &tcp(port, 443));
        sent[26..30].copy_from_slice(&US.octets());
        sent[30..34].copy_from_slice(&THEM.octets());
        fix_header(&mut sent);
        b.arrive(&packet(PROTOCOL_ICMP, 0, 1, &icmp(3, 1, [0; 4], &sent[14..42])));
        assert_eq!(b.receivers(), [connection_owner(port, (THEM, 443))], "{port}");
    }
}

#[test]
fn what_the_host_sends_to_itself_goes_by_the_connection_at_the_other_end() {
    let mut b = two_of_each(CONFIG);
    for (i, port) in (1..20u16).enumerate() {
        let mut d = segment(US, 0, 0);
        d.header[..2].copy_from_slice(&50000u16.to_be_bytes());
        d.header[2..4].copy_from_slice(&port.to_be_bytes());
        b.send(owner(Role::Tcp, 50000), i as u32, &d);
        assert_eq!(b.receivers(), [connection_owner(port, (US, 50000))], "{port}");
    }
}

#[test]
fn packets_of_a_dead_instance_wait_and_those_of_the_other_pass() {
    let mut b = two_of_each(CONFIG);
    let mut of =
        [0, 1].map(|i| (1000..).filter(move |from| connection_owner(80, (THEM, *from)).instance == i));
    let [ours, theirs] = &mut of;
    b.arrive(&packet(PROTOCOL_TCP, 0, 1, &tcp(theirs.next().unwrap(), 80)));
    let [ToPeer::Transport(TCP1, IpToTransport::Deliver { packet: given, .. })] = b.drain()[..] else {
        panic!("not given to tcp1")
    };
    b.out.remove_peer(TCP1);
    b.arrive(&packet(PROTOCOL_TCP, 0, 2, &tcp(theirs.next().unwrap(), 80)));
    assert_eq!(b.receivers(), []);
    b.arrive(&packet(PROTOCOL_TCP, 0, 3, &tcp(ours.next().unwrap(), 80)));
    assert_eq!(b.receivers(), [ComponentId::TCP]);
    b.out.set_room(TCP1, 1024, 1024);
    b.reborn(TCP1);
    let again = b.drain();
    let [
        ToPeer::Transport(TCP1, IpToTransport::Deliver { packet: first, .. }),
        ToPeer::Transport(TCP1, IpToTransport::Deliver { packet: second, .. }),
    ] = again[..]
    else {
        panic!("{again:?}")
    };
    assert!(first == given && second != given, "in order");
}

#[test]
fn a_group_is_received_while_one_of_them_wants_it() {
    let group = Ipv4Addr::new(239, 1, 2, 3);
    let mut b = two_of_each(CONFIG);
    let mut orders = [0; 2];
    let mut step = |b: &mut Bench, from: ComponentId, step: u8, source: Ipv4Addr| {
        let order = &mut orders[usize::from(from.instance)];
        *order += 1;
        let (group, source) = (IpAddr::V4(group).into(), IpAddr::V4(source).into());
        let message = TransportToIp::Group { order: *order, step, interface: 0, group, source };
        b.transport_says(from, message);
        b.drain();
    };
    let arrives = |b: &mut Bench| {
        let mut f = packet(PROTOCOL_UDP, 0, 1, &udp(5, 6, b"x"));
        f[..6].copy_from_slice(&[1, 0, 0x5e, 1, 2, 3]);
        f[30..34].copy_from_slice(&group.octets());
        fix_header(&mut f);
        b.arrive(&f);
        b.receivers() == [owner(Role::Udp, 6)]
    };
    assert!(!arrives(&mut b));
    step(&mut b, ComponentId::UDP, membership::EXCLUDE, THEM);
    step(&mut b, ComponentId::UDP, membership::ADD, THEM);
    assert!(!arrives(&mut b), "its only member does not want this source");
    step(&mut b, UDP1, membership::INCLUDE, THEM);
    step(&mut b, UDP1, membership::ADD, THEM);
    assert!(arrives(&mut b), "the other one wants it");
    step(&mut b, ComponentId::UDP, membership::INCLUDE, THEM);
    assert!(arrives(&mut b));
    // A successor that tells of nothing.
    b.reborn(UDP1);
    orders_begin_anew(&mut b, membership::BEGIN, 1);
    assert!(arrives(&mut b), "its list has not ended");
    orders_begin_anew(&mut b, membership::END, 2);
    assert!(!arrives(&mut b));
}

/// A step of the list of udp1's successor.
fn orders_begin_anew(b: &mut Bench, step: u8, order: u32) {
    let nobody = IpAddr::V4(THEM).into();
    b.transport_says(UDP1, TransportToIp::Group { order, step, interface: 0, group: nobody, source: nobody });
    b.drain();
}

#[test]
fn a_successor_of_one_gives_up_nothing_of_the_other() {
    let group: WireAddress = IpAddr::V4(Ipv4Addr::new(239, 1, 2, 3)).into();
    let mut b = two_of_each(CONFIG);
    for from in [ComponentId::UDP, UDP1] {
        let order = 9;
        let step = membership::EXCLUDE;
        b.transport_says(from, TransportToIp::Group { order, step, interface: 0, group, source: group });
    }
    b.reborn(UDP1);
    orders_begin_anew(&mut b, membership::BEGIN, 1);
    orders_begin_anew(&mut b, membership::END, 2);
    assert!(b.ip.groups.admit(0, group.into(), THEM.into()), "udp has not left");
    b.reborn(ComponentId::UDP);
    b.pass(Duration::from_secs(11));
    assert!(!b.ip.groups.admit(0, group.into(), THEM.into()), "nobody has confirmed it");
}
