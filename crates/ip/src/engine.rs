//! The engine's state, and which mechanism a message belongs to.

use crate::counters::{COUNTERS, Counter};
use crate::gate::Gate;
use crate::given::Given;
use crate::grants::Grants;
use crate::lane::Lanes;
use crate::learners::Learners;
use crate::limit::Limiter;
use crate::link::{Link, MTU_MIN};
use crate::multicast::table::Groups;
use crate::neighbour::Neighbours;
use crate::pending::{Asked, Datagram, FromPeer, Stage, ToPeer, Transmission};
use crate::reassembly::Reassembly;
use crate::route::Routes;
use crate::v6::flow::FlowLabels;
use crate::v6::path::Paths;
use crate::v6::tentative::Tentatives;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use eft_arena::Fuse;
use eft_arena::docket::{self, Docket};
use eft_base::{Instant, PoolId, Random, RequestId};
use eft_channel::rounds::Rounds;
use eft_channel::{Pool, Requests, Segment};
use eft_component::{Answer, Component, Configure, Context, Occasion, Outbox};
use eft_messages::filter::FilterToIp;
use eft_messages::nic::NicToIp;
use eft_messages::transport::TransportToIp;
use eft_messages::{ComponentId, Encoded, Role};

/// Packets that may wait for a verdict on their way in.
const ARRIVALS_MAX: usize = 4096;
/// Largest TCP payload that an IP packet can carry with full headers.
pub(crate) const SEGMENT_MAX: u32 = 65535 - 20 - 60;

/// How soon to check for room again if no neighbour wakes us.
const RETRY: Duration = Duration::from_micros(200);
const RETRY_MAX: Duration = Duration::from_millis(20);

/// Bytes of the memory that outlives ip.
pub const DOCKET_LEN: usize = docket::END.next_multiple_of(4096);

/// No deadline is so late.
const NEVER: Instant = Instant(u64::MAX);

pub(crate) type Out = Outbox<ToPeer>;

/// How the engine is made.
#[derive(Clone, Copy, Debug)]
pub struct IpConfig {
    /// The topology has a filter: nothing passes without its verdict.
    pub with_filter: bool,
    /// Where IPv4 identifications begin.
    pub seed: u64,
}

/// The engine.
pub struct Ip {
    pub(crate) docket: Docket,
    pub(crate) with_filter: bool,
    pub(crate) routes: Routes,
    pub(crate) last_error: Option<String>,
    /// By NIC number.
    pub(crate) links: Vec<Option<Link>>,
    pub(crate) gate: Gate,
    pub(crate) frames: Pool,
    pub(crate) packets: Pool,
    pub(crate) transmissions: Requests<Transmission>,
    pub(crate) datagrams: Requests<Datagram>,
    pub(crate) arrivals: Requests<Asked>,
    pub(crate) grants: Grants,
    pub(crate) flows: FlowLabels,
    pub(crate) neighbours: Neighbours,
    pub(crate) reassembly: Reassembly,
    pub(crate) paths: Paths,
    pub(crate) tentatives: Tentatives,
    pub(crate) groups: Groups,
    pub(crate) autoconf: Learners,
    pub(crate) given: Given,
    pub(crate) limiter: Limiter,
    /// Limits the resets that the filter orders.
    pub(crate) reset_limiter: Limiter,
    /// What waits on the way from and to each transport.
    pub(crate) lanes: Lanes,
    /// Transmissions in [`Stage::Local`], in order.
    pub(crate) local: VecDeque<RequestId>,
    pub(crate) identification: u16,
    pub(crate) rounds: Rounds,
    /// When to check for room again: a transport that takes only receipts does not wake us.
    retry_at: Option<Instant>,
    retry_after: Duration,
    /// Packets that waited for room at the last check.
    waiting_before: usize,
}

impl Ip {
    /// An ip that no successor learns from.
    pub fn new(frames: Pool, packets: Pool, config: IpConfig) -> Ip {
        Ip::open(Segment::heap(DOCKET_LEN), frames, packets, config)
    }

    /// `docket` has [`DOCKET_LEN`] bytes, in which a predecessor has recorded what it handled. `frames` has slots of
    /// `FRAME_SLOT_LEN`, one for each packet on its way out; `packets` has slots of [`eft_messages::nic::PACKET_SLOT_LEN`],
    /// for reassembly, ICMP and local delivery.
    pub fn open(docket: Segment, frames: Pool, packets: Pool, config: IpConfig) -> Ip {
        Ip::open_with(docket, frames, packets, config, Fuse::default())
    }

    /// The same with a fuse, of which the engine may die even here.
    pub fn open_with(docket: Segment, frames: Pool, packets: Pool, config: IpConfig, fuse: Fuse) -> Ip {
        let life = config.seed as u32;
        let mut random = Random::new(config.seed);
        Ip {
            docket: Docket::open_with(docket, fuse).0,
            with_filter: config.with_filter,
            routes: Routes::default(),
            last_error: None,
            links: Vec::new(),
            gate: Gate::new(),
            transmissions: Requests::new(frames.slots(), life),
            datagrams: Requests::new(frames.slots(), life),
            arrivals: Requests::new(ARRIVALS_MAX, life),
            grants: Grants::new([random.next_u64(), random.next_u64()]),
            flows: FlowLabels::new([random.next_u64(), random.next_u64()]),
            // After a rebirth everything that the transports resubmit waits for the gateway's address: it must fit, and a
            // silent neighbour must not take the slots of all others.
            neighbours: Neighbours::new(frames.slots() / 8 * 7, frames.slots() / 8 * 5),
            reassembly: Reassembly::new(packets.slots() / 2),
            paths: Paths::default(),
            tentatives: Tentatives::default(),
            groups: Groups::default(),
            autoconf: Learners::default(),
            given: Given::new(&packets),
            limiter: Limiter::new(),
            reset_limiter: Limiter::new(),
            lanes: Lanes::default(),
            local: VecDeque::new(),
            // It depends on all bits of the seed, so that it differs in each life: the receiver keeps fragments from
            // the life before for half a minute.
            identification: Random::new(config.seed).next_u32() as u16,
            rounds: Rounds::default(),
            retry_at: None,
            retry_after: RETRY,
            waiting_before: 0,
            frames,
            packets,
        }
    }

    /// Why the last configuration was refused, or which part of it cannot take effect, in one line.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    pub(crate) fn complain(&mut self, what: String) {
        self.last_error = Some(what);
    }

    /// Whether packets in this pool are still referred to here. A dead NIC's pool must stay mapped
    /// until this is false.
    pub fn uses_pool(&self, pool: PoolId) -> bool {
        self.given.uses(pool)
            || self.gate.uses(pool)
            || self.arrivals.iter().any(|(_, a)| a.arrival.packet.pool == pool)
            || self.lanes.iter().flat_map(|l| &l.undelivered).any(|u| u.packet.pool == pool)
    }

    /// Lets messages in once addresses and devices are known.
    pub(crate) fn open_gate(&mut self, cx: &mut Context, out: &mut Out) {
        let links_known = self.routes.interfaces().all(|i| self.link(i).is_some());
        if self.gate.may_open(cx.now, links_known) {
            for (peer, message) in self.gate.open(cx.now) {
                self.handle(cx, peer, message, out);
                self.docket.clear();
            }
        }
    }

    fn handle(&mut self, cx: &mut Context, from: ComponentId, message: FromPeer, out: &mut Out) {
        match (from, message) {
            (nic, FromPeer::Nic(m)) => self.handle_nic(cx, nic.instance, m, out),
            (peer, FromPeer::Transport(m)) => self.handle_transport(cx, peer, m, out),
            (_, FromPeer::Filter(m)) => self.receive_from_filter(cx, m, out),
        }
    }

    fn handle_nic(&mut self, cx: &mut Context, n: u8, message: NicToIp, out: &mut Out) {
        match message {
            NicToIp::Sent { request, errno } => {
                let here = |f: &Transmission| f.stage == Stage::Nic && f.hop.interface == n;
                if self.transmissions.get(request).is_some_and(here) {
                    self.finish(request, errno, out);
                } else {
                    cx.count(Counter::StaleReply);
                }
            }
            NicToIp::Received { packet, checksum_ok, segment_size } => {
                self.receive_frame(cx, n, packet, checksum_ok, segment_size, out)
            }
            NicToIp::Link { .. } => {}
        }
    }

    fn handle_transport(
        &mut self,
        cx: &mut Context,
        peer: ComponentId,
        message: TransportToIp,
        out: &mut Out,
    ) {
        match message {
            TransportToIp::Send { request, descriptor } => {
                self.receive_send(cx, peer, request, descriptor, out)
            }
            TransportToIp::Done { packet } => self.receive_done(cx, peer, packet, out),
            TransportToIp::Refuse { packet } => self.receive_refuse(cx, peer, packet, out),
            TransportToIp::Route { request, source, destination } => {
                self.receive_route(cx, peer, request, source, destination, out)
            }
            TransportToIp::Group { order, step, interface, group, source } if peer.role == Role::Udp => {
                self.receive_group(cx, peer, (order, step), (interface, group), source, out)
            }
            TransportToIp::Group { .. } => {}
        }
    }

    /// While packets wait for room: soon, then at growing intervals, until one has moved.
    fn schedule_retry(&mut self, now: Instant) {
        let undelivered: usize = self.lanes.iter().map(|l| l.undelivered.len()).sum();
        let waiting = self.local.len() + undelivered;
        let moved = waiting < core::mem::replace(&mut self.waiting_before, waiting);
        self.retry_after = if moved { RETRY } else { (self.retry_after * 2).clamp(RETRY, RETRY_MAX) };
        self.retry_at = (waiting > 0).then_some(now + self.retry_after);
    }
}

impl Component for Ip {
    type In = FromPeer;
    type Out = ToPeer;
    type Event = Configure;
    type Effect = Answer;
    const COUNTERS: &'static [&'static str] = COUNTERS;

    fn decode(peer: ComponentId, line: &Encoded) -> Option<FromPeer> {
        match peer.role {
            Role::Tcp | Role::Udp => TransportToIp::decode(line).map(FromPeer::Transport),
            Role::Nic => NicToIp::decode(line).map(FromPeer::Nic),
            Role::Filter => FilterToIp::decode(line).map(FromPeer::Filter),
            _ => None,
        }
    }

    fn begin(&mut self, _: Occasion<Configure>) {
        // An input is named when it is known what it is about. Answers are not said again to a successor.
        self.docket.clear();
    }

    fn commit(&mut self, _: &mut Context) {
        self.docket.clear();
    }

    fn receive(&mut self, cx: &mut Context, from: ComponentId, message: FromPeer, out: &mut Out) {
        match (from, message) {
            (nic, FromPeer::Nic(NicToIp::Link { mac, mtu, up, checksum, segment_max })) => {
                let link = Link {
                    mac,
                    mtu: mtu.max(MTU_MIN),
                    up,
                    checksum,
                    segment_max: segment_max.min(SEGMENT_MAX),
                };
                self.receive_link(cx, nic.instance, link, out)
            }
            _ if self.gate.is_open() => self.handle(cx, from, message, out),
            _ => {
                if self.gate.hold(cx.now, from, message) {
                    cx.count(Counter::HeldEarly);
                } else {
                    self.refuse_early(cx, from, message, out);
                }
            }
        }
    }

    fn event(&mut self, cx: &mut Context, setting: Configure, out: &mut Out) {
        self.hear(cx, setting, out);
        self.docket.clear();
    }

    fn expire(&mut self, cx: &mut Context, out: &mut Out) {
        self.open_gate(cx, out);
        self.expire_neighbours(cx, out);
        self.expire_reassembly(cx, out);
        self.expire_tentatives(cx, out);
        self.expire_groups(cx, out);
        self.expire_autoconf(cx, out);
        self.expire_grants(cx, out);
        self.repeat_requests(cx, out);
    }

    fn check(&self) {
        let held = self.frames.slots() - self.frames.available();
        assert_eq!(held, self.transmissions.len(), "frames that are held, and transmissions");
        assert!(self.local.len() <= self.transmissions.len(), "{} packets go to this host", self.local.len());
    }

    fn deadline(&self) -> Option<Instant> {
        let deadlines = [
            self.gate.deadline(),
            self.neighbours.deadline(),
            self.reassembly.deadline(),
            self.tentatives.deadline(),
            self.groups.deadline(),
            self.autoconf.deadline(),
            self.grants.deadline(),
            self.rounds.deadline(),
            self.retry_at,
        ];
        // Without a branch for each: this is asked twice a turn.
        let first = deadlines.iter().fold(NEVER, |first, at| first.min(at.unwrap_or(NEVER)));
        (first != NEVER).then_some(first)
    }

    fn peer_reborn(&mut self, cx: &mut Context, peer: ComponentId, out: &mut Out) {
        match peer.role {
            Role::Filter => self.filter_reborn(cx, out),
            Role::Nic => self.nic_reborn(cx, peer.instance, out),
            Role::Tcp | Role::Udp => self.transport_reborn(cx, peer, out),
            _ => {}
        }
    }

    fn flush(&mut self, cx: &mut Context, out: &mut Out) {
        self.flush_local(cx, out);
        self.flush_undelivered(out);
        self.schedule_retry(cx.now);
        self.flush_lanes(cx, out);
        let waits = !self.transmissions.is_empty() || !self.arrivals.is_empty() || !self.given.is_empty();
        self.rounds.arm(cx.now, waits);
        cx.gauge(Counter::Transmissions, self.transmissions.len() as u64);
        cx.gauge(Counter::Arrivals, self.arrivals.len() as u64);
        cx.gauge(Counter::Grants, self.grants.len() as u64);
    }
}
