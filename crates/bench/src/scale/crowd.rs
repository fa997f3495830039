//! Many connections of tcp's engine, without a device, a kernel and a clock: clients that each send what a script says, and
//! a program that answers.

use anyhow::{Result, anyhow, bail, ensure};
use eft_base::{Random, RequestId, SlotShare, SocketId, WireAddress};
use eft_channel::socket::{Geometry, Opt};
use eft_component::Component;
use eft_component::transport::Event;
use eft_harness::{Arrival, DOMAIN, Shape, TransportHost, WireSegment, take_accepted};
use eft_messages::ComponentId;
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};
use eft_messages::transport::{IpToTransport, TransportToIp};
use eft_transport::tcp::{Tcp, TcpConfig};
use eft_transport::{In, Out};
use rustix::time::{ClockId, clock_gettime};
use std::net::IpAddr;
use std::time::Duration;

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const PUSH: u8 = 8;
pub const ACK: u8 = 16;

const PORT: u16 = 80;
const BACKLOG: u32 = 1024;
const RING: usize = 4096;
const MTU: u16 = 1500;
/// Payload of one segment that the device would cut.
const SEGMENT_MAX: u32 = 65_000;
const IP_HEADER: usize = 20;
/// Bytes of a request and of an answer.
pub const REQUEST: usize = 64;
/// Clients at one address.
const PORTS: u32 = 20_000;
const FIRST_PORT: u16 = 10_000;
/// MSS 1460, SACK permitted, timestamps, window scale 7: what Linux asks for.
const SYN_OPTIONS: [u8; 20] = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];

/// A segment that the engine sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heard {
    pub flags: u8,
    pub seq: u32,
    pub len: usize,
    timestamp: u32,
}

/// The far end of a connection, and the socket at the near end.
struct Client {
    address: WireAddress,
    port: u16,
    seq: u32,
    ack: u32,
    /// The timestamp to send, and the last one that came.
    now: u32,
    echo: u32,
    socket: SocketId,
    incarnation: u32,
    /// How far its program has written.
    written: u64,
}

/// Runs what is to be counted: callgrind knows it by this name.
#[inline(never)]
fn scale_counted(f: impl FnOnce()) {
    f();
}

/// What this thread has used of a CPU.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// tcp with a listener, and its clients.
pub struct Crowd {
    tcp: TransportHost<Tcp>,
    own: WireAddress,
    listener: SocketId,
    clients: Vec<Client>,
    heard: Vec<Heard>,
    /// Errors and sockets of sockets' requests.
    replies: Vec<(i32, SocketId)>,
    /// Whether the engine's work is to be counted.
    pub is_counted: bool,
}

impl Crowd {
    /// With `connections` that are established and idle, and room for `more`. Keepalive sets a timer for each.
    pub fn new(connections: usize, more: usize) -> Result<Crowd> {
        let sockets = connections + more + 2;
        let config = TcpConfig {
            connections: (sockets * 2).next_power_of_two().min(1 << 18),
            sockets_per_domain: sockets,
            slots: SlotShare { stride: 1, ..SlotShare::TCP },
            ..TcpConfig::default()
        };
        let geometry = Geometry { slots: sockets, send_len: RING, receive_len: RING };
        let shape = Shape { config, geometry, headers: 512, packets: 64, is_measured: true };
        let mut crowd = Crowd {
            tcp: TransportHost::new(shape, Random::new(17)),
            own: IpAddr::from([10, 0, 0, 1]).into(),
            listener: SocketId { domain: DOMAIN, slot: 0 },
            clients: Vec::with_capacity(sockets),
            heard: Vec::new(),
            replies: Vec::new(),
            is_counted: false,
        };
        crowd.listen()?;
        for _ in 0..connections {
            crowd.connect()?;
        }
        // Deadlines of the handshakes, which are over, expire once.
        crowd.wait(Duration::from_secs(5))?;
        Ok(crowd)
    }

    fn listen(&mut self) -> Result<()> {
        let socket = self.listener;
        let socket = self.request(|request| SocketsToTransport::Open { request, socket })?;
        self.listener = socket;
        let incarnation = self.tcp.incarnation(socket);
        let page = self.tcp.page(socket);
        page.set_option(Opt::KeepAlive, 1);
        let address = IpAddr::from([0u8, 0, 0, 0]).into();
        self.request(|request| SocketsToTransport::Bind {
            request,
            socket,
            incarnation,
            address,
            port: PORT,
            reuse: 1,
        })?;
        let backlog = BACKLOG;
        self.request(|request| SocketsToTransport::Listen { request, socket, incarnation, backlog })?;
        Ok(())
    }

    /// A connection more: SYN, SYN-ACK, ACK, `accept`.
    pub fn connect(&mut self) -> Result<()> {
        let number = self.clients.len() as u32;
        let address = IpAddr::from((0x0a01_0000 + number / PORTS).to_be_bytes()).into();
        let port = FIRST_PORT + (number % PORTS) as u16;
        let client = Client {
            address,
            port,
            seq: number.wrapping_mul(2_654_435_761),
            ack: 0,
            now: 1,
            echo: 0,
            socket: self.listener,
            incarnation: 0,
            written: 0,
        };
        self.clients.push(client);
        let client = self.clients.len() - 1;
        self.say_with(client, SYN, &[], &SYN_OPTIONS)?;
        let answer = self.one_heard(client, SYN | ACK)?;
        self.clients[client].ack = answer.seq.wrapping_add(1);
        self.say(client, ACK, &[])?;
        let listener = self.tcp.page(self.listener);
        let [record] = take_accepted(&listener, usize::MAX)[..] else {
            bail!("a connection is not accepted")
        };
        let socket = SocketId { domain: DOMAIN, slot: record.slot };
        let incarnation = record.incarnation;
        self.request(|request| SocketsToTransport::Attached { request, socket, incarnation })?;
        let client = &mut self.clients[client];
        (client.socket, client.incarnation) = (socket, incarnation);
        Ok(())
    }

    /// The client sends a request; the program reads it and answers. Returns how many segments there were: young connections
    /// acknowledge at once, others with the answer.
    pub fn exchange(&mut self, client: usize) -> Result<usize> {
        self.say(client, PUSH | ACK, &[7; REQUEST])?;
        let acknowledgements = std::mem::take(&mut self.heard).len();
        self.answer(client)?;
        let heard = self.one_heard(client, PUSH | ACK)?;
        ensure!(heard.len == REQUEST, "an answer of {} bytes", heard.len);
        self.clients[client].ack = heard.seq.wrapping_add(REQUEST as u32);
        Ok(2 + acknowledgements)
    }

    /// The program reads the request and writes as much.
    fn answer(&mut self, client: usize) -> Result<()> {
        let Client { socket, written, .. } = self.clients[client];
        let page = self.tcp.page(socket);
        ensure!(page.receivable() == REQUEST, "{} bytes have come", page.receivable());
        let at = page.receive_taken();
        let mut bytes = [0; REQUEST];
        page.read_receive(at, &mut bytes);
        page.set_receive_taken(at + REQUEST as u64);
        self.write(client, written, &bytes)
    }

    /// The program writes without having been asked.
    pub fn send(&mut self, client: usize) -> Result<Heard> {
        let written = self.clients[client].written;
        self.heard.clear();
        self.write(client, written, &[9; REQUEST])?;
        self.one_heard(client, PUSH | ACK)
    }

    fn write(&mut self, client: usize, at: u64, bytes: &[u8]) -> Result<()> {
        let socket = self.clients[client].socket;
        let page = self.tcp.page(socket);
        ensure!(page.sendable() >= bytes.len(), "no room to write");
        let end = at + bytes.len() as u64;
        page.write_send(at, bytes);
        page.set_send_end(end);
        self.clients[client].written = end;
        self.turn(|tcp| tcp.event(Event::Dirty(socket)))
    }

    /// tcp dies, and a successor takes over its arena. How much of a CPU's time passes until that takes the next event.
    pub fn rebirth(&mut self) -> Result<Duration> {
        let begin = cpu_time();
        let last = self.tcp.restart();
        self.run(|_| ());
        let took = cpu_time() - begin;
        drop(last);
        self.turn(|_| ())?;
        self.heard.clear();
        Ok(took)
    }

    /// Turns in which nothing comes in, until nothing more goes out.
    pub fn settle(&mut self) -> Result<()> {
        loop {
            self.heard.clear();
            self.turn(|_| ())?;
            if self.heard.is_empty() {
                return Ok(());
            }
        }
    }

    /// The client ends its side, the program closes, the client acknowledges: nothing of the connection is left.
    pub fn close(&mut self) -> Result<()> {
        let client = self.clients.len() - 1;
        self.say(client, FIN | ACK, &[])?;
        let Client { socket, incarnation, .. } = self.clients[client];
        self.request(|request| SocketsToTransport::Close { request, socket, incarnation })?;
        let end = self.heard.iter().rev().find(|heard| heard.flags & FIN != 0);
        let end = *end.ok_or_else(|| anyhow!("no FIN came: {:?}", self.heard))?;
        self.clients[client].ack = end.seq.wrapping_add(1);
        self.say(client, ACK, &[])?;
        self.clients.pop();
        self.heard.clear();
        Ok(())
    }

    /// Time passes, up to the next deadlines; returns what was sent meanwhile.
    pub fn wait(&mut self, time: Duration) -> Result<Vec<Heard>> {
        self.heard.clear();
        let end = self.tcp.host.now + time;
        while let Some(next) = self.tcp.host.engine.deadline().filter(|at| *at <= end) {
            self.tcp.host.now = self.tcp.host.now.max(next);
            self.turn(|_| ())?;
        }
        self.tcp.host.now = end;
        Ok(std::mem::take(&mut self.heard))
    }

    fn say(&mut self, client: usize, flags: u8, payload: &[u8]) -> Result<()> {
        let client_state = &mut self.clients[client];
        client_state.now += 1;
        let mut options = [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
        options[4..8].copy_from_slice(&client_state.now.to_be_bytes());
        options[8..].copy_from_slice(&client_state.echo.to_be_bytes());
        self.say_with(client, flags, payload, &options)
    }

    /// A segment comes from the client, and takes as much of the sequence as it carries.
    fn say_with(&mut self, client: usize, flags: u8, payload: &[u8], options: &[u8]) -> Result<()> {
        let state = &mut self.clients[client];
        let (from, to) = ((state.address, state.port), (self.own, PORT));
        let segment = WireSegment { from, to, seq: state.seq, ack: state.ack, flags, window: 500, options };
        let bytes = segment.packet(payload);
        let takes = payload.len() as u32 + (flags & (SYN | FIN) != 0) as u32;
        state.seq = state.seq.wrapping_add(takes);
        self.heard.clear();
        let arrival = Arrival { header_len: IP_HEADER as u16, checksum_ok: true, segment_size: 0 };
        self.turn(|tcp| assert!(tcp.deliver(&bytes, arrival), "ip has a slot"))
    }

    /// The segment that the engine sent to this client; whatever it has in place of it is an error.
    fn one_heard(&mut self, client: usize, flags: u8) -> Result<Heard> {
        let [heard] = self.heard[..] else { bail!("expected one segment, heard {:?}", self.heard) };
        ensure!(heard.flags == flags, "expected flags {flags:#x}, heard {heard:?}");
        self.clients[client].echo = heard.timestamp;
        Ok(heard)
    }

    fn request(&mut self, make: impl FnOnce(RequestId) -> SocketsToTransport) -> Result<SocketId> {
        self.replies.clear();
        self.turn(|tcp| {
            tcp.ask(make);
        })?;
        match self.replies[..] {
            [(0, socket)] => Ok(socket),
            _ => bail!("sockets was answered {:?}", self.replies),
        }
    }

    /// One turn of the server, and those that the neighbours' answers make.
    fn turn(&mut self, input: impl FnOnce(&mut TransportHost<Tcp>)) -> Result<()> {
        self.run(input);
        loop {
            let answers = self.answers()?;
            if answers.is_empty() {
                return Ok(());
            }
            self.run(|tcp| {
                answers.into_iter().for_each(|answer| tcp.receive(ComponentId::IP, In::Ip(answer)))
            });
        }
    }

    fn run(&mut self, input: impl FnOnce(&mut TransportHost<Tcp>)) {
        let tcp = &mut self.tcp;
        let turn = || {
            input(tcp);
            tcp.end_turn();
        };
        if self.is_counted { scale_counted(turn) } else { turn() }
    }

    /// Takes what the engine wants to say, and returns what ip answers.
    fn answers(&mut self) -> Result<Vec<IpToTransport>> {
        let mut answers = Vec::new();
        for out in self.tcp.host.take() {
            match out {
                Out::Ip(TransportToIp::Send { request, descriptor }) => {
                    let (sent, payload) = self.tcp.described(descriptor);
                    self.heard.push(heard(&sent.header[..sent.header_len as usize], payload.len())?);
                    answers.push(IpToTransport::Sent { request, errno: 0 });
                }
                Out::Ip(TransportToIp::Route { request, source, .. }) => {
                    let route = IpToTransport::Routed {
                        request,
                        errno: 0,
                        source,
                        mtu: MTU,
                        segment_max: SEGMENT_MAX,
                        local: false,
                        mss: 0,
                        initial_segments: 0,
                    };
                    answers.push(route);
                }
                Out::Ip(TransportToIp::Done { packet } | TransportToIp::Refuse { packet }) => {
                    ensure!(self.tcp.take_back(packet), "a packet is given back twice");
                }
                Out::Sockets(reply) => {
                    let TransportToSockets::Reply { errno, socket, .. } = reply;
                    ensure!(self.tcp.answered(&reply).is_some(), "an answer that nobody waits for");
                    self.replies.push((errno, socket));
                }
                Out::Effect(_) | Out::Ip(TransportToIp::Group { .. }) => {}
            }
        }
        Ok(answers)
    }
}

/// What a TCP header says.
fn heard(header: &[u8], len: usize) -> Result<Heard> {
    let word = |at: usize| -> Result<u32> {
        let bytes = header.get(at..at + 4).and_then(|b| b.try_into().ok());
        bytes.map(u32::from_be_bytes).ok_or_else(|| anyhow!("a header of {} bytes", header.len()))
    };
    // Every segment has timestamps, and they come first in whole words: before them are at most MSS and padding.
    let at = (20..header.len()).find(|at| header[*at..].starts_with(&[8, 10]));
    let timestamp = at.map_or(Ok(0), |at| word(at + 2))?;
    Ok(Heard { flags: header[13], seq: word(4)?, len, timestamp })
}
