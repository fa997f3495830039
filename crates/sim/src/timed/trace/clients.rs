//! Clients that do what a trace says when it says so, whether the program keeps up or not.
//!
//! A request whose connection is not there yet, or whose predecessor has no answer, is due all the same: it waits in line, and its
//! latency counts from when it was due.

use std::collections::{BTreeMap, VecDeque};

use eft_base::{Endpoint, Instant, SocketId};
use eft_channel::socket::{flag, wish};
use eft_messages::control::Reply;

use super::flow::{Doing, Due, Flow};
use super::replay::Replay;
use crate::timed::peer::Peer;
use crate::timed::web::audience::{Audience, Done};
use crate::timed::web::clients::since;
use crate::timed::web::exchanges::Exchanges;
use crate::timed::web::host::Host;
use crate::trace::{Deed, Step};

/// What clients have done and got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections and requests that were due.
    pub opens: u64,
    pub asks: u64,
    pub answers: u64,
    pub bytes: u64,
    /// Connections that closed in order.
    pub closed: u64,
    /// Connections that did not come about, or broke.
    pub failures: u64,
}

pub struct Clients<'a> {
    replay: &'a Replay,
    host: Host,
    /// The instant of time 0.
    base: Instant,
    next_step: u64,
    /// All that are not closed, in the order in which they were opened.
    flows: BTreeMap<usize, Flow>,
    opened: usize,
    /// By the trace's number.
    current: BTreeMap<u32, usize>,
    /// They have no socket, since too many others have.
    waiting: VecDeque<usize>,
    sockets: usize,
    sockets_max: usize,
    asked: Exchanges,
    latencies: Vec<u32>,
    pub counts: Counts,
}

impl<'a> Clients<'a> {
    /// `asked`: where the program finds how long requests and answers are.
    pub fn new(
        replay: &'a Replay,
        (peer, to): (Peer, Endpoint),
        base: Instant,
        sockets_max: usize,
        asked: Exchanges,
    ) -> Self {
        Self {
            replay,
            host: Host::new(peer, to),
            base,
            next_step: 0,
            flows: BTreeMap::new(),
            opened: 0,
            current: BTreeMap::new(),
            waiting: VecDeque::new(),
            sockets: 0,
            sockets_max,
            asked,
            latencies: Vec::new(),
            counts: Counts::default(),
        }
    }

    fn step(&mut self, now: Instant, at: Instant, step: Step) {
        let number = step.connection;
        match step.deed {
            // The trace has begun again, and did not close it.
            Deed::Open if self.current.contains_key(&number) => {}
            Deed::Open => {
                self.counts.opens += 1;
                self.opened += 1;
                self.flows.insert(self.opened, Flow::new());
                self.current.insert(number, self.opened);
                self.waiting.push_back(self.opened);
                self.open_waiting(now);
            }
            Deed::Ask(exchange) => {
                self.counts.asks += 1;
                if let Some(flow) = self.current.get(&number).and_then(|flow| self.flows.get_mut(flow)) {
                    flow.due.push_back(Due { exchange, at });
                }
            }
            Deed::Close => {
                if let Some(flow) = self.current.remove(&number).and_then(|flow| self.flows.get_mut(&flow)) {
                    flow.closes = true;
                }
            }
        }
    }

    fn open_waiting(&mut self, now: Instant) {
        while self.sockets < self.sockets_max
            && let Some(flow) = self.waiting.pop_front()
        {
            self.sockets += 1;
            self.host.open(now, flow);
        }
    }

    /// Takes the answers of sockets; true if there was one.
    fn hear(&mut self, now: Instant) -> bool {
        let replies = self.host.replies();
        replies.iter().for_each(|(flow, reply)| self.replied(now, *flow, reply));
        !replies.is_empty()
    }

    fn replied(&mut self, now: Instant, id: usize, reply: &Reply) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        if reply.errno != 0 {
            let socket = flow.doing.socket();
            return self.fail(now, id, socket);
        }
        if flow.doing == Doing::Opening {
            flow.doing = Doing::Connecting(self.host.connect(now, id, reply.slot));
        }
    }

    fn fail(&mut self, now: Instant, id: usize, socket: Option<SocketId>) {
        self.counts.failures += 1;
        self.leave(now, id, socket);
    }

    fn leave(&mut self, now: Instant, id: usize, socket: Option<SocketId>) {
        self.flows.remove(&id);
        self.current.retain(|_, flow| *flow != id);
        if let Some(socket) = socket {
            let port = self.host.page(socket).map(|page| page.local().port);
            port.into_iter().for_each(|port| self.asked.forget(port));
            self.host.close(now, socket);
        }
        self.sockets -= 1;
        self.open_waiting(now);
    }

    /// The programs look at their pages. True if tcp or sockets must be told.
    fn look(&mut self, now: Instant) -> bool {
        let of_flow = |(id, flow): (&usize, &Flow)| Some((*id, flow.doing.socket()?));
        let all: Vec<(usize, SocketId)> = self.flows.iter().filter_map(of_flow).collect();
        // All are asked: each has to look.
        all.into_iter().fold(false, |tells, (id, socket)| self.look_at(now, id, socket) || tells)
    }

    fn look_at(&mut self, now: Instant, id: usize, socket: SocketId) -> bool {
        let (Some(page), Some(flow)) = (self.host.page(socket), self.flows.get_mut(&id)) else {
            return false;
        };
        let (flags, receivable) = (page.flags(), page.receivable());
        if flags & flag::DEAD != 0 {
            self.fail(now, id, Some(socket));
            return true;
        }
        if let Doing::Connecting(_) = flow.doing {
            if flags & flag::CONNECTED == 0 {
                return false;
            }
            flow.doing = Doing::Asking(socket);
        }
        if receivable > 0 {
            let tells = self.read(now, id, socket);
            return self.ask(id, socket) || tells;
        }
        if flags & flag::RECEIVE_END == 0 {
            return self.ask(id, socket);
        }
        if flow.doing == Doing::Closing(socket) {
            self.counts.closed += 1;
            self.leave(now, id, Some(socket));
            return true;
        }
        false
    }

    /// Takes what has come of answers. True if tcp wants to know.
    fn read(&mut self, now: Instant, id: usize, socket: SocketId) -> bool {
        let (bytes, is_wanted) = self.host.read(socket);
        self.counts.bytes += bytes;
        let answered = self.flows.get_mut(&id).and_then(|flow| flow.answered(bytes));
        let Some(answered) = answered else {
            self.fail(now, id, Some(socket));
            return true;
        };
        self.counts.answers += answered.len() as u64;
        self.latencies.extend(answered.iter().map(|due| since(due.at, now)));
        is_wanted
    }

    /// Asks what is due as far as the ring has room, and closes after all. True if there was something.
    fn ask(&mut self, id: usize, socket: SocketId) -> bool {
        let (Some(page), Some(flow)) = (self.host.page(socket), self.flows.get_mut(&id)) else {
            return false;
        };
        if flow.doing != Doing::Asking(socket) {
            return false;
        }
        if flow.closes && flow.has_all() {
            flow.doing = Doing::Closing(socket);
            self.host.change(socket, |page| page.add_wish(wish::SHUT_WRITE));
            return true;
        }
        if !flow.due.is_empty() {
            flow.due.iter().for_each(|due| self.asked.ask(page.local().port, due.exchange));
            flow.unsent += flow.due.iter().map(|due| due.exchange.request_bytes).sum::<u64>();
            flow.awaited.append(&mut flow.due);
        }
        let put = flow.unsent.min(page.sendable() as u64);
        flow.unsent -= put;
        if put > 0 {
            self.host.change(socket, |page| page.set_send_end(page.send_end() + put));
        }
        put > 0
    }
}

impl Audience for Clients<'_> {
    fn peer(&self) -> &Peer {
        &self.host.peer
    }

    fn peer_mut(&mut self) -> &mut Peer {
        &mut self.host.peer
    }

    /// All steps that are due. There is one client, which has all connections.
    fn act(&mut self, now: Instant, _client: usize) -> Option<u64> {
        loop {
            let (at_ps, step) = self.replay.step(self.next_step);
            let at = Instant(self.base.0 + at_ps / 1000);
            if at > now {
                return Some(at_ps);
            }
            self.next_step += 1;
            self.step(now, at, step);
        }
    }

    fn run(&mut self, now: Instant) -> Done {
        let mut done = Done::default();
        self.host.peer.begin();
        loop {
            let worked = self.host.peer.turns(now, &mut done.frames);
            let heard = self.hear(now);
            if !self.look(now) && !worked && !heard {
                return done;
            }
        }
    }

    fn bytes(&self) -> Vec<u64> {
        vec![self.counts.bytes]
    }

    fn latencies(&self) -> &[u32] {
        &self.latencies
    }
}
