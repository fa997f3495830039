//! Segments and datagrams from the network into tcp and udp, with an application that behaves or one
//! that scribbles over everything that it may write.

use super::Target;
use super::packets::{SYN_OPTIONS, Segment, THEM, US, ipv4, tcp, udp};
use super::transport_bench::{Engine, Flow, LISTEN_PORT, OPTION_FAST_OPEN, TransportBench};
use crate::mutate::{hostile_u64, write_edge};
use crate::source::Source;
use eft_base::SocketId;
use eft_base::wire::*;
use eft_channel::socket::{ARENA_HEADER_LEN, Opt, SOCKET_HEADER_LEN, SocketPage};
use eft_harness::DOMAIN;
use eft_messages::sockets::SocketsToTransport;
use eft_transport::tcp::Tcp;
use eft_transport::udp::Udp;
use std::time::Duration;

const FLAGS: [u8; 9] = [
    TCP_ACK,
    TCP_ACK,
    TCP_ACK | TCP_PSH,
    TCP_ACK | TCP_FIN,
    TCP_SYN,
    TCP_SYN | TCP_ACK,
    TCP_RST,
    TCP_RST | TCP_ACK,
    TCP_ACK | TCP_URG,
];

pub struct Segments<E: Engine> {
    pub bench: TransportBench<E>,
    is_tcp: bool,
    /// The application scribbles.
    hostile: bool,
}

impl Segments<Tcp> {
    pub fn tcp(hostile: bool, source: &mut Source) -> Self {
        Segments { bench: TransportBench::new(true, source), is_tcp: true, hostile }
    }

    /// What the engine says is not checked: its arena will be damaged.
    pub fn tcp_unchecked(source: &mut Source) -> Self {
        Segments { bench: TransportBench::new(false, source), ..Segments::tcp(false, source) }
    }
}

impl Segments<Udp> {
    pub fn udp(hostile: bool, source: &mut Source) -> Self {
        Segments { bench: TransportBench::new(true, source), is_tcp: false, hostile }
    }

    /// As [`Segments::tcp_unchecked`].
    pub fn udp_unchecked(source: &mut Source) -> Self {
        Segments { bench: TransportBench::new(false, source), ..Segments::udp(false, source) }
    }
}

/// A sequence number at or near where it should be.
fn near(n: u32, source: &mut Source) -> u32 {
    match source.below(6) {
        0..3 => n,
        3 => n.wrapping_add(source.below(3000) as u32),
        4 => n.wrapping_sub(source.below(3000) as u32),
        _ => n.wrapping_add(hostile_u64(0, source) as u32),
    }
}

fn options(cookie: &[u8], source: &mut Source) -> Vec<u8> {
    let mut options = match source.below(5) {
        // The engine's own cookie, or the request for one.
        4 => fast_open(cookie, source),
        0 => Vec::new(),
        1 => SYN_OPTIONS.to_vec(),
        2 => vec![1, 1, 8, 10, 0, 0, 0, source.byte(), 0, 0, 0, 1],
        _ => {
            // SACK blocks.
            let mut o = vec![1, 1, 5, 18];
            o.extend(source.bytes(16));
            o
        }
    };
    for _ in 0..source.below(3) {
        let at = source.below(options.len() as u64) as usize;
        match options.get_mut(at) {
            Some(b) => *b = source.byte(),
            None => options.push(source.byte()),
        }
    }
    options
}

/// The Fast Open option, mostly with the last cookie that the engine told, beside an MSS.
fn fast_open(cookie: &[u8], source: &mut Source) -> Vec<u8> {
    let cookie = if source.chance(0.8) { cookie } else { &[] };
    [&[2, 4, 5, 120, OPTION_FAST_OPEN, 2 + cookie.len() as u8], cookie].concat()
}

/// The next segment of a conversation, as a good peer sends it. `now` is its clock.
fn good_segment(flow: &Flow, now: u32, source: &mut Source) -> Vec<u8> {
    let payload = vec![0x3c; source.below(2) as usize * source.below(1400) as usize];
    let mut options = vec![1, 1, 8, 10];
    options.extend(now.to_be_bytes());
    options.extend([0; 4]);
    let segment = Segment {
        from: flow.remote,
        to: flow.local,
        sequence: flow.acknowledged,
        acknowledgment: flow.sent,
        flags: TCP_ACK,
        window: 30000,
        options: &options,
        payload: &payload,
    };
    ipv4(THEM, US, PROTOCOL_TCP, 0, &tcp(&segment))
}

/// A packet to the engine: of a known conversation, of a new one, or damaged.
fn tcp_packet(flows: &[Flow], cookie: &[u8], now: u32, source: &mut Source) -> Vec<u8> {
    if !flows.is_empty() && source.chance(0.6) {
        let flow = &flows[source.below(flows.len() as u64) as usize];
        return good_segment(flow, now, source);
    }
    let flow = match flows.len() {
        n if n > 0 && source.chance(0.85) => flows[source.below(n as u64) as usize],
        _ => Flow { local: LISTEN_PORT, remote: source.below(30) as u16, sent: 0, acknowledged: 0 },
    };
    let payload = vec![0xc3; source.below(3) as usize * source.below(1600) as usize];
    let options = options(cookie, source);
    let segment = Segment {
        from: flow.remote,
        to: flow.local,
        sequence: near(flow.acknowledged, source),
        acknowledgment: near(flow.sent, source),
        flags: match flow.sent {
            0 if source.chance(0.8) => TCP_SYN,
            _ => FLAGS[source.below(FLAGS.len() as u64) as usize],
        },
        window: hostile_u64(1000, source) as u16,
        options: &options,
        payload: &payload,
    };
    ipv4(THEM, US, PROTOCOL_TCP, 0, &tcp(&segment))
}

fn udp_packet(source: &mut Source) -> Vec<u8> {
    let payload = vec![0x3c; source.below(3000) as usize];
    let to = if source.chance(0.8) { LISTEN_PORT } else { source.next_u32() as u16 };
    ipv4(THEM, US, PROTOCOL_UDP, 0, &udp(53, to, &payload))
}

impl<E: Engine> Segments<E> {
    fn arrive(&mut self, source: &mut Source) {
        let mut packet = match self.is_tcp {
            true => {
                let bench = &self.bench;
                let now = bench.transport.host.now.as_micros() as u32;
                tcp_packet(&bench.flows, &bench.cookie, now, source)
            }
            false => udp_packet(source),
        };
        if source.chance(0.15) {
            for _ in 0..1 + source.below(3) {
                let at = source.below(packet.len() as u64) as usize;
                write_edge(&mut packet, at, source);
            }
            packet.truncate(source.below(packet.len() as u64 + 1).max(20) as usize);
        }
        // ip checked the header's length against the packet; nothing else is sure.
        let header_len = if source.chance(0.95) { 20 } else { source.below(61) as u16 };
        let header_len = header_len.min(packet.len() as u16);
        self.bench.deliver(&packet, header_len, source.chance(0.9), source);
    }

    /// The engine's own packet comes back in an ICMP error.
    fn error(&mut self, source: &mut Source) {
        let flows = &self.bench.flows;
        let quoted = match flows.len() {
            0 => udp(LISTEN_PORT, 53, &[]),
            n => {
                let f = flows[source.below(n as u64) as usize];
                let sequence = near(f.sent, source);
                tcp(&Segment {
                    from: f.local,
                    to: f.remote,
                    sequence,
                    acknowledgment: 0,
                    flags: TCP_ACK,
                    window: 0,
                    options: &[],
                    payload: &[],
                })
            }
        };
        let protocol = if flows.is_empty() { PROTOCOL_UDP } else { PROTOCOL_TCP };
        let mut packet =
            ipv4(US, THEM, protocol, 0, &quoted[..8 + source.below(quoted.len() as u64 - 7) as usize]);
        if source.chance(0.3) {
            let at = source.below(packet.len() as u64) as usize;
            write_edge(&mut packet, at, source);
        }
        self.bench.error(&packet, source);
    }

    /// What a program can do to the memory that it shares: anything.
    fn scribble(&mut self, socket: SocketId, source: &mut Source) {
        let page = self.bench.page(socket);
        for _ in 0..1 + source.below(4) {
            match source.below(8) {
                0 => page.set_send_end(hostile_u64(page.send_released(), source)),
                1 => page.set_receive_taken(hostile_u64(page.receive_end(), source)),
                2 => page.set_flags(source.next_u32() & 63),
                3 => set_option(&page, source),
                4 => page.set_send_released(hostile_u64(page.send_end(), source)),
                5 => page.set_receive_end(hostile_u64(page.receive_taken(), source)),
                _ => self.scribble_bytes(socket, source),
            }
        }
    }

    fn scribble_bytes(&self, socket: SocketId, source: &mut Source) {
        let arena = &self.bench.transport.arena;
        let slot = ARENA_HEADER_LEN + socket.slot as usize * arena.geometry().stride();
        let at = match source.below(4) {
            0 => source.below(ARENA_HEADER_LEN as u64) as usize,
            1 => slot + SOCKET_HEADER_LEN + source.below(4096) as usize,
            2 => slot + SOCKET_HEADER_LEN + page_send_len(arena) + source.below(4096) as usize,
            _ => slot + source.below(1024) as usize,
        };
        let mut bytes = [0; 16];
        write_edge(&mut bytes, 0, source);
        let n = 1 + source.below(16) as usize;
        arena.segment().write(at, &bytes[..n]).expect("within the arena");
    }
}

fn page_send_len(arena: &eft_channel::socket::Arena) -> usize {
    arena.geometry().send_len
}

fn set_option(page: &SocketPage, source: &mut Source) {
    // Those of datagram sockets, too.
    let others = [Opt::Broadcast, Opt::DontFragment, Opt::FastOpenQueue, Opt::FastOpenConnect];
    let all = [Opt::INHERITED, &others].concat();
    page.set_option(all[source.below(all.len() as u64) as usize], hostile_u64(0, source) as u32);
}

impl<E: Engine> Target for Segments<E> {
    fn feed(&mut self, source: &mut Source) {
        for _ in 0..1 + source.below(3) {
            self.arrive(source);
        }
        self.bench.settle(source);
        if source.chance(0.05) {
            self.error(source);
        }
        if self.hostile && source.chance(0.03) {
            // Its page may have cost it everything: begin again.
            self.bench.close(0, source);
        }
        self.bench.tidy(source);
        let sockets = self.bench.sockets.len() as u64;
        if sockets > 0 && source.chance(0.5) {
            let socket = self.bench.sockets[source.below(sockets) as usize];
            if self.hostile && source.chance(0.6) {
                self.scribble(socket, source);
            }
            self.bench.use_socket(socket, source);
        }
        match source.below(150) {
            0..3 => self.bench.connect(source),
            3..6 if sockets > 0 => self.bench.close(source.below(sockets) as usize, source),
            6 => self.bench.die(source),
            7 => self.bench.transport.host.set_room(source.below(6) as usize),
            8..14 => self.bench.transport.host.set_room(1024),
            14 => {
                let socket = SocketId { domain: DOMAIN, slot: source.below(40) as u32 };
                let incarnation = source.below(4) as u32;
                let ask = |request| SocketsToTransport::Attached { request, socket, incarnation };
                self.bench.ask(ask, source);
            }
            15 => self.bench.transport.host.pass(Duration::from_secs(source.below(200))),
            _ => {}
        }
        self.bench.transport.host.pass(Duration::from_micros(source.below(60_000)));
        self.bench.settle(source);
    }
}
