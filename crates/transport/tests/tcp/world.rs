//! Two engines, a network between them, and virtual time. Everything follows from the seed.

use crate::app::App;
use eft_base::checksum::Checksum;
use eft_base::{FamilyId, Instant, PacketRef, PoolId, Random, RequestId, SocketId, WireAddress};
use eft_channel::access::AccessObserver;
use eft_channel::memory::PoolView;
use eft_channel::socket::{Arena, Geometry, SocketPage};
use eft_channel::status::Status;
use eft_channel::{Memory, Pool, Segment};
use eft_component::transport::{Effect, Event};
use eft_component::{Component, Context, Outbox};
use eft_messages::ComponentId;
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};
use eft_messages::transport::{IpToTransport, SEND_SLOT_LEN, SendDescriptor, TransportToIp};
use eft_transport::tcp::block::{Block, Cold};
use eft_transport::tcp::{Tcp, TcpConfig, arena_len};
use eft_transport::{FUSE_BURNT, Fuse};
use eft_transport::{In, Out};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

pub const FAMILY: FamilyId = FamilyId(7);
pub const ARENA_POOL: PoolId = PoolId(2);
const PACKET_POOL: PoolId = PoolId(3);
const PACKET_SLOTS: usize = 256;
const PACKET_LEN: usize = 1 << 16;
const IP_HEADER: usize = 20;
const TCP_HEADER: usize = 20;
/// A test that needs more events than this goes in circles.
const CRASHES_MAX: u64 = 100;
const EVENTS_MAX: u64 = 5_000_000;

/// What the network and the machine do to the engines.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    pub loss: f64,
    pub duplicate: f64,
    pub corrupt: f64,
    pub delay_us: u64,
    pub jitter_us: u64,
    pub mtu: u16,
    /// 0: the device does not segment.
    pub segment_max: u32,
    /// Large segments arrive as the wire segments that they were.
    pub split: bool,
    /// The receiver must check checksums itself.
    pub checksum: bool,
    /// Bytes per microsecond; 0: unlimited.
    pub rate: u64,
    /// Bytes that wait for the link at most (with a rate).
    pub queue: u64,
    /// Chance per event that an engine dies.
    pub crash: f64,
    /// Chance per event that a side's ip is reborn.
    pub ip_crash: f64,
    /// Places in the queue to ip.
    pub room: usize,
    pub ring: usize,
    pub strip_sack: bool,
    pub strip_timestamps: bool,
    /// Blocks of an engine; half as many sockets.
    pub connections: usize,
}

impl Default for Conditions {
    fn default() -> Self {
        Conditions {
            loss: 0.0,
            duplicate: 0.0,
            corrupt: 0.0,
            delay_us: 100,
            jitter_us: 0,
            mtu: 1500,
            segment_max: 65000,
            split: false,
            checksum: false,
            rate: 0,
            queue: 1 << 20,
            crash: 0.0,
            ip_crash: 0.0,
            room: 512,
            ring: 1 << 20,
            strip_sack: false,
            strip_timestamps: false,
            connections: 64,
        }
    }
}

/// A packet on the wire.
#[derive(Clone, Debug)]
pub struct Packet {
    pub bytes: Vec<u8>,
    pub segment_size: u16,
}

impl Packet {
    pub fn flags(&self) -> u8 {
        self.bytes[IP_HEADER + 13]
    }
    pub fn seq(&self) -> u32 {
        be32(&self.bytes[IP_HEADER + 4..])
    }
    pub fn ack(&self) -> u32 {
        be32(&self.bytes[IP_HEADER + 8..])
    }
    pub fn window(&self) -> u16 {
        u16::from_be_bytes([self.bytes[IP_HEADER + 14], self.bytes[IP_HEADER + 15]])
    }
    pub fn header_len(&self) -> usize {
        (self.bytes[IP_HEADER + 12] >> 4) as usize * 4
    }
    pub fn payload(&self) -> &[u8] {
        &self.bytes[IP_HEADER + self.header_len()..]
    }
}

fn be32(b: &[u8]) -> u32 {
    u32::from_be_bytes([b[0], b[1], b[2], b[3]])
}

pub enum Happening {
    Packet(usize, Packet),
    Sent(usize, u64, RequestId),
    Run(usize),
}

struct Entry {
    at: Instant,
    order: u64,
    what: Happening,
}

impl PartialEq for Entry {
    fn eq(&self, o: &Self) -> bool {
        (self.at, self.order) == (o.at, o.order)
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, o: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(o))
    }
}
impl Ord for Entry {
    fn cmp(&self, o: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(o.at, o.order))
    }
}

/// One host: an engine, its ip and sockets (played by the world), one family.
pub struct Side {
    pub tcp: Option<Tcp>,
    config: TcpConfig,
    pub durable: Segment,
    pub memory: Memory,
    pub status: Status,
    random: Random,
    pub out: Outbox<Out>,
    pub arena: Arena,
    packets: Pool,
    header_pool: PoolId,
    /// Life of the engine.
    pub life: u64,
    next_request: u32,
    /// Requests of sockets that are not answered.
    pub unanswered: BTreeMap<RequestId, SocketsToTransport>,
    pub app: App,
    pub address: WireAddress,
    link_free_at: Instant,
    /// Largest payload of one `Send`, and the number of `Send`s.
    pub largest: usize,
    pub sends: u64,
    /// Connections and timers handled in one turn, the most of all turns.
    pub longest_turn: u64,
    unanswered_sends: Vec<RequestId>,
    /// How many accesses of its blocks and of pages an engine of this side survives; 0: all.
    pub fuse: u64,
    /// The engine died in the middle of a call.
    died: bool,
}

/// A word in a page is an access, too.
struct Burning(Fuse);

impl AccessObserver for Burning {
    fn read(&self, _: usize, _: &mut [u8]) {}

    fn wrote(&self, _: usize, _: &[u8]) {
        self.0.burn();
    }
}

pub struct World {
    pub now: Instant,
    pub conditions: Conditions,
    pub random: Random,
    pub sides: [Side; 2],
    heap: BinaryHeap<Reverse<Entry>>,
    order: u64,
    pub seed: u64,
    /// Packets as they left, if they are to be looked at.
    pub capture: Option<Vec<(Instant, usize, Packet)>>,
    pub events: u64,
    pub crashes: u64,
    pub ip_crashes: u64,
    /// Packets may be larger than the MTU: ip would refuse them.
    pub lenient: bool,
    /// While set, packets to this side are swallowed.
    pub blackhole: [bool; 2],
}

impl Side {
    fn new(index: usize, seed: u64, conditions: &Conditions) -> Side {
        let config = TcpConfig {
            connections: conditions.connections,
            sockets_per_family: conditions.connections / 2,
            listeners_per_family: 4,
            seed: seed ^ index as u64,
            ..TcpConfig::default()
        };
        let geometry = Geometry {
            slots: conditions.connections,
            send_len: conditions.ring,
            receive_len: conditions.ring,
        };
        let arena = Arena::new(Segment::heap(geometry.arena_len()), geometry).unwrap();
        let durable = Segment::heap(arena_len(&config));
        let mut memory = Memory::new();
        memory.insert(ARENA_POOL, arena.view());
        let packets = Pool::new(PACKET_POOL, Segment::heap(PACKET_SLOTS * PACKET_LEN), PACKET_LEN);
        memory.insert(PACKET_POOL, packets.view().clone());
        let address = std::net::IpAddr::from([10, 0, 0, index as u8 + 1]).into();
        let mut side = Side {
            tcp: None,
            config,
            durable,
            memory,
            status: Status::heap(),
            random: Random::new(seed ^ 0x5eed ^ index as u64),
            out: Outbox::new(),
            arena,
            packets,
            header_pool: PoolId(10),
            life: 0,
            next_request: 0,
            unanswered: BTreeMap::new(),
            app: App::default(),
            address,
            link_free_at: Instant::ZERO,
            largest: 0,
            sends: 0,
            longest_turn: 0,
            unanswered_sends: Vec::new(),
            fuse: 0,
            died: false,
        };
        side.start(Instant::ZERO, conditions.room);
        side
    }

    /// A new life of the engine on the same arena.
    pub fn start(&mut self, now: Instant, room: usize) {
        self.memory.remove(self.header_pool);
        self.life += 1;
        self.header_pool = PoolId(10 + (self.life % 1000) as u16);
        let headers = Pool::new(self.header_pool, Segment::heap(512 * SEND_SLOT_LEN), SEND_SLOT_LEN);
        self.memory.insert(self.header_pool, headers.view().clone());
        self.tcp = Some(Tcp::open(self.durable.clone(), headers, self.config).unwrap());
        self.out = Outbox::new();
        self.unanswered_sends.clear();
        let fuse = self.tcp.as_ref().unwrap().fuse();
        fuse.light(self.fuse);
        let arena = self.arena.clone().observed_by(Arc::new(Burning(fuse)));
        let opened = Event::FamilyOpened { family: FAMILY, pool: ARENA_POOL, arena };
        self.event(now, opened, room);
        for peer in [ComponentId::IP, ComponentId::SOCKETS] {
            self.with(now, room, |tcp, cx, out| tcp.peer_reborn(cx, peer, out));
        }
        for message in self.unanswered.values().copied().collect::<Vec<_>>() {
            self.receive(now, ComponentId::SOCKETS, In::Sockets(message), room);
        }
    }

    pub fn with<R: Default>(
        &mut self,
        now: Instant,
        room: usize,
        f: impl FnOnce(&mut Tcp, &mut Context, &mut Outbox<Out>) -> R,
    ) -> R {
        self.out.set_room(ComponentId::IP, room, room);
        self.out.set_room(ComponentId::SOCKETS, 100, 100);
        let mut cx = Context { now, random: &mut self.random, memory: &self.memory, status: &self.status };
        let Some(tcp) = self.tcp.as_mut().filter(|_| !self.died) else {
            return R::default();
        };
        if tcp.fuse().left() == 0 {
            return f(tcp, &mut cx, &mut self.out);
        }
        let out = &mut self.out;
        let whole = std::panic::catch_unwind(AssertUnwindSafe(|| f(tcp, &mut cx, out)));
        whole.unwrap_or_else(|why| {
            let said =
                why.downcast_ref::<String>().map(String::as_str).or(why.downcast_ref::<&str>().copied());
            assert_eq!(said, Some(FUSE_BURNT));
            self.died = true;
            R::default()
        })
    }

    /// Lights the fuse of the engine that lives.
    pub fn light(&mut self, steps: u64) {
        self.tcp.as_ref().unwrap().fuse().light(steps);
    }

    pub fn event(&mut self, now: Instant, event: Event, room: usize) {
        self.with(now, room, |tcp, cx, out| tcp.event(cx, event, out));
    }

    pub fn receive(&mut self, now: Instant, from: ComponentId, message: In, room: usize) {
        self.with(now, room, |tcp, cx, out| tcp.receive(cx, from, message, out));
    }

    /// Received packets that the engine has not given back.
    pub fn packets_in_use(&self) -> usize {
        self.packets.slots() - self.packets.available()
    }

    /// Which use of its slot a socket is; 0 if there is no such slot.
    pub fn incarnation(&self, socket: SocketId) -> u32 {
        self.arena.socket(socket.slot).map_or(0, |page| page.incarnation())
    }

    pub fn page(&self, socket: SocketId) -> SocketPage {
        self.arena.socket(socket.slot).unwrap()
    }

    /// Hands an ICMP error that quotes `quote` to the engine, as ip would.
    pub fn deliver_error(&mut self, now: Instant, quote: &[u8], kind: u8, code: u8, mtu: u16, room: usize) {
        let slot = self.packets.allocate().unwrap();
        let packet = PacketRef { len: quote.len() as u32, ..slot };
        self.packets.write(packet, 0, quote);
        let message = IpToTransport::Error {
            packet,
            header_len: IP_HEADER as u16,
            kind,
            code,
            info: mtu,
            offender: Default::default(),
            ttl: 64,
            tos: 0,
        };
        self.receive(now, ComponentId::IP, In::Ip(message), room);
    }

    /// A counter by name.
    pub fn counter(&self, name: &str) -> u64 {
        let index =
            Tcp::COUNTERS.iter().position(|n| *n == name).unwrap_or_else(|| panic!("no counter {name}"));
        self.status.get(eft_component::server::FRAME_COUNTERS.len() + index)
    }
}

impl World {
    pub fn new(seed: u64, conditions: Conditions) -> World {
        World {
            now: Instant::from_millis(1_000),
            conditions,
            random: Random::new(seed),
            sides: [Side::new(0, seed, &conditions), Side::new(1, seed, &conditions)],
            heap: BinaryHeap::new(),
            order: 0,
            seed,
            capture: None,
            events: 0,
            crashes: 0,
            ip_crashes: 0,
            lenient: false,
            blackhole: [false; 2],
        }
    }

    pub fn schedule(&mut self, after: Duration, what: Happening) {
        self.order += 1;
        self.heap.push(Reverse(Entry { at: self.now + after, order: self.order, what }));
    }

    /// A request of sockets; the answer goes to the application.
    pub fn request(&mut self, side: usize, make: impl FnOnce(RequestId) -> SocketsToTransport) -> RequestId {
        let s = &mut self.sides[side];
        s.next_request += 1;
        let id = RequestId { index: s.next_request, generation: 1 };
        let message = make(id);
        s.unanswered.insert(id, message);
        let room = self.conditions.room;
        s.receive(self.now, ComponentId::SOCKETS, In::Sockets(message), room);
        self.turn(side);
        id
    }

    pub fn dirty(&mut self, side: usize, socket: SocketId) {
        let room = self.conditions.room;
        self.sides[side].event(self.now, Event::Dirty(socket), room);
        self.turn(side);
    }

    /// The rest of a server's turn: deadlines, flush, and what follows from the outputs.
    pub fn turn(&mut self, side: usize) {
        let room = self.conditions.room;
        let now = self.now;
        let s = &mut self.sides[side];
        let before = s.status.progress();
        s.with(now, room, |tcp, cx, out| {
            if tcp.deadline().is_some_and(|d| d <= now) {
                tcp.expire(cx, out);
            }
            tcp.flush(cx, out);
            tcp.commit(cx);
        });
        s.longest_turn = s.longest_turn.max(s.status.progress() - before);
        if s.died {
            return self.crash(side);
        }
        self.collect(side);
    }

    fn collect(&mut self, side: usize) {
        let items: VecDeque<Out> = self.sides[side].out.drain().collect();
        let mut effects = Vec::new();
        let life = self.sides[side].life;
        for item in items {
            if self.sides[side].life != life {
                // It died of what followed. What it had said is lost with its memory, which is allowed.
                break;
            }
            match item {
                Out::Ip(m) => self.receive_at_ip(side, m),
                Out::Sockets(TransportToSockets::Reply { request, errno, socket, .. }) => {
                    if let Some(asked) = self.sides[side].unanswered.remove(&request) {
                        effects.push(Told::Reply(asked, errno, socket));
                    }
                }
                Out::Effect(e) => effects.push(Told::Effect(e)),
            }
        }
        for told in effects {
            App::told(self, side, told);
        }
    }

    fn receive_at_ip(&mut self, side: usize, message: TransportToIp) {
        match message {
            TransportToIp::Done { packet } | TransportToIp::Refuse { packet } => {
                assert!(self.sides[side].packets.free(packet), "seed {}: packet given back twice", self.seed);
            }
            TransportToIp::Route { request, source, .. } => {
                let unspecified = std::net::IpAddr::from(source).is_unspecified();
                let message = IpToTransport::Routed {
                    request,
                    errno: 0,
                    source: if unspecified { self.sides[side].address } else { source },
                    mtu: self.conditions.mtu,
                    segment_max: self.conditions.segment_max,
                    local: false,
                };
                let room = self.conditions.room;
                self.sides[side].receive(self.now, ComponentId::IP, In::Ip(message), room);
                self.turn(side);
            }
            TransportToIp::Send { request, descriptor } => {
                self.transmit(side, descriptor);
                let life = self.sides[side].life;
                self.sides[side].unanswered_sends.push(request);
                let delay = Duration::from_micros(self.random.below(30));
                self.schedule(delay, Happening::Sent(side, life, request));
            }
        }
    }

    /// Builds the packet that a descriptor describes and puts it on the wire.
    fn transmit(&mut self, side: usize, descriptor: PacketRef) {
        let s = &mut self.sides[side];
        let d: SendDescriptor = s.memory.read_value(descriptor).expect("descriptor resolves");
        let header = &d.header[..d.header_len as usize];
        let mut payload = Vec::new();
        for r in &d.payload[..d.payload_count as usize] {
            let at = payload.len();
            payload.resize(at + r.len as usize, 0);
            s.memory.read(*r, &mut payload[at..]).expect("payload resolves");
        }
        s.largest = s.largest.max(payload.len());
        s.sends += 1;
        let size = d.segment_size as usize;
        let wire_len = IP_HEADER + header.len() + if size == 0 { payload.len() } else { size };
        if self.lenient && wire_len > self.conditions.mtu as usize {
            return;
        }
        if size == 0 {
            assert!(
                IP_HEADER + header.len() + payload.len() <= self.conditions.mtu as usize,
                "seed {}: packet larger than the MTU",
                self.seed
            );
        } else {
            assert!(IP_HEADER + header.len() + size <= self.conditions.mtu as usize);
            assert!(payload.len() <= self.conditions.segment_max as usize);
        }
        let mut header = header.to_vec();
        if self.conditions.strip_sack {
            strip(&mut header, 4);
        }
        if self.conditions.strip_timestamps {
            strip(&mut header, 8);
        }
        let addresses = (d.source, d.destination);
        if size != 0 && self.conditions.split {
            for (n, piece) in payload.chunks(size).enumerate() {
                let last = (n + 1) * size >= payload.len();
                let mut h = header.clone();
                let seq = be32(&h[4..]).wrapping_add((n * size) as u32);
                h[4..8].copy_from_slice(&seq.to_be_bytes());
                if !last {
                    h[13] &= !(1 | 8);
                }
                self.wire(side, addresses, &h, piece, 0);
            }
        } else {
            self.wire(side, addresses, &header, &payload, d.segment_size);
        }
    }

    fn wire(
        &mut self,
        side: usize,
        (source, destination): (WireAddress, WireAddress),
        header: &[u8],
        payload: &[u8],
        segment_size: u16,
    ) {
        let mut bytes = vec![0u8; IP_HEADER];
        bytes[0] = 0x45;
        let total = IP_HEADER + header.len() + payload.len();
        bytes[2..4].copy_from_slice(&(total as u16).to_be_bytes());
        bytes[9] = 6;
        bytes[12..16].copy_from_slice(&source.0[12..]);
        bytes[16..20].copy_from_slice(&destination.0[12..]);
        bytes.extend_from_slice(header);
        bytes.extend_from_slice(payload);
        let at = IP_HEADER + 16;
        bytes[at..at + 2].fill(0);
        let sum = Checksum::new()
            .add_pseudo_header(source.into(), destination.into(), 6, (header.len() + payload.len()) as u32)
            .add_bytes(&bytes[IP_HEADER..])
            .finish();
        bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        let packet = Packet { bytes, segment_size };
        if let Some(capture) = &mut self.capture {
            capture.push((self.now, side, packet.clone()));
        }
        self.forward(side, packet);
    }

    fn forward(&mut self, side: usize, packet: Packet) {
        let c = self.conditions;
        if self.blackhole[1 - side] {
            return;
        }
        let copies = 1 + self.random.chance(c.duplicate) as usize;
        for _ in 0..copies {
            if self.random.chance(c.loss) {
                continue;
            }
            let mut packet = packet.clone();
            if self.random.chance(c.corrupt) {
                let at = IP_HEADER + self.random.below((packet.bytes.len() - IP_HEADER) as u64) as usize;
                packet.bytes[at] ^= 1 << self.random.below(8);
            }
            let mut delay = Duration::from_micros(c.delay_us + self.random.below(c.jitter_us + 1));
            if c.rate > 0 {
                let s = &mut self.sides[side];
                let start = s.link_free_at.max(self.now);
                let backlog = start.saturating_since(self.now).as_micros() as u64 * c.rate;
                if backlog > c.queue {
                    continue;
                }
                let time = Duration::from_nanos(packet.bytes.len() as u64 * 1000 / c.rate);
                s.link_free_at = start + time;
                delay += s.link_free_at.saturating_since(self.now);
            }
            self.schedule(delay, Happening::Packet(1 - side, packet));
        }
    }

    /// Hands a packet to an engine as ip would.
    pub fn deliver(&mut self, side: usize, packet: &Packet) {
        let checksum_ok = !self.conditions.checksum;
        let room = self.conditions.room;
        let s = &mut self.sides[side];
        let Some(slot) = s.packets.allocate() else {
            return;
        };
        let r = PacketRef { len: packet.bytes.len() as u32, ..slot };
        s.packets.write(r, 0, &packet.bytes);
        let message = IpToTransport::Deliver {
            packet: r,
            header_len: IP_HEADER as u16,
            checksum_ok,
            segment_size: packet.segment_size,
        };
        s.receive(self.now, ComponentId::IP, In::Ip(message), room);
    }

    /// Lets the next thing happen. False if nothing ever will.
    pub fn step(&mut self) -> bool {
        let next_timer = (0..2).filter_map(|i| Some((self.sides[i].tcp.as_ref()?.deadline()?, i))).min();
        let next_event = self.heap.peek().map(|Reverse(e)| e.at);
        self.events += 1;
        match (next_timer, next_event) {
            (None, None) => return false,
            (Some((at, side)), event) if event.is_none_or(|e| at < e) => {
                self.now = self.now.max(at);
                self.turn(side);
                self.perhaps_crash(side);
            }
            _ => {
                let Some(Reverse(entry)) = self.heap.pop() else {
                    return false;
                };
                self.now = self.now.max(entry.at);
                self.happen(entry.what);
            }
        }
        true
    }

    fn happen(&mut self, what: Happening) {
        let room = self.conditions.room;
        match what {
            Happening::Packet(side, packet) => {
                self.deliver(side, &packet);
                // Several packets of one batch, now and then.
                while self.random.below(3) == 0 && self.next_is_packet_for(side) {
                    let Some(Reverse(entry)) = self.heap.pop() else {
                        break;
                    };
                    self.now = self.now.max(entry.at);
                    if let Happening::Packet(_, packet) = entry.what {
                        self.deliver(side, &packet);
                    }
                }
                // The engine may die with its outputs unpublished.
                if !self.perhaps_crash(side) {
                    self.turn(side);
                }
                self.perhaps_crash(side);
            }
            Happening::Sent(side, life, request) => {
                let s = &mut self.sides[side];
                if s.life == life && s.unanswered_sends.contains(&request) {
                    s.unanswered_sends.retain(|r| *r != request);
                    let message = IpToTransport::Sent { request, errno: 0 };
                    s.receive(self.now, ComponentId::IP, In::Ip(message), room);
                    self.turn(side);
                }
                self.perhaps_crash(side);
            }
            Happening::Run(side) => App::run(self, side),
        }
    }

    fn next_is_packet_for(&self, side: usize) -> bool {
        matches!(self.heap.peek(), Some(Reverse(Entry { what: Happening::Packet(s, _), .. })) if *s == side)
    }

    fn perhaps_crash(&mut self, side: usize) -> bool {
        if self.ip_crashes < CRASHES_MAX && self.random.chance(self.conditions.ip_crash) {
            self.ip_crashes += 1;
            // ip forgets what it was asked, and is asked again.
            self.sides[side].unanswered_sends.clear();
            let room = self.conditions.room;
            let now = self.now;
            self.sides[side].with(now, room, |tcp, cx, out| tcp.peer_reborn(cx, ComponentId::IP, out));
            self.turn(side);
        }
        // Each life begins by sending again: without a limit that would be an avalanche.
        if self.crashes >= CRASHES_MAX || !self.random.chance(self.conditions.crash) {
            return false;
        }
        self.crash(side);
        true
    }

    /// Kills an engine, changes a block as a fault of its own would have, and starts its successor.
    pub fn forge(&mut self, side: usize, block: u32, change: impl FnOnce(&mut Block, &mut Cold)) {
        let s = &mut self.sides[side];
        s.tcp = None;
        eft_transport::tcp::forge(&s.durable, &s.config, block, change);
        self.crash(side);
    }

    /// Kills an engine and starts its successor.
    pub fn crash(&mut self, side: usize) {
        self.crashes += 1;
        self.sides[side].tcp = None;
        self.sides[side].died = false;
        // It died by our hand, and of nothing that it ran.
        eft_transport::tcp::acquit(&self.sides[side].durable);
        // Each life is longer: one that always ended at the same segment would never get past it.
        self.sides[side].fuse += self.sides[side].fuse.div_ceil(2);
        self.sides[side].packets =
            Pool::new(PACKET_POOL, self.sides[side].packets.view().segment.clone(), PACKET_LEN);
        let room = self.conditions.room;
        self.sides[side].start(self.now, room);
        self.turn(side);
    }

    /// Runs until `done` or until so much virtual time has passed; says whether `done`.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&World) -> bool) -> bool {
        let end = self.now + limit;
        while !done(self) {
            if self.now >= end || !self.step() {
                return done(self);
            }
            assert!(self.events < EVENTS_MAX, "seed {}: no end at {:?}", self.seed, self.now);
        }
        true
    }

    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        self.schedule(time, Happening::Run(0));
        while self.now < end && self.step() {}
    }
}

/// What an application is told.
pub enum Told {
    /// What was asked, the error, the socket.
    Reply(SocketsToTransport, i32, SocketId),
    Effect(Effect),
}

/// Turns an option into NOPs.
fn strip(header: &mut [u8], kind: u8) {
    let mut at = TCP_HEADER;
    while at < header.len() {
        match header[at] {
            0 => break,
            1 => at += 1,
            k => {
                let len = header[at + 1] as usize;
                if k == kind {
                    header[at..at + len].fill(1);
                }
                at += len;
            }
        }
    }
}

/// How a pool of the world is cut, for tests that make packets themselves.
#[allow(dead_code)]
pub fn view(segment: Segment, slot_size: usize) -> PoolView {
    PoolView { slots: segment.len() / slot_size, segment, base: 0, slot_size }
}
