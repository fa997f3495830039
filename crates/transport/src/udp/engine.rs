//! The component.

use super::UdpConfig;
use super::asked::{IcmpError, Request};
use super::counters::{COUNTERS, Counter};
use super::durable::{self, Blocks, bit};
use super::live::{Live, Path, due};
use super::memberships::Memberships;
use crate::addresses::Addresses;
use crate::domains::Domains;
use crate::edge::{In, Out};
use crate::free::FreeBlocks;
use crate::page::{Page, Stage};
use crate::requests::Transport as _;
use crate::routes::Routes;
use crate::timers::Timers;
use crate::turns::{PER_TURN, Turns};
use alloc::vec;
use alloc::vec::Vec;
use eft_arena::docket::{Docket, Kind};
use eft_arena::{Arena, Fuse, Refused};
use eft_base::hash::{Key, Map};
use eft_base::{Instant, PortShare, Protection, SocketId};
use eft_channel::rounds::Rounds;
use eft_channel::socket::flag;
use eft_channel::{Pool, Requests, Seen, Segment};
use eft_component::transport::{Effect, Event};
use eft_component::{Component, Context, Occasion, Outbox};
use eft_messages::transport::{IpToTransport, TransportToIp};
use eft_messages::{ComponentId, Encoded, Role};

/// Largest packet in bytes.
const PACKET_MAX: usize = 1 << 16;

/// The engine.
pub struct Udp {
    pub(super) config: UdpConfig,
    protection: Protection,
    arena: Arena,
    pub(super) docket: Docket,
    pub(super) blocks: Blocks,
    pub(super) memberships: Memberships,
    pub(super) live: Vec<Live>,
    /// Blocks that are [`bit::LOST`].
    pub(super) lost: Vec<u32>,
    pub(super) free: FreeBlocks,
    /// Sockets by local port.
    pub(super) ports: Map<u16, Vec<u32>>,
    /// The ports that are ours.
    pub(super) share: PortShare,
    pub(super) domains: Domains,
    /// Orphans' patience.
    pub(super) timers: Timers,
    turns: Turns,
    pub(super) headers: Pool,
    /// Packets that ip delivered. ip's successor may deliver one again.
    seen: Seen,
    pub(super) requests: Requests<Request>,
    rounds: Rounds,
    /// Source addresses; an errno where there is no route.
    pub(super) routes: Routes<Result<Path, i32>>,
    pub(super) addresses: Addresses,
    pub(super) key: Key,
    pub(super) scratch: Vec<u8>,
    /// Counts commits: what was received before the last one is the applications'.
    pub(super) turn: u64,
    /// Words for applications, written at the commit of this turn.
    stage: Stage,
    /// Whether the arena was a predecessor's, and what became of its sockets.
    found: Option<(bool, durable::Found)>,
}

impl Udp {
    /// Opens the arena (of [`super::arena_len`] bytes), taking over what a predecessor left in it.
    /// `headers` is a pool of `SEND_SLOT_LEN` slots.
    pub fn open(arena: Segment, headers: Pool, config: UdpConfig) -> Result<Udp, Refused> {
        Udp::open_with(arena, headers, config, Fuse::default())
    }

    /// The same with a fuse, of which the engine may die even here.
    pub fn open_with(arena: Segment, headers: Pool, config: UdpConfig, fuse: Fuse) -> Result<Udp, Refused> {
        let (arena, blocks, entries, found) = durable::open(arena, &config, fuse)?;
        let key = Key(arena.secret);
        let count = blocks.len();
        let limit = headers.slots() + config.sockets;
        let (docket, _) = arena.docket();
        let mut udp = Udp {
            config,
            protection: Protection::On,
            found: Some((arena.reborn, found)),
            arena,
            docket,
            memberships: Memberships::open(entries, &blocks, key),
            blocks,
            lost: Vec::new(),
            live: (0..count).map(|_| Live::default()).collect(),
            free: FreeBlocks::new(count),
            ports: Map::with_hasher(key),
            share: PortShare::ALL,
            domains: Domains::new(key, config.slots),
            timers: Timers::new(count),
            turns: Turns::new(),
            headers,
            seen: Seen::default(),
            requests: Requests::new(limit, config.seed as u32),
            rounds: Rounds::default(),
            routes: Routes::new(key),
            addresses: Addresses::default(),
            key,
            scratch: vec![0; PACKET_MAX],
            turn: 0,
            stage: Stage::default(),
        };
        udp.rebuild();
        Ok(udp)
    }

    /// For tests of dying in the middle of a turn.
    pub fn fuse(&self) -> Fuse {
        self.arena.fuse()
    }

    /// Off: ends commits. The arena holds the present state until the state changes, and is worthless from then on.
    fn set_protection(&mut self, protection: Protection) {
        if protection == Protection::Off {
            self.protection = Protection::Off;
            self.docket.stop();
            self.blocks.seal();
            self.memberships.entries.seal();
            self.arena.commit();
            self.blocks.leave_open();
            self.memberships.entries.leave_open();
        }
    }

    /// Takes a free block.
    pub(super) fn allocate(&mut self) -> Result<u32, i32> {
        if let Some(i) = self.free.take() {
            return Ok(i);
        }
        self.grow();
        self.free.take().ok_or(eft_base::errno::ENOBUFS)
    }

    /// Adds blocks, and entries for memberships, as far as there is room.
    pub(super) fn grow(&mut self) {
        let more = durable::grow(&mut self.arena, &mut self.blocks, &mut self.memberships.entries);
        if more.is_empty() {
            return;
        }
        let count = more.end as usize;
        self.live.resize_with(count, Live::default);
        self.timers.grow(count);
        self.memberships.grow(more.clone());
        self.free.grow(more);
    }

    pub(super) fn mark(&mut self, i: u32, bits: u32) {
        self.live[i as usize].due |= bits;
        self.turns.push(i);
    }

    /// Marks input, of which programs are told in the order in which it came.
    pub(super) fn mark_input(&mut self, i: u32) {
        if self.live[i as usize].due & due::READABLE == 0 {
            self.turns.push_last(i);
        }
        self.mark(i, due::READABLE);
    }

    pub(super) fn socket(&self, i: u32) -> SocketId {
        SocketId { domain: self.blocks[i].domain, slot: self.blocks[i].slot }
    }

    pub(super) fn attach_page(&mut self, i: u32) -> bool {
        let socket = self.socket(i);
        let Some((page, pool)) = self.domains.page(socket) else {
            return false;
        };
        let block = &self.blocks[i];
        let published = (block.receive_end, block.released);
        let live = &mut self.live[i as usize];
        live.page = Some(Page::new(&self.stage, page, socket, i, published));
        live.pool = pool;
        true
    }

    /// Publishes addresses and flags.
    pub(super) fn publish(&self, i: u32) {
        let block = &self.blocks[i];
        if let Some(page) = &self.live[i as usize].page {
            page.set_local(block.local_endpoint());
            page.set_remote(block.remote_endpoint());
            let mut flags = 0;
            if block.has(bit::CONNECTED) {
                flags |= flag::CONNECTED;
            }
            if block.has(bit::DEAD) {
                flags |= flag::DEAD | flag::RECEIVE_END | flag::SEND_CLOSED;
            }
            page.set_flags(flags);
        }
    }

    /// An error that the application sees at its next call.
    pub(super) fn set_error(&mut self, i: u32, errno: i32) {
        if let Some(page) = &self.live[i as usize].page {
            page.set_error(errno);
            self.mark(i, due::READABLE | due::WRITABLE);
        }
    }

    fn report_opening(&mut self, cx: &Context) {
        if let Some((reborn, found)) = self.found.take() {
            cx.add(Counter::Rebirths, reborn as u64);
            cx.add(Counter::Mended, found.mended);
            cx.add(Counter::Blamed, self.docket.take_blamed());
            self.gauge_blocks(cx);
        }
    }

    pub(super) fn gauge_blocks(&self, cx: &Context) {
        cx.gauge(Counter::Blocks, self.free.used() as u64);
    }
}

impl Component for Udp {
    type In = In;
    type Out = Out;
    type Event = Event;
    type Effect = Effect;
    const COUNTERS: &'static [&'static str] = COUNTERS;

    fn decode(peer: ComponentId, line: &Encoded) -> Option<In> {
        In::decode(peer, line)
    }

    fn begin(&mut self, occasion: Occasion<Event>) {
        match occasion {
            Occasion::Message { line, .. } => self.docket.begin(line),
            _ => self.docket.clear(),
        }
    }

    fn receive(&mut self, cx: &mut Context, _from: ComponentId, message: In, out: &mut Outbox<Out>) {
        if self.docket.take_fatal() {
            cx.count(Counter::DropFatal);
            return self.refuse_fatal(cx, message, out);
        }
        match message {
            In::Sockets(m) => self.receive_request(cx, m, out),
            In::Ip(IpToTransport::Deliver { packet, .. } | IpToTransport::Error { packet, .. })
                if self.seen.is_repeated(cx.memory, packet) =>
            {
                cx.count(Counter::DropRepeated);
                out.push(Out::Ip(TransportToIp::Done { packet }));
            }
            In::Ip(message @ IpToTransport::Deliver { .. }) => self.receive_delivered(cx, message, out),
            In::Ip(IpToTransport::Error {
                packet,
                header_len,
                kind,
                code,
                info,
                offender,
                ttl,
                tos,
                zone,
            }) => {
                let error = IcmpError { kind, code, info, offender, ttl, tos };
                self.receive_error(cx, (packet, header_len, zone), &error);
                out.push(Out::Ip(TransportToIp::Done { packet }));
            }
            In::Ip(IpToTransport::Sent { request, errno }) => self.receive_sent(cx, request, errno),
            In::Ip(IpToTransport::Routed { request, errno, source, segment_max, .. }) => {
                self.receive_routed(cx, request, errno, Path { source, segment_max }, out)
            }
            In::Ip(IpToTransport::Grouped { order }) => self.receive_grouped(cx, order),
        }
    }

    fn event(&mut self, cx: &mut Context, event: Event, _out: &mut Outbox<Out>) {
        self.report_opening(cx);
        match event {
            Event::Dirty(socket) => match self.find_socket(socket) {
                Some(i) if self.enter_work(cx, Kind::Dirty, i) => {
                    let end = self.wished_end(i);
                    self.tell_completions(i);
                    self.mark(i, due::SEND | due::WRITABLE | end);
                }
                Some(i) => self.give_up(cx, i),
                None => {}
            },
            Event::DomainOpened { domain, pool, arena } => {
                for i in self.domains.open(domain, arena, pool) {
                    self.revive(cx, i);
                }
                self.docket.clear();
            }
            Event::Configure { key, value } if key == "addresses" => {
                self.addresses.configure(&value);
                self.routes.clear();
            }
            Event::Configure { key, value } if key == PortShare::KEY => {
                self.share = PortShare::among(self.config.slots.owner, &value)
            }
            Event::Configure { key, value } if key == Protection::KEY => {
                self.set_protection(Protection::of(&value))
            }
            _ => {}
        }
    }

    fn commit(&mut self, _cx: &mut Context) {
        if self.protection == Protection::On {
            self.blocks.seal();
            self.memberships.entries.seal();
            self.docket.clear();
            self.arena.commit();
        }
        // A datagram socket's application is never asked to report what it took.
        self.stage.commit(|_| ());
        self.turn += 1;
    }

    fn check(&self) {
        let (blocks, used) = (self.blocks.len(), self.free.used());
        assert_eq!(blocks, self.live.len(), "blocks, and what is derived from them");
        assert!(used <= blocks, "{used} of {blocks} blocks are in use");
    }

    fn expire(&mut self, cx: &mut Context, out: &mut Outbox<Out>) {
        self.turns.expire(cx.now);
        if self.rounds.expire(cx.now) {
            self.repeat_requests(cx, out);
            self.repeat_step(cx, out);
        }
        for _ in 0..PER_TURN {
            let Some(i) = self.timers.pop(cx.now) else {
                break;
            };
            match self.enter_work(cx, Kind::Timer, i) {
                true => self.give_up_orphan(cx, i),
                false => self.give_up(cx, i),
            }
            cx.advance();
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.turns.deadline(&self.timers).into_iter().chain(self.rounds.deadline()).min()
    }

    fn peer_reborn(&mut self, cx: &mut Context, peer: ComponentId, out: &mut Outbox<Out>) {
        self.report_opening(cx);
        match peer.role {
            Role::Ip => {
                self.memberships.ip_reborn();
                self.resubmit(cx, out);
            }
            Role::Sockets => {
                for i in self.domains.sockets_connected() {
                    cx.count(Counter::Quarantined);
                    self.release(cx, i);
                }
                self.remake_lost(cx);
            }
            _ => {}
        }
    }

    fn flush(&mut self, cx: &mut Context, out: &mut Outbox<Out>) {
        let are_ending = self.close_with_domains(cx);
        let (waited, mut done) = (self.turns.len(), 0);
        for _ in 0..self.turns.share() {
            let Some(i) = self.turns.pop() else {
                break;
            };
            let has_room = self.has_room(out);
            match self.enter_work(cx, Kind::Serve, i) {
                true => self.serve(cx, i, out),
                false => self.give_up(cx, i),
            }
            match self.live[i as usize].due {
                0 => done += 1,
                _ if has_room => self.turns.had_turn(i),
                _ => self.mark(i, 0),
            }
            cx.advance();
        }
        self.docket.clear();
        self.answer_ends(out);
        self.tell_groups(out);
        self.turns.finish(cx.now, waited, done);
        if are_ending {
            self.turns.hurry(cx.now);
        }
        self.rounds.arm(cx.now, !self.requests.is_empty() || self.memberships.is_waiting());
    }
}
