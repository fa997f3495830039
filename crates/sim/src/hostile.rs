//! A program that is an enemy of the stack that it runs on, and of the other programs there.
//!
//! It writes what it likes into all memory that it has, says that it did what it did not, and asks for anything, in any order.
//! None of it may reach another program: those are honest, and are served as if it were not there.

use crate::node::{Effect, Event};
use crate::stack::{HOSTILE, Stack};
use eft_base::{Instant, Random, WireAddress};
use eft_channel::socket::{ARENA_HEADER_LEN, LAYOUT_VERSION, SOCKET_HEADER_LEN};
use eft_component::sockets::{self, ConnectionId, Handle};
use eft_messages::ComponentId;
use eft_messages::control::{Request, op};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Whom it answers to; the honest program has another.
pub const CONNECTION: ConnectionId = ConnectionId(2);

/// What it asks for. Not for a domain, which its custodian has, and not to say hello.
const ASKED: [u32; 10] = [
    op::OPEN,
    op::OPEN,
    op::BIND,
    op::LISTEN,
    op::CONNECT,
    op::ACCEPTED,
    op::SHADOW,
    op::OWNER,
    op::MEMBERSHIP,
    u32::MAX,
];
/// Not the port of the honest server, which believes what its clients write.
const PORTS: [u16; 5] = [0, 79, 443, 5000, 65535];

/// The program.
pub struct Hostile {
    random: Random,
    sequence: u64,
    /// Where it may connect to.
    addresses: Vec<IpAddr>,
    /// What it asked for and has no answer to, by sequence number.
    asked: BTreeMap<u64, u32>,
    /// Slots that it was given at some time.
    given: Vec<u32>,
    /// How many of its requests were granted, besides those for sockets.
    granted: u64,
}

impl Hostile {
    pub fn new(seed: u64, addresses: Vec<IpAddr>) -> Hostile {
        let random = Random::new(seed);
        Hostile { random, sequence: 0, addresses, asked: BTreeMap::new(), given: Vec::new(), granted: 0 }
    }

    /// How many of its requests were granted, besides those for sockets.
    pub fn granted(&self) -> u64 {
        self.granted
    }

    /// It hears only answers to its requests; it does not wait for anything.
    pub fn tell(&mut self, effect: &Effect) {
        let Effect::Sockets(sockets::Effect::Reply { reply, .. }) = effect else { return };
        match self.asked.remove(&reply.sequence) {
            Some(op::OPEN) if reply.errno == 0 => self.given.push(reply.slot),
            Some(_) if reply.errno == 0 => self.granted += 1,
            _ => {}
        }
    }

    /// Does something bad.
    pub fn step(&mut self, now: Instant, stack: &mut Stack) {
        match self.random.below(4) {
            0 => self.ask(now, stack),
            kind @ (1 | 2) => {
                let most = if kind == 1 { 64 } else { 4 };
                (0..1 + self.random.below(most)).for_each(|_| self.scribble(stack));
            }
            _ => {}
        }
        self.mark(stack);
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.below(n as u64) as usize
    }

    fn slots(stack: &Stack) -> usize {
        stack.hostile.as_ref().map_or(0, |arena| arena.geometry().slots)
    }

    /// Mostly one of those that it was given.
    fn slot(&mut self, stack: &Stack) -> u32 {
        match self.given.len() {
            some if some > 0 && self.random.chance(0.8) => {
                self.given[self.random.below(some as u64) as usize]
            }
            _ => self.below(Self::slots(stack)) as u32,
        }
    }

    /// A word of its memory: mostly of a page's first lines, where cursors, flags and wishes are.
    fn place(&mut self, stack: &Stack) -> usize {
        let Some(arena) = &stack.hostile else { return 0 };
        let at = match self.below(8) {
            0 => self.below(arena.segment().len()),
            1 => self.below(ARENA_HEADER_LEN),
            kind => {
                let depth = if kind < 6 { 512 } else { SOCKET_HEADER_LEN };
                arena.geometry().offset_of(self.slot(stack)) + self.below(depth)
            }
        };
        at / 8 * 8
    }

    fn scribble(&mut self, stack: &Stack) {
        let place = self.place(stack);
        let (kind, any, small) = (self.below(6), self.random.next_u64(), self.random.below(2000));
        let Some(word) = stack.hostile.as_ref().and_then(|arena| arena.segment().atomic_u64(place).ok())
        else {
            return;
        };
        let is = word.load(core::sync::atomic::Ordering::Relaxed);
        let value = match kind {
            0 => any,
            1 => is ^ 1 << (any % 64),
            2 => is.wrapping_add(small),
            3 => is.wrapping_sub(small),
            4 => small,
            _ => u64::MAX - small,
        };
        word.store(value, core::sync::atomic::Ordering::Relaxed);
    }

    /// Says that it changed something.
    fn mark(&mut self, stack: &mut Stack) {
        let transport = if self.random.chance(0.7) { ComponentId::TCP } else { ComponentId::UDP };
        for _ in 0..1 + self.below(3) {
            let slot = self.slot(stack) as usize;
            if let Some(arena) = &stack.hostile {
                arena.dirty(transport).mark(slot);
            }
        }
        stack.wake(transport);
    }

    fn ask(&mut self, now: Instant, stack: &mut Stack) {
        self.sequence += 1;
        let op = ASKED[self.below(ASKED.len())];
        let sane = self.random.chance(0.7);
        let to = self.random.below(self.addresses.len() as u64) as usize;
        let to = self.addresses[to];
        let address = match self.below(4) {
            0 => WireAddress([0; 16]),
            1 => WireAddress(core::array::from_fn(|_| self.random.next_u64() as u8)),
            _ => to.into(),
        };
        let mut request = Request {
            version: if self.random.chance(0.98) { LAYOUT_VERSION } else { self.random.next_u64() as u32 },
            op,
            sequence: self.sequence,
            slot: if self.random.chance(0.95) { self.slot(stack) } else { self.random.next_u64() as u32 },
            address,
            port: PORTS[self.below(PORTS.len())],
            value: if sane { 1 } else { self.random.next_u64() },
            ..Request::default()
        };
        request.args = core::array::from_fn(|_| match sane {
            true => self.random.below(4) as u32,
            false => self.random.next_u64() as u32,
        });
        self.asked.insert(self.sequence, op);
        // A descriptor may be passed with any request, and be missing in any.
        let handle =
            if self.random.chance(0.8) { Handle(1_000_000 + self.sequence) } else { Handle::default() };
        let event = sockets::Event::Request {
            connection: CONNECTION,
            domain: HOSTILE,
            privileged: false,
            request,
            handle,
        };
        stack.event(now, ComponentId::SOCKETS, Event::Sockets(event));
    }
}
