//! The clients' host: a stack whose turns take no time, and programs on it that connect, ask, read and close.

use std::collections::{BTreeMap, VecDeque};

use eft_base::{Endpoint, Instant, SocketId};
use eft_channel::socket::{LAYOUT_VERSION, Opt, SocketPage, flag, wish};
use eft_component::sockets::{self, ConnectionId, Handle};
use eft_messages::ComponentId;
use eft_messages::control::{Reply, Request, op};

use crate::device::WireFrame;
use crate::node::{Effect, Event};
use crate::stack::DOMAIN;
use crate::timed::peer::Peer;
use crate::web::Web;

/// Bytes of a request: a line, the host's name and the client's.
pub const REQUEST_BYTES: u64 = 120;

/// Of the programs, beside those that opened other sockets of this stack.
const FIRST_SEQUENCE: u64 = 1 << 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It has no connection.
    Nothing,
    Opening,
    Connecting(SocketId),
    Asking(SocketId),
    /// It has closed, and waits for the server to.
    Closing(SocketId),
}

#[derive(Clone, Copy, Debug)]
struct Client {
    doing: Doing,
    /// Requests of this connection so far.
    asked: u64,
    /// Of the present answer.
    has: u64,
}

const FRESH: Client = Client { doing: Doing::Nothing, asked: 0, has: 0 };

pub struct Clients<'a> {
    web: &'a Web,
    pub(super) peer: Peer,
    to: Endpoint,
    all: Vec<Client>,
    /// Requests to sockets that are not answered: whose they are.
    open_requests: BTreeMap<u64, usize>,
    sequence: u64,
    pub bytes: u64,
    pub answers: u64,
    pub connections: u64,
    /// Connections that did not come about, or broke.
    pub failures: u64,
}

/// What the host does at one moment.
#[derive(Debug, Default)]
pub struct Done {
    pub frames: VecDeque<WireFrame>,
    /// Clients that go on after their pause.
    pub ready: Vec<usize>,
}

impl<'a> Clients<'a> {
    pub fn new(web: &'a Web, peer: Peer, to: Endpoint) -> Self {
        Self {
            web,
            peer,
            to,
            all: vec![FRESH; web.stack.streams],
            open_requests: BTreeMap::new(),
            sequence: FIRST_SEQUENCE,
            bytes: 0,
            answers: 0,
            connections: 0,
            failures: 0,
        }
    }

    /// Requests of all present connections.
    pub fn asked(&self) -> u64 {
        self.all.iter().map(|client| client.asked).sum()
    }

    /// A client's pause is over: it connects, asks or closes.
    pub fn act(&mut self, now: Instant, client: usize) {
        match self.all[client].doing {
            Doing::Nothing => self.open(now, client),
            Doing::Asking(socket) if self.all[client].asked == self.web.requests => {
                self.all[client].doing = Doing::Closing(socket);
                self.change(socket, |page| page.add_wish(wish::SHUT_WRITE));
            }
            Doing::Asking(socket) => {
                self.all[client].asked += 1;
                self.change(socket, |page| page.set_send_end(page.send_end() + REQUEST_BYTES));
            }
            Doing::Opening | Doing::Connecting(_) | Doing::Closing(_) => {}
        }
    }

    /// A program has changed its page: tcp looks at it.
    fn change(&mut self, socket: SocketId, change: impl FnOnce(&SocketPage)) {
        let stack = &mut self.peer.stack;
        if let Some(page) = stack.domain.socket(socket.slot) {
            change(&page);
            stack.domain.dirty(ComponentId::TCP).mark(socket.slot as usize);
            stack.wake(ComponentId::TCP);
        }
    }

    fn request(&mut self, now: Instant, client: usize, request: Request) {
        self.sequence += 1;
        self.open_requests.insert(self.sequence, client);
        let request = Request { version: LAYOUT_VERSION, sequence: self.sequence, ..request };
        let handle = if request.op == op::OPEN { Handle(self.sequence) } else { Handle::default() };
        let (connection, domain) = (ConnectionId(1), DOMAIN);
        let event = sockets::Event::Request { connection, domain, privileged: true, request, handle };
        self.peer.stack.event(now, ComponentId::SOCKETS, Event::Sockets(event));
    }

    fn open(&mut self, now: Instant, client: usize) {
        self.all[client].doing = Doing::Opening;
        // A descriptor has an inode, which is not 0.
        let mut request = Request { op: op::OPEN, value: 1, ..Request::default() };
        request.args[0] = 1;
        self.request(now, client, request);
    }

    /// Everybody runs until all wait.
    pub fn run(&mut self, now: Instant) -> Done {
        let mut done = Done::default();
        self.peer.begin();
        loop {
            let worked = self.peer.turns(now, &mut done.frames);
            let heard = self.hear(now);
            if !self.look(now, &mut done.ready) && !worked && !heard {
                return done;
            }
        }
    }

    /// Takes the answers of sockets; true if there was one.
    fn hear(&mut self, now: Instant) -> bool {
        let effects = std::mem::take(&mut self.peer.stack.effects);
        let replies = effects.into_iter().filter_map(|effect| match effect {
            Effect::Sockets(sockets::Effect::Reply { reply, .. }) => Some(reply),
            _ => None,
        });
        let replies: Vec<Reply> = replies.collect();
        replies.iter().for_each(|reply| self.answered(now, reply));
        !replies.is_empty()
    }

    fn answered(&mut self, now: Instant, reply: &Reply) {
        let Some(client) = self.open_requests.remove(&reply.sequence) else { return };
        if reply.errno != 0 {
            self.failures += 1;
            return;
        }
        if self.all[client].doing == Doing::Opening {
            let socket = SocketId { domain: DOMAIN, slot: reply.slot };
            self.all[client].doing = Doing::Connecting(socket);
            if let Some(page) = self.peer.stack.domain.socket(socket.slot) {
                page.set_option(Opt::NoDelay, 1);
            }
            let (address, port) = (self.to.address.into(), self.to.port);
            let request = Request { op: op::CONNECT, slot: socket.slot, address, port, ..Request::default() };
            self.request(now, client, request);
        }
    }

    /// The programs look at their pages. True if tcp or sockets must be told.
    fn look(&mut self, now: Instant, ready: &mut Vec<usize>) -> bool {
        let mut tells = false;
        for client in 0..self.all.len() {
            let (Doing::Connecting(socket) | Doing::Asking(socket) | Doing::Closing(socket)) =
                self.all[client].doing
            else {
                continue;
            };
            let Some(page) = self.peer.stack.domain.socket(socket.slot) else { continue };
            let flags = page.flags();
            if flags & flag::DEAD != 0 {
                self.failures += 1;
                self.leave(now, client, socket);
                ready.push(client);
                tells = true;
            } else if let Doing::Connecting(_) = self.all[client].doing {
                if flags & flag::CONNECTED != 0 {
                    self.all[client].doing = Doing::Asking(socket);
                    ready.push(client);
                }
            } else if page.receivable() > 0 {
                tells |= self.read(client, socket, &page, ready);
            } else if flags & flag::RECEIVE_END != 0 && self.all[client].doing == Doing::Closing(socket) {
                self.connections += 1;
                self.leave(now, client, socket);
                ready.push(client);
                tells = true;
            }
        }
        tells
    }

    /// Takes what has come of an answer. True if tcp wants to know.
    fn read(&mut self, client: usize, socket: SocketId, page: &SocketPage, ready: &mut Vec<usize>) -> bool {
        let count = page.receivable() as u64;
        let taken = page.receive_taken() + count;
        page.set_receive_taken(taken);
        self.bytes += count;
        let state = &mut self.all[client];
        state.has += count;
        if state.has >= self.web.answer_bytes {
            state.has -= self.web.answer_bytes;
            self.answers += 1;
            ready.push(client);
        }
        let is_wanted = taken >= page.receive_notify();
        if is_wanted {
            self.change(socket, |_| ());
        }
        is_wanted
    }

    fn leave(&mut self, now: Instant, client: usize, socket: SocketId) {
        self.all[client] = FRESH;
        let closed = Event::Sockets(sockets::Event::Closed(socket));
        self.peer.stack.event(now, ComponentId::SOCKETS, closed);
    }
}
