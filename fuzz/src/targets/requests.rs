//! Requests of hostile applications, and answers of mad transports, into sockets.

use super::Target;
use crate::source::Source;
use eft_base::errno::ENOBUFS;
use eft_base::{DomainId, PoolId, RequestId, SocketId, WireAddress};
use eft_channel::socket::{Arena, Geometry, LAYOUT_VERSION};
use eft_channel::{Memory, Segment};
use eft_component::sockets::{ConnectionId, Effect, Event, Handle};
use eft_harness::Host;
use eft_messages::ComponentId;
use eft_messages::control::{Request, op};
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};
use eft_sockets::{Out, Sockets, SocketsConfig};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const DOMAINS: [DomainId; 2] = [DomainId(1), DomainId(2)];
/// More than sockets takes to repeat what was not answered, and how often that may have to be so until all is.
const ROUND: Duration = Duration::from_secs(2);
const ROUNDS: usize = 3;

fn open_domain(domain: DomainId) -> Event {
    let geometry = Geometry { slots: 12, send_len: 4096, receive_len: 4096 };
    let arena = Arena::new(Segment::heap(geometry.arena_len()), geometry).expect("geometry is valid");
    Event::DomainOpened { domain, pool: PoolId(20 + domain.0), arena }
}

/// sockets with two domains.
pub fn host(source: &mut Source) -> Host<Sockets> {
    let config = SocketsConfig { listeners_per_domain: 3, requests: 40, generation: 1 };
    let peers = [ComponentId::TCP, ComponentId::UDP];
    let mut host = Host::new(Sockets::new(config), Memory::new(), &peers, source.generator());
    for domain in DOMAINS {
        host.event(open_domain(domain));
    }
    host
}

pub struct Requests {
    host: Host<Sockets>,
    sequence: u64,
    /// Requests of applications without a reply.
    waiting: BTreeSet<u64>,
    /// Requests to transports without an answer.
    asked: BTreeMap<RequestId, (ComponentId, SocketsToTransport)>,
}

impl Requests {
    pub fn new(source: &mut Source) -> Requests {
        Requests { host: host(source), sequence: 0, waiting: BTreeSet::new(), asked: BTreeMap::new() }
    }

    fn check(&mut self) {
        for m in self.host.take() {
            match m {
                Out::Effect(Effect::Reply { reply, .. } | Effect::Shadow { reply, .. }) => {
                    assert!(self.waiting.remove(&reply.sequence), "{reply:?} came twice");
                }
                Out::Effect(_) => {}
                Out::Transport(peer, m) => {
                    self.asked.insert(request_of(&m), (peer, m));
                }
            }
        }
    }

    fn request(&mut self, source: &mut Source) {
        self.sequence += 1;
        let request = Request {
            version: if source.chance(0.98) { LAYOUT_VERSION } else { source.next_u32() },
            op: match source.below(13) {
                0 => source.below(11) as u32,
                1..5 => op::OPEN,
                5..7 => op::BIND,
                7 => op::LISTEN,
                8..10 => op::CONNECT,
                10 => op::RESTORE,
                _ => op::ACCEPTED,
            },
            sequence: self.sequence,
            slot: if source.chance(0.95) { source.below(12) as u32 } else { source.next_u32() },
            port: source.next_u32() as u16,
            address: WireAddress(core::array::from_fn(|_| source.byte())),
            value: source.next_u64(),
            args: [
                [1, 2, 1, source.next_u32()][source.below(4) as usize],
                source.next_u32(),
                0,
                source.next_u32(),
            ],
            ..Request::default()
        };
        if request.op != op::ACCEPTED {
            self.waiting.insert(self.sequence);
        }
        self.host.event(Event::Request {
            connection: ConnectionId(source.below(3)),
            domain: if source.chance(0.95) { DOMAINS[source.below(2) as usize] } else { DomainId(9) },
            privileged: source.chance(0.5),
            request,
            handle: Handle(source.below(4)),
        });
        self.check();
    }

    /// Answers a request as a transport does that has no room for new sockets.
    fn answer_well(&mut self) {
        let Some((request, (peer, asked))) = self.asked.pop_first() else { return };
        let errno = if matches!(asked, SocketsToTransport::Open { .. }) { ENOBUFS } else { 0 };
        self.reply(peer, request, errno, socket_of(&asked));
    }

    fn reply(&mut self, peer: ComponentId, request: RequestId, errno: i32, socket: SocketId) {
        let address = WireAddress::default();
        let m =
            TransportToSockets::Reply { request, errno, socket, incarnation: 1, address, port: 9, taken: 0 };
        self.host.line(peer, &m.encode());
        self.check();
    }

    fn answer(&mut self, source: &mut Source) {
        let Some((request, (peer, asked))) = self.asked.pop_first() else { return };
        let mut socket = socket_of(&asked);
        if source.chance(0.5) {
            socket.slot = source.below(12) as u32;
        }
        if source.chance(0.1) {
            socket = SocketId { domain: DomainId(source.below(4) as u16), slot: source.next_u32() };
        }
        let errno = if source.chance(0.8) { 0 } else { source.next_u32() as i32 };
        for _ in 0..1 + source.below(2) {
            self.reply(peer, request, errno, socket);
        }
    }
}

fn request_of(m: &SocketsToTransport) -> RequestId {
    use SocketsToTransport::*;
    match *m {
        Open { request, .. }
        | Bind { request, .. }
        | Listen { request, .. }
        | Connect { request, .. }
        | Close { request, .. }
        | Attached { request, .. }
        | Restore { request, .. }
        | Membership { request, .. }
        | CloseDomain { request, .. } => request,
    }
}

fn socket_of(m: &SocketsToTransport) -> SocketId {
    use SocketsToTransport::*;
    match *m {
        Open { socket, .. }
        | Bind { socket, .. }
        | Listen { socket, .. }
        | Connect { socket, .. }
        | Close { socket, .. }
        | Attached { socket, .. }
        | Restore { socket, .. }
        | Membership { socket, .. }
        | CloseDomain { socket, .. } => socket,
    }
}

impl Target for Requests {
    fn feed(&mut self, source: &mut Source) {
        self.request(source);
        while self.asked.len() > source.below(30) as usize {
            self.answer(source);
        }
        let domain = DOMAINS[source.below(2) as usize];
        let socket = SocketId { domain, slot: source.below(14) as u32 };
        match source.below(100) {
            0 => self.host.event(Event::DomainClosed(domain)),
            1..4 => self.host.event(open_domain(domain)),
            4 => self.host.event(Event::Survivor { socket, transport: ComponentId::TCP }),
            5 => self.host.reborn(ComponentId::TCP),
            6..20 => self.host.event(Event::Closed(socket)),
            20 => {
                let value = (0..source.below(200)).map(|_| source.byte()).collect();
                self.host.event(Event::Configure { key: "info".into(), value });
            }
            _ => {}
        }
        self.check();
    }

    /// Every request gets exactly one reply once the transports have answered: an answer that cannot be right is none, and the
    /// request comes again.
    fn finish(&mut self, source: &mut Source) {
        while !self.asked.is_empty() {
            self.answer(source);
        }
        for _ in 0..ROUNDS {
            self.host.pass(ROUND);
            self.check();
            while !self.asked.is_empty() {
                self.answer_well();
            }
        }
        assert!(self.waiting.is_empty(), "no reply to {:?}", self.waiting);
    }
}
