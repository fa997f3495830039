//! Clients that connect, ask, read and close, one thing after another.

use eft_base::{Endpoint, Instant, SocketId};
use eft_channel::socket::{flag, wish};
use eft_messages::control::Reply;

use super::audience::{Audience, Done};
use super::exchanges::Exchanges;
use super::host::Host;
use crate::timed::peer::Peer;
use crate::trace::Exchange;
use crate::web::{Group, Web};

/// Bytes of a request: a line, the host's name and the client's.
pub const REQUEST_BYTES: u64 = 120;

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
    of: Group,
    group: usize,
    doing: Doing,
    /// Requests of this connection so far.
    asked: u64,
    /// Of the present answer.
    has: u64,
    /// When it asked for that.
    asked_at: Instant,
}

impl Client {
    fn new(of: Group, group: usize) -> Self {
        Self { of, group, doing: Doing::Nothing, asked: 0, has: 0, asked_at: Instant::ZERO }
    }
}

pub struct Clients {
    host: Host,
    all: Vec<Client>,
    asked: Exchanges,
    latencies: Vec<u32>,
    /// What each group has got.
    pub bytes: Vec<u64>,
    pub answers: u64,
    pub connections: u64,
    /// Connections that did not come about, or broke.
    pub failures: u64,
}

impl Clients {
    /// `asked`: where the program finds how long requests and answers are.
    pub fn new(web: &Web, (peer, to): (Peer, Endpoint), asked: Exchanges) -> Self {
        let client = |client| Client::new(web.of_client(client), web.group_of(client));
        Self {
            host: Host::new(peer, to),
            all: (0..web.stack.streams).map(client).collect(),
            asked,
            latencies: Vec::new(),
            bytes: vec![0; web.groups.len()],
            answers: 0,
            connections: 0,
            failures: 0,
        }
    }

    /// Requests of all present connections.
    pub fn asked(&self) -> u64 {
        self.all.iter().map(|client| client.asked).sum()
    }

    /// Takes the answers of sockets; true if there was one.
    fn hear(&mut self, now: Instant) -> bool {
        let replies = self.host.replies();
        replies.iter().for_each(|(client, reply)| self.answered(now, *client, reply));
        !replies.is_empty()
    }

    fn answered(&mut self, now: Instant, client: usize, reply: &Reply) {
        if reply.errno != 0 {
            self.failures += 1;
        } else if self.all[client].doing == Doing::Opening {
            self.all[client].doing = Doing::Connecting(self.host.connect(now, client, reply.slot));
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
            let Some(page) = self.host.page(socket) else { continue };
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
                tells |= self.read(now, client, socket, ready);
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
    fn read(&mut self, now: Instant, client: usize, socket: SocketId, ready: &mut Vec<usize>) -> bool {
        let (count, is_wanted) = self.host.read(socket);
        let state = &mut self.all[client];
        self.bytes[state.group] += count;
        state.has += count;
        if state.has >= state.of.answer_bytes {
            state.has -= state.of.answer_bytes;
            self.answers += 1;
            self.latencies.push(since(state.asked_at, now));
            ready.push(client);
        }
        is_wanted
    }

    fn leave(&mut self, now: Instant, client: usize, socket: SocketId) {
        let Client { of, group, .. } = self.all[client];
        self.all[client] = Client::new(of, group);
        let port = self.host.page(socket).map(|page| page.local().port);
        port.into_iter().for_each(|port| self.asked.forget(port));
        self.host.close(now, socket);
    }
}

/// In nanoseconds.
pub fn since(from: Instant, now: Instant) -> u32 {
    now.0.saturating_sub(from.0).min(u32::MAX.into()) as u32
}

impl Audience for Clients {
    fn peer(&self) -> &Peer {
        &self.host.peer
    }

    fn peer_mut(&mut self) -> &mut Peer {
        &mut self.host.peer
    }

    /// Its pause is over: it connects, asks or closes.
    fn act(&mut self, now: Instant, client: usize) -> Option<u64> {
        match self.all[client].doing {
            Doing::Nothing => {
                self.all[client].doing = Doing::Opening;
                self.host.open(now, client);
            }
            Doing::Asking(socket) if self.all[client].asked == self.all[client].of.requests => {
                self.all[client].doing = Doing::Closing(socket);
                self.host.change(socket, |page| page.add_wish(wish::SHUT_WRITE));
            }
            Doing::Asking(socket) => {
                self.all[client].asked += 1;
                self.all[client].asked_at = now;
                let answer_bytes = self.all[client].of.answer_bytes;
                let port = self.host.page(socket).map(|page| page.local().port);
                let exchange = Exchange { request_bytes: REQUEST_BYTES, answer_bytes };
                port.into_iter().for_each(|port| self.asked.ask(port, exchange));
                self.host.change(socket, |page| page.set_send_end(page.send_end() + REQUEST_BYTES));
            }
            Doing::Opening | Doing::Connecting(_) | Doing::Closing(_) => {}
        }
        None
    }

    fn run(&mut self, now: Instant) -> Done {
        let mut done = Done::default();
        self.host.peer.begin();
        loop {
            let worked = self.host.peer.turns(now, &mut done.frames);
            let heard = self.hear(now);
            if !self.look(now, &mut done.ready) && !worked && !heard {
                return done;
            }
        }
    }

    fn bytes(&self) -> Vec<u64> {
        self.bytes.clone()
    }

    fn latencies(&self) -> &[u32] {
        &self.latencies
    }
}
