//! Applications: they act only on what they are told, so a wake-up that is not given shows.

use crate::world::{FAMILY, Told, World};
use eft_base::{SocketId, WireAddress};
use eft_channel::socket::{AcceptRecord, Opt, SocketPage, flag, wish};
use eft_component::transport::Effect;
use eft_messages::sockets::SocketsToTransport;
use std::collections::VecDeque;
use zerocopy::FromZeros;
use zerocopy::IntoBytes;

/// What one end of a stream does.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub send: u64,
    pub receive: u64,
    /// Reads at most so much at once (0: everything).
    pub read_max: usize,
    /// Writes at most so much at once (0: as much as fits).
    pub write_max: usize,
    /// Shuts down its sending side when everything is sent.
    pub shutdown: bool,
    pub no_delay: bool,
}

#[derive(Debug)]
pub struct Stream {
    pub socket: SocketId,
    pub plan: Plan,
    pub sent: u64,
    pub received: u64,
    pub connected: bool,
    pub end_seen: bool,
    pub hung_up: bool,
    pub error: i32,
    pub closed: bool,
    /// Says which bytes it sends.
    pub salt: u64,
    pub peer_salt: u64,
    /// Does not read.
    pub paused: bool,
    /// Does not look at what it reads.
    pub careless: bool,
}

#[derive(Default)]
pub struct App {
    pub listener: Option<SocketId>,
    pub streams: Vec<Stream>,
    pub accept_plan: Option<Plan>,
    pub accepted: usize,
    intents: VecDeque<Intent>,
    backlog: u32,
    /// Errors of requests.
    pub failures: Vec<i32>,
    /// Does not accept.
    pub idle: bool,
    /// Accepted streams do not look at what they read.
    pub careless: bool,
    pub effects: Vec<Effect>,
    /// Set on a socket before it connects.
    pub options: Vec<(Opt, u32)>,
}

#[derive(Clone, Copy, Debug)]
enum Intent {
    Listen(u16, u32),
    Connect(WireAddress, u16, Plan),
}

/// The byte at `offset` of the stream with that salt.
pub fn byte_at(salt: u64, offset: u64) -> u8 {
    let x = (offset / 8).wrapping_add(salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x >> (offset % 8 * 8)) as u8
}

impl App {
    pub fn listen(world: &mut World, side: usize, port: u16, backlog: u32, plan: Plan) {
        world.sides[side].app.accept_plan = Some(plan);
        Self::open(world, side, Intent::Listen(port, backlog));
    }

    pub fn connect(world: &mut World, side: usize, port: u16, plan: Plan) {
        let address = world.sides[1 - side].address;
        Self::open(world, side, Intent::Connect(address, port, plan));
    }

    fn open(world: &mut World, side: usize, intent: Intent) {
        world.sides[side].app.intents.push_back(intent);
        world.request(side, |request| SocketsToTransport::Open {
            request,
            socket: SocketId { family: FAMILY, slot: 0 },
        });
    }

    /// Closes a stream's (or the listener's) descriptor.
    pub fn close(world: &mut World, side: usize, socket: SocketId) {
        let app = &mut world.sides[side].app;
        if let Some(s) = app.streams.iter_mut().find(|s| s.socket == socket && !s.closed) {
            s.closed = true;
        }
        if app.listener == Some(socket) {
            app.listener = None;
        }
        let incarnation = world.sides[side].incarnation(socket);
        world.request(side, |request| SocketsToTransport::Close { request, socket, incarnation });
    }

    pub fn told(world: &mut World, side: usize, told: Told) {
        match told {
            Told::Reply(asked, errno, socket) => Self::answered(world, side, asked, errno, socket),
            Told::Effect(effect) => Self::affected(world, side, effect),
        }
    }

    fn answered(world: &mut World, side: usize, asked: SocketsToTransport, errno: i32, socket: SocketId) {
        if errno != 0 {
            world.sides[side].app.failures.push(errno);
        }
        match asked {
            SocketsToTransport::Open { .. } => {
                let intent = world.sides[side].app.intents.pop_front();
                if errno == 0
                    && let Some(intent) = intent
                {
                    Self::opened(world, side, socket, intent);
                }
            }
            SocketsToTransport::Bind { socket, .. } if errno == 0 => {
                let backlog = world.sides[side].app.backlog;
                let incarnation = world.sides[side].incarnation(socket);
                let listen = |request| SocketsToTransport::Listen { request, socket, incarnation, backlog };
                world.request(side, listen);
            }
            SocketsToTransport::Listen { socket, .. } if errno == 0 => {
                world.sides[side].app.listener = Some(socket);
            }
            SocketsToTransport::Attached { socket, .. } if errno == 0 => Self::progress(world, side, socket),
            SocketsToTransport::Connect { socket, .. } => {
                let port = world.sides[side].page(socket).local().port as u64;
                let app = &mut world.sides[side].app;
                if let Some(s) = app.streams.iter_mut().find(|s| s.socket == socket && !s.closed) {
                    s.salt = port;
                    s.peer_salt = port + 100_000;
                    s.error = errno;
                }
                Self::progress(world, side, socket);
            }
            _ => {}
        }
    }

    fn opened(world: &mut World, side: usize, socket: SocketId, intent: Intent) {
        let incarnation = world.sides[side].incarnation(socket);
        match intent {
            Intent::Listen(port, backlog) => {
                world.sides[side].app.backlog = backlog;
                world.request(side, |request| SocketsToTransport::Bind {
                    request,
                    socket,
                    incarnation,
                    address: std::net::IpAddr::from([0u8, 0, 0, 0]).into(),
                    port,
                    reuse: 1,
                });
            }
            Intent::Connect(address, port, plan) => {
                let page = world.sides[side].page(socket);
                page.set_option(Opt::NoDelay, plan.no_delay as u32);
                for (option, value) in &world.sides[side].app.options {
                    page.set_option(*option, *value);
                }
                // A connecting writer waits for the plug to be pulled.
                page.write_plug().set();
                world.sides[side].app.streams.push(Stream::new(socket, plan, 0, 0));
                let connect =
                    |request| SocketsToTransport::Connect { request, socket, incarnation, address, port };
                world.request(side, connect);
            }
        }
    }

    fn affected(world: &mut World, side: usize, effect: Effect) {
        world.sides[side].app.effects.push(effect);
        match effect {
            Effect::Readable(socket) => {
                if world.sides[side].app.listener == Some(socket) {
                    Self::accept(world, side);
                } else {
                    Self::progress(world, side, socket);
                }
            }
            Effect::Writable(socket) => {
                world.sides[side].page(socket).write_plug().clear();
                Self::progress(world, side, socket);
            }
            Effect::EndOfStream(socket) => Self::progress(world, side, socket),
            Effect::HangUp(socket) => {
                if let Some(s) = Self::stream(world, side, socket) {
                    s.hung_up = true;
                }
                Self::progress(world, side, socket);
            }
        }
    }

    pub fn stream(world: &mut World, side: usize, socket: SocketId) -> Option<&mut Stream> {
        let streams = &mut world.sides[side].app.streams;
        streams.iter_mut().find(|s| s.socket == socket && !s.closed)
    }

    /// Takes every connection from the listener's ring.
    pub fn accept(world: &mut World, side: usize) {
        let Some(listener) = world.sides[side].app.listener else {
            return;
        };
        if world.sides[side].app.idle {
            return;
        }
        let page = world.sides[side].page(listener);
        while page.receivable() >= size_of::<AcceptRecord>() {
            let taken = page.receive_taken();
            let mut record = AcceptRecord::new_zeroed();
            page.read_receive(taken, record.as_mut_bytes());
            page.set_receive_taken(taken + size_of::<AcceptRecord>() as u64);
            let socket = SocketId { family: FAMILY, slot: record.slot };
            let app = &mut world.sides[side].app;
            let plan = app.accept_plan.unwrap();
            app.accepted += 1;
            let port = record.remote_port as u64;
            let careless = app.careless;
            app.streams.push(Stream { careless, ..Stream::new(socket, plan, port + 100_000, port) });
            let incarnation = record.incarnation;
            assert_eq!(incarnation, world.sides[side].page(socket).incarnation());
            world.request(side, |request| SocketsToTransport::Attached { request, socket, incarnation });
        }
    }

    pub fn run(_world: &mut World, _side: usize) {}

    /// Reads and writes what is possible, as a program woken for this socket does.
    pub fn progress(world: &mut World, side: usize, socket: SocketId) {
        let seed = world.seed;
        let page = world.sides[side].page(socket);
        let flags = page.flags();
        let Some(s) = Self::stream(world, side, socket) else {
            return;
        };
        s.connected |= flags & flag::CONNECTED != 0;
        if flags & flag::DEAD != 0 && s.error == 0 {
            s.error = page.take_error();
        }
        let mut news = false;
        if !s.paused {
            news |= s.read(&page, seed);
        }
        if s.connected && s.salt != 0 && flags & flag::DEAD == 0 {
            news |= s.write(&page);
        }
        if page.receivable() == 0 && flags & flag::RECEIVE_END != 0 {
            s.end_seen = true;
        }
        if news {
            world.dirty(side, socket);
        }
    }

    pub fn all_done(&self) -> bool {
        !self.streams.is_empty() && self.streams.iter().all(Stream::is_done)
    }
}

impl Stream {
    fn new(socket: SocketId, plan: Plan, salt: u64, peer_salt: u64) -> Stream {
        Stream {
            socket,
            plan,
            sent: 0,
            received: 0,
            connected: false,
            end_seen: false,
            hung_up: false,
            error: 0,
            closed: false,
            salt,
            peer_salt,
            paused: false,
            careless: false,
        }
    }

    pub fn is_done(&self) -> bool {
        self.sent == self.plan.send
            && self.received == self.plan.receive
            && (self.end_seen || !self.plan.shutdown)
    }

    /// Reads and compares. True if the transport must be told.
    fn read(&mut self, page: &SocketPage, seed: u64) -> bool {
        let mut news = false;
        loop {
            let mut n = page.receivable();
            if self.plan.read_max > 0 {
                n = n.min(self.plan.read_max);
            }
            if n == 0 {
                return news;
            }
            let taken = page.receive_taken();
            assert_eq!(taken, self.received, "seed {seed}");
            let mut bytes = vec![0; n];
            page.read_receive(taken, &mut bytes);
            for (i, b) in bytes.iter().enumerate() {
                if self.careless {
                    break;
                }
                let want = byte_at(self.peer_salt, taken + i as u64);
                assert_eq!(*b, want, "seed {seed}: wrong byte at {}", taken + i as u64);
            }
            self.received += n as u64;
            assert!(
                self.careless || self.received <= self.plan.receive,
                "seed {seed}: more bytes than were sent"
            );
            page.set_receive_taken(self.received);
            news |= self.received >= page.receive_notify();
        }
    }

    /// Writes what fits. True if the transport must be told.
    fn write(&mut self, page: &SocketPage) -> bool {
        let mut news = false;
        while self.sent < self.plan.send {
            let mut n = (self.plan.send - self.sent).min(page.sendable() as u64) as usize;
            if self.plan.write_max > 0 {
                n = n.min(self.plan.write_max);
            }
            if n == 0 {
                page.write_plug().set();
                return true;
            }
            let bytes: Vec<u8> = (0..n as u64).map(|i| byte_at(self.salt, self.sent + i)).collect();
            page.write_send(self.sent, &bytes);
            self.sent += n as u64;
            page.set_send_end(self.sent);
            news = true;
        }
        if self.plan.shutdown && page.wishes() & wish::SHUT_WRITE == 0 {
            page.add_wish(wish::SHUT_WRITE);
            news = true;
        }
        news
    }
}
