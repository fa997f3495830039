//! tcp or udp with ip, sockets and an application played by the target.

use super::packets::{THEM, US};
use crate::host::Host;
use crate::source::Source;
use eft_base::wire::*;
use eft_base::{FamilyId, PacketRef, PoolId, RequestId, SlotShare, SocketId};
use eft_channel::socket::{AcceptRecord, Arena, DatagramHeader, Geometry, SocketPage, datagram_record_len};
use eft_channel::{Memory, Pool, Segment};
use eft_component::Component;
use eft_component::transport::{Effect, Event};
use eft_messages::ComponentId;
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};
use eft_messages::transport::{IpToTransport, SEND_SLOT_LEN, SendDescriptor, TransportToIp};
use eft_transport::tcp::{self, Tcp, TcpConfig};
use eft_transport::udp::{self, Udp, UdpConfig};
use eft_transport::{In, Out, Refused};
use std::collections::BTreeMap;
use std::net::IpAddr;
use zerocopy::{FromZeros, IntoBytes};

pub const FAMILY: FamilyId = FamilyId(3);
pub const ARENA_POOL: PoolId = PoolId(2);
pub const LISTEN_PORT: u16 = 80;
const HEADERS: PoolId = PoolId(1);
const PACKETS: PoolId = PoolId(4);
const PACKET_LEN: usize = 1 << 16;
const RING: usize = 1 << 16;
const SLOTS: usize = 24;
const TCP: TcpConfig = TcpConfig {
    connections: 32,
    sockets_per_family: 12,
    listeners_per_family: 2,
    seed: 11,
    slots: SlotShare::TCP,
};
const UDP: UdpConfig = UdpConfig { sockets: 16, sockets_per_family: 12, seed: 11, slots: SlotShare::UDP };

/// An arena whose header was hit is refused; the stack is then started anew.
fn renew(arena: &Segment, examined: Result<(), Refused>) {
    if examined.is_err() {
        arena.write(0, &[0; 4096]).expect("within the arena");
    }
}

/// What differs between tcp and udp.
pub trait Engine: Component<In = In, Out = Out, Event = Event, Effect = Effect> {
    fn arena_len() -> usize;
    fn open(arena: Segment, headers: Pool) -> Self;
}

impl Engine for Tcp {
    fn arena_len() -> usize {
        tcp::arena_len(&TCP)
    }
    fn open(arena: Segment, headers: Pool) -> Tcp {
        renew(&arena, tcp::examine(&arena, &TCP));
        Tcp::open(arena, headers, TCP).expect("it was examined")
    }
}

impl Engine for Udp {
    fn arena_len() -> usize {
        udp::arena_len(&UDP)
    }
    fn open(arena: Segment, headers: Pool) -> Udp {
        renew(&arena, udp::examine(&arena, &UDP));
        Udp::open(arena, headers, UDP).expect("it was examined")
    }
}

/// Where a conversation stands, as seen from the wire: what the engine sent last.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub local: u16,
    pub remote: u16,
    /// The sequence number after the last byte that the engine sent.
    pub sent: u32,
    /// What it acknowledged.
    pub acknowledged: u32,
}

pub struct TransportBench<E: Engine> {
    pub host: Host<E>,
    pub arena: Arena,
    pub durable: Segment,
    packets: Pool,
    /// Packets that the engine has.
    given: Vec<PacketRef>,
    pub sockets: Vec<SocketId>,
    pub listener: Option<SocketId>,
    pub flows: Vec<Flow>,
    unanswered: BTreeMap<RequestId, SocketsToTransport>,
    next_request: u32,
    life: u64,
    /// `Sent`s that ip has not told yet.
    pub unconfirmed: Vec<RequestId>,
    /// Whether what the engine says is checked: not while its neighbours lie.
    strict: bool,
}

impl<E: Engine> TransportBench<E> {
    pub fn new(strict: bool, source: &mut Source) -> TransportBench<E> {
        let geometry = Geometry { slots: SLOTS, send_len: RING, receive_len: RING };
        let arena = Arena::new(Segment::heap(geometry.arena_len()), geometry).expect("geometry is valid");
        let packets = Pool::new(PACKETS, Segment::heap(16 * PACKET_LEN), PACKET_LEN);
        let durable = Segment::heap(E::arena_len());
        let host = Self::start(&arena, &packets, durable.clone(), source);
        let mut bench = TransportBench {
            host,
            arena,
            durable,
            packets,
            given: Vec::new(),
            sockets: Vec::new(),
            listener: None,
            flows: Vec::new(),
            unanswered: BTreeMap::new(),
            next_request: 0,
            life: 0,
            unconfirmed: Vec::new(),
            strict,
        };
        bench.settle(source);
        bench.listen(source);
        bench
    }

    fn start(arena: &Arena, packets: &Pool, durable: Segment, source: &mut Source) -> Host<E> {
        let headers = Pool::new(HEADERS, Segment::heap(64 * SEND_SLOT_LEN), SEND_SLOT_LEN);
        let mut memory = Memory::new();
        memory.insert(HEADERS, headers.view().clone());
        memory.insert(ARENA_POOL, arena.view());
        memory.insert(PACKETS, packets.view().clone());
        // The family comes before the neighbours, as the supervisor sends them.
        let mut host = Host::new(E::open(durable, headers), memory, &[], source.generator());
        host.event(Event::FamilyOpened { family: FAMILY, pool: ARENA_POOL, arena: arena.clone() });
        host.connect(&[ComponentId::IP, ComponentId::SOCKETS]);
        host
    }

    /// The engine dies between two events; a successor opens what it left.
    pub fn die(&mut self, source: &mut Source) {
        let now = self.host.now;
        for packet in self.given.drain(..) {
            self.packets.free(packet);
        }
        self.unconfirmed.clear();
        self.life += 1;
        self.host = Self::start(&self.arena, &self.packets, self.durable.clone(), source);
        self.host.now = now;
        for message in self.unanswered.values().copied().collect::<Vec<_>>() {
            self.host.receive(ComponentId::SOCKETS, In::Sockets(message));
        }
        self.settle(source);
    }

    /// Asks as sockets does.
    pub fn ask(&mut self, build: impl FnOnce(RequestId) -> SocketsToTransport, source: &mut Source) {
        self.next_request += 1;
        let id = RequestId { index: self.next_request, generation: 1 };
        let message = build(id);
        self.unanswered.insert(id, message);
        self.host.receive(ComponentId::SOCKETS, In::Sockets(message));
        self.settle(source);
    }

    pub fn open(&mut self, source: &mut Source) -> Option<SocketId> {
        let before = self.sockets.len();
        let socket = SocketId { family: FAMILY, slot: 0 };
        self.ask(|request| SocketsToTransport::Open { request, socket }, source);
        (self.sockets.len() > before).then(|| self.sockets[before])
    }

    /// A socket bound to [`LISTEN_PORT`], and listening if it is tcp's.
    fn listen(&mut self, source: &mut Source) {
        let Some(socket) = self.open(source) else { return };
        let address = IpAddr::from([0, 0, 0, 0]).into();
        let (port, incarnation) = (LISTEN_PORT, self.incarnation(socket));
        let bind =
            |request| SocketsToTransport::Bind { request, socket, incarnation, address, port, reuse: 1 };
        self.ask(bind, source);
        let listen = |request| SocketsToTransport::Listen { request, socket, incarnation, backlog: 5 };
        self.ask(listen, source);
        self.listener = Some(socket);
    }

    pub fn connect(&mut self, source: &mut Source) {
        let Some(socket) = self.open(source) else { return };
        let (address, port) = (IpAddr::V4(THEM).into(), 1000 + source.below(5) as u16);
        let incarnation = self.incarnation(socket);
        let connect = |request| SocketsToTransport::Connect { request, socket, incarnation, address, port };
        self.ask(connect, source);
    }

    pub fn close(&mut self, at: usize, source: &mut Source) {
        if at >= self.sockets.len() {
            return;
        }
        let socket = self.sockets.swap_remove(at);
        if self.listener == Some(socket) {
            self.listener = None;
        }
        // Now and then it means another that had the slot.
        let incarnation = self.incarnation(socket).wrapping_sub(source.chance(0.1) as u32);
        self.ask(|request| SocketsToTransport::Close { request, socket, incarnation }, source);
    }

    /// Closes one if there are too many for a new one, and listens again if nobody does.
    pub fn tidy(&mut self, source: &mut Source) {
        if self.sockets.len() > 8 {
            self.close(0, source);
        }
        if self.listener.is_none() {
            self.listen(source);
        }
    }

    fn incarnation(&self, socket: SocketId) -> u32 {
        self.page(socket).incarnation()
    }

    pub fn page(&self, socket: SocketId) -> SocketPage {
        self.arena.socket(socket.slot).expect("the engine named the slot")
    }

    pub fn dirty(&mut self, socket: SocketId, source: &mut Source) {
        self.host.event(Event::Dirty(socket));
        self.settle(source);
    }

    /// A packet arrives. `header_len` is what ip says of it, right or not.
    pub fn deliver(&mut self, packet: &[u8], header_len: u16, checksum_ok: bool, source: &mut Source) {
        let Some(slot) = self.put(packet) else { return };
        let segment_size = if source.chance(0.1) { source.below(1500) as u16 } else { 0 };
        let m = IpToTransport::Deliver { packet: slot, header_len, checksum_ok, segment_size };
        self.host.receive(ComponentId::IP, In::Ip(m));
    }

    /// An ICMP error that quotes `packet`.
    pub fn error(&mut self, packet: &[u8], source: &mut Source) {
        let Some(slot) = self.put(packet) else { return };
        let (kind, code) = [(3, 1), (3, 3), (3, 4), (11, 0), (4, 0)][source.below(5) as usize];
        let mtu = source.below(1600) as u16;
        let m = IpToTransport::Error {
            packet: slot,
            header_len: 20,
            kind,
            code,
            info: mtu,
            offender: Default::default(),
            ttl: 64,
            tos: 0,
        };
        self.host.receive(ComponentId::IP, In::Ip(m));
    }

    fn put(&mut self, packet: &[u8]) -> Option<PacketRef> {
        let slot = self.packets.allocate()?;
        let len = packet.len().min(PACKET_LEN);
        assert!(self.packets.write(slot, 0, &packet[..len]));
        self.given.push(slot);
        Some(PacketRef { len: len as u32, ..slot })
    }

    /// Takes what the engine says until it is quiet.
    pub fn settle(&mut self, source: &mut Source) {
        for _ in 0..8 {
            let out = self.host.take();
            if out.is_empty() {
                return;
            }
            for m in out {
                match m {
                    Out::Ip(m) => self.receive_at_ip(m, source),
                    Out::Sockets(m) => self.answered(m),
                    Out::Effect(e) => self.effect(e),
                }
            }
        }
    }

    fn effect(&mut self, effect: Effect) {
        // As the shim pulls the plug.
        if let Effect::Writable(socket) = effect
            && let Some(page) = self.arena.socket(socket.slot)
        {
            page.write_plug().clear();
        }
    }

    fn answered(&mut self, TransportToSockets::Reply { request, errno, socket, .. }: TransportToSockets) {
        let asked = self.unanswered.remove(&request);
        assert!(asked.is_some() || !self.strict, "{request:?} was answered twice");
        if let Some(SocketsToTransport::Open { .. }) = asked
            && errno == 0
        {
            assert!(self.arena.socket(socket.slot).is_some(), "{socket:?} was opened");
            self.sockets.push(socket);
        }
    }

    fn receive_at_ip(&mut self, m: TransportToIp, source: &mut Source) {
        match m {
            TransportToIp::Done { packet } | TransportToIp::Refuse { packet } => {
                assert!(self.packets.free(packet) || !self.strict, "{packet:?} was given back twice");
                self.given.retain(|g| g.slot != packet.slot);
            }
            TransportToIp::Route { request, source: from, .. } => {
                let unspecified = IpAddr::from(from).is_unspecified();
                let m = IpToTransport::Routed {
                    request,
                    errno: if source.chance(0.02) { 101 } else { 0 },
                    source: if unspecified { IpAddr::V4(US).into() } else { from },
                    mtu: if source.chance(0.9) { 1500 } else { source.below(1600) as u16 },
                    segment_max: if source.chance(0.5) { 60000 } else { 0 },
                    local: false,
                };
                self.host.receive(ComponentId::IP, In::Ip(m));
            }
            TransportToIp::Send { request, descriptor } => {
                self.sent(descriptor);
                self.unconfirmed.push(request);
                while self.unconfirmed.len() > source.below(6) as usize {
                    let request = self.unconfirmed.remove(0);
                    let errno = if source.chance(0.03) { 105 } else { 0 };
                    self.host.receive(ComponentId::IP, In::Ip(IpToTransport::Sent { request, errno }));
                }
            }
        }
    }

    /// Learns from a packet that leaves where the conversation stands.
    fn sent(&mut self, descriptor: PacketRef) {
        let d: SendDescriptor = self.host.memory.read_value(descriptor).expect("descriptor resolves");
        assert!(d.header_len as usize <= d.header.len() && d.payload_count as usize <= d.payload.len());
        let mut len = 0u32;
        for r in &d.payload[..d.payload_count as usize] {
            assert!(self.host.memory.resolve(*r).is_some(), "a descriptor refers to {r:?}");
            len += r.len;
        }
        if d.protocol != PROTOCOL_TCP {
            return;
        }
        let word = |at: usize| u32::from_be_bytes(d.header[at..at + 4].try_into().expect("four bytes"));
        let ports = word(0);
        let ends = (d.header[13] & TCP_SYN != 0) as u32 + (d.header[13] & TCP_FIN != 0) as u32;
        let flow = Flow {
            local: (ports >> 16) as u16,
            remote: ports as u16,
            sent: word(4).wrapping_add(len + ends),
            acknowledged: word(8),
        };
        if d.header[13] & TCP_RST != 0 {
            self.flows.retain(|f| (f.local, f.remote) != (flow.local, flow.remote));
            return;
        }
        match self.flows.iter_mut().find(|f| (f.local, f.remote) == (flow.local, flow.remote)) {
            Some(f) => *f = flow,
            None => self.flows.push(flow),
        }
        if self.flows.len() > 40 {
            self.flows.remove(0);
        }
    }

    /// What a well-behaved application does with a socket: accept, read, write.
    pub fn use_socket(&mut self, socket: SocketId, source: &mut Source) {
        let page = self.page(socket);
        if self.listener == Some(socket) && page.flags() & eft_channel::socket::flag::LISTENING != 0 {
            self.accept(&page, source);
        } else if source.chance(0.7) {
            page.set_receive_taken(page.receive_end());
        }
        let room = page.sendable().min(page.send_len());
        if page.kind() == 2 {
            send_datagram(&page, room, source);
        } else if room > 0 && self.listener != Some(socket) {
            let n = (source.below(8000) as usize).min(room);
            let end = page.send_end();
            page.write_send(end, &vec![0x5a; n]);
            page.set_send_end(end.wrapping_add(n as u64));
        }
        if source.chance(0.02) {
            page.add_wish(1 + source.below(2) as u32);
        }
        if source.chance(0.1) {
            page.write_plug().set();
        }
        self.dirty(socket, source);
    }

    fn accept(&mut self, page: &SocketPage, source: &mut Source) {
        // Bounded: the positions may be anything.
        for _ in 0..32 {
            if page.receivable() < size_of::<AcceptRecord>() {
                return;
            }
            let taken = page.receive_taken();
            let mut record = AcceptRecord::new_zeroed();
            page.read_receive(taken, record.as_mut_bytes());
            page.set_receive_taken(taken.wrapping_add(size_of::<AcceptRecord>() as u64));
            let socket = SocketId { family: FAMILY, slot: record.slot };
            let incarnation = record.incarnation;
            if self.arena.socket(record.slot).is_none() {
                // Only an application can have written that: it scribbled over its own ring.
                return;
            }
            self.sockets.push(socket);
            self.ask(|request| SocketsToTransport::Attached { request, socket, incarnation }, source);
        }
    }
}

fn send_datagram(page: &SocketPage, room: usize, source: &mut Source) {
    let len = source.below(4000) as usize;
    if datagram_record_len(len) > room {
        return;
    }
    let header = DatagramHeader {
        len: len as u32,
        port: 53,
        address: IpAddr::V4(THEM).into(),
        local: IpAddr::from([0, 0, 0, 0]).into(),
        ..DatagramHeader::default()
    };
    let end = page.send_end();
    page.write_send(end, header.as_bytes());
    page.write_send(end.wrapping_add(size_of::<DatagramHeader>() as u64), &vec![0xa5; len]);
    page.set_send_end(end.wrapping_add(datagram_record_len(len) as u64));
}
