//! The path to a peer: source address, MTU, segmentation (ip answers, and the answer is cached).

use super::asked::{MTU_MIN, Path, Request};
use super::block::{Block, State, bit};
use super::congestion::{WINDOW_MAX, initial_window};
use super::connection::{Connection, View};
use super::counters::Counter;
use super::engine::Tcp;
use super::live::due;
use crate::edge::Out;
use crate::routes::LIFETIME;
use core::net::IpAddr;
use eft_base::WireAddress;
use eft_channel::socket::Opt;
use eft_component::{Context, Outbox};
use eft_messages::ComponentId;
use eft_messages::transport::{IpToTransport, TransportToIp};

/// The least value of TCP_MAXSEG, as on Linux.
const WISHED_MSS_MIN: u32 = 88;
/// Largest IP packet, whatever the device can segment.
const PACKET_MAX: u32 = 65535;
/// IPv6 and TCP header with full options.
const HEADERS_MAX: u32 = 40 + 60;

/// Bytes of IP and TCP header without options.
pub(super) fn fixed_headers(remote: WireAddress) -> u16 {
    match IpAddr::from(remote) {
        IpAddr::V4(_) => 40,
        IpAddr::V6(_) => 60,
    }
}

/// What fits into a packet of the path besides fixed headers. Before the path is known, it is the
/// least that any path has.
pub(super) fn path_mss(block: &Block, path_mtu: u16) -> u16 {
    path_mtu.max(MTU_MIN) - fixed_headers(block.tuple.remote)
}

impl Connection<'_> {
    /// Takes ip's answer about the path into the block.
    pub(super) fn set_path(&mut self, path: Path) {
        let block = &mut self.block;
        let learned = match self.cold.learned_mtu {
            0 => u16::MAX,
            mtu => mtu,
        };
        self.cold.path_mtu = path.mtu.min(learned).max(MTU_MIN);
        (self.live.route_mss, self.cold.initial_segments) = (path.mss, path.initial_segments);
        self.cold.segment_max = path.segment_max.min(PACKET_MAX - HEADERS_MAX);
        block.clear(bit::LOCAL);
        if path.local {
            block.set(bit::LOCAL);
        }
        block.set(bit::ROUTED);
        self.set_mss();
    }

    /// Sets the largest segment that both the path and the peer accept (RFC 9293 §3.7.1).
    pub(super) fn set_mss(&mut self) {
        let ceiling = self.mtu_bounds().ceiling;
        self.live.mtu.cap(ceiling);
        let path_mtu = self.cold.path_mtu.min(self.live.mtu.limit());
        let block = &mut self.block;
        block.mss = self.cold.peer_mss.min(path_mss(block, path_mtu)).max(64);
    }
}

impl View<'_> {
    /// The MSS that we announce, unless the application wishes a smaller one.
    pub(super) fn route_mss(&self) -> u16 {
        match self.live.route_mss {
            0 => path_mss(self.block, self.cold.path_mtu),
            mss => mss,
        }
    }

    /// The window with which a connection begins, in bytes.
    pub(super) fn initial_window(&self) -> u32 {
        let mss = self.block.segment_size();
        match self.cold.initial_segments {
            0 => initial_window(mss),
            segments => mss.saturating_mul(segments.into()).min(WINDOW_MAX),
        }
    }
}

impl Tcp {
    /// Asks ip for the route to a connection's peer, unless the answer is known or under way.
    pub(super) fn ask_route(&mut self, cx: &Context, i: u32, out: &mut Outbox<Out>) {
        let c = self.connection(i);
        let (tuple, generation) = (c.block.tuple, c.block.generation);
        if c.live.route_request.is_some() {
            c.live.due &= !due::ROUTE;
            return;
        }
        if let Some(path) = self.routes.get(cx.now, (tuple.local, tuple.remote)) {
            self.connection(i).live.due &= !due::ROUTE;
            self.apply_route(cx, i, Ok(path), out);
            return;
        }
        if out.room(ComponentId::IP) == 0 {
            return;
        }
        let Ok(request) = self.requests.insert(Request::Route { block: i, generation }) else {
            return;
        };
        let c = self.connection(i);
        c.live.due &= !due::ROUTE;
        c.live.route_request = Some(request);
        out.push(Out::Ip(TransportToIp::Route { request, source: tuple.local, destination: tuple.remote }));
    }

    pub(super) fn receive_routed(&mut self, cx: &Context, message: IpToTransport, out: &mut Outbox<Out>) {
        let IpToTransport::Routed {
            request: id,
            errno,
            source,
            mtu,
            segment_max,
            local,
            mss,
            initial_segments,
        } = message
        else {
            return;
        };
        let path = Path { source, mtu, segment_max, local, mss, initial_segments };
        let Some(&Request::Route { block, generation }) = self.requests.get(id) else {
            cx.count(Counter::StaleReplies);
            return;
        };
        self.requests.remove(id);
        let c = self.connection(block);
        if c.block.generation != generation || c.live.route_request != Some(id) {
            return;
        }
        c.live.route_request = None;
        let tuple = c.block.tuple;
        let answer = if errno == 0 {
            self.routes.put(cx.now, (tuple.local, tuple.remote), path, LIFETIME);
            self.cookies.note_mtu(path.mtu);
            Ok(path)
        } else {
            Err(errno)
        };
        self.apply_route(cx, block, answer, out);
    }

    fn apply_route(&mut self, cx: &Context, i: u32, answer: Result<Path, i32>, out: &mut Outbox<Out>) {
        let mut c = self.connection(i);
        match (c.block.state(), answer) {
            (State::Closed, answer) => {
                if let Some(request) = c.live.connect_request.take() {
                    self.begin_connect(cx, i, request, answer, out);
                }
            }
            (State::SynReceived, Err(_)) => self.discard_embryonic(cx, i),
            (State::SynReceived, Ok(path)) => {
                c.set_path(path);
                c.mark(due::SYN);
            }
            (_, Ok(path)) => {
                c.set_path(path);
                c.size_first_window();
                c.mark(due::SEND | due::INFO);
            }
            (_, Err(errno)) if c.is_unproven() => self.end(cx, i, errno),
            (_, Err(errno)) => c.note_soft_error(errno),
        }
    }

    /// The MSS that we announce.
    pub(super) fn own_mss(&self, i: u32) -> u16 {
        self.view(i).route_mss().min(self.wished_mss(i))
    }

    /// TCP_MAXSEG of a connection, or of the listener that it comes from. As on Linux, it limits the segments of both
    /// ends.
    pub(super) fn wished_mss(&self, i: u32) -> u16 {
        let page_of = |i: u32| self.view(i).live.page.as_ref();
        let page = page_of(i).or_else(|| page_of(self.listener_of(i)?));
        match page.map_or(0, |p| p.option(Opt::MaxSegment)) {
            0 => u16::MAX,
            n => n.clamp(WISHED_MSS_MIN, u16::MAX as u32) as u16,
        }
    }
}
