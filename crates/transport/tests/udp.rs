//! The udp engine: ip and sockets are played by the test, applications write and read pages.

use eft_base::checksum::Checksum;
use eft_base::errno::*;
use eft_base::{Endpoint, FamilyId, Instant, PacketRef, PoolId, Random, RequestId, SocketId, WireAddress};
use eft_channel::socket::{
    Arena, DatagramHeader, ERRORS_MAX, ErrorRecord, Geometry, Opt, QUOTE_MAX, SocketPage,
    datagram_record_len, wish,
};
use eft_channel::status::Status;
use eft_channel::{Memory, Pool, Segment};
use eft_component::transport::{Effect, Event};
use eft_component::{Component, Context, Outbox};
use eft_messages::ComponentId;
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};
use eft_messages::transport::{IpToTransport, SEND_SLOT_LEN, SendDescriptor, TransportToIp};
use eft_transport::udp::{Udp, UdpConfig, arena_len, inspect};
use eft_transport::{In, Out};
use std::net::IpAddr;
use zerocopy::{FromZeros, IntoBytes};

const FAMILY: FamilyId = FamilyId(3);
const GEOMETRY: Geometry = Geometry { slots: 32, send_len: 1 << 18, receive_len: 1 << 18 };
const PACKETS: PoolId = PoolId(3);
const ROOM: usize = 256;

fn v4(a: [u8; 4]) -> WireAddress {
    IpAddr::from(a).into()
}

const OWN: [u8; 4] = [10, 0, 0, 1];
const PEER: [u8; 4] = [10, 0, 0, 2];

struct Host {
    udp: Udp,
    config: UdpConfig,
    durable: Segment,
    arena: Arena,
    memory: Memory,
    packets: Pool,
    status: Status,
    random: Random,
    out: Outbox<Out>,
    now: Instant,
    next: u32,
    life: u16,
    /// Sends that ip has not answered.
    pending: Vec<RequestId>,
    answer_sends: bool,
    route_errno: i32,
    effects: Vec<Effect>,
    sent: Vec<(SendDescriptor, Vec<u8>)>,
    refused: usize,
}

impl Host {
    fn new() -> Host {
        Host::of(UdpConfig { sockets: 32, sockets_per_family: 12, seed: 1, ..UdpConfig::default() }, GEOMETRY)
    }

    fn of(config: UdpConfig, geometry: Geometry) -> Host {
        let durable = Segment::heap(arena_len(&config));
        let arena = Arena::new(Segment::heap(geometry.arena_len()), geometry).unwrap();
        let packets = Pool::new(PACKETS, Segment::heap(8 << 16), 1 << 16);
        let headers = Pool::new(PoolId(10), Segment::heap(64 * SEND_SLOT_LEN), SEND_SLOT_LEN);
        let mut memory = Memory::new();
        memory.insert(PoolId(10), headers.view().clone());
        memory.insert(PACKETS, packets.view().clone());
        memory.insert(PoolId(2), arena.view());
        let mut host = Host {
            udp: Udp::open(durable.clone(), headers, config).unwrap(),
            config,
            durable,
            arena,
            memory,
            packets,
            status: Status::heap(),
            random: Random::new(1),
            out: Outbox::new(),
            now: Instant::from_millis(1000),
            next: 0,
            life: 0,
            pending: Vec::new(),
            answer_sends: true,
            route_errno: 0,
            effects: Vec::new(),
            sent: Vec::new(),
            refused: 0,
        };
        host.begin();
        host
    }

    fn begin(&mut self) {
        let arena = self.arena.clone();
        self.event(Event::FamilyOpened { family: FAMILY, pool: PoolId(2), arena });
        self.event(Event::Configure { key: "addresses".into(), value: b"10.0.0.1/24".to_vec() });
        for peer in [ComponentId::IP, ComponentId::SOCKETS] {
            self.with(|udp, cx, out| udp.peer_reborn(cx, peer, out));
        }
        self.flush();
    }

    /// The engine dies; a successor opens its arena.
    fn crash(&mut self) {
        self.life += 1;
        let id = PoolId(10 + self.life);
        let headers = Pool::new(id, Segment::heap(64 * SEND_SLOT_LEN), SEND_SLOT_LEN);
        self.memory.insert(id, headers.view().clone());
        self.udp = Udp::open(self.durable.clone(), headers, self.config).unwrap();
        self.out = Outbox::new();
        self.pending.clear();
        self.begin();
    }

    fn with<R>(&mut self, f: impl FnOnce(&mut Udp, &mut Context, &mut Outbox<Out>) -> R) -> R {
        self.out.set_room(ComponentId::IP, ROOM, ROOM);
        self.out.set_room(ComponentId::SOCKETS, ROOM, ROOM);
        let mut cx =
            Context { now: self.now, random: &mut self.random, memory: &self.memory, status: &self.status };
        f(&mut self.udp, &mut cx, &mut self.out)
    }

    fn event(&mut self, event: Event) {
        self.with(|udp, cx, out| udp.event(cx, event, out));
    }

    /// Ends the turn, and plays ip and world until nothing more comes.
    fn flush(&mut self) -> Vec<TransportToSockets> {
        let mut replies = Vec::new();
        loop {
            self.with(|udp, cx, out| {
                if udp.deadline().is_some_and(|d| d <= cx.now) {
                    udp.expire(cx, out);
                }
                udp.flush(cx, out);
                udp.commit(cx);
            });
            let items: Vec<Out> = self.out.drain().collect();
            if items.is_empty() {
                return replies;
            }
            for item in items {
                match item {
                    Out::Sockets(m) => replies.push(m),
                    Out::Effect(e) => self.effects.push(e),
                    Out::Ip(m) => self.receive_at_ip(m),
                }
            }
        }
    }

    fn receive_at_ip(&mut self, message: TransportToIp) {
        match message {
            TransportToIp::Done { packet } => assert!(self.packets.free(packet)),
            TransportToIp::Refuse { packet } => {
                self.refused += 1;
                assert!(self.packets.free(packet));
            }
            TransportToIp::Route { request, source, .. } => {
                let source = if IpAddr::from(source).is_unspecified() { v4(OWN) } else { source };
                let errno = self.route_errno;
                self.heard_from_ip(IpToTransport::Routed {
                    request,
                    errno,
                    source,
                    mtu: 1500,
                    segment_max: 0,
                    local: false,
                });
            }
            TransportToIp::Send { request, descriptor } => {
                let d: SendDescriptor = self.memory.read_value(descriptor).unwrap();
                let mut payload = Vec::new();
                for r in &d.payload[..d.payload_count as usize] {
                    let at = payload.len();
                    payload.resize(at + r.len as usize, 0);
                    self.memory.read(*r, &mut payload[at..]).unwrap();
                }
                self.sent.push((d, payload));
                self.pending.push(request);
                if self.answer_sends {
                    self.answer_all(0);
                }
            }
        }
    }

    fn answer_all(&mut self, errno: i32) {
        for request in std::mem::take(&mut self.pending) {
            self.heard_from_ip(IpToTransport::Sent { request, errno });
        }
    }

    fn heard_from_ip(&mut self, message: IpToTransport) {
        self.with(|udp, cx, out| udp.receive(cx, ComponentId::IP, In::Ip(message), out));
    }

    fn ask(&mut self, make: impl FnOnce(RequestId) -> SocketsToTransport) -> (i32, SocketId, u16) {
        self.next += 1;
        let id = RequestId { index: self.next, generation: 1 };
        let message = make(id);
        self.with(|udp, cx, out| udp.receive(cx, ComponentId::SOCKETS, In::Sockets(message), out));
        let replies = self.flush();
        let found = replies.into_iter().find_map(|r| match r {
            TransportToSockets::Reply { request, errno, socket, port, .. } if request == id => {
                Some((errno, socket, port))
            }
            _ => None,
        });
        found.expect("an answer")
    }

    fn open(&mut self) -> SocketId {
        let socket = SocketId { family: FAMILY, slot: 0 };
        let (errno, socket, _) = self.ask(|request| SocketsToTransport::Open { request, socket });
        assert_eq!(errno, 0);
        assert_eq!(self.arena.socket(socket.slot).unwrap().owner(), Some(ComponentId::UDP));
        socket
    }

    fn bind(&mut self, socket: SocketId, address: [u8; 4], port: u16, reuse: u8) -> i32 {
        let (incarnation, address) = (self.page(socket).incarnation(), v4(address));
        self.ask(|request| SocketsToTransport::Bind { request, socket, incarnation, address, port, reuse }).0
    }

    fn connect(&mut self, socket: SocketId, address: [u8; 4], port: u16) -> i32 {
        let (incarnation, address) = (self.page(socket).incarnation(), v4(address));
        self.ask(|request| SocketsToTransport::Connect { request, socket, incarnation, address, port }).0
    }

    fn close(&mut self, socket: SocketId) {
        let incarnation = self.page(socket).incarnation();
        self.ask(|request| SocketsToTransport::Close { request, socket, incarnation });
    }

    fn page(&self, socket: SocketId) -> SocketPage {
        self.arena.socket(socket.slot).unwrap()
    }

    /// `sendto` (or `send` without a destination).
    fn send(&mut self, socket: SocketId, to: Option<([u8; 4], u16)>, payload: &[u8]) {
        let page = self.page(socket);
        let mut header = DatagramHeader { len: payload.len() as u32, ..Default::default() };
        if let Some((address, port)) = to {
            header.address = v4(address);
            header.port = port;
        }
        let at = page.send_end();
        page.write_send(at, header.as_bytes());
        page.write_send(at + size_of::<DatagramHeader>() as u64, payload);
        page.set_send_end(at + datagram_record_len(payload.len()) as u64);
        self.event(Event::Dirty(socket));
        self.flush();
    }

    /// `recvfrom`.
    fn receive(&self, socket: SocketId) -> Option<(DatagramHeader, Vec<u8>)> {
        let page = self.page(socket);
        if page.receivable() == 0 {
            return None;
        }
        let at = page.receive_taken();
        let mut header = DatagramHeader::new_zeroed();
        page.read_receive(at, header.as_mut_bytes());
        let mut payload = vec![0; header.len as usize];
        page.read_receive(at + size_of::<DatagramHeader>() as u64, &mut payload);
        page.set_receive_taken(at + datagram_record_len(payload.len()) as u64);
        Some((header, payload))
    }

    fn deliver(&mut self, bytes: &[u8], checksum_ok: bool) {
        let slot = self.packets.allocate().expect("packets are given back");
        let packet = PacketRef { len: bytes.len() as u32, ..slot };
        self.packets.write(packet, 0, bytes);
        self.heard_from_ip(IpToTransport::Deliver { packet, header_len: 20, checksum_ok, segment_size: 0 });
        self.flush();
    }

    fn counter(&self, name: &str) -> u64 {
        let i = Udp::COUNTERS.iter().position(|n| *n == name).unwrap();
        self.status.get(eft_component::server::FRAME_COUNTERS.len() + i)
    }
}

/// An IPv4 packet with a UDP datagram, checksum included.
fn datagram(from: ([u8; 4], u16), to: ([u8; 4], u16), payload: &[u8]) -> Vec<u8> {
    let mut b = vec![0u8; 28];
    b[0] = 0x45;
    b[8] = 61;
    b[9] = 17;
    b[12..16].copy_from_slice(&from.0);
    b[16..20].copy_from_slice(&to.0);
    b[20..22].copy_from_slice(&from.1.to_be_bytes());
    b[22..24].copy_from_slice(&to.1.to_be_bytes());
    let len = (8 + payload.len()) as u16;
    b[24..26].copy_from_slice(&len.to_be_bytes());
    b.extend_from_slice(payload);
    let sum = Checksum::new()
        .add_pseudo_header(from.0.into(), to.0.into(), 17, len as u32)
        .add_bytes(&b[20..])
        .finish();
    b[26..28].copy_from_slice(&sum.to_be_bytes());
    b
}

#[test]
fn a_datagram_goes_out_by_reference_and_its_space_comes_back() {
    let mut h = Host::new();
    let s = h.open();
    h.answer_sends = false;
    h.send(s, Some((PEER, 53)), b"question");
    let (d, payload) = h.sent.pop().unwrap();
    assert_eq!(payload, b"question");
    assert_eq!((d.source, d.destination, d.protocol), (v4(OWN), v4(PEER), 17));
    assert_eq!(&d.header[2..4], &53u16.to_be_bytes());
    assert_eq!(&d.header[4..6], &16u16.to_be_bytes());
    let sum = Checksum::new().add_pseudo_header(OWN.into(), PEER.into(), 17, 16).partial();
    assert_eq!(&d.header[6..8], &sum.to_be_bytes());
    assert_eq!(h.page(s).send_released(), 0, "ip still refers to it");
    assert!(h.page(s).local().port >= 32768);
    h.answer_all(0);
    h.flush();
    assert_eq!(h.page(s).send_released(), h.page(s).send_end());
}

#[test]
fn the_largest_datagram_passes_and_a_larger_one_does_not() {
    let mut h = Host::new();
    let s = h.open();
    let bytes: Vec<u8> = (0..65507u32).map(|i| (i * 7) as u8).collect();
    for round in 0..10 {
        h.send(s, Some((PEER, 9)), &bytes);
        assert_eq!(h.sent.pop().unwrap().1, bytes, "round {round}");
    }
    h.send(s, Some((PEER, 9)), &[&bytes[..], &[1]].concat());
    assert!(h.sent.is_empty());
    assert_eq!(h.page(s).take_error(), EMSGSIZE);
    h.send(s, Some((PEER, 9)), b"after");
    assert_eq!(h.sent.len(), 1);
}

#[test]
fn what_arrives_is_recorded_whole_and_in_order() {
    let mut h = Host::new();
    let s = h.open();
    assert_eq!(h.bind(s, [0; 4], 53, 0), 0);
    let mut random = Random::new(5);
    for round in 0..500u32 {
        let payload: Vec<u8> = (0..random.below(3000)).map(|_| random.next_u32() as u8).collect();
        h.deliver(&datagram((PEER, 4000), (OWN, 53), &payload), round % 2 == 0);
        let (header, got) = h.receive(s).expect("a datagram");
        assert_eq!(got, payload);
        assert_eq!((header.address, header.port), (v4(PEER), 4000));
        assert_eq!((header.local, header.local_port, header.ttl), (v4(OWN), 53, 61));
    }
    assert!(h.effects.contains(&Effect::Readable(s)));
    assert_eq!(h.packets.available(), h.packets.slots());
}

#[test]
fn bad_datagrams_are_counted_and_dropped() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, [0; 4], 53, 0);
    let good = datagram((PEER, 4000), (OWN, 53), b"payload");
    let mut flipped = good.clone();
    flipped[30] ^= 1;
    h.deliver(&flipped, false);
    assert_eq!(h.counter("drop_checksum"), 1);
    let mut unsummed = flipped.clone();
    unsummed[26..28].fill(0);
    h.deliver(&unsummed, false);
    assert!(h.receive(s).is_some(), "no checksum is no wrong checksum");
    let mut long = good.clone();
    long[25] = 200;
    h.deliver(&long, true);
    h.deliver(&good[..24], true);
    assert_eq!(h.counter("drop_malformed"), 2);
    assert!(h.receive(s).is_none());
    // Padding behind the datagram is none of it.
    h.deliver(&[&good[..], &[0; 11]].concat(), true);
    assert_eq!(h.receive(s).unwrap().1, b"payload");
    h.deliver(&datagram((PEER, 4000), (OWN, 54), b"x"), true);
    assert_eq!((h.counter("drop_no_socket"), h.refused), (1, 1));
    let mut random = Random::new(1);
    for _ in 0..5000 {
        let mut b = good.clone();
        for _ in 0..1 + random.below(6) {
            let at = random.below(b.len() as u64) as usize;
            b[at] = random.next_u32() as u8;
        }
        b.truncate(random.below(b.len() as u64 + 1) as usize);
        h.deliver(&b, random.below(2) == 0);
        while h.receive(s).is_some() {}
    }
    assert_eq!(h.packets.available(), h.packets.slots());
}

#[test]
fn a_full_ring_drops_and_goes_on() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, [0; 4], 53, 0);
    let payload = vec![7; 10_000];
    for _ in 0..100 {
        h.deliver(&datagram((PEER, 1), (OWN, 53), &payload), true);
    }
    let kept = (1 << 18) / datagram_record_len(10_000);
    assert_eq!(h.counter("drop_ring_full"), 100 - kept as u64);
    for _ in 0..kept {
        assert_eq!(h.receive(s).unwrap().1.len(), 10_000);
    }
    h.deliver(&datagram((PEER, 1), (OWN, 53), b"again"), true);
    assert_eq!(h.receive(s).unwrap().1, b"again");
}

#[test]
fn the_best_fitting_socket_gets_it() {
    let mut h = Host::new();
    let (any, own, connected) = (h.open(), h.open(), h.open());
    for s in [any, own, connected] {
        assert_eq!(h.bind(s, if s == any { [0; 4] } else { OWN }, 53, 1), 0);
    }
    assert_eq!(h.connect(connected, PEER, 4000), 0);
    h.deliver(&datagram((PEER, 4000), (OWN, 53), b"c"), true);
    h.deliver(&datagram((PEER, 4001), (OWN, 53), b"o"), true);
    h.deliver(&datagram((PEER, 4001), ([10, 0, 0, 255], 53), b"b"), true);
    assert_eq!(h.receive(connected).unwrap().1, b"c");
    assert_eq!(h.receive(own).unwrap().1, b"o");
    assert_eq!(h.receive(any).unwrap().1, b"b");
    assert!(h.receive(connected).is_none() && h.receive(own).is_none());
}

#[test]
fn connect_chooses_the_source_and_disconnect_forgets_it() {
    let mut h = Host::new();
    let s = h.open();
    h.send(s, None, b"nowhere");
    assert_eq!(h.page(s).take_error(), EDESTADDRREQ);
    assert_eq!(h.connect(s, PEER, 53), 0);
    assert_eq!(h.page(s).local().address, IpAddr::from(OWN));
    assert_eq!(h.page(s).remote().port, 53);
    h.send(s, None, b"there");
    assert_eq!(h.sent.pop().unwrap().0.destination, v4(PEER));
    assert_eq!(h.connect(s, [0; 4], 0), 0);
    assert!(h.page(s).local().address.is_unspecified());
    h.route_errno = ENETUNREACH;
    h.now = Instant::from_millis(60_000);
    assert_eq!(h.connect(s, [99, 0, 0, 1], 53), ENETUNREACH);
    h.send(s, Some(([99, 0, 0, 1], 53)), b"x");
    assert_eq!(h.page(s).take_error(), ENETUNREACH);
    h.route_errno = 0;
    assert_eq!(h.connect(s, [10, 0, 0, 255], 53), EACCES);
    h.page(s).set_option(Opt::Broadcast, 1);
    assert_eq!(h.connect(s, [10, 0, 0, 255], 53), 0);
}

#[test]
fn a_peer_on_the_loopback_needs_no_way_and_shuts_out_everybody_else() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, [0; 4], 53, 0);
    h.route_errno = ENETUNREACH;
    assert_eq!(h.connect(s, [127, 0, 0, 53], 4000), 0);
    for _ in 0..2 {
        assert_eq!(h.page(s).local(), Endpoint::new([127, 0, 0, 1].into(), 53));
        assert_eq!(h.page(s).remote(), Endpoint::new([127, 0, 0, 53].into(), 4000));
        let refused = h.refused;
        h.deliver(&datagram((PEER, 4000), (OWN, 53), b"no"), true);
        assert_eq!((h.receive(s).is_none(), h.refused), (true, refused + 1));
        h.crash();
    }
    h.route_errno = 0;
    assert_eq!(h.connect(s, PEER, 4000), 0);
    assert_eq!(h.page(s).local(), Endpoint::new(OWN.into(), 53));
    assert_eq!(h.connect(s, [127, 0, 0, 1], 4000), 0);
    assert_eq!(h.connect(s, [0; 4], 0), 0);
    h.deliver(&datagram((PEER, 9), (OWN, 53), b"yes"), true);
    assert_eq!(h.receive(s).unwrap().1, b"yes");
}

const ROUTER: [u8; 4] = [10, 0, 0, 254];

/// What ip says when a router answers `quote` with an error.
fn icmp_error(h: &mut Host, quote: &[u8], kind: u8, code: u8, info: u16) {
    let slot = h.packets.allocate().unwrap();
    let packet = PacketRef { len: quote.len() as u32, ..slot };
    h.packets.write(packet, 0, quote);
    let offender = IpAddr::from(ROUTER).into();
    h.heard_from_ip(IpToTransport::Error {
        packet,
        header_len: 20,
        kind,
        code,
        info,
        offender,
        ttl: 61,
        tos: 0xc0,
    });
    h.flush();
}

/// Takes the next error as an application does: it, and the quoted bytes.
fn take_queued(h: &Host, s: SocketId) -> Option<(ErrorRecord, Vec<u8>)> {
    let page = h.page(s);
    page.has_errors().then(|| {
        let mut quote = [0; QUOTE_MAX];
        let record = page.read_error(page.errors_taken(), &mut quote);
        page.set_errors_taken(page.errors_taken().wrapping_add(1));
        (record, quote[..record.len as usize].to_vec())
    })
}

#[test]
fn errors_are_queued_for_who_asks_for_them_connected_or_not() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, OWN, 5000, 0);
    let quote = datagram((OWN, 5000), (PEER, 33434), b"probe");
    icmp_error(&mut h, &quote, 11, 0, 0);
    assert!(!h.page(s).has_errors(), "nobody asked");
    h.page(s).set_option(Opt::ReceiveErrors, 1);
    icmp_error(&mut h, &quote, 11, 0, 0);
    assert_eq!(h.page(s).take_error(), EHOSTUNREACH);
    let address = |a: [u8; 4]| WireAddress::from(IpAddr::from(a));
    let expected = ErrorRecord {
        destination: address(PEER),
        offender: address(ROUTER),
        local: address(OWN),
        port: 33434,
        len: 5,
        errno: EHOSTUNREACH,
        info: 0,
        kind: 11,
        code: 0,
        ttl: 61,
        tos: 0xc0,
    };
    assert_eq!(take_queued(&h, s), Some((expected, b"probe".to_vec())));
    assert_eq!(take_queued(&h, s), None);
    // A router that quotes no more than it must; a datagram of somebody else's.
    icmp_error(&mut h, &quote[..28], 3, 3, 0);
    icmp_error(&mut h, &datagram((OWN, 5001), (PEER, 33434), b"probe"), 11, 0, 0);
    let (record, bytes) = take_queued(&h, s).unwrap();
    assert_eq!((record.errno, bytes.len(), h.page(s).has_errors()), (ECONNREFUSED, 0, false));
    // The path's MTU matters to who forbids fragments.
    icmp_error(&mut h, &quote, 3, 4, 1280);
    assert_eq!(take_queued(&h, s), None);
    h.page(s).set_option(Opt::DontFragment, 1);
    icmp_error(&mut h, &quote, 3, 4, 1280);
    let (record, _) = take_queued(&h, s).unwrap();
    assert_eq!((record.errno, record.info), (EMSGSIZE, 1280));
    for (kind, code, errno) in [(3, 0, 101), (3, 1, 113), (3, 2, 92), (3, 7, 112), (3, 13, 113), (12, 0, 71)]
    {
        icmp_error(&mut h, &quote, kind, code, 0);
        assert_eq!(take_queued(&h, s).unwrap().0.errno, errno, "{kind} {code}");
    }
}

#[test]
fn an_error_queue_is_bounded_and_survives_the_engine() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, OWN, 5000, 0);
    h.page(s).set_option(Opt::ReceiveErrors, 1);
    let quote = |n: u8| datagram((OWN, 5000), (PEER, 100), &[n; 400]);
    for n in 0..12 {
        icmp_error(&mut h, &quote(n), 11, 0, 0);
    }
    assert_eq!(h.counter("drop_icmp"), 12 - ERRORS_MAX);
    for n in 0..3 {
        assert_eq!(take_queued(&h, s).unwrap().1, [n; QUOTE_MAX]);
    }
    h.crash();
    icmp_error(&mut h, &quote(77), 11, 0, 0);
    let rest: Vec<u8> = std::iter::from_fn(|| take_queued(&h, s)).map(|(_, bytes)| bytes[0]).collect();
    assert_eq!(rest, [3, 4, 5, 6, 7, 77]);
    // Who scribbles over the queue hurts itself.
    for taken in [u64::MAX, 1 << 40, 0] {
        h.page(s).set_errors_taken(taken);
        icmp_error(&mut h, &quote(1), 11, 0, 0);
    }
    h.page(s).set_errors_end(u64::MAX);
    h.page(s).set_errors_taken(u64::MAX);
    h.crash();
    icmp_error(&mut h, &quote(9), 11, 0, 0);
    assert_eq!(take_queued(&h, s).unwrap().1[0], 9);
}

#[test]
fn errors_of_the_network_reach_the_connected_socket_only() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, OWN, 5000, 0);
    let quote = datagram((OWN, 5000), (PEER, 53), b"");
    let error = |h: &mut Host| icmp_error(h, &quote, 3, 3, 0);
    error(&mut h);
    assert_eq!(h.page(s).error(), 0);
    h.connect(s, PEER, 53);
    error(&mut h);
    assert_eq!(h.page(s).take_error(), ECONNREFUSED);
    assert_eq!((h.counter("icmp_applied"), h.counter("drop_icmp")), (1, 1));
}

#[test]
fn sockets_survive_the_engine() {
    let mut h = Host::new();
    let (a, b) = (h.open(), h.open());
    h.bind(a, [0; 4], 53, 0);
    h.connect(b, PEER, 99);
    h.deliver(&datagram((PEER, 1), (OWN, 53), b"before"), true);
    for round in 0..20u8 {
        h.answer_sends = round % 2 == 0;
        h.send(b, None, &[round]);
        h.crash();
        h.deliver(&datagram((PEER, 1), (OWN, 53), &[round]), true);
    }
    assert_eq!(h.receive(a).unwrap().1, b"before");
    for round in 0..20u8 {
        assert_eq!(h.receive(a).unwrap().1, [round]);
    }
    assert_eq!(h.page(b).send_released(), h.page(b).send_end());
    assert_eq!(h.page(b).remote().port, 99);
    assert!(h.effects.iter().filter(|e| **e == Effect::Readable(a)).count() >= 20);
    assert_eq!(inspect::list(&h.durable.read_only()).unwrap().len(), 2);
    assert_eq!(h.counter("rebirths"), 20);
    // Nothing was given away.
    let c = h.open();
    assert_eq!(h.bind(c, [0; 4], 53, 0), EADDRINUSE);
}

#[test]
fn a_reborn_ip_gets_everything_again() {
    let mut h = Host::new();
    let s = h.open();
    h.answer_sends = false;
    for i in 0..10u8 {
        h.send(s, Some((PEER, 9)), &[i]);
    }
    h.sent.clear();
    h.pending.clear();
    h.with(|udp, cx, out| udp.peer_reborn(cx, ComponentId::IP, out));
    h.flush();
    let again: Vec<Vec<u8>> = h.sent.iter().map(|s| s.1.clone()).collect();
    assert_eq!(again, (0..10u8).map(|i| vec![i]).collect::<Vec<_>>());
    h.answer_all(0);
    h.flush();
    assert_eq!(h.page(s).send_released(), h.page(s).send_end());
}

#[test]
fn a_closed_socket_sends_what_it_was_given_and_frees_its_slot_after() {
    let mut h = Host::new();
    let s = h.open();
    h.connect(s, PEER, 9);
    h.answer_sends = false;
    h.send(s, None, b"last words");
    h.close(s);
    assert_eq!(h.sent.len(), 1);
    assert_eq!(h.counter("blocks"), 1, "ip still refers to the ring");
    h.answer_all(0);
    h.flush();
    assert_eq!(h.counter("blocks"), 0);
}

#[test]
fn quotas_and_families() {
    let mut h = Host::new();
    let sockets: Vec<SocketId> = (0..12).map(|_| h.open()).collect();
    let socket = SocketId { family: FAMILY, slot: 0 };
    assert_eq!(h.ask(|request| SocketsToTransport::Open { request, socket }).0, EMFILE);
    assert_eq!(
        h.ask(|request| SocketsToTransport::Listen {
            request,
            socket: sockets[0],
            incarnation: 1,
            backlog: 1
        })
        .0,
        EOPNOTSUPP
    );
    assert_eq!(h.ask(|request| SocketsToTransport::CloseFamily { request, socket, pool: PoolId(2) }).0, 0);
    assert_eq!(h.counter("blocks"), 0);
    assert_eq!(h.ask(|request| SocketsToTransport::Open { request, socket }).0, EINVAL);
}

#[test]
fn a_scribbled_page_costs_its_own_socket_only() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let mut h = Host::new();
        let (mad, sane) = (h.open(), h.open());
        h.bind(mad, [0; 4], 52, 0);
        h.bind(sane, [0; 4], 53, 0);
        for _ in 0..20 {
            let page = h.page(mad);
            match random.below(4) {
                0 => page.set_send_end(random.next_u64() >> random.below(64)),
                1 => page.set_receive_taken(random.next_u64() >> random.below(64)),
                2 => {
                    let noise: Vec<u8> = (0..4096).map(|_| random.next_u32() as u8).collect();
                    page.write_send(0, &noise);
                    page.set_send_end(random.below(4096) / 8 * 8);
                }
                _ => page.set_option(Opt::ReceiveBuffer, random.next_u32()),
            }
            h.event(Event::Dirty(mad));
            h.flush();
            h.deliver(&datagram((PEER, 1), (OWN, 52), b"mad"), true);
            h.deliver(&datagram((PEER, 1), (OWN, 53), b"sane"), true);
            assert_eq!(h.receive(sane).unwrap().1, b"sane", "seed {seed}");
            h.sent.clear();
            h.send(sane, Some((PEER, 7)), b"still here");
            assert!(h.sent.iter().any(|s| s.1 == b"still here"), "seed {seed}");
        }
    }
}

#[test]
fn a_socket_of_an_earlier_stack_goes_on_where_its_rings_are() {
    let mut h = Host::new();
    let page = h.arena.socket(5).unwrap();
    page.reset(ComponentId::UDP);
    let incarnation = page.incarnation();
    let restore = |h: &mut Host, incarnation| {
        let socket = SocketId { family: FAMILY, slot: 5 };
        h.ask(|request| SocketsToTransport::Restore { request, socket, incarnation })
    };
    for (taken, end, sent) in [(8, 0, 0), (0, u64::MAX, 0), (0, 0, u64::MAX), (0, 0, 4), (0, 4, 0)] {
        page.set_receive_end(end);
        page.set_receive_taken(taken);
        page.set_send_end(sent);
        assert_eq!(restore(&mut h, incarnation).0, EINVAL, "{taken} {end} {sent}");
    }
    // Two datagrams were received, of which one was read; one was never sent.
    page.set_receive_end(112);
    page.set_receive_taken(56);
    page.set_send_end(56);
    assert_eq!(restore(&mut h, incarnation + 1).0, EINVAL);
    let (errno, socket, _) = restore(&mut h, incarnation);
    assert_eq!((errno, socket.slot, page.incarnation()), (0, 5, incarnation));
    assert_eq!(restore(&mut h, incarnation).0, 0, "asked again");
    assert_eq!((page.receivable(), page.send_released()), (56, 56));
    assert_eq!(h.bind(socket, [0; 4], 9, 0), 0);
    assert!((0..6).all(|_| h.open() != socket));
    h.deliver(&datagram(([10, 0, 0, 2], 7), ([10, 0, 0, 1], 9), b"after"), true);
    page.set_receive_taken(112);
    assert_eq!(h.receive(socket).unwrap().1, b"after");
    let before = h.counter("sent_datagrams");
    h.send(socket, Some(([10, 0, 0, 2], 7)), b"and back");
    assert_eq!(h.counter("sent_datagrams"), before + 1, "what was not sent then is not sent now");
}

#[test]
fn a_late_request_finds_nobody_rather_than_the_slots_next_socket() {
    let mut h = Host::new();
    let old = h.open();
    let incarnation = h.page(old).incarnation();
    h.close(old);
    h.crash();
    let new = h.open();
    assert_eq!(new, old, "a reborn engine gives out the lowest slots first");
    let (address, port) = (v4(OWN), 53);
    let bind =
        |request| SocketsToTransport::Bind { request, socket: old, incarnation, address, port, reuse: 0 };
    assert_eq!(h.ask(bind).0, EINVAL);
    let connect = |request| SocketsToTransport::Connect { request, socket: old, incarnation, address, port };
    assert_eq!(h.ask(connect).0, EINVAL);
    h.ask(|request| SocketsToTransport::Close { request, socket: old, incarnation });
    let socket = old;
    h.ask(|request| SocketsToTransport::CloseFamily { request, socket, pool: PoolId(77) });
    assert_eq!(h.bind(new, OWN, 53, 0), 0, "the new socket is untouched");
}

/// Wishes, and what the descriptor is to show of them.
#[test]
fn a_shutdown_shows_in_the_descriptor_also_after_a_crash() {
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, OWN, 5000, 0);
    let dirty = |h: &mut Host, wish: u32| {
        h.page(s).add_wish(wish);
        h.effects.clear();
        h.event(Event::Dirty(s));
        h.flush();
        h.effects.clone()
    };
    assert!(!dirty(&mut h, 0).contains(&Effect::EndOfStream(s)));
    assert!(dirty(&mut h, wish::SHUT_READ).contains(&Effect::EndOfStream(s)));
    let over = dirty(&mut h, wish::SHUT_WRITE);
    assert!(over.contains(&Effect::HangUp(s)) && !over.contains(&Effect::EndOfStream(s)), "{over:?}");
    h.crash();
    assert!(dirty(&mut h, 0).contains(&Effect::HangUp(s)));
    let other = h.open();
    h.bind(other, OWN, 5001, 0);
    h.page(other).add_wish(wish::SHUT_WRITE);
    h.effects.clear();
    h.event(Event::Dirty(other));
    h.flush();
    let ends = |e: &&Effect| matches!(e, Effect::HangUp(_) | Effect::EndOfStream(_));
    assert_eq!(h.effects.iter().filter(ends).count(), 0, "sending alone is over");
}

#[test]
fn a_turn_serves_so_many_sockets_and_no_more() {
    const SOCKETS: usize = 1000;
    let config =
        UdpConfig { sockets: SOCKETS + 24, sockets_per_family: SOCKETS, seed: 1, ..UdpConfig::default() };
    let geometry = Geometry { slots: 4 * SOCKETS, send_len: 1 << 12, receive_len: 1 << 12 };
    let mut h = Host::of(config, geometry);
    let sockets: Vec<SocketId> = (0..SOCKETS).map(|_| h.open()).collect();
    for s in sockets {
        h.page(s).add_wish(wish::SHUT_READ | wish::SHUT_WRITE);
        h.event(Event::Dirty(s));
    }
    let (mut turns, mut most, mut all) = (0, 0, 0);
    loop {
        h.with(|udp, cx, out| {
            udp.flush(cx, out);
            udp.commit(cx);
        });
        let served = h.out.drain().filter(|item| matches!(item, Out::Effect(Effect::HangUp(_)))).count();
        if served == 0 {
            break;
        }
        // Those whose turn did not come have it at once.
        let waits = all + served < SOCKETS;
        assert_eq!(h.with(|udp, cx, _| udp.deadline().is_some_and(|at| at <= cx.now)), waits);
        (turns, most, all) = (turns + 1, most.max(served), all + served);
    }
    assert_eq!(all, SOCKETS, "everybody has a turn");
    assert!(most <= 256 && turns >= 4, "{turns} turns, {most} in one");
}
