//! The clients' host: a stack whose turns take no time, and what programs on it ask of it. A program goes by a number.

use std::collections::BTreeMap;

use eft_base::{Endpoint, Instant, SocketId};
use eft_channel::socket::{LAYOUT_VERSION, Opt, SocketPage};
use eft_component::sockets::{self, ConnectionId, Handle};
use eft_messages::ComponentId;
use eft_messages::control::{Reply, Request, op};

use crate::node::{Effect, Event};
use crate::stack::DOMAIN;
use crate::timed::peer::Peer;

/// Of the programs, beside those that opened other sockets of this stack.
const FIRST_SEQUENCE: u64 = 1 << 32;

pub struct Host {
    pub peer: Peer,
    to: Endpoint,
    /// Requests to sockets that are not answered: whose they are.
    open_requests: BTreeMap<u64, usize>,
    sequence: u64,
}

impl Host {
    /// `to`: where everybody connects to.
    pub fn new(peer: Peer, to: Endpoint) -> Self {
        Self { peer, to, open_requests: BTreeMap::new(), sequence: FIRST_SEQUENCE }
    }

    pub fn page(&self, socket: SocketId) -> Option<SocketPage> {
        self.peer.stack.domain.socket(socket.slot)
    }

    /// A program has changed its page: tcp looks at it.
    pub fn change(&mut self, socket: SocketId, change: impl FnOnce(&SocketPage)) {
        let stack = &mut self.peer.stack;
        if let Some(page) = stack.domain.socket(socket.slot) {
            change(&page);
            stack.domain.dirty(ComponentId::TCP).mark(socket.slot as usize);
            stack.wake(ComponentId::TCP);
        }
    }

    fn request(&mut self, now: Instant, program: usize, request: Request) {
        self.sequence += 1;
        self.open_requests.insert(self.sequence, program);
        let request = Request { version: LAYOUT_VERSION, sequence: self.sequence, ..request };
        let handle = if request.op == op::OPEN { Handle(self.sequence) } else { Handle::default() };
        let (connection, domain) = (ConnectionId(1), DOMAIN);
        let event = sockets::Event::Request { connection, domain, privileged: true, request, handle };
        self.peer.stack.event(now, ComponentId::SOCKETS, Event::Sockets(event));
    }

    pub fn open(&mut self, now: Instant, program: usize) {
        // A descriptor has an inode, which is not 0.
        let mut request = Request { op: op::OPEN, value: 1, ..Request::default() };
        request.args[0] = 1;
        self.request(now, program, request);
    }

    /// With the socket that the program has opened.
    pub fn connect(&mut self, now: Instant, program: usize, slot: u32) -> SocketId {
        let socket = SocketId { domain: DOMAIN, slot };
        if let Some(page) = self.page(socket) {
            page.set_option(Opt::NoDelay, 1);
        }
        let (address, port) = (self.to.address.into(), self.to.port);
        let request = Request { op: op::CONNECT, slot, address, port, ..Request::default() };
        self.request(now, program, request);
        socket
    }

    /// What sockets has answered, and to whom.
    pub fn replies(&mut self) -> Vec<(usize, Reply)> {
        let effects = std::mem::take(&mut self.peer.stack.effects);
        let replies = effects.into_iter().filter_map(|effect| match effect {
            Effect::Sockets(sockets::Effect::Reply { reply, .. }) => Some(reply),
            _ => None,
        });
        replies.filter_map(|reply| Some((self.open_requests.remove(&reply.sequence)?, reply))).collect()
    }

    /// Takes what has come: how many bytes, and whether tcp wants to know.
    pub fn read(&mut self, socket: SocketId) -> (u64, bool) {
        let Some(page) = self.page(socket) else { return (0, false) };
        let count = page.receivable() as u64;
        let taken = page.receive_taken() + count;
        page.set_receive_taken(taken);
        let is_wanted = count > 0 && taken >= page.receive_notify();
        if is_wanted {
            self.change(socket, |_| ());
        }
        (count, is_wanted)
    }

    /// Nobody has the socket any more.
    pub fn close(&mut self, now: Instant, socket: SocketId) {
        let closed = Event::Sockets(sockets::Event::Closed(socket));
        self.peer.stack.event(now, ComponentId::SOCKETS, closed);
    }
}
