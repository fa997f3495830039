//! udp with ip and sockets played by the test, and applications that write and read pages.

use eft_base::checksum::Checksum;
use eft_base::{Random, RequestId, SocketId, WireAddress};
use eft_channel::socket::{DatagramHeader, Geometry, Opt, datagram_record_len, flow};
use eft_component::transport::{Effect, Event};
use eft_harness::{Arrival, DOMAIN, Quote, Route, Shape, TransportHost};
use eft_messages::ComponentId;
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};
use eft_messages::transport::{IpToTransport, SendDescriptor, TransportToIp};
use eft_transport::udp::{Udp, UdpConfig};
use eft_transport::{In, Out};
use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use zerocopy::{FromZeros, IntoBytes};

pub const GEOMETRY: Geometry = Geometry { slots: 32, send_len: 1 << 18, receive_len: 1 << 18 };
const ROOM: usize = 256;

pub fn v4(a: [u8; 4]) -> WireAddress {
    IpAddr::from(a).into()
}

pub const OWN: [u8; 4] = [10, 0, 0, 1];
pub const PEER: [u8; 4] = [10, 0, 0, 2];

pub struct Host {
    transport: TransportHost<Udp>,
    /// Sends that ip has not answered.
    pub pending: Vec<RequestId>,
    pub answer_sends: bool,
    pub route_errno: i32,
    /// Payload of the most datagrams that ip takes together.
    pub segment_max: u32,
    pub effects: Vec<Effect>,
    pub sent: Vec<(SendDescriptor, Vec<u8>)>,
    pub refused: usize,
    pub answer_steps: bool,
    /// What ip was told about groups: step, interface, group, source.
    pub steps: Vec<(u8, u8, WireAddress, WireAddress)>,
}

impl Host {
    pub fn new() -> Host {
        Host::of(UdpConfig { sockets: 32, sockets_per_domain: 12, seed: 1, ..UdpConfig::default() }, GEOMETRY)
    }

    pub fn of(config: UdpConfig, geometry: Geometry) -> Host {
        let shape = Shape { config, geometry, headers: 64, packets: 8, is_measured: false };
        let mut host = Host {
            transport: TransportHost::new(shape, Random::new(1)),
            pending: Vec::new(),
            answer_sends: true,
            route_errno: 0,
            segment_max: 0,
            effects: Vec::new(),
            sent: Vec::new(),
            refused: 0,
            answer_steps: true,
            steps: Vec::new(),
        };
        for peer in [ComponentId::IP, ComponentId::SOCKETS] {
            host.host.set_queue(peer, ROOM, ROOM);
        }
        host.configure();
        host
    }

    fn configure(&mut self) {
        self.event(Event::Configure { key: "addresses".into(), value: b"10.0.0.1/24".to_vec() });
        self.flush();
    }

    /// The engine dies; a successor opens its arena.
    pub fn crash(&mut self) {
        self.pending.clear();
        self.restart();
        self.configure();
    }

    /// Ends the turn, and plays ip and world until nothing more comes.
    pub fn flush(&mut self) -> Vec<TransportToSockets> {
        let mut replies = Vec::new();
        loop {
            self.end_turn();
            let items = self.host.take();
            // What a dead engine had queued never left.
            if self.died || items.is_empty() {
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
            TransportToIp::Done { packet } => assert!(self.take_back(packet)),
            TransportToIp::Refuse { packet } => {
                self.refused += 1;
                assert!(self.take_back(packet));
            }
            TransportToIp::Route { request, source, .. } => {
                let segment_max = self.segment_max;
                let (errno, own) = (self.route_errno, v4(OWN));
                let route = Route { errno, own, mtu: 1500, segment_max, ..Route::default() };
                self.answer_route(request, source, route);
            }
            TransportToIp::Group { order, step, interface, group, source } => {
                if self.answer_steps {
                    self.steps.push((step, interface, group, source));
                    self.transport.receive(ComponentId::IP, In::Ip(IpToTransport::Grouped { order }));
                }
            }
            TransportToIp::Send { request, descriptor } => {
                let sent = self.described(descriptor);
                self.sent.push(sent);
                self.pending.push(request);
                if self.answer_sends {
                    self.answer_all(0);
                }
            }
        }
    }

    pub fn answer_all(&mut self, errno: i32) {
        for request in std::mem::take(&mut self.pending) {
            self.transport.receive(ComponentId::IP, In::Ip(IpToTransport::Sent { request, errno }));
        }
    }

    pub fn ask(&mut self, make: impl FnOnce(RequestId) -> SocketsToTransport) -> (i32, SocketId, u16) {
        let id = self.transport.ask(make);
        let replies = self.flush();
        let found = replies.into_iter().find_map(|r| match r {
            TransportToSockets::Reply { request, errno, socket, port, .. } if request == id => {
                self.transport.answered(&r);
                Some((errno, socket, port))
            }
            _ => None,
        });
        found.expect("an answer")
    }

    /// A message of sockets, as it is.
    pub fn hear_from_sockets(&mut self, message: SocketsToTransport) {
        self.transport.receive(ComponentId::SOCKETS, In::Sockets(message));
    }

    pub fn open(&mut self) -> SocketId {
        let socket = SocketId { domain: DOMAIN, slot: 0 };
        let (errno, socket, _) = self.ask(|request| SocketsToTransport::Open { request, socket });
        assert_eq!(errno, 0);
        assert_eq!(self.arena.socket(socket.slot).unwrap().owner(), Some(ComponentId::UDP));
        socket
    }

    pub fn bind(&mut self, socket: SocketId, address: [u8; 4], port: u16, reuse: u8) -> i32 {
        let (incarnation, address) = (self.page(socket).incarnation(), v4(address));
        self.ask(|request| SocketsToTransport::Bind { request, socket, incarnation, address, port, reuse }).0
    }

    pub fn connect(&mut self, socket: SocketId, address: [u8; 4], port: u16) -> i32 {
        let (incarnation, address) = (self.page(socket).incarnation(), v4(address));
        self.ask(|request| SocketsToTransport::Connect { request, socket, incarnation, address, port }).0
    }

    pub fn close(&mut self, socket: SocketId) {
        let incarnation = self.page(socket).incarnation();
        self.ask(|request| SocketsToTransport::Close { request, socket, incarnation });
    }

    /// `sendto` (or `send` without a destination).
    pub fn send(&mut self, socket: SocketId, to: Option<([u8; 4], u16)>, payload: &[u8]) {
        self.send_segments(socket, to, payload, 0);
    }

    /// `sendmsg` with UDP_SEGMENT.
    pub fn send_segments(
        &mut self,
        socket: SocketId,
        to: Option<([u8; 4], u16)>,
        payload: &[u8],
        segment: u16,
    ) {
        let page = self.page(socket);
        // As the shim: what is set when the program sends counts.
        let quiet = u8::from(page.option(Opt::NoMulticastLoop) != 0);
        let mut header = DatagramHeader { len: payload.len() as u32, segment, quiet, ..Default::default() };
        if let Some((address, port)) = to {
            header.address = v4(address);
            header.port = port;
        }
        header = header.with_label(flow::label(page.option(Opt::FlowLabel)));
        let at = page.send_end();
        page.write_send(at, header.as_bytes());
        page.write_send(at + size_of::<DatagramHeader>() as u64, payload);
        page.set_send_end(at + datagram_record_len(payload.len()) as u64);
        self.event(Event::Dirty(socket));
        self.flush();
    }

    /// `recvfrom`.
    pub fn receive(&self, socket: SocketId) -> Option<(DatagramHeader, Vec<u8>)> {
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

    pub fn deliver(&mut self, bytes: &[u8], checksum_ok: bool) {
        self.deliver_together(&[bytes], checksum_ok);
    }

    /// Datagrams that were merged on their way.
    pub fn deliver_merged(&mut self, bytes: &[u8], segment_size: u16, checksum_ok: bool) {
        let arrival = Arrival { header_len: 20, checksum_ok, segment_size };
        assert!(self.transport.deliver(bytes, arrival), "packets are given back");
        self.flush();
    }

    /// Packets that arrive in one turn.
    pub fn deliver_together(&mut self, packets: &[&[u8]], checksum_ok: bool) {
        for bytes in packets {
            let arrival = Arrival { header_len: 20, checksum_ok, segment_size: 0 };
            assert!(self.transport.deliver(bytes, arrival), "packets are given back");
        }
        self.flush();
    }

    /// A router answers `bytes` with an error.
    pub fn deliver_error(&mut self, bytes: &[u8], quote: Quote) {
        assert!(self.transport.deliver_error(bytes, quote), "packets are given back");
        self.flush();
    }

    pub fn counter(&self, name: &str) -> u64 {
        self.host.counter(name)
    }
}

impl Deref for Host {
    type Target = TransportHost<Udp>;

    fn deref(&self) -> &TransportHost<Udp> {
        &self.transport
    }
}

impl DerefMut for Host {
    fn deref_mut(&mut self) -> &mut TransportHost<Udp> {
        &mut self.transport
    }
}

/// An IPv4 packet with a UDP datagram, checksum included.
pub fn datagram(from: ([u8; 4], u16), to: ([u8; 4], u16), payload: &[u8]) -> Vec<u8> {
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
