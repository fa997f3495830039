//! Requests of applications, forwarded to the transports, answered when they answer.

mod answers;
mod beside;
mod configuration;
mod doubt;
mod ends;
mod repeat;
mod spread;
mod survivors;

use crate::counters::{COUNTERS, Counter};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use beside::Beside;
use eft_base::errno::*;
use eft_base::{DomainId, Instant, PoolId, SocketId, WireAddress};
use eft_channel::requests::Requests;
use eft_channel::rounds::Rounds;
use eft_channel::socket::{self, Arena, LAYOUT_VERSION};
use eft_component::sockets::{ConnectionId, Effect, Event, Handle};
use eft_component::{Component, Context, Outbox, Output};
use eft_messages::control::{MembershipRequest, Reply, Request, op};
use eft_messages::sockets::{BESIDE, SocketsToTransport, TransportToSockets, reuse};
use eft_messages::{ComponentId, Encoded, Role};
use spread::Spread;
use survivors::Open;

/// Limits and identity.
#[derive(Clone, Copy, Debug)]
pub struct SocketsConfig {
    /// Listeners of one domain.
    pub listeners_per_domain: usize,
    /// Most requests of applications under way at a time, of all domains. Closes do not count.
    pub requests: usize,
    /// Grows with every rebirth; applications see it and resubmit.
    pub generation: u32,
}

impl Default for SocketsConfig {
    fn default() -> Self {
        SocketsConfig { listeners_per_domain: 256, requests: 65536, generation: 1 }
    }
}

/// A message from a transport.
pub struct In(TransportToSockets);

/// What leaves the engine.
#[derive(Clone, Debug, PartialEq)]
pub enum Out {
    Transport(ComponentId, SocketsToTransport),
    Effect(Effect),
}

impl Output for Out {
    type Effect = Effect;

    fn peer(&self) -> Option<ComponentId> {
        match self {
            Out::Transport(peer, _) => Some(*peer),
            Out::Effect(_) => None,
        }
    }

    fn encode(&self) -> Encoded {
        match self {
            Out::Transport(_, m) => m.encode(),
            Out::Effect(_) => Encoded::default(),
        }
    }

    fn into_effect(self) -> Option<Effect> {
        match self {
            Out::Effect(e) => Some(e),
            Out::Transport(..) => None,
        }
    }
}

/// What is done with a transport's answer.
#[derive(Clone, Copy)]
enum Waiting {
    /// It goes to an application; `handle` came with the request. `reuse`: of a listener.
    Application { connection: ConnectionId, sequence: u64, op: u32, inode: u64, handle: Handle, reuse: u8 },
    /// It is a step to a listener beside an application's.
    Beside(Beside),
    /// The transport has closed the socket: this incarnation's descriptor is forgotten.
    Close(u32),
    /// If the attach of this incarnation failed, it is closed and its descriptor hung up.
    Attach(u32),
    /// It is one of the transports' answers about the end of a domain.
    DomainEnd(DomainId),
}

struct Pending {
    transport: ComponentId,
    waiting: Waiting,
    /// Kept for resubmission when the transport is reborn.
    message: SocketsToTransport,
    /// It was asked once more, since its answer was doubtful.
    doubted: bool,
}

struct Domain {
    arena: Arena,
    pool: PoolId,
    listeners: BTreeSet<u32>,
}

/// The engine.
pub struct Sockets {
    config: SocketsConfig,
    domains: BTreeMap<DomainId, Domain>,
    pending: Requests<Pending>,
    rounds: Rounds,
    /// Sockets with a descriptor in an application.
    open: BTreeMap<(DomainId, u32), Open>,
    /// Those among them whose descriptor is closed, of which their transport is to be told.
    unclosed: BTreeSet<SocketId>,
    /// The incarnations that transports were told to close and whose far ends others still keep.
    closing: BTreeMap<SocketId, u32>,
    /// A predecessor's sockets whose pages are still to be read.
    unexamined: VecDeque<SocketId>,
    /// The transports that this stack has.
    transports: BTreeSet<ComponentId>,
    spread: Spread,
    info: Vec<u8>,
    /// Where the routes begin in it.
    info_routes: usize,
    /// The records of the stack's routes.
    routes: Vec<u8>,
    /// What the stack does not do, [`eft_messages::control::restriction`].
    restrictions: u32,
}

impl Sockets {
    pub fn new(config: SocketsConfig) -> Sockets {
        let mut sockets = Sockets {
            // Bounded by `requests` and by the number of open sockets.
            pending: Requests::new(usize::MAX, config.generation),
            rounds: Rounds::default(),
            config,
            domains: BTreeMap::new(),
            open: BTreeMap::new(),
            unclosed: BTreeSet::new(),
            closing: BTreeMap::new(),
            unexamined: VecDeque::new(),
            transports: BTreeSet::new(),
            spread: Spread::default(),
            info: Vec::new(),
            info_routes: 0,
            routes: Vec::new(),
            restrictions: 0,
        };
        sockets.set_info(&[], WireAddress::default());
        sockets
    }

    fn reply(out: &mut Outbox<Out>, connection: ConnectionId, sequence: u64, errno: i32) {
        let reply = Reply { version: LAYOUT_VERSION, errno, sequence, ..Reply::default() };
        out.push(Out::Effect(Effect::Reply { connection, reply }));
    }

    fn request(
        &mut self,
        cx: &mut Context,
        connection: ConnectionId,
        domain: DomainId,
        privileged: bool,
        request: Request,
        handle: Handle,
        out: &mut Outbox<Out>,
    ) {
        cx.count(Counter::Requests);
        let verdict = self.forward(cx, connection, domain, privileged, &request, handle, out);
        if let Err(errno) = verdict {
            cx.count(Counter::Refused);
            if handle != Handle::default() {
                out.push(Out::Effect(Effect::Discard(handle)));
            }
            if request.op != op::ACCEPTED {
                Self::reply(out, connection, request.sequence, errno);
            }
        }
    }

    /// Checks a request and passes it on; the reply comes with the transport's.
    fn forward(
        &mut self,
        cx: &mut Context,
        connection: ConnectionId,
        domain: DomainId,
        privileged: bool,
        r: &Request,
        handle: Handle,
        out: &mut Outbox<Out>,
    ) -> Result<(), i32> {
        if !socket::speaks(r.version) {
            return Err(EPROTONOSUPPORT);
        }
        if self.pending.len() >= self.config.requests {
            return Err(ENOBUFS);
        }
        let socket = SocketId { domain, slot: r.slot };
        match r.op {
            op::LISTEN => self.examine_domain(domain, out),
            _ => self.examine(socket, out),
        }
        let Some(state) = self.domains.get(&domain) else {
            return Err(EPERM);
        };
        let (transport, incarnation) = match r.op {
            op::OPEN => match r.args[0] {
                1 if r.args[1] != 0 => (self.transport_for_connection(r)?, 0),
                1 => (self.transport_for(Role::Tcp, r.port)?, 0),
                2 => (self.transport_for(Role::Udp, r.port)?, 0),
                _ => return Err(EINVAL),
            },
            // An unaccepted connection and a restored socket have no descriptor yet; all others must
            // have one. A program that writes another owner into a page only makes its own socket
            // unreachable.
            op::ACCEPTED | op::RESTORE => {
                let page = state.arena.socket(r.slot).ok_or(EINVAL)?;
                (page.owner().ok_or(EINVAL)?, r.args[0])
            }
            _ => match self.open.get(&(domain, r.slot)) {
                Some(open) => (open.transport, open.incarnation.unwrap_or_default()),
                None => {
                    cx.count(Counter::ForeignSlotRefused);
                    return Err(EINVAL);
                }
            },
        };
        if !self.transports.contains(&transport) {
            return Err(EPROTONOSUPPORT);
        }
        if r.op == op::MEMBERSHIP && transport.role != Role::Udp {
            return Err(EOPNOTSUPP);
        }
        if matches!(r.op, op::BIND) && r.port != 0 && r.port < 1024 && !privileged {
            cx.count(Counter::PrivilegedPortRefused);
            return Err(EACCES);
        }
        if r.op == op::BIND {
            self.spread.check_bind(transport, r.port, r.args[0] as u8)?;
        }
        if r.op == op::LISTEN {
            self.check_listen(transport, socket).inspect_err(|errno| {
                if *errno == ENOBUFS {
                    cx.count(Counter::OverQuota)
                }
            })?;
        }
        if matches!(r.op, op::OPEN | op::ACCEPTED | op::RESTORE | op::OWNER) && handle == Handle::default() {
            return Err(EINVAL);
        }
        if r.op == op::OWNER {
            return answers::owner(connection, transport, socket, r, handle, out);
        }
        if r.op == op::SHADOW {
            return self.shadow(connection, transport, socket, r, handle, out);
        }
        let waiting = if r.op == op::ACCEPTED {
            self.accepted(transport, socket, r, handle, out);
            Waiting::Attach(incarnation)
        } else {
            let reuse = r.args[1] as u8;
            Waiting::Application { connection, sequence: r.sequence, op: r.op, inode: r.value, handle, reuse }
        };
        let (address, port) = (r.address, r.port);
        let args = r.args;
        match r.op {
            op::OPEN => self.submit(
                transport,
                waiting,
                |request| SocketsToTransport::Open { request, socket: SocketId { domain, slot: 0 } },
                out,
            ),
            op::RESTORE => self.submit(
                transport,
                waiting,
                |request| SocketsToTransport::Restore { request, socket, incarnation },
                out,
            ),
            op::BIND => self.submit(
                transport,
                waiting,
                |request| SocketsToTransport::Bind {
                    request,
                    socket,
                    incarnation,
                    address,
                    port,
                    reuse: args[0] as u8 & reuse::ALL,
                },
                out,
            ),
            op::LISTEN => self.submit(
                transport,
                waiting,
                |request| SocketsToTransport::Listen {
                    request,
                    socket,
                    incarnation,
                    backlog: args[0] & !BESIDE,
                },
                out,
            ),
            op::CONNECT => self.submit(
                transport,
                waiting,
                |request| SocketsToTransport::Connect { request, socket, incarnation, address, port },
                out,
            ),
            op::ACCEPTED => self.submit(
                transport,
                waiting,
                |request| SocketsToTransport::Attached { request, socket, incarnation },
                out,
            ),
            op::MEMBERSHIP => {
                let MembershipRequest { change, interface, source } = MembershipRequest::of(r);
                let (token, group) = (r.sequence as u16, address);
                let build = |request| SocketsToTransport::Membership {
                    request,
                    socket,
                    incarnation,
                    token,
                    change,
                    interface,
                    group,
                    source,
                };
                self.submit(transport, waiting, build, out)
            }
            _ => return Err(EINVAL),
        }
        Ok(())
    }
}

impl Component for Sockets {
    type In = In;
    type Out = Out;
    type Event = Event;
    type Effect = Effect;

    const COUNTERS: &'static [&'static str] = COUNTERS;

    fn decode(peer: ComponentId, line: &Encoded) -> Option<In> {
        peer.role.is_transport().then(|| TransportToSockets::decode(line).map(In)).flatten()
    }

    fn receive(&mut self, cx: &mut Context, from: ComponentId, In(message): In, out: &mut Outbox<Out>) {
        self.answer(cx, from, message, out);
    }

    fn event(&mut self, cx: &mut Context, event: Event, out: &mut Outbox<Out>) {
        match event {
            Event::Request { connection, domain, privileged, request, handle } => {
                self.request(cx, connection, domain, privileged, request, handle, out);
            }
            Event::DomainOpened { domain, arena, pool } => {
                let _ = arena.write_info(&self.info);
                self.domains.insert(domain, Domain { arena, pool, listeners: BTreeSet::new() });
                cx.gauge(Counter::Domains, self.domains.len() as u64);
            }
            Event::DomainClosed(domain) => self.domain_closed(cx, domain, out),
            Event::Closed(socket) => self.closed(cx, socket, out),
            Event::Released(socket) => self.released(cx, socket, out),
            Event::Survivor { socket, transport } => self.survived(socket, transport),
            Event::Configure { key, value } => self.configure(&key, &value),
        }
    }

    fn check(&self) {
        assert!(self.open.is_empty() || !self.domains.is_empty(), "{} sockets of no domain", self.open.len());
    }

    fn expire(&mut self, cx: &mut Context, out: &mut Outbox<Out>) {
        self.repeat_requests(cx, out);
    }

    fn flush(&mut self, cx: &mut Context, out: &mut Outbox<Out>) {
        self.examine_some(out);
        self.close_the_rest(cx, out);
        self.rounds.arm(cx.now, !self.pending.is_empty());
    }

    fn deadline(&self) -> Option<Instant> {
        self.rounds.deadline()
    }

    fn peer_reborn(&mut self, cx: &mut Context, peer: ComponentId, out: &mut Outbox<Out>) {
        self.transports.insert(peer);
        self.resubmit(peer, out);
        self.close_the_rest(cx, out);
    }
}
