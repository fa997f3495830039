//! tcp or udp with ip, sockets and an application played by the target.

use super::packets::{THEM, US};
use crate::source::Source;
use eft_base::errno::EINPROGRESS;
use eft_base::wire::*;
use eft_base::{PacketRef, RequestId, SlotShare, SocketId};
use eft_channel::socket::{DatagramHeader, Geometry, Opt, SocketPage, datagram_record_len, early};
use eft_component::transport::{Effect, Event};
use eft_harness::{Arrival, DOMAIN, Quote, Route, Shape, TransportHost, take_accepted};
use eft_messages::ComponentId;
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};
use eft_messages::transport::{IpToTransport, TransportToIp};
use eft_transport::tcp::{Tcp, TcpConfig};
use eft_transport::udp::{Udp, UdpConfig};
use eft_transport::{In, Out};
use std::net::IpAddr;
use zerocopy::IntoBytes;

pub const OPTION_FAST_OPEN: u8 = 34;
pub const LISTEN_PORT: u16 = 80;
const RING: usize = 1 << 16;
const SLOTS: usize = 24;
const TCP: TcpConfig = TcpConfig {
    connections: 32,
    sockets_per_domain: 12,
    listeners_per_domain: 2,
    seed: 11,
    slots: SlotShare::TCP,
};
const UDP: UdpConfig = UdpConfig { sockets: 16, sockets_per_domain: 12, seed: 11, slots: SlotShare::UDP };

/// How large the target makes it.
pub trait Engine: eft_harness::Engine {
    const CONFIG: Self::Config;
}

impl Engine for Tcp {
    const CONFIG: TcpConfig = TCP;
}

impl Engine for Udp {
    const CONFIG: UdpConfig = UDP;
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
    pub transport: TransportHost<E>,
    pub sockets: Vec<SocketId>,
    pub listener: Option<SocketId>,
    pub flows: Vec<Flow>,
    /// What the engine's last Fast Open option told.
    pub cookie: Vec<u8>,
    /// `Sent`s that ip has not told yet.
    pub unconfirmed: Vec<RequestId>,
    /// Whether what the engine says is checked: not while its neighbours lie.
    strict: bool,
}

impl<E: Engine> TransportBench<E> {
    pub fn new(strict: bool, source: &mut Source) -> TransportBench<E> {
        let geometry = Geometry { slots: SLOTS, send_len: RING, receive_len: RING };
        let shape = Shape { config: E::CONFIG, geometry, headers: 64, packets: 16, is_measured: false };
        let mut bench = TransportBench {
            transport: TransportHost::new(shape, source.generator()),
            sockets: Vec::new(),
            listener: None,
            flows: Vec::new(),
            cookie: Vec::new(),
            unconfirmed: Vec::new(),
            strict,
        };
        bench.transport.configure("fastopen", "both");
        bench.transport.end_turn();
        bench.settle(source);
        bench.listen(source);
        bench
    }

    /// The engine dies between two events; a successor opens what it left, or begins anew if the arena's header was hit.
    pub fn die(&mut self, source: &mut Source) {
        self.unconfirmed.clear();
        self.transport.renew();
        self.transport.restart();
        self.transport.end_turn();
        self.settle(source);
    }

    /// Asks as sockets does.
    pub fn ask(&mut self, build: impl FnOnce(RequestId) -> SocketsToTransport, source: &mut Source) {
        self.transport.ask(build);
        self.transport.end_turn();
        self.settle(source);
    }

    pub fn open(&mut self, source: &mut Source) -> Option<SocketId> {
        let before = self.sockets.len();
        let socket = SocketId { domain: DOMAIN, slot: 0 };
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
        self.page(socket).set_option(Opt::FastOpenQueue, 2);
        self.listener = Some(socket);
    }

    pub fn connect(&mut self, source: &mut Source) {
        let Some(socket) = self.open(source) else { return };
        let (address, port) = (IpAddr::V4(THEM).into(), 1000 + source.below(5) as u16);
        let incarnation = self.incarnation(socket);
        if source.chance(0.5) {
            self.write_early(socket, source);
        }
        let connect = |request| SocketsToTransport::Connect { request, socket, incarnation, address, port };
        self.ask(connect, source);
    }

    /// As MSG_FASTOPEN and TCP_FASTOPEN_CONNECT do. The wish may be taken back late, or never.
    fn write_early(&mut self, socket: SocketId, source: &mut Source) {
        let page = self.page(socket);
        let n = source.below(3000) as usize;
        page.write_send(0, &vec![0x69; n]);
        page.set_send_end(n as u64);
        page.set_option(Opt::FastOpenConnect, 1 + source.below(2) as u32);
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

    /// Closes a socket if there are too many for a new one, and listens again if no socket listens.
    pub fn tidy(&mut self, source: &mut Source) {
        if self.sockets.len() > 8 {
            self.close(0, source);
        }
        if self.listener.is_none() {
            self.listen(source);
        }
    }

    fn incarnation(&self, socket: SocketId) -> u32 {
        self.transport.incarnation(socket)
    }

    pub fn page(&self, socket: SocketId) -> SocketPage {
        self.transport.page(socket)
    }

    pub fn dirty(&mut self, socket: SocketId, source: &mut Source) {
        self.transport.host.event(Event::Dirty(socket));
        self.settle(source);
    }

    /// A packet arrives. `header_len` is what ip says of it, right or not.
    pub fn deliver(&mut self, packet: &[u8], header_len: u16, checksum_ok: bool, source: &mut Source) {
        let segment_size = if source.chance(0.1) { source.below(1500) as u16 } else { 0 };
        self.transport.deliver(packet, Arrival { header_len, checksum_ok, segment_size });
        self.transport.end_turn();
    }

    /// An ICMP error that quotes `packet`.
    pub fn error(&mut self, packet: &[u8], source: &mut Source) {
        let (kind, code) = [(3, 1), (3, 3), (3, 4), (11, 0), (4, 0)][source.below(5) as usize];
        let mtu = source.below(1600) as u16;
        self.transport.deliver_error(packet, Quote::new(kind, code, mtu));
        self.transport.end_turn();
    }

    /// Takes what the engine says until it is quiet.
    pub fn settle(&mut self, source: &mut Source) {
        for _ in 0..8 {
            let out = self.transport.host.take();
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
            && let Some(page) = self.transport.arena.socket(socket.slot)
        {
            page.write_plug().clear();
        }
    }

    fn answered(&mut self, reply: TransportToSockets) {
        let TransportToSockets::Reply { request, errno, socket, .. } = reply;
        let asked = self.transport.answered(&reply);
        assert!(asked.is_some() || !self.strict, "{request:?} was answered twice");
        if let Some(SocketsToTransport::Connect { socket, .. }) = asked
            && errno == EINPROGRESS
        {
            let page = self.page(socket);
            page.set_send_end(0);
            page.set_option(Opt::FastOpenConnect, early::NONE);
        }
        if let Some(SocketsToTransport::Open { .. }) = asked
            && errno == 0
        {
            assert!(self.transport.arena.socket(socket.slot).is_some(), "{socket:?} was opened");
            self.sockets.push(socket);
        }
    }

    fn receive_at_ip(&mut self, m: TransportToIp, source: &mut Source) {
        match m {
            TransportToIp::Done { packet } | TransportToIp::Refuse { packet } => {
                let taken = self.transport.take_back(packet);
                assert!(taken || !self.strict, "{packet:?} was given back twice");
            }
            TransportToIp::Route { request, source: from, .. } => {
                let route = Route {
                    errno: if source.chance(0.02) { 101 } else { 0 },
                    own: IpAddr::V4(US).into(),
                    mtu: if source.chance(0.9) { 1500 } else { source.below(1600) as u16 },
                    segment_max: if source.chance(0.5) { 60000 } else { 0 },
                    local: false,
                    mss: if source.chance(0.5) { 0 } else { source.below(1 << 16) as u16 },
                    initial_segments: if source.chance(0.5) { 0 } else { source.below(1 << 16) as u16 },
                };
                self.transport.answer_route(request, from, route);
                self.transport.end_turn();
            }
            TransportToIp::Group { order, .. } => {
                self.transport.receive(ComponentId::IP, In::Ip(IpToTransport::Grouped { order }));
            }
            TransportToIp::Send { request, descriptor } => {
                self.sent(descriptor);
                self.unconfirmed.push(request);
                while self.unconfirmed.len() > source.below(6) as usize {
                    let request = self.unconfirmed.remove(0);
                    let errno = if source.chance(0.03) { 105 } else { 0 };
                    let sent = In::Ip(IpToTransport::Sent { request, errno });
                    self.transport.host.receive(ComponentId::IP, sent);
                }
            }
        }
    }

    /// Learns from a packet that leaves where the conversation stands.
    fn sent(&mut self, descriptor: PacketRef) {
        let (d, payload) = self.transport.described(descriptor);
        if d.protocol != PROTOCOL_TCP {
            return;
        }
        let options = d.header.get(20..(d.header_len as usize).min(60)).unwrap_or(&[]);
        if let Some(cookie) = fast_open_of(options) {
            self.cookie = cookie.to_vec();
        }
        let word = |at: usize| u32::from_be_bytes(d.header[at..at + 4].try_into().expect("four bytes"));
        let ports = word(0);
        let ends = (d.header[13] & TCP_SYN != 0) as u32 + (d.header[13] & TCP_FIN != 0) as u32;
        let flow = Flow {
            local: (ports >> 16) as u16,
            remote: ports as u16,
            sent: word(4).wrapping_add(payload.len() as u32 + ends),
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
        for record in take_accepted(page, 32) {
            let socket = SocketId { domain: DOMAIN, slot: record.slot };
            let incarnation = record.incarnation;
            if self.transport.arena.socket(record.slot).is_none() {
                // Only an application can have written that: it scribbled over its own ring.
                return;
            }
            self.sockets.push(socket);
            self.ask(|request| SocketsToTransport::Attached { request, socket, incarnation }, source);
        }
    }
}

/// What the option carries, the last of a SYN-ACK's.
fn fast_open_of(options: &[u8]) -> Option<&[u8]> {
    let at = options.iter().position(|byte| *byte == OPTION_FAST_OPEN)?;
    let len = *options.get(at + 1)? as usize;
    options.get(at + 2..at + len)
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
