//! IPv6 through the engine: neighbours, echo, datagrams both ways, fragments, errors, and wild packets.

use super::*;
use core::net::Ipv6Addr;
use eft_base::address::{link_local, with_zone};
use eft_messages::transport::IpToTransport;

pub(super) const US6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2);
pub(super) const THEM6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1);
const FAR6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 8);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const CONFIG6: &str = "[[interface]]\nindex = 0\nname = \"eft0\"\naddresses = [\"10.77.0.2/24\", \"fd77::2/64\"]\n\
    [[route]]\ndestination = \"::/0\"\ngateway = \"fd77::1\"\n";
const ZONE: u16 = 2;

fn our_link_local() -> Ipv6Addr {
    link_local(OUR_MAC)
}

pub(super) fn solicited(a: Ipv6Addr) -> Ipv6Addr {
    let s = a.segments();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | s[6] & 0xff, s[7])
}

/// An IPv6 packet in a frame; `next` is what follows its header.
pub(super) fn packet6(from: Ipv6Addr, to: Ipv6Addr, next: u8, hop_limit: u8, body: &[u8]) -> Vec<u8> {
    let h = Ipv6Header {
        version_class_flow: 0x6000_0000.into(),
        payload_len: (body.len() as u16).into(),
        next_header: next,
        hop_limit,
        source: from.octets(),
        destination: to.octets(),
    };
    let mut p = h.as_bytes().to_vec();
    p.extend(body);
    let mut f = ethernet(ETHERTYPE_IPV6, &p);
    if to.is_multicast() {
        let [.., a, b, c, d] = to.octets();
        f[..6].copy_from_slice(&[0x33, 0x33, a, b, c, d]);
    }
    f
}

pub(super) fn icmp6(
    from: Ipv6Addr,
    to: Ipv6Addr,
    kind: u8,
    code: u8,
    rest: [u8; 4],
    payload: &[u8],
) -> Vec<u8> {
    let mut p = vec![kind, code, 0, 0];
    p.extend(rest);
    p.extend(payload);
    let sum = Checksum::new().add_pseudo_header(from.into(), to.into(), PROTOCOL_ICMPV6, p.len() as u32);
    let sum = sum.add_bytes(&p).finish();
    p[2..4].copy_from_slice(&sum.to_be_bytes());
    p
}

/// A solicitation or advertisement of a neighbour at `mac`.
pub(super) fn discovery(
    from: Ipv6Addr,
    to: Ipv6Addr,
    kind: u8,
    flags: u8,
    target: Ipv6Addr,
    mac: Option<MacAddress>,
) -> Vec<u8> {
    let mut body = target.octets().to_vec();
    if let Some(mac) = mac {
        body.extend([if kind == ICMPV6_NEIGHBOUR_SOLICITATION { 1 } else { 2 }, 1]);
        body.extend(mac.0);
    }
    let message = icmp6(from, to, kind, 0, [flags, 0, 0, 0], &body);
    packet6(from, to, PROTOCOL_ICMPV6, 255, &message)
}

struct Seen {
    ethernet: MacAddress,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    hop_limit: u8,
    next: u8,
    body: Vec<u8>,
}

/// Reads a frame of ours. Checks lengths, and an ICMPv6 message's checksum.
fn seen(frame: &[u8]) -> Seen {
    let (e, rest) = EthernetHeader::ref_from_prefix(frame).unwrap();
    assert_eq!((e.source, e.ethertype.get()), (OUR_MAC, ETHERTYPE_IPV6));
    let (h, body) = Ipv6Header::ref_from_prefix(rest).unwrap();
    assert_eq!((h.version(), h.payload_len.get() as usize), (6, body.len()));
    let (source, destination) = (h.source.into(), h.destination.into());
    for a in [source, destination] {
        assert_eq!(a, with_zone(a, 0), "a zone on the wire");
    }
    if h.next_header == PROTOCOL_ICMPV6 {
        let sum = Checksum::new().add_pseudo_header(
            IpAddr::V6(source),
            IpAddr::V6(destination),
            PROTOCOL_ICMPV6,
            body.len() as u32,
        );
        assert_eq!(sum.add_bytes(body).finish(), 0);
    }
    let (hop_limit, next) = (h.hop_limit, h.next_header);
    Seen { ethernet: e.destination, source, destination, hop_limit, next, body: body.to_vec() }
}

impl Bench {
    /// Configured with IPv6; duplicate address detection is not over.
    fn new6(with_filter: bool) -> (Bench, Vec<Seen>) {
        let mut b = Bench::raw(with_filter);
        b.configure(CONFIG6);
        for peer in PEERS {
            b.reborn(peer);
        }
        b.link(true, 60000);
        let out = b.drain();
        b.confirm(&out);
        let frames: Vec<Vec<u8>> = out.iter().map(|m| b.frame(m)).collect();
        let frames = frames.iter().filter(|f| f[12..14] == [0x86, 0xdd]).map(|f| seen(f)).collect();
        (b, frames)
    }

    /// As `new6`, but duplicate address detection is over and the neighbour is known.
    pub(super) fn met6(with_filter: bool) -> Bench {
        let (mut b, _) = Bench::new6(with_filter);
        b.pass(Duration::from_secs(1));
        let announcements = b.drain();
        b.confirm(&announcements);
        b.arrive(&discovery(THEM6, solicited(US6), ICMPV6_NEIGHBOUR_SOLICITATION, 0, US6, Some(THEIR_MAC)));
        let out = b.drain();
        b.confirm(&out);
        // It is asked again when it is first used.
        let answer = discovery(THEM6, US6, ICMPV6_NEIGHBOUR_ADVERTISEMENT, 0x60, THEM6, Some(THEIR_MAC));
        b.arrive(&answer);
        b.drain();
        b
    }

    /// The frames among these messages.
    fn frames6(&mut self, out: &[ToPeer]) -> Vec<Seen> {
        let frames: Vec<_> = out
            .iter()
            .filter(|m| matches!(m, ToPeer::Nic(0, IpToNic::Send { .. })))
            .map(|m| seen(&self.frame(m)))
            .collect();
        self.confirm(out);
        frames
    }
}

/// As [`datagram`].
pub(super) fn datagram6(source: Ipv6Addr, destination: Ipv6Addr, len: u32) -> SendDescriptor {
    let mut d = datagram(FAR, 0, len);
    d.source = IpAddr::V6(source).into();
    d.destination = IpAddr::V6(destination).into();
    let pseudo = Checksum::new().add_pseudo_header(source.into(), destination.into(), 17, 8 + len);
    d.header[6..8].copy_from_slice(&pseudo.partial().to_be_bytes());
    d
}

fn udp_checksum_holds(s: &Seen, datagram: &[u8]) -> bool {
    let sum =
        Checksum::new().add_pseudo_header(s.source.into(), s.destination.into(), 17, datagram.len() as u32);
    sum.add_bytes(datagram).finish() == 0
}

/// Whether it is a report by MLDv2.
fn is_report(s: &Seen) -> bool {
    s.next == 0 && s.body[0] == PROTOCOL_ICMPV6 && s.body[8] == 143
}

#[test]
fn addresses_are_checked_for_duplicates_and_announced() {
    let (mut b, trials) = Bench::new6(false);
    let targets: Vec<Ipv6Addr> =
        trials.iter().map(|s| <[u8; 16]>::try_from(&s.body[8..24]).unwrap().into()).collect();
    assert_eq!(targets, [US6, our_link_local()]);
    for (s, target) in trials.iter().zip(targets) {
        assert_eq!((s.source, s.destination), (Ipv6Addr::UNSPECIFIED, solicited(target)));
        assert_eq!((s.hop_limit, s.body[0], s.body.len()), (255, ICMPV6_NEIGHBOUR_SOLICITATION, 24));
        assert_eq!(s.ethernet.0[..2], [0x33, 0x33]);
    }
    b.pass(Duration::from_millis(999));
    let out = b.drain();
    let told = b.frames6(&out);
    assert!(told.iter().all(is_report), "nothing is said of the addresses");
    b.pass(Duration::from_millis(1));
    let out = b.drain();
    let mut told = b.frames6(&out);
    told.retain(|s| !is_report(s));
    assert_eq!(told.len(), 2);
    for s in told {
        assert_eq!((s.destination, s.body[0]), (ALL_NODES, ICMPV6_NEIGHBOUR_ADVERTISEMENT));
        assert_eq!((s.body[4], &s.body[24..]), (0x20, &[2, 1, 2, 0, 0, 0, 0, 2][..]));
    }
    b.assert_idle();
}

#[test]
fn an_address_that_another_host_has_is_given_up() {
    // The other host advertises it, or probes for it as we do.
    let has = discovery(US6, ALL_NODES, ICMPV6_NEIGHBOUR_ADVERTISEMENT, 0x20, US6, Some(THEIR_MAC));
    let tries = discovery(Ipv6Addr::UNSPECIFIED, solicited(US6), ICMPV6_NEIGHBOUR_SOLICITATION, 0, US6, None);
    // A message whose source address is ours must not be ignored.
    let says = discovery(THEM6, ALL_NODES, ICMPV6_NEIGHBOUR_ADVERTISEMENT, 0x20, US6, Some(THEIR_MAC));
    for (frame, given_up) in [(tries, 1), (says, 1), (has, 1)] {
        let (mut b, _) = Bench::new6(false);
        b.arrive(&frame);
        assert_eq!(b.count(Counter::AddressesGivenUp), given_up);
        assert!(b.ip.last_error().unwrap().contains("fd77::2"));
        b.drain();
        b.send(ComponentId::UDP, 1, &datagram6(US6, THEM6, 8));
        assert_eq!(b.drain(), [sent(ComponentId::UDP, 1, eft_base::errno::EADDRNOTAVAIL)]);
    }
    // After detection no claim makes us give the address up.
    let mut b = Bench::met6(false);
    b.arrive(&discovery(THEM6, ALL_NODES, ICMPV6_NEIGHBOUR_ADVERTISEMENT, 0x20, US6, Some(THEIR_MAC)));
    assert_eq!((b.count(Counter::AddressesGivenUp), b.count(Counter::AddressConflicts)), (0, 1));
    // A host that probes for it is told that it is taken.
    b.drain();
    b.arrive(&discovery(Ipv6Addr::UNSPECIFIED, solicited(US6), ICMPV6_NEIGHBOUR_SOLICITATION, 0, US6, None));
    let out = b.drain();
    let told = b.frames6(&out);
    assert_eq!((told[0].destination, told[0].body[4]), (ALL_NODES, 0x20));
}

#[test]
fn a_solicitation_is_answered_and_its_sender_noted() {
    let (mut b, _) = Bench::new6(false);
    let ask = |to| discovery(THEM6, to, ICMPV6_NEIGHBOUR_SOLICITATION, 0, US6, Some(THEIR_MAC));
    b.arrive(&ask(solicited(US6)));
    let out = b.drain();
    let answers = b.frames6(&out);
    assert_eq!(answers.len(), 1);
    // Without the override flag while another host may have the address (RFC 4429 §3.3).
    let s = &answers[0];
    assert_eq!((s.ethernet, s.source, s.destination), (THEIR_MAC, US6, THEM6));
    assert_eq!((s.hop_limit, s.body[0], s.body[4]), (255, ICMPV6_NEIGHBOUR_ADVERTISEMENT, 0x40));
    b.pass(Duration::from_secs(1));
    let out = b.drain();
    b.confirm(&out);
    b.arrive(&ask(US6));
    let out = b.drain();
    assert_eq!(b.frames6(&out)[0].body[4], 0x60);
    // Noted as stale: used at once, and probed.
    b.send(ComponentId::UDP, 1, &datagram6(US6, THEM6, 8));
    let out = b.drain();
    let frames = b.frames6(&out);
    assert_eq!((frames[0].next, frames[0].ethernet), (PROTOCOL_UDP, THEIR_MAC));
    let probe = &frames[1];
    assert_eq!((probe.ethernet, probe.destination, probe.body[0]), (THEIR_MAC, THEM6, 135));
    assert_eq!(probe.body[24..], [1, 1, 2, 0, 0, 0, 0, 2]);
}

#[test]
fn implausible_discovery_messages_are_ignored() {
    let good = discovery(THEM6, solicited(US6), ICMPV6_NEIGHBOUR_SOLICITATION, 0, US6, Some(THEIR_MAC));
    let other_mac = MacAddress([2, 0, 0, 0, 0, 99]);
    let mut routed = good.clone();
    routed[14 + 7] = 254;
    let mut damaged = good.clone();
    damaged[60] ^= 1;
    let foreign = discovery(FAR6, solicited(US6), ICMPV6_NEIGHBOUR_SOLICITATION, 0, US6, Some(THEIR_MAC));
    let spoofed = discovery(THEM6, solicited(US6), ICMPV6_NEIGHBOUR_SOLICITATION, 0, US6, Some(other_mac));
    let nobody = Ipv6Addr::UNSPECIFIED;
    let to_one = discovery(nobody, US6, ICMPV6_NEIGHBOUR_SOLICITATION, 0, US6, None);
    let noted = discovery(nobody, solicited(US6), ICMPV6_NEIGHBOUR_SOLICITATION, 0, US6, Some(THEIR_MAC));
    for (i, frame) in [routed, damaged, foreign, spoofed, to_one, noted].iter().enumerate() {
        let (mut b, _) = Bench::new6(false);
        b.arrive(frame);
        let dropped = b.count(Counter::DropDiscovery) + b.count(Counter::DropDiscoverySpoofed);
        assert_eq!((dropped, b.count(Counter::AddressesGivenUp)), (1, 0), "{i}");
        assert!(matches!(b.drain()[..], [ToPeer::Nic(0, IpToNic::Done { .. })]), "{i}");
    }
    // Unsolicited answers are not noted.
    let (mut b, _) = Bench::new6(false);
    b.arrive(&discovery(THEM6, US6, ICMPV6_NEIGHBOUR_ADVERTISEMENT, 0x60, THEM6, Some(THEIR_MAC)));
    b.drain();
    b.send(ComponentId::UDP, 1, &datagram6(US6, THEM6, 8));
    let out = b.drain();
    assert_eq!(b.frames6(&out)[0].destination, solicited(THEM6));
}

#[test]
fn a_neighbour_is_asked_for_and_a_silent_one_given_up() {
    let (mut b, _) = Bench::new6(false);
    b.send(ComponentId::UDP, 1, &datagram6(US6, FAR6, 8));
    let out = b.drain();
    let asked = b.frames6(&out);
    // The gateway is asked, without our link address while our address is being checked.
    assert_eq!((asked.len(), asked[0].destination, asked[0].body.len()), (1, solicited(THEM6), 24));
    b.arrive(&discovery(THEM6, US6, ICMPV6_NEIGHBOUR_ADVERTISEMENT, 0x60, THEM6, Some(THEIR_MAC)));
    let out = b.drain();
    let frames = b.frames6(&out);
    assert_eq!((frames[0].ethernet, frames[0].destination, frames[0].hop_limit), (THEIR_MAC, FAR6, 64));
    assert!(udp_checksum_holds(&frames[0], &frames[0].body));
    b.pass(Duration::from_secs(2));
    let out = b.drain();
    b.confirm(&out);

    let silent = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 9);
    b.send(ComponentId::UDP, 2, &datagram6(US6, silent, 8));
    let mut asked = 0;
    for _ in 0..40 {
        let out = b.drain();
        asked += b.frames6(&out).iter().filter(|s| s.body[0] == ICMPV6_NEIGHBOUR_SOLICITATION).count();
        let gave_up = out.contains(&sent(ComponentId::UDP, 2, eft_base::errno::EHOSTUNREACH));
        if gave_up {
            break;
        }
        b.pass(Duration::from_millis(100));
    }
    assert_eq!(asked, 4);
    b.drain();
    b.assert_idle();
}

#[test]
fn echo_requests_are_answered() {
    let mut b = Bench::met6(false);
    let ping = |from, to| {
        let message = icmp6(from, to, ICMPV6_ECHO_REQUEST, 0, [0x12, 0x34, 0, 1], &[7; 1000]);
        packet6(from, to, PROTOCOL_ICMPV6, 64, &message)
    };
    b.arrive(&ping(THEM6, US6));
    let out = b.drain();
    let replies = b.frames6(&out);
    let s = &replies[0];
    assert_eq!((s.source, s.destination, s.hop_limit), (US6, THEM6, 64));
    assert_eq!(
        (s.body[0], &s.body[4..8], &s.body[8..]),
        (ICMPV6_ECHO_REPLY, &[0x12, 0x34, 0, 1][..], &[7; 1000][..])
    );
    // Between link-local addresses, on their link.
    let theirs = link_local(THEIR_MAC);
    b.arrive(&ping(theirs, our_link_local()));
    let out = b.drain();
    let asked = b.frames6(&out);
    assert_eq!((asked[0].source, asked[0].destination), (our_link_local(), solicited(theirs)));
    let known =
        discovery(theirs, our_link_local(), ICMPV6_NEIGHBOUR_ADVERTISEMENT, 0x60, theirs, Some(THEIR_MAC));
    b.arrive(&known);
    let out = b.drain();
    let replies = b.frames6(&out);
    assert_eq!((replies[0].source, replies[0].destination), (our_link_local(), theirs));
    // An echo request to a group is not answered, and one to another host is dropped.
    b.arrive(&ping(THEM6, ALL_NODES));
    b.arrive(&ping(THEM6, FAR6));
    let mapped = Ipv4Addr::new(10, 77, 0, 1).to_ipv6_mapped();
    b.arrive(&ping(mapped, US6));
    b.arrive(&ping(Ipv6Addr::new(0xfe80, 7, 0, 0, 0, 0, 0, 1), US6));
    b.arrive(&ping(US6, US6));
    let out = b.drain();
    assert!(out.iter().all(|m| matches!(m, ToPeer::Nic(0, IpToNic::Done { .. }))), "{out:?}");
    assert_eq!((b.count(Counter::DropNotOurs), b.count(Counter::DropMartian)), (1, 3));
    b.assert_idle();
}

#[test]
fn an_interface_without_an_ipv6_address_drops_ipv6_packets() {
    let mut b = Bench::met(false);
    b.arrive(&discovery(THEM6, ALL_NODES, ICMPV6_NEIGHBOUR_SOLICITATION, 0, US6, Some(THEIR_MAC)));
    assert!(matches!(b.drain()[..], [ToPeer::Nic(0, IpToNic::Done { .. })]));
    assert_eq!(b.count(Counter::DropIpv6), 1);
}

#[test]
fn datagrams_arrive_with_and_without_extension_headers() {
    let mut b = Bench::met6(false);
    let bytes = udp(53, 1000, &[5; 100]);
    b.arrive(&packet6(THEM6, US6, PROTOCOL_UDP, 64, &bytes));
    assert!(matches!(
        b.drain()[..],
        [ToPeer::Transport(ComponentId::UDP, IpToTransport::Deliver { header_len: 40, zone: 0, .. })]
    ));
    let mut extended = vec![PROTOCOL_UDP, 1, 1, 12];
    extended.extend([0; 12]);
    extended.extend(&bytes);
    b.arrive(&packet6(THEM6, US6, IPV6_DESTINATION, 64, &extended));
    assert!(matches!(
        b.drain()[..],
        [ToPeer::Transport(ComponentId::UDP, IpToTransport::Deliver { header_len: 56, .. })]
    ));
    // From a link-local address: the zone names the link.
    b.arrive(&packet6(link_local(THEIR_MAC), our_link_local(), PROTOCOL_UDP, 64, &bytes));
    assert!(matches!(
        b.drain()[..],
        [ToPeer::Transport(ComponentId::UDP, IpToTransport::Deliver { header_len: 40, zone: ZONE, .. })]
    ));
}

#[test]
fn long_datagrams_leave_in_fragments_which_arrive_as_one() {
    let mut b = Bench::met6(false);
    let mut d = datagram6(US6, THEM6, 5000);
    d.flags = 0;
    b.payload.allocate().unwrap();
    b.payload.write(PacketRef { pool: PAYLOAD, generation: 0, slot: 0, offset: 0, len: 5000 }, 0, &[9; 5000]);
    b.send(ComponentId::UDP, 1, &d);
    let out = b.drain();
    let fragments = b.frames6(&out);
    assert_eq!(b.drain(), [sent(ComponentId::UDP, 1, 0)]);
    assert_eq!(fragments.len(), 4);
    let mut whole = Vec::new();
    for (i, s) in fragments.iter().enumerate() {
        assert_eq!((s.next, s.body[0]), (IPV6_FRAGMENT, PROTOCOL_UDP));
        let field = u16::from_be_bytes([s.body[2], s.body[3]]);
        assert_eq!(((field & !7) as usize, field & 1), (whole.len(), (i < 3) as u16));
        assert_eq!(s.body[4..8], fragments[0].body[4..8]);
        assert!(40 + s.body.len() <= 1500);
        whole.extend_from_slice(&s.body[8..]);
    }
    assert_eq!(whole.len(), 5008);
    assert!(udp_checksum_holds(&fragments[0], &whole));

    // The same come back, the last first.
    let deliver = |m: &ToPeer| match m {
        ToPeer::Transport(ComponentId::UDP, IpToTransport::Deliver { packet, header_len, .. }) => {
            Some((*packet, *header_len))
        }
        _ => None,
    };
    // A router marked the second one (RFC 3168 §5.3).
    for (i, s) in fragments.iter().enumerate().rev() {
        let mut fragment = packet6(THEM6, US6, IPV6_FRAGMENT, 64, &s.body);
        fragment[15] |= if i == 1 { 0x30 } else { 0x20 };
        b.arrive(&fragment);
    }
    let out = b.drain();
    let (packet, header_len) = out.iter().find_map(deliver).unwrap();
    assert_eq!((header_len, packet.len), (40, 5048));
    let mut bytes = vec![0; packet.len as usize];
    b.memory.read(packet, &mut bytes).or_else(|| b.ip.read(&b.memory, packet, &mut bytes)).unwrap();
    assert_eq!(bytes[..2], [0x60, 0x30]);
    assert_eq!((bytes[6], &bytes[4..6]), (PROTOCOL_UDP, &5008u16.to_be_bytes()[..]));
    assert_eq!(bytes[40..], whole);
    b.transport_says(ComponentId::UDP, TransportToIp::Done { packet });
    // One that overlaps spoils the datagram (RFC 5722).
    let mut overlapping = fragments[1].body.clone();
    overlapping[3] = overlapping[3].wrapping_sub(8);
    for body in [&fragments[0].body, &overlapping, &fragments[1].body, &fragments[2].body, &fragments[3].body]
    {
        b.arrive(&packet6(THEM6, US6, IPV6_FRAGMENT, 64, body));
    }
    let out = b.drain();
    assert!(out.iter().all(|m| deliver(m).is_none()));
    assert_eq!(b.count(Counter::DropFragmentOverlap), 1);
    // One that is whole needs no others (RFC 6946).
    let mut atomic = vec![PROTOCOL_UDP, 0, 0, 0, 0, 0, 0, 9];
    atomic.extend(udp(53, 1000, &[5; 100]));
    b.arrive(&packet6(THEM6, US6, IPV6_FRAGMENT, 64, &atomic));
    assert_eq!(b.drain().iter().find_map(deliver).unwrap().1, 48);
}

#[test]
fn a_path_that_takes_less_is_remembered_for_datagrams() {
    let mut b = Bench::met6(false);
    let too_big = |mtu: u32, quoted: &[u8]| {
        let message = icmp6(FAR6, US6, ICMPV6_TOO_BIG, 0, mtu.to_be_bytes(), quoted);
        packet6(FAR6, US6, PROTOCOL_ICMPV6, 64, &message)
    };
    let ours = packet6(US6, FAR6, PROTOCOL_UDP, 64, &udp(1000, 53, &[0; 1400]))[14..].to_vec();
    let lengths = |b: &mut Bench| {
        b.send(ComponentId::UDP, 1, &datagram6(US6, FAR6, 1400));
        let out = b.drain();
        b.frames6(&out).iter().map(|s| 40 + s.body.len()).collect::<Vec<_>>()
    };
    assert_eq!(lengths(&mut b), [1448]);
    b.drain();
    b.arrive(&too_big(1279, &ours));
    assert!(matches!(b.drain()[..], [ToPeer::Nic(0, IpToNic::Done { .. })]), "no path takes less than 1280");
    b.arrive(&too_big(1300, &ours[..48]));
    let out = b.drain();
    let [
        ToPeer::Transport(
            ComponentId::UDP,
            IpToTransport::Error { kind: 2, info: 1300, header_len: 40, packet, .. },
        ),
    ] = out[..]
    else {
        panic!("{out:?}")
    };
    b.transport_says(ComponentId::UDP, TransportToIp::Done { packet });
    b.drain();
    assert_eq!(lengths(&mut b), [1296, 208]);
    // An error that quotes another host's packet goes to no transport.
    let theirs = packet6(THEM6, FAR6, PROTOCOL_UDP, 64, &udp(1000, 53, &[0; 1400]))[14..].to_vec();
    b.drain();
    b.arrive(&too_big(1280, &theirs));
    assert!(matches!(b.drain()[..], [ToPeer::Nic(0, IpToNic::Done { .. })]));
    assert_eq!(lengths(&mut b), [1296, 208]);
}

#[test]
fn errors_are_sent_for_unreachable_ports_and_bad_headers() {
    let mut b = Bench::met6(false);
    let error = |b: &mut Bench| {
        let out = b.drain();
        b.frames6(&out).pop()
    };
    // No socket is bound to the port.
    let datagram = packet6(THEM6, US6, PROTOCOL_UDP, 64, &udp(53, 1000, &[5; 2000]));
    b.arrive(&datagram);
    let out = b.drain();
    let ToPeer::Transport(ComponentId::UDP, IpToTransport::Deliver { packet, .. }) = out[0] else { panic!() };
    b.transport_says(ComponentId::UDP, TransportToIp::Refuse { packet });
    let s = error(&mut b).unwrap();
    assert_eq!((s.source, s.destination, s.body[0], s.body[1]), (US6, THEM6, 1, 4));
    assert_eq!((40 + s.body.len(), &s.body[8..]), (1280, &datagram[14..14 + 1232]));
    // An unknown protocol, a bad option, a source route: each error points to the place.
    let mut hop = vec![99, 0, 1, 4, 0, 0, 0, 0];
    hop.extend([0; 8]);
    b.arrive(&packet6(THEM6, US6, IPV6_HOP_BY_HOP, 64, &hop));
    let s = error(&mut b).unwrap();
    assert_eq!((s.body[0], s.body[1], &s.body[4..8]), (4, 1, &[0, 0, 0, 40][..]));
    b.arrive(&packet6(THEM6, US6, IPV6_DESTINATION, 64, &[PROTOCOL_UDP, 0, 0x9e, 4, 0, 0, 0, 0]));
    let s = error(&mut b).unwrap();
    assert_eq!((s.body[0], s.body[1], &s.body[4..8]), (4, 2, &[0, 0, 0, 42][..]));
    b.arrive(&packet6(THEM6, US6, IPV6_ROUTING, 64, &[PROTOCOL_UDP, 0, 0, 3, 0, 0, 0, 0]));
    let s = error(&mut b).unwrap();
    assert_eq!((s.body[0], s.body[1], &s.body[4..8]), (4, 0, &[0, 0, 0, 42][..]));
    // Not about errors, nor about multicast packets.
    let message = icmp6(THEM6, US6, 100, 0, [0; 4], &[0; 64]);
    b.arrive(&packet6(THEM6, US6, PROTOCOL_ICMPV6, 64, &message));
    b.arrive(&packet6(THEM6, ALL_NODES, 99, 64, &[0; 64]));
    b.arrive(&packet6(THEM6, US6, IPV6_NO_NEXT, 64, &[]));
    assert!(error(&mut b).is_none());
    b.assert_idle();
}

#[test]
fn the_filter_is_asked_about_packets_and_not_about_discovery() {
    let mut b = Bench::met6(true);
    b.arrive(&packet6(THEM6, US6, PROTOCOL_UDP, 64, &udp(53, 1000, &[5; 10])));
    let out = b.drain();
    let ToPeer::Filter(IpToFilter::Ask { request, source, destination, protocol: 17, .. }) = out[0] else {
        panic!("{out:?}")
    };
    assert_eq!((source, destination), (IpAddr::V6(THEM6).into(), IpAddr::V6(US6).into()));
    b.verdict(request, true);
    assert!(matches!(b.drain()[..], [ToPeer::Transport(ComponentId::UDP, _)]));
    // For an ICMPv6 error the question says which packet it is about.
    let ours = packet6(US6, THEM6, PROTOCOL_UDP, 64, &udp(1000, 53, &[0; 8]))[14..].to_vec();
    let message = icmp6(THEM6, US6, ICMPV6_UNREACHABLE, 4, [0; 4], &ours);
    b.arrive(&packet6(THEM6, US6, PROTOCOL_ICMPV6, 64, &message));
    let out = b.drain();
    assert!(matches!(out[0], ToPeer::Filter(IpToFilter::Quote { source_port: 1000, protocol: 17, .. })));
}

#[test]
fn packets_to_our_own_address_are_looped_back() {
    let mut b = Bench::met6(false);
    let ours = with_zone(our_link_local(), ZONE);
    for (a, zone) in [(US6, 0), (ours, ZONE)] {
        b.send(ComponentId::UDP, 1, &datagram6(a, a, 100));
        let out = b.drain();
        let delivered = out.iter().find_map(|m| match m {
            ToPeer::Transport(_, IpToTransport::Deliver { packet, header_len: 40, zone, .. }) => {
                Some((*packet, *zone))
            }
            _ => None,
        });
        let (packet, said) = delivered.unwrap();
        assert_eq!(said, zone);
        b.transport_says(ComponentId::UDP, TransportToIp::Done { packet });
        b.drain();
    }
    b.assert_idle();
}

#[test]
fn routes_answer_for_both_versions() {
    let mut b = Bench::met6(false);
    let mut ask = |source: IpAddr, destination: IpAddr| {
        let m = TransportToIp::Route {
            request: request(1),
            source: source.into(),
            destination: destination.into(),
        };
        b.transport_says(ComponentId::TCP, m);
        match b.drain()[..] {
            [ToPeer::Transport(_, IpToTransport::Routed { errno, source, .. })] => {
                (errno, IpAddr::from(source))
            }
            ref other => panic!("{other:?}"),
        }
    };
    let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    assert_eq!(ask(any, FAR6.into()), (0, US6.into()));
    // A socket of both versions.
    assert_eq!(ask(any, THEM.into()), (0, US.into()));
    let theirs = link_local(THEIR_MAC);
    assert_eq!(ask(any, with_zone(theirs, ZONE).into()), (0, with_zone(our_link_local(), ZONE).into()));
    assert_eq!(ask(any, with_zone(theirs, 9).into()).0, eft_base::errno::ENETUNREACH);
    assert_eq!(ask(US.into(), FAR6.into()).0, eft_base::errno::ENETUNREACH);
    assert_eq!(ask(THEM6.into(), FAR6.into()).0, eft_base::errno::EADDRNOTAVAIL);
}

/// Honest packets with bytes changed: nothing is lost, nothing panics.
#[test]
fn wild_packets_are_survived() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut b = Bench::met6(seed % 2 == 0);
        let ours = packet6(US6, THEM6, PROTOCOL_UDP, 64, &udp(1000, 53, &[0; 8]))[14..].to_vec();
        let mut fragment = vec![PROTOCOL_UDP, 0, 0, 1, 0, 0, 0, 1];
        fragment.extend(udp(53, 1000, &[1; 56]));
        let mut extended = vec![IPV6_ROUTING, 0, 1, 4, 0, 0, 0, 0, PROTOCOL_UDP, 0, 0, 0, 0, 0, 0, 0];
        extended.extend(udp(53, 1000, &[1; 30]));
        let templates = [
            discovery(THEM6, solicited(US6), ICMPV6_NEIGHBOUR_SOLICITATION, 0, US6, Some(THEIR_MAC)),
            discovery(THEM6, US6, ICMPV6_NEIGHBOUR_ADVERTISEMENT, 0x60, THEM6, Some(THEIR_MAC)),
            packet6(THEM6, US6, IPV6_FRAGMENT, 64, &fragment),
            packet6(THEM6, US6, IPV6_HOP_BY_HOP, 64, &extended),
            packet6(
                THEM6,
                US6,
                PROTOCOL_ICMPV6,
                64,
                &icmp6(THEM6, US6, ICMPV6_TOO_BIG, 0, [0, 0, 5, 0], &ours),
            ),
        ];
        for _ in 0..300 {
            let mut frame = templates[random.below(templates.len() as u64) as usize].clone();
            for _ in 0..random.below(3) {
                let at = random.below(frame.len() as u64) as usize;
                frame[at] = random.next_u64() as u8;
            }
            frame.truncate(1 + random.below(2 * frame.len() as u64) as usize);
            b.arrive(&frame);
            settle(&mut b, seed);
        }
        for _ in 0..60 {
            b.pass(Duration::from_secs(1));
            settle(&mut b, seed);
        }
        b.assert_idle();
    }
}

/// Answers all messages of the engine until it sends none.
fn settle(b: &mut Bench, seed: u64) {
    loop {
        let out = b.drain();
        if out.is_empty() {
            return;
        }
        for m in out {
            match m {
                ToPeer::Nic(0, IpToNic::Done { packet }) => assert!(b.nic.free(packet), "seed {seed}"),
                ToPeer::Nic(0, IpToNic::Send { request, .. }) => {
                    b.nic_says(NicToIp::Sent { request, errno: 0 })
                }
                ToPeer::Transport(peer, IpToTransport::Deliver { packet, header_len, .. })
                | ToPeer::Transport(peer, IpToTransport::Error { packet, header_len, .. }) => {
                    assert!(header_len as u32 <= packet.len, "seed {seed}");
                    b.transport_says(peer, TransportToIp::Done { packet })
                }
                ToPeer::Filter(IpToFilter::Ask { request, .. }) => b.verdict(request, true),
                _ => {}
            }
        }
    }
}

#[test]
fn a_packets_length_does_not_count_its_header() {
    let mut b = Bench::met6(false);
    b.send(ComponentId::UDP, 1, &datagram6(US6, THEM6, 65528));
    assert_eq!(b.drain(), [sent(ComponentId::UDP, 1, eft_base::errno::EMSGSIZE)]);
    b.send(ComponentId::UDP, 2, &datagram6(US6, THEM6, 65527));
    let out = b.drain();
    let fragments = b.frames6(&out);
    let bytes: usize = fragments.iter().map(|s| s.body.len() - 8).sum();
    assert_eq!((fragments.len(), bytes), (46, 65535));
}

#[test]
fn packets_of_a_flow_have_a_label() {
    let mut b = Bench::met6(false);
    let mut labels = |source_port: u16, to: Ipv6Addr, len: u32| -> Vec<u32> {
        let mut d = datagram6(US6, to, len);
        d.header[..2].copy_from_slice(&source_port.to_be_bytes());
        b.send(ComponentId::UDP, 1, &d);
        let out = b.drain();
        let sends: Vec<_> =
            out.iter().filter(|m| matches!(m, ToPeer::Nic(0, IpToNic::Send { .. }))).collect();
        let frames: Vec<Vec<u8>> = sends.into_iter().map(|m| b.frame(m)).collect();
        b.confirm(&out);
        let label = |f: &Vec<u8>| u32::from_be_bytes(f[14..18].try_into().unwrap()) & 0xf_ffff;
        frames.iter().map(label).collect()
    };
    let first = labels(7, THEM6, 10);
    assert!(first.len() == 1 && first[0] != 0, "{first:?}");
    assert_eq!(labels(7, THEM6, 3000), [first[0]; 3], "each of its fragments");
    let others = [labels(8, THEM6, 10), labels(7, FAR6, 10)].concat();
    assert!(others.len() == 2 && others.iter().all(|label| *label != first[0] && *label != 0), "{others:?}");
}
