//! A simulated program: sockets through requests, bytes through socket pages, as the shim does it.
//!
//! It acts only on replies and readiness, so a wake-up that a server fails to send shows as a standstill.
//! Every byte is compared.

use crate::datagrams::{DatagramSocket, Datagrams};
use crate::node::{Effect, Event};
use crate::stack::{DOMAIN, Stack};
use eft_base::errno::EINPROGRESS;
use eft_base::{Endpoint, Instant, SocketId, WireAddress};
use eft_channel::socket::{LAYOUT_VERSION, Opt, SocketPage};
use eft_component::sockets::{self, ConnectionId, Handle};
use eft_component::transport::Effect as RecordedEvent;
use eft_harness::{Plan, Stream, listeners, take_accepted};
use eft_messages::ComponentId;
use eft_messages::control::{MembershipRequest, Reply, Request, op};
use eft_messages::sockets::{membership, reuse};
use std::collections::{BTreeMap, VecDeque};

enum Intent {
    Listen {
        port: u16,
        plan: Plan,
    },
    /// `local`: the port to which it is bound first, with the first bytes in its ring; 0: to none.
    Connect {
        to: Endpoint,
        plan: Plan,
        local: u16,
    },
    Datagrams(Datagrams),
}

enum Asked {
    Open(Intent),
    Bind(Plan),
    BindDatagrams(Datagrams),
    Join(Datagrams),
    Listen(Plan),
    BindToConnect { to: Endpoint, plan: Plan, local: u16 },
    Connect,
}

/// The wildcard of IPv6, which is IPv4's as well.
const BOTH_VERSIONS: WireAddress = WireAddress([0; 16]);

/// A descriptor of this program has one, which is not 0.
const INODE: u64 = 1;
/// Connections that may be open before their handshake is done.
const FAST_OPEN_QUEUE: u32 = 4;
/// Streams that begin early are bound to the ports behind this one.
const EARLY_FIRST: u16 = 6000;

/// A program has changed a socket: its transport is told.
pub fn ring(stack: &mut Stack, slot: u32) {
    if let Some(owner) = stack.domain.socket(slot).and_then(|page| page.owner()) {
        stack.domain.dirty(owner).mark(slot as usize);
        stack.wake(owner);
    }
}

/// A program.
#[derive(Default)]
pub struct Application {
    asked: BTreeMap<u64, (Asked, SocketId)>,
    sequence: u64,
    listeners: Vec<(SocketId, Plan)>,
    pub streams: Vec<Stream>,
    pub datagrams: Vec<DatagramSocket>,
    told: VecDeque<Effect>,
    requests: VecDeque<Request>,
    /// By their sequence: requests that sockets has not answered, and which life of it they were sent to.
    unanswered: BTreeMap<u64, (Request, Handle, u32)>,
    pub failures: Vec<i32>,
    /// It opens and accepts streams, and its owner moves their bytes.
    pub by_hand: bool,
    /// Ports that it connected from with the first bytes in the ring.
    early: u16,
    /// How many of its workers die between taking a connection and telling sockets.
    pub workers_to_die: u32,
}

impl Application {
    pub fn listen(&mut self, port: u16, plan: Plan) {
        self.open(Intent::Listen { port, plan });
    }

    pub fn connect(&mut self, to: Endpoint, plan: Plan) {
        self.open(Intent::Connect { to, plan, local: 0 });
    }

    /// The same with TCP Fast Open: the first bytes are there before it connects.
    pub fn connect_early(&mut self, to: Endpoint, plan: Plan) {
        self.early += 1;
        self.open(Intent::Connect { to, plan, local: EARLY_FIRST + self.early });
    }

    /// How many sockets it listens on.
    pub fn listening(&self) -> usize {
        self.listeners.len()
    }

    /// The first of the sockets that it listens on.
    pub fn listener(&self) -> Option<SocketId> {
        self.listeners.first().map(|(socket, _)| *socket)
    }

    /// All streams have sent and received everything, to the end.
    pub fn is_done(&self) -> bool {
        !self.streams.is_empty() && self.streams.iter().all(Stream::is_done)
    }

    pub fn exchange(&mut self, plan: Datagrams) {
        self.open(Intent::Datagrams(plan));
    }

    /// Lets its datagram sockets send `count` more.
    pub fn send_more(&mut self, count: u64) {
        for d in &mut self.datagrams {
            d.send_more(count);
            self.told.push_back(Effect::Transport(RecordedEvent::Writable(d.socket)));
        }
    }

    /// Every request is answered.
    pub fn is_answered(&self) -> bool {
        self.asked.is_empty() && self.requests.is_empty()
    }

    fn open(&mut self, intent: Intent) {
        let mut request = Request { value: INODE, ..Request::default() };
        request.args[0] = if matches!(intent, Intent::Datagrams(_)) { 2 } else { 1 };
        request.port = match &intent {
            Intent::Listen { port, .. } | Intent::Datagrams(Datagrams { port, .. }) => *port,
            Intent::Connect { local, .. } => *local,
        };
        self.ask(op::OPEN, SocketId::default(), request, Asked::Open(intent));
    }

    fn ask(&mut self, op: u32, socket: SocketId, request: Request, asked: Asked) {
        self.sequence += 1;
        self.asked.insert(self.sequence, (asked, socket));
        self.requests.push_back(Request {
            version: LAYOUT_VERSION,
            op,
            sequence: self.sequence,
            slot: socket.slot,
            ..request
        });
    }

    /// Whether it has something to do.
    pub fn is_runnable(&self, stack: &Stack) -> bool {
        !self.told.is_empty() || !self.requests.is_empty() || self.has_to_repeat(stack)
    }

    /// Whether sockets is back that has died before it answered.
    fn has_to_repeat(&self, stack: &Stack) -> bool {
        let life = stack.generation(ComponentId::SOCKETS);
        stack.is_alive(ComponentId::SOCKETS) && self.unanswered.values().any(|(.., then)| *then != life)
    }

    pub fn tell(&mut self, effect: Effect) {
        self.told.push_back(effect);
    }

    /// Runs until it waits again. `seed` is for failure lines.
    pub fn step(&mut self, now: Instant, stack: &mut Stack, seed: u64) {
        while let Some(effect) = self.told.pop_front() {
            match effect {
                Effect::Sockets(sockets::Effect::Reply { reply, .. }) => self.answered(stack, reply, seed),
                Effect::Transport(
                    RecordedEvent::Readable(s) | RecordedEvent::EndOfStream(s) | RecordedEvent::HangUp(s),
                ) => self.progress(stack, s, seed),
                Effect::Transport(RecordedEvent::Writable(s)) => {
                    if let Some(page) = stack.domain.socket(s.slot) {
                        page.write_plug().clear();
                    }
                    self.progress(stack, s, seed);
                }
                _ => {}
            }
        }
        if self.has_to_repeat(stack) {
            for (request, handle, _) in std::mem::take(&mut self.unanswered).into_values() {
                self.send(now, stack, request, handle);
            }
        }
        while let Some(request) = self.requests.pop_front() {
            let handle = match request.op {
                op::OPEN | op::ACCEPTED => Handle(self.sequence + 1),
                _ => Handle::default(),
            };
            self.send(now, stack, request, handle);
        }
    }

    fn send(&mut self, now: Instant, stack: &mut Stack, request: Request, handle: Handle) {
        self.unanswered.insert(request.sequence, (request, handle, stack.generation(ComponentId::SOCKETS)));
        let request = sockets::Event::Request {
            connection: ConnectionId(1),
            domain: DOMAIN,
            privileged: true,
            request,
            handle,
        };
        stack.event(now, ComponentId::SOCKETS, Event::Sockets(request));
    }

    fn answered(&mut self, stack: &mut Stack, reply: Reply, seed: u64) {
        self.unanswered.remove(&reply.sequence);
        let Some((asked, socket)) = self.asked.remove(&reply.sequence) else {
            return;
        };
        if matches!(asked, Asked::Connect) && reply.errno == EINPROGRESS {
            return self.withdraw(stack, socket, seed);
        }
        if reply.errno != 0 {
            self.failures.push(reply.errno);
            return;
        }
        match asked {
            Asked::Open(intent) => {
                let socket = SocketId { domain: DOMAIN, slot: reply.slot };
                self.opened(stack, socket, intent);
            }
            Asked::Bind(plan) => {
                let request = Request { args: [64, reuse::ADDRESS.into(), 0, 0], ..Request::default() };
                self.ask(op::LISTEN, socket, request, Asked::Listen(plan));
            }
            Asked::BindDatagrams(plan @ Datagrams { group: Some(group), .. }) => {
                let what = MembershipRequest {
                    change: membership::JOIN,
                    interface: 0,
                    source: WireAddress::default(),
                };
                let request = Request { address: group.into(), ..what.fill(Request::default()) };
                self.ask(op::MEMBERSHIP, socket, request, Asked::Join(plan));
            }
            Asked::BindDatagrams(plan) | Asked::Join(plan) => {
                self.datagrams.push(DatagramSocket::new(socket, plan));
                self.progress(stack, socket, seed);
            }
            Asked::Listen(plan) => {
                for slot in listeners(&stack.domain, socket.slot) {
                    if let Some(page) = stack.domain.socket(slot) {
                        page.set_option(Opt::FastOpenQueue, FAST_OPEN_QUEUE);
                    }
                }
                self.listeners.push((socket, plan));
            }
            Asked::BindToConnect { to, plan, local } => {
                let mut stream = Stream::new(socket, plan);
                if let Some(page) = stack.domain.socket(socket.slot) {
                    stream.write_early(&page, local, to.port);
                }
                self.begin(stack, stream, to);
            }
            Asked::Connect => {
                let stream = self.streams.iter_mut().find(|s| s.socket == socket);
                if let (Some(stream), Some(page)) = (stream, stack.domain.socket(socket.slot)) {
                    stream.taken(&page, reply.value);
                    ring(stack, socket.slot);
                }
                self.progress(stack, socket, seed)
            }
        }
    }

    fn opened(&mut self, stack: &mut Stack, socket: SocketId, intent: Intent) {
        match intent {
            Intent::Listen { port, plan } => {
                let mut request = Request { address: BOTH_VERSIONS, port, ..Request::default() };
                request.args[0] = 1;
                self.ask(op::BIND, socket, request, Asked::Bind(plan));
            }
            Intent::Datagrams(plan) => {
                let mut request = Request { address: BOTH_VERSIONS, port: plan.port, ..Request::default() };
                request.args[0] = plan.group.map_or(0, |_| reuse::ADDRESS.into());
                self.ask(op::BIND, socket, request, Asked::BindDatagrams(plan));
            }
            Intent::Connect { to, plan, local: 0 } => self.begin(stack, Stream::new(socket, plan), to),
            Intent::Connect { to, plan, local } => {
                let request = Request { address: BOTH_VERSIONS, port: local, ..Request::default() };
                self.ask(op::BIND, socket, request, Asked::BindToConnect { to, plan, local });
            }
        }
    }

    fn begin(&mut self, stack: &mut Stack, stream: Stream, to: Endpoint) {
        let (socket, plan) = (stream.socket, stream.plan);
        if let Some(page) = stack.domain.socket(socket.slot) {
            // A connecting writer waits for the plug to be pulled.
            page.write_plug().set();
            page.set_option(Opt::NoDelay, plan.no_delay as u32);
        }
        self.streams.push(stream);
        let request = Request { address: to.address.into(), port: to.port, ..Request::default() };
        self.ask(op::CONNECT, socket, request, Asked::Connect);
    }

    /// What it wrote before it connected was not taken.
    fn withdraw(&mut self, stack: &mut Stack, socket: SocketId, seed: u64) {
        let stream = self.streams.iter_mut().find(|s| s.socket == socket);
        if let (Some(stream), Some(page)) = (stream, stack.domain.socket(socket.slot)) {
            stream.withdraw(&page);
            ring(stack, socket.slot);
        }
        self.progress(stack, socket, seed);
    }

    /// A socket's state may have changed: accepts, reads and writes what is possible.
    fn progress(&mut self, stack: &mut Stack, socket: SocketId, seed: u64) {
        let Some(page) = stack.domain.socket(socket.slot) else {
            return;
        };
        let is_of = |first: SocketId| listeners(&stack.domain, first.slot).any(|slot| slot == socket.slot);
        if let Some((_, plan)) = self.listeners.iter().copied().find(|(first, _)| is_of(*first)) {
            return self.accept(stack, &page, plan, seed);
        }
        if let Some(d) = self.datagrams.iter_mut().find(|d| d.socket == socket) {
            if d.progress(&page, seed) {
                ring(stack, socket.slot);
            }
            return;
        }
        let Some(stream) = self.streams.iter_mut().find(|s| s.socket == socket) else {
            return;
        };
        if self.by_hand {
            return;
        }
        if stream.progress(&page, seed) {
            ring(stack, socket.slot);
        }
    }

    fn accept(&mut self, stack: &mut Stack, listener: &SocketPage, plan: Plan, seed: u64) {
        for record in take_accepted(listener, usize::MAX) {
            if self.workers_to_die > 0 {
                self.workers_to_die -= 1;
                continue;
            }
            let socket = SocketId { domain: DOMAIN, slot: record.slot };
            let known = self.streams.iter().any(|s| s.socket == socket);
            assert!(!known, "seed {seed}: slot {} accepted twice", record.slot);
            self.streams.push(Stream::new(socket, plan));
            self.sequence += 1;
            let mut request = Request {
                version: LAYOUT_VERSION,
                op: op::ACCEPTED,
                sequence: self.sequence,
                slot: socket.slot,
                value: INODE,
                ..Request::default()
            };
            request.args[0] = record.incarnation;
            self.requests.push_back(request);
            self.progress(stack, socket, seed);
        }
    }
}
