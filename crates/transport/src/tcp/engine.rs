//! The component: hands inputs to the mechanisms that they concern, and sends what became due in
//! `flush`, so that a batch of arriving segments is answered once.

mod settings;
mod tables;

use super::TcpConfig;
use super::asked::{Path, PendingReset, Report, Request};
use super::asking::Ecn;
use super::block::{Cold, State, Tuple};
use super::clocks::Timestamps;
use super::cookie_cache::CookieCache;
use super::cookie_keys::CookieKeys;
use super::counters::{COUNTERS, Counter};
use super::durable::{Blocks, Tables};
use super::early_resets::Resets;
use super::fast_open::FastOpen;
use super::live::due;
use super::lives::Lives;
use super::ports::Ports;
use super::reassembly::Reassembly;
use super::remains::Remains;
use super::sizing::MinSegments;
use super::syn_cookies::SynCookies;
use super::walk::Walk;
use crate::addresses::Addresses;
use crate::domains::Domains;
use crate::edge::{In, Out};
use crate::free::FreeBlocks;
use crate::limits::Bucket;
use crate::page::Stage;
use crate::requests::Transport as _;
use crate::routes::Routes;
use crate::timers::Timers;
use crate::turns::{PER_TURN, Turns};
use alloc::collections::VecDeque;
use alloc::{vec, vec::Vec};
use eft_arena::docket::{Docket, Finding, Kind};
use eft_arena::{Arena, Fuse, Refused, Table};
use eft_base::hash::{Key, Map};
use eft_base::{Instant, Protection};
use eft_channel::rounds::Rounds;
use eft_channel::{Pool, Requests, Seen, Segment};
use eft_component::transport::{Effect, Event};
use eft_component::{Component, Context, Occasion, Outbox};
use eft_messages::transport::{IpToTransport, TransportToIp};
use eft_messages::{ComponentId, Encoded, Role};
use settings::Settings;

/// Resets for segments of no connection, per second.
const RESETS_PER_SECOND: u64 = 1000;
/// Largest packet in bytes.
const PACKET_MAX: usize = 1 << 16;

/// The engine.
pub struct Tcp {
    pub(super) config: TcpConfig,
    // Durable.
    pub(super) protection: Protection,
    arena: Arena,
    pub(super) docket: Docket,
    pub(super) blocks: Blocks,
    pub(super) cold: Table<Cold>,
    /// Ranges that came out of order.
    pub(super) notes: Table<Reassembly>,
    // Derived from it.
    pub(super) live: Lives,
    pub(super) free: FreeBlocks,
    pub(super) table: Map<Tuple, u32>,
    pub(super) ports: Ports,
    pub(super) domains: Domains,
    pub(super) timers: Timers,
    /// TIME-WAIT in the order of entry, with the block's generation.
    pub(super) time_wait: VecDeque<(u32, u32)>,
    // Of this life only.
    /// Connections that have something due.
    pub(super) turns: Turns,
    pub(super) headers: Pool,
    /// Packets that ip delivered. ip's successor may deliver one again.
    seen: Seen,
    pub(super) requests: Requests<Request>,
    pub(super) rounds: Rounds,
    pub(super) routes: Routes<Path>,
    pub(super) cookies: SynCookies,
    pub(super) addresses: Addresses,
    pub(super) ecn: Ecn,
    pub(super) fast_open: FastOpen,
    /// Of its cookies, as configured.
    pub(super) cookie_keys: Option<CookieKeys>,
    /// Of which further instances make the same cookies.
    pub(super) cookie_secret: Option<Key>,
    pub(super) clocks: Timestamps,
    pub(super) min_segments: MinSegments,
    /// What connections take when they begin.
    settings: Settings,
    pub(super) early_resets: Resets,
    pub(super) cookie_cache: CookieCache,
    pub(super) key: Key,
    pub(super) scratch: Vec<u8>,
    /// Words for applications, written at the commit of this turn.
    pub(super) stage: Stage,
    pub(super) resets: Bucket,
    /// The connection of the last segment: the next one is usually for the same.
    pub(super) last: Option<(Tuple, u32)>,
    pub(super) ip_seen: bool,
    /// A connection that is given up, since an input of it has killed two predecessors.
    pub(super) doomed: Option<u32>,
    /// Finding at the opening, to be counted as soon as the status page is available.
    found: Option<bool>,
    pub(super) quarantined: u64,
    pub(super) lost: Vec<Remains>,
    mended: u64,
    /// Connections from before a crash to which nothing has happened yet.
    pub(super) unrevived: VecDeque<u32>,
    pub(super) orphans: Walk,
    /// Resets that wait for room.
    pub(super) pending_resets: Vec<PendingReset>,
    /// The stack ends: the first connection whose peer was not told.
    pub(super) farewell: Option<u32>,
    /// Connections that are established and have not ended.
    pub(super) open: u64,
    /// Counts ephemeral ports tried.
    pub(super) port_turn: u32,
    /// Some socket has, or had, a key that signs segments: until then nobody looks for one when a segment comes.
    pub(super) is_keyed: bool,
}

impl Tcp {
    /// Opens the arena (of [`super::arena_len`] bytes), taking over what a predecessor left in it.
    /// `headers` is a pool of `SEND_SLOT_LEN` slots.
    pub fn open(arena: Segment, headers: Pool, config: TcpConfig) -> Result<Tcp, Refused> {
        Tcp::open_with(arena, headers, config, Fuse::default())
    }

    /// The same with a fuse, of which the engine may die even here.
    pub fn open_with(arena: Segment, headers: Pool, config: TcpConfig, fuse: Fuse) -> Result<Tcp, Refused> {
        let Tables { arena, blocks, cold, notes, quarantined, lost, mended, connections } =
            Tables::open_with(arena, &config, fuse)?;
        let key = Key(arena.secret);
        let (docket, finding) = arena.docket();
        let limit = headers.slots() + config.connections;
        let count = blocks.len();
        let mut tcp = Tcp {
            config,
            protection: Protection::On,
            found: Some(arena.reborn),
            arena,
            docket,
            blocks,
            cold,
            notes,
            live: Lives::new(count),
            free: FreeBlocks::new(count),
            table: Map::with_capacity_and_hasher(connections, key),
            ports: Ports::new(key),
            domains: Domains::new(key, config.slots),
            timers: Timers::new(count),
            time_wait: VecDeque::new(),
            turns: Turns::new(),
            headers,
            seen: Seen::default(),
            requests: Requests::new(limit, config.seed as u32),
            rounds: Rounds::default(),
            routes: Routes::new(key),
            cookies: SynCookies::new(),
            addresses: Addresses::default(),
            ecn: Ecn::default(),
            fast_open: FastOpen::default(),
            cookie_keys: None,
            cookie_secret: None,
            clocks: Timestamps::default(),
            min_segments: MinSegments::default(),
            settings: Settings::default(),
            early_resets: Resets::default(),
            cookie_cache: CookieCache::new(key),
            key,
            scratch: vec![0; PACKET_MAX],
            stage: Stage::default(),
            resets: Bucket::new(RESETS_PER_SECOND),
            last: None,
            ip_seen: false,
            doomed: match finding {
                Finding::Condemned(block) => block,
                Finding::Blamed | Finding::Nothing => None,
            },
            quarantined,
            lost,
            mended,
            unrevived: VecDeque::new(),
            orphans: Walk::default(),
            pending_resets: Vec::new(),
            farewell: None,
            open: 0,
            port_turn: 0,
            is_keyed: false,
        };
        tcp.rebuild();
        Ok(tcp)
    }

    /// For tests of dying in the middle of a turn.
    pub fn fuse(&self) -> Fuse {
        self.arena.fuse()
    }

    /// Counts what opening the arena found, once.
    fn report_opening(&mut self, cx: &Context) {
        if let Some(reborn) = self.found.take() {
            cx.add(Counter::Rebirths, reborn as u64);
            if reborn {
                self.cookies.expect(cx.now);
            }
            cx.add(Counter::Quarantined, self.quarantined);
            cx.add(Counter::Mended, self.mended);
            cx.add(Counter::Blamed, self.docket.take_blamed());
            self.limit_waits(cx.now);
            self.gauge_blocks(cx);
            self.gauge_open(cx);
        }
    }

    fn receive_from_ip(&mut self, cx: &mut Context, message: IpToTransport, out: &mut Outbox<Out>) {
        match message {
            IpToTransport::Deliver { packet, .. } | IpToTransport::Error { packet, .. }
                if self.seen.is_repeated(cx.memory, packet) =>
            {
                cx.count(Counter::DropRepeated);
                out.push(Out::Ip(TransportToIp::Done { packet }));
            }
            IpToTransport::Deliver { packet, header_len, checksum_ok, segment_size, zone, .. } => {
                self.receive_packet(cx, packet, header_len, checksum_ok, segment_size, zone, out);
                out.push(Out::Ip(TransportToIp::Done { packet }));
            }
            IpToTransport::Error { packet, header_len, kind, code, info, offender, zone, .. } => {
                let report = Report { kind, code, info, offender };
                self.receive_error(cx, (packet, header_len, zone), &report);
                out.push(Out::Ip(TransportToIp::Done { packet }));
            }
            IpToTransport::Sent { request, errno } => self.receive_sent(cx, request, errno),
            IpToTransport::Routed { .. } => self.receive_routed(cx, message, out),
            // Streams go to no group.
            IpToTransport::Grouped { .. } => {}
        }
    }
}

impl Component for Tcp {
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
            In::Ip(m) => self.receive_from_ip(cx, m, out),
            In::Sockets(m) => {
                self.revive_for_request(cx, &m);
                self.receive_request(cx, m, out)
            }
        }
    }

    fn event(&mut self, cx: &mut Context, event: Event, _out: &mut Outbox<Out>) {
        self.report_opening(cx);
        match event {
            Event::Dirty(socket) => match self.domains.find(socket) {
                Some(i) if self.enter_state(cx, Kind::Dirty, i) => self.receive_dirty(cx, i),
                Some(i) => self.give_up(cx, i),
                None => {}
            },
            Event::DomainOpened { domain, pool, arena } => self.open_domain(cx, domain, pool, arena),
            Event::Configure { key, value } => self.configure(&key, &value),
        }
    }

    fn commit(&mut self, cx: &mut Context) {
        self.commit_tables();
        let (stage, turns, live) = (&self.stage, &mut self.turns, &mut self.live);
        stage.commit(|i| {
            // The application read before it could see the notify position: as if it had rung.
            live[i as usize].due |= due::LOOK;
            turns.push(i);
            turns.hurry(cx.now);
        });
    }

    fn check(&self) {
        let (blocks, used) = (self.blocks.len(), self.free.used());
        assert_eq!(blocks, self.live.len(), "blocks, and what is derived from them");
        assert!(used <= blocks, "{used} of {blocks} blocks are in use");
        assert!(self.open <= used as u64, "{} of {used} connections are open", self.open);
    }

    fn expire(&mut self, cx: &mut Context, out: &mut Outbox<Out>) {
        self.turns.expire(cx.now);
        if self.rounds.expire(cx.now) {
            self.repeat_requests(cx, out);
        }
        for _ in 0..PER_TURN {
            let Some(i) = self.timers.pop(cx.now) else {
                break;
            };
            if self.enter_state(cx, Kind::Timer, i) {
                self.expire_connection(cx, i, out);
            } else {
                self.give_up(cx, i);
            }
            self.connection(i).rearm();
            cx.advance();
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.turns.deadline(&self.timers).into_iter().chain(self.rounds.deadline()).min()
    }

    fn peer_reborn(&mut self, cx: &mut Context, peer: ComponentId, out: &mut Outbox<Out>) {
        self.report_opening(cx);
        match peer.role {
            Role::Ip => self.resubmit(cx, out),
            Role::Sockets => self.quarantine_homeless(cx),
            _ => {}
        }
    }

    fn flush(&mut self, cx: &mut Context, out: &mut Outbox<Out>) {
        self.revive_some(cx);
        let are_ending = self.close_with_domains(cx);
        self.orphan_some(cx);
        let (waited, mut done) = (self.turns.len(), 0);
        for _ in 0..self.turns.share() {
            let Some(i) = self.turns.pop() else {
                break;
            };
            let has_room = self.has_room(out);
            if self.enter_state(cx, Kind::Serve, i) {
                self.serve(cx, i, out);
            } else {
                self.give_up(cx, i);
            }
            match self.live[i as usize].due {
                0 => done += 1,
                // It could not finish: its turn was over, or there was no room.
                _ if has_room => self.turns.had_turn(i),
                _ => self.connection(i).mark(0),
            }
            self.connection(i).rearm();
            cx.advance();
        }
        self.docket.clear();
        self.send_pending_resets(cx, out);
        self.answer_ends(out);
        self.turns.finish(cx.now, waited, done);
        self.say_farewell(cx);
        if are_ending || !self.orphans.is_over() || !self.unrevived.is_empty() {
            self.turns.hurry(cx.now);
        }
        self.rounds.arm(cx.now, !self.requests.is_empty());
    }
}

impl Tcp {
    /// Sends what is due, and notifies the application.
    fn serve(&mut self, cx: &mut Context, i: u32, out: &mut Outbox<Out>) {
        let c = self.connection(i);
        if c.block.state() == State::Free {
            c.live.due = 0;
            return;
        }
        if c.live.is_due(due::LOOK) {
            c.live.due &= !due::LOOK;
            self.read_page(cx, i);
        }
        if self.live[i as usize].is_due(due::ROUTE) {
            self.ask_route(cx, i, out);
        }
        self.send_due(cx, i, out);
        self.connection(i).tell(cx, out);
        self.reset_if_due(cx, i);
    }
}
