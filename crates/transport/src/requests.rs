//! Requests of sockets, as far as tcp and udp handle them alike. Every request may be repeated after
//! a rebirth of either side, or when its answer is late, and is idempotent.

use crate::domains::{Domains, NONE};
use crate::edge::{In, Out};
use crate::turns::PER_TURN;
use eft_base::errno::{ECONNABORTED, EINVAL, EOPNOTSUPP};
use eft_base::{DomainId, PoolId, RequestId, SocketId, WireAddress};
use eft_channel::socket::SocketPage;
use eft_component::{Context, Outbox};
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};
use eft_messages::transport::{IpToTransport, TransportToIp};

/// A socket's data in a reply.
#[derive(Default)]
pub(crate) struct Place {
    pub incarnation: u32,
    pub address: WireAddress,
    pub port: u16,
    /// Bytes of a stream that were taken from its application.
    pub taken: u32,
}

/// What a request asks to change about a socket's membership in a group, as its message says.
#[derive(Clone, Copy)]
pub(crate) struct MembershipChange {
    pub token: u16,
    pub change: u8,
    pub interface: u8,
    pub group: WireAddress,
    pub source: WireAddress,
}

/// No ring position gets this large; the sum of two does not overflow.
pub(crate) const POSITION_MAX: u64 = 1 << 61;

/// The positions of a receive ring that an earlier stack left, (taken, end), if they are valid.
pub(crate) fn left_to_receive(page: &SocketPage) -> Option<(u64, u64)> {
    let (taken, end) = (page.receive_taken(), page.receive_end());
    let sane = taken <= end && end <= POSITION_MAX && end - taken <= page.receive_len() as u64;
    sane.then_some((taken, end))
}

/// The positions of a send ring that a program and its transport have left, (released, end), if they are valid.
pub(crate) fn left_to_send(page: &SocketPage) -> Option<(u64, u64)> {
    let (released, end) = (page.send_released(), page.send_end());
    let sane = released <= end && end <= POSITION_MAX && end - released <= page.send_len() as u64;
    sane.then_some((released, end))
}

/// Ports below are given to privileged programs alone.
pub(crate) const UNPRIVILEGED_FIRST: u16 = 1024;

/// A transport as sockets sees it. Sockets are named by their blocks' indices.
pub(crate) trait Transport {
    fn domains(&mut self) -> &mut Domains;

    /// The socket of a block that its application still holds; `None` if its last descriptor is gone.
    fn held(&self, block: u32) -> Option<SocketId>;

    fn place(&self, block: u32) -> Place;

    /// Makes a socket for `request`.
    fn open(&mut self, cx: &mut Context, domain: DomainId, request: RequestId) -> Result<u32, i32>;

    /// The request that a socket was opened for, until it is used; 0: none.
    fn opened_for(&self, block: u32) -> u64;

    /// Takes a slot whose page a socket of an earlier stack left.
    fn restore(&mut self, cx: &mut Context, socket: SocketId, incarnation: u32) -> Result<u32, i32>;

    fn bind(&mut self, cx: &mut Context, i: u32, address: WireAddress, port: u16, reuse: u8) -> i32;

    fn listen(&mut self, cx: &mut Context, i: u32, backlog: u32) -> i32;

    fn attach(&mut self, i: u32) -> i32;

    /// Answers by itself, now or later.
    fn connect(
        &mut self,
        cx: &mut Context,
        request: RequestId,
        i: u32,
        to: (WireAddress, u16),
        out: &mut Outbox<Out>,
    );

    /// The application's last descriptor is gone.
    fn close(&mut self, cx: &mut Context, i: u32);

    /// The application is gone: closes the socket if it is not, and limits what it may still send.
    fn close_with_domain(&mut self, cx: &mut Context, i: u32);

    /// An input of the socket has killed two predecessors: it ends, and its application hears of that.
    fn give_up(&mut self, cx: &Context, i: u32);

    /// Frees the socket.
    fn release(&mut self, cx: &Context, i: u32);

    /// Answers by itself, now or later. Streams go to no group.
    fn change_membership(
        &mut self,
        request: RequestId,
        i: u32,
        _change: MembershipChange,
        out: &mut Outbox<Out>,
    ) {
        let socket = self.held(i).unwrap_or_default();
        self.reply(out, request, EOPNOTSUPP, socket, Some(i));
    }

    /// The block of a socket that its application still holds.
    fn find_socket(&mut self, socket: SocketId) -> Option<u32> {
        let i = self.domains().find(socket)?;
        self.held(i).map(|_| i)
    }

    /// The block of a request's socket; not of another socket that had or has its slot.
    fn find_incarnation(&mut self, socket: SocketId, incarnation: u32) -> Option<u32> {
        self.find_socket(socket).filter(|i| self.place(*i).incarnation == incarnation)
    }

    fn receive_request(&mut self, cx: &mut Context, message: SocketsToTransport, out: &mut Outbox<Out>) {
        use SocketsToTransport::*;
        match message {
            Open { request, socket } => self.request_open(cx, request, socket.domain, out),
            Bind { request, socket, incarnation, address, port, reuse } => {
                let meant = self.find_incarnation(socket, incarnation);
                let errno = meant.map_or(EINVAL, |i| self.bind(cx, i, address, port, reuse));
                self.reply(out, request, errno, socket, meant);
            }
            Listen { request, socket, incarnation, backlog } => {
                let meant = self.find_incarnation(socket, incarnation);
                let errno = meant.map_or(EINVAL, |i| self.listen(cx, i, backlog));
                self.reply(out, request, errno, socket, meant);
            }
            Connect { request, socket, incarnation, address, port } => {
                match self.find_incarnation(socket, incarnation) {
                    Some(i) => self.connect(cx, request, i, (address, port), out),
                    None => self.reply(out, request, EINVAL, socket, None),
                }
            }
            Close { request, socket, incarnation } => {
                if let Some(i) = self.find_incarnation(socket, incarnation) {
                    self.close(cx, i);
                }
                // It says what it closed: a damaged request may have named another.
                let closed = Place { incarnation, ..Place::default() };
                self.reply_with(out, request, 0, socket, closed);
            }
            Attached { request, socket, incarnation } => {
                let meant = self.find_incarnation(socket, incarnation);
                let errno = meant.map_or(EINVAL, |i| self.attach(i));
                self.reply(out, request, errno, socket, meant);
            }
            Restore { request, socket, incarnation } => {
                let restored = match self.find_incarnation(socket, incarnation) {
                    Some(i) => Ok(i),
                    None => self.restore(cx, socket, incarnation),
                };
                self.reply(out, request, restored.err().unwrap_or(0), socket, restored.ok());
            }
            Membership { request, socket, incarnation, token, change, interface, group, source } => {
                let change = MembershipChange { token, change, interface, group, source };
                match self.find_incarnation(socket, incarnation) {
                    Some(i) => self.change_membership(request, i, change, out),
                    None => self.reply(out, request, EINVAL, socket, None),
                }
            }
            CloseDomain { request, socket, pool } => {
                self.request_close_domain(request, socket.domain, pool, out)
            }
        }
    }

    /// Answers a message that has killed two predecessors, without handling it: a packet is given back, a request is refused and
    /// its socket ends.
    fn refuse_fatal(&mut self, cx: &Context, message: In, out: &mut Outbox<Out>) {
        match message {
            In::Ip(IpToTransport::Deliver { packet, .. } | IpToTransport::Error { packet, .. }) => {
                out.push(Out::Ip(TransportToIp::Done { packet }));
            }
            In::Ip(
                IpToTransport::Sent { .. } | IpToTransport::Routed { .. } | IpToTransport::Grouped { .. },
            ) => {}
            In::Sockets(message) => {
                let (request, socket) = message.asks();
                if let Some(i) = self.find_socket(socket) {
                    match message {
                        SocketsToTransport::Close { .. } => self.release(cx, i),
                        _ => self.give_up(cx, i),
                    }
                }
                self.reply(out, request, ECONNABORTED, socket, None);
            }
        }
    }

    /// Answers a request; `block` says which address the socket is bound to.
    fn reply(
        &self,
        out: &mut Outbox<Out>,
        request: RequestId,
        errno: i32,
        socket: SocketId,
        block: Option<u32>,
    ) {
        self.reply_with(out, request, errno, socket, block.map_or(Place::default(), |i| self.place(i)));
    }

    fn reply_with(
        &self,
        out: &mut Outbox<Out>,
        request: RequestId,
        errno: i32,
        socket: SocketId,
        place: Place,
    ) {
        let Place { incarnation, address, port, taken } = place;
        let reply = TransportToSockets::Reply { request, errno, socket, incarnation, address, port, taken };
        out.push(Out::Sockets(reply));
    }

    /// The block of the socket that was opened for this request, if it was not used since.
    fn find_opened(&mut self, domain: DomainId, request: RequestId) -> Option<u32> {
        let i = self.domains().find_opened(request)?;
        let is_its = self.held(i).is_some_and(|s| s.domain == domain);
        (is_its && self.opened_for(i) == request.to_u64()).then_some(i)
    }

    fn request_open(
        &mut self,
        cx: &mut Context,
        request: RequestId,
        domain: DomainId,
        out: &mut Outbox<Out>,
    ) {
        let opened = match self.find_opened(domain, request) {
            Some(i) => Ok(i),
            None => self.open(cx, domain, request).inspect(|i| self.domains().remember_opened(request, *i)),
        };
        let socket = opened.ok().and_then(|i| self.held(i)).unwrap_or(SocketId { domain, slot: NONE });
        self.reply(out, request, opened.err().unwrap_or(0), socket, opened.ok());
    }

    /// The domain is gone. Its sockets are closed as their descriptors' last close would, and what
    /// they still have to send is sent; the answer comes when the arena is no longer used.
    fn request_close_domain(
        &mut self,
        request: RequestId,
        domain: DomainId,
        pool: PoolId,
        out: &mut Outbox<Out>,
    ) {
        if !self.domains().end(domain, pool, request) {
            self.reply(out, request, 0, SocketId { domain, slot: NONE }, None);
        }
    }

    /// Closes sockets of domains that end, as many as a turn may. Should the transport die before the last one is closed, its
    /// successor hears the request again. True if some are left.
    fn close_with_domains(&mut self, cx: &mut Context) -> bool {
        for _ in 0..PER_TURN {
            let Some(i) = self.domains().next_to_close() else { break };
            self.close_with_domain(cx, i);
            cx.advance();
        }
        self.domains().are_ending()
    }

    /// Answers `CloseDomain` for the domains whose last socket is gone.
    fn answer_ends(&mut self, out: &mut Outbox<Out>) {
        while let Some((domain, request)) = self.domains().take_ended() {
            self.reply(out, request, 0, SocketId { domain, slot: NONE }, None);
        }
    }
}
