//! tcp or udp with its memory. Methods play the roles of sockets and ip at the other ends of its edges.

use crate::engine::Engine;
use crate::host::Host;
use eft_arena::docket;
use eft_base::{DomainId, PacketRef, PoolId, Random, RequestId, SocketId, WireAddress};
use eft_channel::access::AccessObserver;
use eft_channel::socket::{Arena, Geometry, SocketPage};
use eft_channel::{Memory, Pool, Segment};
use eft_component::transport::Event;
use eft_component::{Context, Outbox};
use eft_messages::ComponentId;
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};
use eft_messages::transport::{IpToTransport, SEND_SLOT_LEN, SendDescriptor};
use eft_transport::{FUSE_BURNT, Fuse, In, Out};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// The only application domain.
pub const DOMAIN: DomainId = DomainId(3);
pub const ARENA_POOL: PoolId = PoolId(2);
const PACKET_POOL: PoolId = PoolId(4);
/// The longest packet that may arrive.
pub const PACKET_LEN: usize = 1 << 16;
/// The first of the header pools; each life has its own.
const HEADER_POOLS: u16 = 10;

/// The sizes of everything.
#[derive(Clone, Copy, Debug)]
pub struct Shape<C> {
    pub config: C,
    pub geometry: Geometry,
    /// Slots of the pool of headers, and of the pool of packets that arrive.
    pub headers: usize,
    pub packets: usize,
    /// The engine's work is measured, and nothing of the harness in it: a fuse does not count writes to pages.
    pub is_measured: bool,
}

/// What ip says about a packet that it delivers.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub header_len: u16,
    pub checksum_ok: bool,
    pub segment_size: u16,
}

/// What ip says about an ICMP error, besides the packet that it quotes.
#[derive(Clone, Copy, Debug)]
pub struct Quote {
    pub header_len: u16,
    pub kind: u8,
    pub code: u8,
    pub info: u16,
    /// The router that reports the error, and the fields of its packet.
    pub offender: WireAddress,
    pub ttl: u8,
    pub tos: u8,
}

impl Quote {
    pub fn new(kind: u8, code: u8, info: u16) -> Quote {
        Quote { header_len: 20, kind, code, info, offender: WireAddress::default(), ttl: 64, tos: 0 }
    }
}

/// ip's answer to a question about a route.
#[derive(Clone, Copy, Debug, Default)]
pub struct Route {
    pub errno: i32,
    /// The source address, if the question gave none.
    pub own: WireAddress,
    pub mtu: u16,
    pub segment_max: u32,
    /// To this host itself.
    pub local: bool,
    /// What the route says to TCP, or 0.
    pub mss: u16,
    pub initial_segments: u16,
}

/// Counts a write to a page as an access of the fuse, too.
struct Burning(Fuse);

impl AccessObserver for Burning {
    fn read(&self, _: usize, _: &mut [u8]) {}

    fn wrote(&self, _: usize, _: &[u8]) {
        self.0.burn();
    }
}

/// A transport, one application domain, and what its neighbours hold for it.
pub struct TransportHost<E: Engine> {
    pub host: Host<E>,
    config: E::Config,
    pub durable: Segment,
    pub arena: Arena,
    packets: Pool,
    headers: usize,
    is_measured: bool,
    /// The number of the engine's life, from 1 on.
    pub life: u64,
    /// Requests of sockets that wait for an answer.
    pub unanswered: BTreeMap<RequestId, SocketsToTransport>,
    next_request: u32,
    /// How many accesses of durable state and pages each life survives; 0: all.
    pub fuse: u64,
    /// Whether the engine died of its fuse in the middle of a call and has no successor yet.
    pub died: bool,
    /// At which store of its opening the next life dies, before another one comes; 0: at none.
    pub opening_fuse: u64,
    /// How many have died so.
    pub opening_deaths: u64,
    /// The keys and values that each life gets first.
    configuration: Vec<(&'static str, &'static str)>,
}

impl<E: Engine> TransportHost<E> {
    pub fn new(shape: Shape<E::Config>, random: Random) -> TransportHost<E> {
        let Shape { config, geometry, .. } = shape;
        let arena = Arena::new(Segment::heap(geometry.arena_len()), geometry).expect("the geometry is valid");
        let durable = Segment::heap(E::arena_len(&config));
        let packets = Pool::new(PACKET_POOL, Segment::heap(shape.packets * PACKET_LEN), PACKET_LEN);
        let mut memory = Memory::new();
        memory.insert(ARENA_POOL, arena.view());
        memory.insert(PACKET_POOL, packets.view().clone());
        let engine = open(&durable, new_headers(&mut memory, 1, shape.headers), config);
        let mut host = Host::new(engine, memory, &[], random);
        host.set_peers(&[ComponentId::IP, ComponentId::SOCKETS]);
        let mut transport = TransportHost {
            host,
            config,
            durable,
            arena,
            packets,
            headers: shape.headers,
            is_measured: shape.is_measured,
            life: 1,
            unanswered: BTreeMap::new(),
            next_request: 0,
            fuse: 0,
            died: false,
            opening_fuse: 0,
            opening_deaths: 0,
            configuration: Vec::new(),
        };
        transport.begin();
        transport
    }

    /// Empties an arena that this version would refuse, for the next life.
    pub fn renew(&mut self) {
        if E::examine(&self.durable, &self.config).is_err() {
            self.durable.write(0, &[0; 4096]).expect("within the arena");
        }
    }

    /// Starts a new life on the same arena, whose last owner was killed from outside. What that had received and sent is lost. The
    /// caller ends the turn. Returns the last engine, whose own memory a dead process would not have given back piece by piece.
    pub fn restart(&mut self) -> E {
        docket::acquit(&self.durable);
        self.succeed()
    }

    /// The same after a death that was the engine's own fault.
    pub fn succeed(&mut self) -> E {
        self.died = false;
        self.packets = Pool::new(PACKET_POOL, self.packets.view().segment.clone(), PACKET_LEN);
        self.host.memory.remove(header_pool(self.life));
        self.life += 1;
        self.perhaps_die_at_opening();
        let headers = new_headers(&mut self.host.memory, self.life, self.headers);
        let last = self.host.replace(open(&self.durable, headers, self.config));
        self.begin();
        last
    }

    /// A life that ends while it opens the arena, or as soon as it has.
    fn perhaps_die_at_opening(&mut self) {
        let steps = core::mem::take(&mut self.opening_fuse);
        if steps == 0 {
            return;
        }
        let fuse = Fuse::default();
        fuse.light(steps);
        let headers = new_headers(&mut self.host.memory, self.life, self.headers);
        let (durable, config) = (self.durable.clone(), self.config);
        let opened =
            std::panic::catch_unwind(AssertUnwindSafe(|| drop(E::open(durable, headers, config, fuse))));
        self.opening_deaths += u64::from(opened.is_err());
    }

    /// Gives this life and all later ones a setting.
    pub fn configure(&mut self, key: &'static str, value: &'static str) {
        self.configuration.push((key, value));
        self.event(Event::Configure { key: key.into(), value: value.into() });
    }

    /// The domain comes before the neighbours, as the supervisor sends them.
    fn begin(&mut self) {
        let fuse = self.host.engine.fuse();
        fuse.light(self.fuse);
        for (key, value) in self.configuration.clone() {
            self.event(Event::Configure { key: key.into(), value: value.into() });
        }
        let arena = match self.is_measured {
            true => self.arena.clone(),
            false => self.arena.clone().observed_by(Arc::new(Burning(fuse))),
        };
        self.event(Event::DomainOpened { domain: DOMAIN, pool: ARENA_POOL, arena });
        for peer in [ComponentId::IP, ComponentId::SOCKETS] {
            self.with(|engine, cx, out| engine.peer_reborn(cx, peer, out));
        }
        for message in self.unanswered.values().copied().collect::<Vec<_>>() {
            self.receive(ComponentId::SOCKETS, In::Sockets(message));
        }
    }

    /// Calls the engine, unless it is dead. While a fuse is lit, the call may die of it; any other panic is passed on.
    pub fn with<R: Default>(&mut self, f: impl FnOnce(&mut E, &mut Context, &mut Outbox<Out>) -> R) -> R {
        if self.died {
            return R::default();
        }
        let host = &mut self.host;
        if host.engine.fuse().left() == 0 {
            return host.with(f);
        }
        std::panic::catch_unwind(AssertUnwindSafe(|| host.with(f))).unwrap_or_else(|why| {
            let text = why.downcast_ref::<String>().map(String::as_str);
            assert_eq!(text.or(why.downcast_ref::<&str>().copied()), Some(FUSE_BURNT));
            self.died = true;
            R::default()
        })
    }

    pub fn event(&mut self, event: Event) {
        self.with(|engine, cx, out| engine.event(cx, event, out));
    }

    pub fn receive(&mut self, from: ComponentId, message: In) {
        self.with(|engine, cx, out| engine.receive(cx, from, message, out));
    }

    /// The rest of a turn: expired timers, the flush, the commit.
    pub fn end_turn(&mut self) {
        self.with(|engine, cx, out| {
            if engine.deadline().is_some_and(|d| d <= cx.now) {
                engine.expire(cx, out);
            }
            engine.flush(cx, out);
            engine.commit(cx);
        });
    }

    // -- sockets -----------------------------------------------------------------------------

    /// Sends a request as sockets does, and repeats it to each new life until there is an answer.
    pub fn ask(&mut self, make: impl FnOnce(RequestId) -> SocketsToTransport) -> RequestId {
        self.next_request += 1;
        let id = RequestId { index: self.next_request, generation: 1 };
        let message = make(id);
        self.unanswered.insert(id, message);
        self.receive(ComponentId::SOCKETS, In::Sockets(message));
        id
    }

    /// The request that is answered. `None`: there was none, or it was answered before.
    pub fn answered(&mut self, answer: &TransportToSockets) -> Option<SocketsToTransport> {
        let TransportToSockets::Reply { request, .. } = answer;
        self.unanswered.remove(request)
    }

    // -- ip ----------------------------------------------------------------------------------

    /// Delivers a packet. False: ip has no free slot for it.
    pub fn deliver(&mut self, bytes: &[u8], arrival: Arrival) -> bool {
        let Arrival { header_len, checksum_ok, segment_size } = arrival;
        let Some(packet) = self.put(bytes) else { return false };
        let message =
            IpToTransport::Deliver { packet, header_len, checksum_ok, segment_size, zone: 0, interface: 0 };
        self.receive(ComponentId::IP, In::Ip(message));
        true
    }

    /// Delivers an ICMP error that quotes one of the engine's own packets.
    pub fn deliver_error(&mut self, bytes: &[u8], quote: Quote) -> bool {
        let Some(packet) = self.put(bytes) else { return false };
        let Quote { header_len, kind, code, info, offender, ttl, tos } = quote;
        let message =
            IpToTransport::Error { packet, header_len, kind, code, info, offender, ttl, tos, zone: 0 };
        self.receive(ComponentId::IP, In::Ip(message));
        true
    }

    fn put(&mut self, bytes: &[u8]) -> Option<PacketRef> {
        let slot = self.packets.allocate()?;
        let len = bytes.len().min(PACKET_LEN);
        assert!(self.packets.write(slot, 0, &bytes[..len]));
        Some(PacketRef { len: len as u32, ..slot })
    }

    /// The engine returns a packet. False: the engine does not hold it.
    pub fn take_back(&mut self, packet: PacketRef) -> bool {
        self.packets.free(packet)
    }

    /// Received packets that the engine has not returned.
    pub fn packets_in_use(&self) -> usize {
        self.packets.slots() - self.packets.available()
    }

    pub fn answer_route(&mut self, request: RequestId, source: WireAddress, route: Route) {
        let unspecified = IpAddr::from(source).is_unspecified();
        let message = IpToTransport::Routed {
            request,
            errno: route.errno,
            source: if unspecified { route.own } else { source },
            mtu: route.mtu,
            segment_max: route.segment_max,
            local: route.local,
            mss: route.mss,
            initial_segments: route.initial_segments,
        };
        self.receive(ComponentId::IP, In::Ip(message));
    }

    /// A descriptor, and the payload that it refers to.
    pub fn described(&self, descriptor: PacketRef) -> (SendDescriptor, Vec<u8>) {
        let memory = &self.host.memory;
        let d: SendDescriptor = memory.read_value(descriptor).expect("the descriptor resolves");
        assert!(d.header_len as usize <= d.header.len() && d.payload_count as usize <= d.payload.len());
        let mut payload = Vec::new();
        for part in &d.payload[..d.payload_count as usize] {
            let at = payload.len();
            payload.resize(at + part.len as usize, 0);
            assert!(memory.read(*part, &mut payload[at..]).is_some(), "a descriptor refers to {part:?}");
        }
        (d, payload)
    }

    // -- programs ----------------------------------------------------------------------------

    pub fn page(&self, socket: SocketId) -> SocketPage {
        self.arena.socket(socket.slot).expect("the engine named the slot")
    }

    /// The incarnation of its slot; 0 if there is no such slot.
    pub fn incarnation(&self, socket: SocketId) -> u32 {
        self.arena.socket(socket.slot).map_or(0, |page| page.incarnation())
    }
}

fn header_pool(life: u64) -> PoolId {
    PoolId(HEADER_POOLS + (life % 1000) as u16)
}

fn new_headers(memory: &mut Memory, life: u64, slots: usize) -> Pool {
    let pool = Pool::new(header_pool(life), Segment::heap(slots * SEND_SLOT_LEN), SEND_SLOT_LEN);
    memory.insert(pool.id(), pool.view().clone());
    pool
}

fn open<E: Engine>(durable: &Segment, headers: Pool, config: E::Config) -> E {
    E::open(durable.clone(), headers, config, Fuse::default()).expect("the arena is this version's own")
}
