mod doubt;
mod ends;
mod repeating;
mod spread;

use super::*;
use eft_base::errno::*;
use eft_base::{DomainId, Instant, Random, RequestId, SocketId, WireAddress};
use eft_channel::socket::{Arena, Geometry, LAYOUT_OLDEST, LAYOUT_VERSION};
use eft_channel::status::Status;
use eft_channel::{Memory, Segment};
use eft_component::sockets::{ConnectionId, Effect, Event, Handle};
use eft_component::{Component, Context, Outbox};
use eft_messages::control::{Request, op};
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};
use eft_messages::{ComponentId, Role};

const DOMAIN: DomainId = DomainId(1);
/// The incarnation of every socket that the transport opens.
const INCARNATION: u32 = 41;

/// Most requests of applications at a time.
const REQUESTS: usize = 100;

struct Bench {
    engine: Sockets,
    arena: Arena,
    random: Random,
    memory: Memory,
    status: Status,
    now: Instant,
    out: Outbox<Out>,
}

impl Bench {
    fn new() -> Bench {
        let mut bench = Bench::alone();
        for transport in [ComponentId::TCP, ComponentId::UDP] {
            let (e, mut cx, out) = bench.cx();
            e.peer_reborn(&mut cx, transport, out);
        }
        bench
    }

    /// No transport is there yet.
    fn alone() -> Bench {
        let geometry = Geometry { slots: 8, send_len: 4096, receive_len: 4096 };
        let arena = Arena::new(Segment::heap(geometry.arena_len()), geometry).unwrap();
        let config =
            SocketsConfig { listeners_per_domain: 1, requests: REQUESTS, ..SocketsConfig::default() };
        let mut bench = Bench {
            engine: Sockets::new(config),
            arena: arena.clone(),
            random: Random::new(1),
            memory: Memory::new(),
            status: Status::heap(),
            now: Instant::ZERO,
            out: Outbox::with_room(&[ComponentId::TCP, ComponentId::UDP], 64),
        };
        bench.event(Event::DomainOpened { domain: DOMAIN, pool: eft_base::PoolId(9), arena });
        bench
    }

    fn cx(&mut self) -> (&mut Sockets, Context<'_>, &mut Outbox<Out>) {
        let cx =
            Context { now: self.now, random: &mut self.random, memory: &self.memory, status: &self.status };
        (&mut self.engine, cx, &mut self.out)
    }

    fn event(&mut self, event: Event) -> Vec<Out> {
        let (e, mut cx, out) = self.cx();
        e.event(&mut cx, event, out);
        self.out.drain().collect()
    }

    fn request(&mut self, request: Request, handle: u64) -> Vec<Out> {
        self.request_as(DOMAIN, false, request, handle)
    }

    fn request_as(&mut self, domain: DomainId, privileged: bool, request: Request, handle: u64) -> Vec<Out> {
        self.request_in(LAYOUT_VERSION, domain, privileged, request, handle)
    }

    fn request_in(
        &mut self,
        version: u32,
        domain: DomainId,
        privileged: bool,
        request: Request,
        handle: u64,
    ) -> Vec<Out> {
        let request = Request { version, sequence: 5, ..request };
        let (connection, handle) = (ConnectionId(1), Handle(handle));
        self.event(Event::Request { connection, domain, privileged, request, handle })
    }

    fn answer(&mut self, from: ComponentId, request: RequestId, errno: i32, slot: u32) -> Vec<Out> {
        let socket = SocketId { domain: DOMAIN, slot };
        let (incarnation, address) = (INCARNATION, WireAddress::default());
        let m = TransportToSockets::Reply { request, errno, socket, incarnation, address, port: 0, taken: 0 };
        self.hear(from, m)
    }

    fn hear(&mut self, from: ComponentId, m: TransportToSockets) -> Vec<Out> {
        let m = Sockets::decode(from, &m.encode()).unwrap();
        let (e, mut cx, out) = self.cx();
        e.receive(&mut cx, from, m, out);
        self.out.drain().collect()
    }

    /// A transport makes a new socket in this slot.
    fn make(&mut self, transport: ComponentId, slot: u32) {
        self.arena.socket(slot).unwrap().reset_as(transport, INCARNATION);
    }

    fn open(&mut self, slot: u32) {
        let out =
            self.request(Request { op: op::OPEN, args: [1, 0, 0, 0], value: 77, ..Request::default() }, 3);
        let [Out::Transport(ComponentId::TCP, SocketsToTransport::Open { request, .. })] = out[..] else {
            panic!("{out:?}")
        };
        self.make(ComponentId::TCP, slot);
        let out = self.answer(ComponentId::TCP, request, 0, slot);
        assert!(matches!(out[0], Out::Effect(Effect::Keep { handle: Handle(3), .. })));
    }
}

fn errno_of(out: &[Out]) -> i32 {
    match out.last() {
        Some(Out::Effect(Effect::Reply { reply, .. })) => reply.errno,
        other => panic!("no reply but {other:?}"),
    }
}

#[test]
fn a_request_is_answered_when_the_transport_answers() {
    let mut b = Bench::new();
    b.open(2);
    let out = b.request(Request { op: op::CONNECT, slot: 2, port: 80, ..Request::default() }, 0);
    let [Out::Transport(ComponentId::TCP, SocketsToTransport::Connect { request, port: 80, .. })] = out[..]
    else {
        panic!("{out:?}")
    };
    let out = b.answer(ComponentId::TCP, request, ENETUNREACH, 2);
    assert_eq!(errno_of(&out), ENETUNREACH);
    assert!(b.answer(ComponentId::TCP, request, 0, 2).is_empty(), "a second answer is stale");
}

#[test]
fn outstanding_requests_are_resubmitted_to_a_reborn_transport() {
    let mut b = Bench::new();
    b.open(2);
    let out = b.request(Request { op: op::CONNECT, slot: 2, port: 80, ..Request::default() }, 0);
    let (e, mut cx, o) = b.cx();
    e.peer_reborn(&mut cx, ComponentId::TCP, o);
    let again: Vec<Out> = b.out.drain().collect();
    assert_eq!(out, again);
    let (e, mut cx, o) = b.cx();
    e.peer_reborn(&mut cx, ComponentId::UDP, o);
    assert!(b.out.is_empty());
}

#[test]
fn a_transport_that_was_dead_from_the_begin_gets_its_requests_when_it_is_back() {
    let mut b = Bench::alone();
    let key = eft_base::PortShare::KEY.to_string();
    b.event(Event::Configure { key, value: b"tcp\nudp\n".to_vec() });
    let open = Request { op: op::OPEN, args: [1, 0, 0, 0], ..Request::default() };
    let out = b.request(open, 4);
    assert!(matches!(out[..], [Out::Transport(ComponentId::TCP, _)]), "{out:?}");
    let (e, mut cx, o) = b.cx();
    e.peer_reborn(&mut cx, ComponentId::TCP, o);
    assert_eq!(b.out.drain().collect::<Vec<_>>(), out);
}

#[test]
fn bad_requests_get_one_clear_errno() {
    let mut b = Bench::new();
    b.open(2);
    let r = Request { op: op::BIND, slot: 2, port: 80, ..Request::default() };
    assert_eq!(errno_of(&b.request(r, 0)), EACCES);
    assert!(matches!(b.request_as(DOMAIN, true, r, 0)[..], [Out::Transport(..)]));
    assert_eq!(
        errno_of(&b.request(Request { op: op::BIND, slot: 4, port: 8080, ..r }, 0)),
        EINVAL,
        "not open"
    );
    assert_eq!(errno_of(&b.request(Request { op: op::BIND, slot: 99, ..r }, 0)), EINVAL);
    assert_eq!(errno_of(&b.request(Request { op: 999, slot: 2, ..r }, 0)), EINVAL);
    assert_eq!(errno_of(&b.request_as(DomainId(7), true, r, 0)), EPERM);
    let out = b.request(Request { op: op::OPEN, args: [9, 0, 0, 0], ..Request::default() }, 4);
    assert_eq!(out[0], Out::Effect(Effect::Discard(Handle(4))), "the descriptor is not leaked");
    assert_eq!(errno_of(&out), EINVAL);
    assert_eq!(
        errno_of(&b.request(Request { op: op::OPEN, args: [1, 0, 0, 0], ..Request::default() }, 0)),
        EINVAL
    );
}

#[test]
fn listeners_are_limited_and_given_back() {
    let mut b = Bench::new();
    b.open(2);
    b.open(4);
    let listen = |slot| Request { op: op::LISTEN, slot, args: [5, 0, 0, 0], ..Request::default() };
    let out = b.request(listen(2), 0);
    let [Out::Transport(_, SocketsToTransport::Listen { request, .. })] = out[..] else { panic!("{out:?}") };
    assert_eq!(errno_of(&b.answer(ComponentId::TCP, request, 0, 2)), 0);
    assert_eq!(errno_of(&b.request(listen(4), 0)), ENOBUFS);
    let out = b.event(Event::Closed(SocketId { domain: DOMAIN, slot: 2 }));
    assert!(matches!(
        out[..],
        [Out::Transport(_, SocketsToTransport::Close { .. }), Out::Effect(Effect::Leave(_))]
    ));
    assert!(matches!(b.request(listen(4), 0)[..], [Out::Transport(..)]));
}

#[test]
fn a_dead_domain_closes_everything_once() {
    let mut b = Bench::new();
    b.open(2);
    b.open(4);
    let out = b.event(Event::DomainClosed(DOMAIN));
    let closes =
        out.iter().filter(|o| matches!(o, Out::Transport(_, SocketsToTransport::Close { .. }))).count();
    assert_eq!(closes, 2);
    let domains =
        out.iter().filter(|o| matches!(o, Out::Transport(_, SocketsToTransport::CloseDomain { .. })));
    assert_eq!(domains.count(), 2);
    assert!(b.event(Event::Closed(SocketId { domain: DOMAIN, slot: 2 })).is_empty());
}

#[test]
fn hostile_requests_never_panic() {
    let mut b = Bench::new();
    let mut random = Random::new(42);
    for _ in 0..20_000 {
        let r = Request {
            op: random.below(10) as u32,
            slot: random.below(12) as u32,
            port: random.next_u32() as u16,
            value: random.next_u64(),
            args: [random.below(4) as u32, random.next_u32(), 0, 0],
            ..Request::default()
        };
        b.request(r, random.below(3));
    }
}

#[test]
fn a_close_names_the_incarnation_that_was_open() {
    let mut b = Bench::new();
    b.open(2);
    let out = b.event(Event::Closed(SocketId { domain: DOMAIN, slot: 2 }));
    let [Out::Transport(_, SocketsToTransport::Close { incarnation, .. }), _] = out[..] else {
        panic!("{out:?}")
    };
    assert_eq!(incarnation, INCARNATION);
    // A survivor has the incarnation in its page.
    let socket = SocketId { domain: DOMAIN, slot: 4 };
    b.arena.socket(4).unwrap().reset(ComponentId::TCP);
    b.arena.socket(4).unwrap().set_inode(77);
    b.event(Event::Survivor { socket, transport: ComponentId::TCP });
    let out = b.event(Event::Closed(socket));
    let [Out::Transport(_, SocketsToTransport::Close { incarnation, .. }), _] = out[..] else {
        panic!("{out:?}")
    };
    assert_eq!(incarnation, 1);
}

#[test]
fn a_predecessors_listeners_count_before_their_pages_were_read() {
    let mut b = Bench::new();
    let listen = |slot| Request { op: op::LISTEN, slot, args: [1, 0, 0, 0], ..Request::default() };
    let page = b.arena.socket(4).unwrap();
    page.reset(ComponentId::TCP);
    page.set_inode(77);
    page.set_flags(eft_channel::socket::flag::LISTENING);
    let socket = SocketId { domain: DOMAIN, slot: 4 };
    b.event(Event::Survivor { socket, transport: ComponentId::TCP });
    b.open(2);
    assert_eq!(errno_of(&b.request(listen(2), 0)), ENOBUFS, "there may be one");
    let out = b.request(listen(4), 0);
    let [Out::Transport(_, SocketsToTransport::Listen { incarnation: 1, .. })] = out[..] else {
        panic!("it listens already: {out:?}")
    };
}

#[test]
fn a_shadow_is_added_and_given_to_the_domain_that_has_the_socket() {
    let mut b = Bench::new();
    let shadow = Request { op: op::SHADOW, slot: 3, ..Request::default() };
    assert_eq!(errno_of(&b.request(shadow, 0)), EINVAL, "no such socket");
    let out = b.request(Request { op: op::OPEN, args: [2, 0, 0, 0], ..Request::default() }, 3);
    let [Out::Transport(ComponentId::UDP, SocketsToTransport::Open { request, .. })] = out[..] else {
        panic!("{out:?}")
    };
    b.make(ComponentId::UDP, 3);
    b.answer(ComponentId::UDP, request, 0, 3);
    for handle in [4, 0] {
        let out = b.request(shadow, handle);
        let [Out::Effect(Effect::Shadow { socket, handle: h, reply, .. })] = out[..] else {
            panic!("{out:?}")
        };
        assert_eq!((socket.slot, h, reply.sequence, reply.errno), (3, Handle(handle), 5, 0));
    }
    assert_eq!(errno_of(&b.request_as(DomainId(2), false, shadow, 0)), EPERM);
    // A listener brings its own with LISTEN; its domain's processes may ask for it.
    b.open(2);
    let out = b.request(Request { slot: 2, ..shadow }, 4);
    assert_eq!(out[0], Out::Effect(Effect::Discard(Handle(4))));
    assert_eq!(errno_of(&out), EOPNOTSUPP);
    let out = b.request(Request { slot: 2, ..shadow }, 0);
    assert!(matches!(out[..], [Out::Effect(Effect::Shadow { .. })]), "{out:?}");
    // A listener's second one is added, once it listens.
    let second = Request { slot: 2, args: [1, 0, 0, 0], ..shadow };
    assert_eq!(errno_of(&b.request(second, 4)), EOPNOTSUPP);
    let out = b.request(Request { op: op::LISTEN, slot: 2, args: [1, 0, 0, 0], ..Request::default() }, 0);
    let [Out::Transport(_, SocketsToTransport::Listen { request, .. })] = out[..] else { panic!("{out:?}") };
    b.answer(ComponentId::TCP, request, 0, 2);
    let out = b.request(second, 4);
    let [Out::Effect(Effect::Shadow { second: true, handle: Handle(4), .. })] = out[..] else {
        panic!("{out:?}")
    };
}

#[test]
fn the_owner_of_a_stream_is_handed_to_its_transport() {
    let mut b = Bench::new();
    b.open(2);
    let owner = Request { op: op::OWNER, slot: 2, ..Request::default() };
    assert_eq!(errno_of(&b.request(owner, 0)), EINVAL, "nothing was passed");
    assert_eq!(errno_of(&b.request(Request { slot: 3, ..owner }, 4)), EINVAL, "no such socket");
    let out = b.request(owner, 4);
    let [
        Out::Effect(Effect::Owner { transport: ComponentId::TCP, handle: Handle(4), .. }),
        Out::Effect(Effect::Reply { .. }),
    ] = out[..]
    else {
        panic!("{out:?}")
    };
}

/// An application says that it took the connection in slot 4; returns the number of the attach.
fn accepted(b: &mut Bench, incarnation: u32) -> RequestId {
    b.arena.socket(4).unwrap().reset(ComponentId::TCP);
    let r = Request { op: op::ACCEPTED, slot: 4, args: [incarnation, 0, 0, 0], ..Request::default() };
    let out = b.request(r, 9);
    let [Out::Effect(Effect::Keep { .. }), Out::Transport(_, SocketsToTransport::Attached { request, .. })] =
        out[..]
    else {
        panic!("{out:?}")
    };
    request
}

#[test]
fn a_connection_that_is_gone_before_it_is_attached_hangs_up() {
    let mut b = Bench::new();
    let socket = SocketId { domain: DOMAIN, slot: 4 };
    let request = accepted(&mut b, 7);
    b.answer(ComponentId::TCP, request, EINVAL, 4);
    let out = b.answer(ComponentId::TCP, request, EINVAL, 4);
    let [Out::Transport(_, close @ SocketsToTransport::Close { incarnation: 7, .. }), _] = out[..] else {
        panic!("{out:?}")
    };
    assert!(b.event(Event::Closed(socket)).is_empty(), "there is nothing to close");
    let (incarnation, address) = (7, WireAddress::default());
    let closed = TransportToSockets::Reply {
        request: close.asks().0,
        errno: 0,
        socket,
        incarnation,
        address,
        port: 0,
        taken: 0,
    };
    assert_eq!(b.hear(ComponentId::TCP, closed), [Out::Effect(Effect::Drop(socket))]);
    // Unless the slot has its next socket by then.
    let request = accepted(&mut b, 8);
    b.event(Event::Closed(socket));
    b.open(4);
    assert!(b.answer(ComponentId::TCP, request, EINVAL, 4).is_empty());
    assert_eq!(b.event(Event::Closed(socket)).len(), 2);
}

#[test]
fn a_socket_opened_for_a_domain_that_ended_is_not_kept() {
    let mut b = Bench::new();
    let out = b.request(Request { op: op::OPEN, args: [1, 0, 0, 0], ..Request::default() }, 3);
    let [Out::Transport(ComponentId::TCP, SocketsToTransport::Open { request, .. })] = out[..] else {
        panic!("{out:?}")
    };
    b.event(Event::DomainClosed(DOMAIN));
    let out = b.answer(ComponentId::TCP, request, 0, 2);
    assert_eq!(out[0], Out::Effect(Effect::Discard(Handle(3))));
    assert!(b.event(Event::Closed(SocketId { domain: DOMAIN, slot: 2 })).is_empty());
}

#[test]
fn a_custodian_is_told_what_to_repeat() {
    let mut b = Bench::new();
    b.open(2);
    let mut noted = |request: Request, errno| {
        let slot = request.slot;
        let out = b.request(request, 0);
        let [Out::Transport(transport, message)] = out[..] else { panic!("{out:?}") };
        let (SocketsToTransport::Bind { request, .. }
        | SocketsToTransport::Listen { request, .. }
        | SocketsToTransport::Connect { request, .. }) = message
        else {
            panic!("{message:?}")
        };
        let out = b.answer(transport, request, errno, slot);
        out.into_iter().find_map(|o| match o {
            Out::Effect(Effect::Note { note, .. }) => Some((note.value as u32, note.args, note.sequence)),
            _ => None,
        })
    };
    let bind = Request { op: op::BIND, slot: 2, port: 8000, args: [3, 0, 0, 0], ..Request::default() };
    assert_eq!(noted(bind, EADDRINUSE), None);
    assert_eq!(noted(bind, 0), Some((op::BIND, [3, 0, 0, INCARNATION], 0)));
    let listen = Request { op: op::LISTEN, slot: 2, args: [9, 0, 0, 0], ..Request::default() };
    assert_eq!(noted(listen, 0), Some((op::LISTEN, [9, 0, 0, INCARNATION], 0)));
    let connect = Request { op: op::CONNECT, slot: 2, port: 80, ..Request::default() };
    assert_eq!(noted(connect, 0), None, "a connection ends with its stack");
}

#[test]
fn a_socket_of_an_earlier_stack_is_restored_with_its_far_end() {
    let mut b = Bench::new();
    let restore =
        Request { op: op::RESTORE, slot: 3, value: 99, args: [INCARNATION, 0, 0, 0], ..Request::default() };
    assert_eq!(errno_of(&b.request(restore, 0)), EINVAL, "no far end");
    assert_eq!(errno_of(&b.request(Request { slot: 1000, ..restore }, 4)), EINVAL, "no such slot");
    assert_eq!(errno_of(&b.request(restore, 4)), EINVAL, "a slot that was never used");
    b.arena.socket(3).unwrap().reset(ComponentId::new(Role::Tcp, 1));
    assert_eq!(errno_of(&b.request(restore, 4)), EPROTONOSUPPORT, "there is no second tcp");
    b.arena.socket(3).unwrap().reset(ComponentId::UDP);
    let out = b.request(restore, 5);
    let [Out::Transport(ComponentId::UDP, SocketsToTransport::Restore { request, incarnation, .. })] =
        out[..]
    else {
        panic!("{out:?}")
    };
    assert_eq!(incarnation, INCARNATION);
    let out = b.answer(ComponentId::UDP, request, 0, 3);
    assert!(matches!(out[0], Out::Effect(Effect::Keep { handle: Handle(5), .. })), "{out:?}");
    assert_eq!(b.arena.socket(3).unwrap().inode(), 99);
    // From now on it is a socket like any other.
    let connect = Request { op: op::CONNECT, slot: 3, port: 80, ..Request::default() };
    let [Out::Transport(_, SocketsToTransport::Connect { incarnation, .. })] = b.request(connect, 0)[..]
    else {
        panic!("not passed on")
    };
    assert_eq!(incarnation, INCARNATION);
}

#[test]
fn requests_are_limited_and_closes_are_not() {
    let mut b = Bench::new();
    b.open(2);
    b.open(4);
    let connect = Request { op: op::CONNECT, slot: 2, port: 80, ..Request::default() };
    for _ in 0..REQUESTS {
        assert!(matches!(b.request(connect, 0)[..], [Out::Transport(..)]));
    }
    assert_eq!(errno_of(&b.request(connect, 0)), ENOBUFS);
    let closes = b.event(Event::DomainClosed(DOMAIN));
    let sent = closes.iter().filter(|o| matches!(o, Out::Transport(..))).count();
    assert_eq!(sent, 4, "two sockets, and the domain at two transports");
}

#[test]
fn only_programs_of_this_release_and_of_the_previous_one_are_served() {
    let open = Request { op: op::OPEN, args: [1, 0, 0, 0], value: 77, ..Request::default() };
    for version in LAYOUT_OLDEST..=LAYOUT_VERSION {
        let out = Bench::new().request_in(version, DOMAIN, false, open, 3);
        assert!(
            matches!(out[..], [Out::Transport(ComponentId::TCP, SocketsToTransport::Open { .. })]),
            "{version}: {out:?}"
        );
    }
    for version in [0, LAYOUT_OLDEST - 1, LAYOUT_VERSION + 1, u32::MAX] {
        let out = Bench::new().request_in(version, DOMAIN, false, open, 3);
        assert_eq!(errno_of(&out), EPROTONOSUPPORT, "{version}");
    }
}
