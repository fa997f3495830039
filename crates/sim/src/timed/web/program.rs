//! The web server as a program of the modelled machine: what it still has to write, and what tcp has not seen of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use eft_base::SocketId;
use eft_channel::socket::wish;
use eft_component::transport::Effect as Told;
use eft_harness::take_accepted;
use eft_messages::ComponentId;

use super::exchanges::Exchanges;
use crate::batch::servers::scaled;
use crate::hardware::Work;
use crate::node::Effect;
use crate::stack::Stack;
use crate::trace::Exchange;
use crate::web::Web;
use crate::web::program::Notice;

/// How the process that holds connections names itself in their pages.
const HOLDER: u64 = 1;

#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    /// Of its client.
    port: u16,
    /// Of its answer, bytes that are not in its ring.
    left: u64,
    /// Bytes of requests that the program was told of.
    told: u64,
    has_ended: bool,
}

/// What the program has heard of a connection.
#[derive(Clone, Copy, Debug)]
struct Heard {
    slot: u32,
    notice: Notice,
    /// Of a request.
    asked: Exchange,
}

impl Heard {
    fn of(slot: u32, notice: Notice) -> Self {
        Self { slot, notice, asked: Exchange::default() }
    }
}

/// What the program does at the end of its turn: something that it heard, and bytes that it then puts into the ring.
#[derive(Clone, Copy, Debug)]
pub struct Deed {
    heard: Heard,
    put: u64,
}

/// What no turn of tcp has begun with yet.
#[derive(Clone, Copy, Debug)]
struct Change {
    slot: u32,
    bytes: u64,
    closes: bool,
}

/// A turn of the program.
#[derive(Debug, Default)]
pub struct Turn {
    pub work: Work,
    pub copying: Work,
    pub deeds: Vec<Deed>,
}

/// What a turn of tcp begins with, of the program's doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub changes: usize,
    /// Their connections: tcp looks at each page once.
    pub pages: usize,
    pub closes: usize,
}

pub struct Program<'a> {
    web: &'a Web,
    listener: SocketId,
    all: BTreeMap<u32, Connection>,
    exchanges: Exchanges,
    inbox: VecDeque<Heard>,
    changes: Vec<Change>,
    pub accepted: u64,
    pub requests: u64,
    pub closed: u64,
    pub written_bytes: u64,
}

impl<'a> Program<'a> {
    pub fn new(web: &'a Web, listener: SocketId, exchanges: Exchanges) -> Self {
        Self {
            web,
            listener,
            all: BTreeMap::new(),
            exchanges,
            inbox: VecDeque::new(),
            changes: Vec::new(),
            accepted: 0,
            requests: 0,
            closed: 0,
            written_bytes: 0,
        }
    }

    pub fn has_work(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// tcp's next turn would find something.
    pub fn has_changed(&self) -> bool {
        !self.changes.is_empty()
    }

    /// What a connection's ring has room for beside what tcp has not seen, and whether that is worth a write.
    fn room(&self, stack: &Stack, slot: u32) -> (u64, bool) {
        let Some(page) = stack.domain.socket(slot) else { return (0, false) };
        let changes = self.changes.iter().filter(|change| change.slot == slot);
        let unseen: u64 = changes.map(|change| change.bytes).sum();
        let free = (page.sendable() as u64).saturating_sub(unseen);
        (free, free * 3 >= page.send_limit() as u64)
    }

    /// A turn begins with so many notices at most.
    pub fn begin(&self, stack: &Stack, budget: usize) -> Turn {
        let (mut turn, costs) = (Turn::default(), &self.web.program);
        // Of each connection: what it still has to write, and what it puts in by this turn.
        let mut plans: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for heard in self.inbox.iter().take(budget).copied() {
            let slot = heard.slot;
            let known = self.all.get(&slot).map_or(0, |connection| connection.left);
            let (left, planned) = plans.entry(slot).or_insert((known, 0));
            match heard.notice {
                Notice::Accepted => turn.work += costs.accept,
                Notice::Closed => turn.work += costs.close,
                Notice::Request => {
                    turn.work += costs.request;
                    *left += heard.asked.answer_bytes;
                }
                Notice::Room => {}
            }
            let put = (*left).min(self.room(stack, slot).0.saturating_sub(*planned));
            (*left, *planned) = (*left - put, *planned + put);
            let copying = scaled(costs.copy_kib, put);
            turn.work += copying;
            turn.copying += copying;
            turn.deeds.push(Deed { heard, put });
        }
        turn
    }

    /// It ends: what it has done is there for tcp.
    pub fn end(&mut self, stack: &mut Stack, deeds: &[Deed]) {
        self.inbox.drain(..deeds.len());
        for deed in deeds {
            self.act(stack, deed);
        }
        if self.has_changed() {
            stack.wake(ComponentId::TCP);
        }
    }

    fn act(&mut self, stack: &Stack, deed: &Deed) {
        let Heard { slot, notice, asked } = deed.heard;
        let Some(page) = stack.domain.socket(slot) else { return };
        let connection = self.all.entry(slot).or_default();
        let mut change = Change { slot, bytes: deed.put, closes: false };
        match notice {
            Notice::Accepted => page.hold(HOLDER),
            Notice::Request => {
                connection.left += asked.answer_bytes;
                page.set_receive_taken(page.receive_taken() + asked.request_bytes);
                self.requests += 1;
            }
            Notice::Room => {}
            Notice::Closed => {
                change.closes = true;
                self.closed += 1;
            }
        }
        connection.left -= deed.put;
        let is_waiting = connection.left > 0;
        let reports = page.receive_taken() >= page.receive_notify();
        self.written_bytes += deed.put;
        if change.bytes > 0 || change.closes || reports {
            self.changes.push(change);
        }
        if is_waiting {
            page.write_plug().set();
            // Like the shim it looks once more: room may have come before tcp could know that it waits.
            if self.room(stack, slot).1 {
                self.inbox.push_back(Heard::of(slot, Notice::Room));
            }
        }
    }

    /// All that a turn of tcp finds which begins now.
    pub fn unseen(&self) -> Seen {
        let slots: BTreeSet<u32> = self.changes.iter().map(|change| change.slot).collect();
        let closes = self.changes.iter().filter(|change| change.closes).count();
        Seen { changes: self.changes.len(), pages: slots.len(), closes }
    }

    /// A turn of tcp sees the first so many changes: they are in the pages when it is executed.
    pub fn show(&mut self, stack: &Stack, count: usize) {
        for change in self.changes.drain(..count) {
            let Some(page) = stack.domain.socket(change.slot) else { continue };
            page.set_send_end(page.send_end() + change.bytes);
            if change.closes {
                page.add_wish(wish::CLOSED);
                self.all.remove(&change.slot);
            }
            stack.domain.dirty(ComponentId::TCP).mark(change.slot as usize);
        }
    }

    /// What tcp tells at the end of its turn; returns how many notices there are more.
    pub fn hear(&mut self, stack: &Stack, effects: &[Effect]) -> usize {
        let before = self.inbox.len();
        for effect in effects {
            let Effect::Transport(told) = effect else { continue };
            match told {
                Told::Readable(socket) if *socket == self.listener => self.accept(stack),
                Told::Readable(socket) => self.look_for_requests(stack, socket.slot),
                Told::Writable(socket) => self.hear_of_room(stack, socket.slot),
                Told::EndOfStream(socket) => self.hear_of_end(socket.slot),
                Told::HangUp(_) | Told::Urgent(_) => {}
            }
        }
        self.inbox.len() - before
    }

    fn accept(&mut self, stack: &Stack) {
        let Some(page) = stack.domain.socket(self.listener.slot) else { return };
        for record in take_accepted(&page, usize::MAX) {
            let fresh = Connection { port: record.remote_port, ..Connection::default() };
            self.all.insert(record.slot, fresh);
            self.accepted += 1;
            self.inbox.push_back(Heard::of(record.slot, Notice::Accepted));
            self.look_for_requests(stack, record.slot);
        }
    }

    fn look_for_requests(&mut self, stack: &Stack, slot: u32) {
        let Some(connection) = self.all.get_mut(&slot) else { return };
        let come = stack.domain.socket(slot).map_or(0, |page| page.receive_end());
        while let Some(asked) = self.exchanges.take(connection.port, come - connection.told) {
            connection.told += asked.request_bytes;
            self.inbox.push_back(Heard { slot, notice: Notice::Request, asked });
        }
    }

    fn hear_of_room(&mut self, stack: &Stack, slot: u32) {
        // It may have filled the ring while tcp's turn went on.
        if !self.room(stack, slot).1 {
            return;
        }
        if let Some(page) = stack.domain.socket(slot) {
            page.write_plug().clear();
        }
        if self.all.get(&slot).is_some_and(|connection| connection.left > 0) {
            self.inbox.push_back(Heard::of(slot, Notice::Room));
        }
    }

    fn hear_of_end(&mut self, slot: u32) {
        let Some(connection) = self.all.get_mut(&slot) else { return };
        if !std::mem::replace(&mut connection.has_ended, true) {
            self.inbox.push_back(Heard::of(slot, Notice::Closed));
        }
    }
}
