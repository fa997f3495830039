//! Requests of sockets: binding, listening, quotas, repeated requests.

use crate::app::App;
use crate::script::*;
use crate::streams::{plan, run_to_end};
use crate::world::{Conditions, World};
use eft_base::errno::*;
use eft_base::{DomainId, PortShare, RequestId, SocketId, WireAddress};
use eft_channel::socket::SocketPage;
use eft_component::Component;
use eft_component::transport::Event;
use eft_harness::{ARENA_POOL, DOMAIN};
use eft_messages::ComponentId;
use eft_messages::sockets::{BESIDE, SocketsToTransport, TransportToSockets, reuse};
use eft_messages::transport::{IpToTransport, TransportToIp};
use eft_transport::{In, Out};
use std::time::Duration;

/// Talks to side 0 of a world as sockets does, without the world's applications.
pub struct Direct {
    pub world: World,
    next: u32,
}

#[derive(Debug)]
pub struct Answer {
    pub errno: i32,
    pub socket: SocketId,
    pub incarnation: u32,
    port: u16,
}

impl Direct {
    pub fn new() -> Direct {
        let mut world = World::new(1, Conditions::default());
        let addresses = Event::Configure { key: "addresses".into(), value: b"10.0.0.1/24\n".to_vec() };
        world.at(0).event(addresses);
        Direct { world, next: 0 }
    }

    fn ask(&mut self, make: impl FnOnce(RequestId) -> SocketsToTransport) -> Answer {
        self.next += 1;
        self.ask_as(self.next, make)
    }

    pub fn ask_as(&mut self, index: u32, make: impl FnOnce(RequestId) -> SocketsToTransport) -> Answer {
        self.try_ask(index, make).expect("an answer")
    }

    pub fn try_ask(
        &mut self,
        index: u32,
        make: impl FnOnce(RequestId) -> SocketsToTransport,
    ) -> Option<Answer> {
        let request = RequestId { index, generation: 9 };
        let side = self.world.at(0);
        side.receive(ComponentId::SOCKETS, In::Sockets(make(request)));
        side.with(|tcp, cx, out| {
            tcp.flush(cx, out);
            tcp.commit(cx);
        });
        // There is a route to every destination.
        let items: Vec<Out> = side.host.out.drain().collect();
        let mut answer = pick(&items, request);
        for item in items {
            if let Out::Ip(TransportToIp::Route { request, .. }) = item {
                let routed = IpToTransport::Routed {
                    request,
                    errno: 0,
                    source: side.address,
                    mtu: 1500,
                    segment_max: 65000,
                    local: false,
                    mss: 0,
                    initial_segments: 0,
                };
                side.receive(ComponentId::IP, In::Ip(routed));
                side.with(|tcp, cx, _| tcp.commit(cx));
            }
        }
        let items: Vec<Out> = side.host.out.drain().collect();
        answer = answer.or(pick(&items, request));
        answer
    }

    pub fn incarnation(&self, socket: SocketId) -> u32 {
        self.world.sides[0].incarnation(socket)
    }

    fn open(&mut self) -> Answer {
        self.ask(|request| SocketsToTransport::Open { request, socket: SocketId { domain: DOMAIN, slot: 0 } })
    }

    pub fn bind(&mut self, socket: SocketId, address: [u8; 4], port: u16, reuse: u8) -> Answer {
        let (incarnation, address) = (self.incarnation(socket), v4(address));
        self.ask(|request| SocketsToTransport::Bind { request, socket, incarnation, address, port, reuse })
    }

    fn listen(&mut self, socket: SocketId) -> Answer {
        let incarnation = self.incarnation(socket);
        self.ask(|request| SocketsToTransport::Listen { request, socket, incarnation, backlog: 5 })
    }

    pub fn connect(&mut self, socket: SocketId, address: [u8; 4], port: u16) -> Answer {
        let (incarnation, address) = (self.incarnation(socket), v4(address));
        self.ask(|request| SocketsToTransport::Connect { request, socket, incarnation, address, port })
    }

    fn close(&mut self, socket: SocketId) -> Answer {
        let incarnation = self.incarnation(socket);
        self.ask(|request| SocketsToTransport::Close { request, socket, incarnation })
    }
}

fn pick(items: &[Out], wanted: RequestId) -> Option<Answer> {
    items.iter().find_map(|o| match o {
        Out::Sockets(TransportToSockets::Reply { request, errno, socket, incarnation, port, .. })
            if *request == wanted =>
        {
            Some(Answer { errno: *errno, socket: *socket, incarnation: *incarnation, port: *port })
        }
        _ => None,
    })
}

fn v4(address: [u8; 4]) -> WireAddress {
    std::net::IpAddr::from(address).into()
}

const ANY: [u8; 4] = [0; 4];
const OWN: [u8; 4] = [10, 0, 0, 1];

#[test]
fn addresses_in_use_and_not_ours() {
    let mut d = Direct::new();
    let (a, b, c) = (d.open().socket, d.open().socket, d.open().socket);
    assert_eq!(d.bind(a, [10, 9, 9, 9], 80, 0).errno, EADDRNOTAVAIL);
    let freely = d.open().socket;
    assert_eq!(d.bind(freely, [10, 9, 9, 9], 80, 8).errno, 0, "IP_FREEBIND");
    assert_eq!(d.bind(a, OWN, 80, 0).errno, 0);
    assert_eq!(d.bind(a, OWN, 80, 0).errno, 0, "asked again");
    assert_eq!(d.bind(a, OWN, 81, 0).errno, EINVAL);
    assert_eq!(d.bind(b, ANY, 80, 0).errno, EADDRINUSE);
    assert_eq!(d.bind(b, ANY, 80, 1).errno, EADDRINUSE, "only one of them reuses");
    assert_eq!(d.bind(b, ANY, 81, 1).errno, 0);
    assert_eq!(d.bind(c, OWN, 81, 1).errno, 0, "both reuse, nobody listens");
    assert_eq!(d.listen(b).errno, 0);
    assert_eq!(d.listen(c).errno, EADDRINUSE);
    let e = d.open().socket;
    assert_eq!(d.bind(e, OWN, 81, 1).errno, EADDRINUSE, "somebody listens");
}

#[test]
fn a_port_that_was_chosen_is_new() {
    let mut d = Direct::new();
    let (a, b, c) = (d.open().socket, d.open().socket, d.open().socket);
    assert_eq!(d.bind(a, OWN, 40_000, reuse::ADDRESS).errno, 0);
    assert_eq!(d.bind(b, ANY, 40_000, reuse::ADDRESS | reuse::NEW).errno, EADDRINUSE, "although both share");
    assert_eq!(d.bind(b, ANY, 40_001, reuse::ADDRESS | reuse::NEW).errno, 0);
    assert_eq!(d.bind(c, OWN, 40_001, reuse::ADDRESS).errno, 0, "it may be shared later");
}

#[test]
fn reuse_port_shares_a_listener_within_a_domain() {
    let mut d = Direct::new();
    let (a, b) = (d.open().socket, d.open().socket);
    for s in [a, b] {
        assert_eq!(d.bind(s, ANY, 80, 2).errno, 0);
        assert_eq!(d.listen(s).errno, 0);
    }
    let c = d.open().socket;
    assert_eq!(d.bind(c, ANY, 80, 1).errno, EADDRINUSE);
}

#[test]
fn port_zero_chooses_and_a_closed_socket_frees_its_port() {
    let mut d = Direct::new();
    let a = d.open().socket;
    let bound = d.bind(a, ANY, 0, 0);
    assert!(bound.port >= 32768);
    assert_eq!(d.bind(a, ANY, 0, 0).port, bound.port, "asked again");
    let b = d.open().socket;
    assert_eq!(d.bind(b, ANY, bound.port, 0).errno, EADDRINUSE);
    d.close(a);
    assert_eq!(d.bind(b, ANY, bound.port, 0).errno, 0);
}

#[test]
fn ephemeral_ports_differ_and_destinations_are_checked() {
    let mut d = Direct::new();
    let mut ports = std::collections::BTreeSet::new();
    for _ in 0..10 {
        let s = d.open().socket;
        let answer = d.connect(s, [10, 0, 0, 2], 80);
        assert_eq!(answer.errno, 0);
        ports.insert(answer.port);
        assert_eq!(d.connect(s, [10, 0, 0, 2], 80).errno, 0, "asked again");
        assert_eq!(d.connect(s, [10, 0, 0, 3], 80).errno, EALREADY);
    }
    assert_eq!(ports.len(), 10);
    let s = d.open().socket;
    assert_eq!(d.connect(s, [10, 0, 0, 255], 80).errno, ENETUNREACH);
    assert_eq!(d.connect(s, [224, 0, 0, 1], 80).errno, ENETUNREACH);
    assert_eq!(d.connect(s, [0, 0, 0, 0], 80).errno, EADDRNOTAVAIL);
    assert_eq!(d.connect(s, [10, 0, 0, 2], 0).errno, ECONNREFUSED);
}

#[test]
fn quotas_hold() {
    let mut d = Direct::new();
    let mut sockets = Vec::new();
    let refused = loop {
        let answer = d.open();
        if answer.errno != 0 {
            break answer.errno;
        }
        sockets.push(answer.socket);
    };
    assert_eq!((refused, sockets.len()), (EMFILE, 32));
    for (i, s) in sockets.iter().take(5).enumerate() {
        let errno = d.listen(*s).errno;
        assert_eq!(errno, if i < 4 { 0 } else { ENOBUFS });
    }
    for s in &sockets {
        assert_eq!(d.close(*s).errno, 0);
    }
    assert_eq!(d.open().errno, 0);
    assert_eq!(d.listen(SocketId { domain: DOMAIN, slot: 1 }).errno, EINVAL);
    assert_eq!(d.listen(SocketId { domain: DomainId(99), slot: 0 }).errno, EINVAL);
}

/// A listener's page as an earlier stack left it, with one record that was not taken.
fn left_behind(d: &Direct, slot: u32, taken: u64, end: u64) -> SocketPage {
    let page = d.world.sides[0].arena.socket(slot).unwrap();
    page.reset(ComponentId::TCP);
    page.set_receive_end(end);
    page.set_receive_taken(taken);
    page.set_inode(17);
    page
}

#[test]
fn a_socket_of_an_earlier_stack_gets_its_slot_again() {
    let mut d = Direct::new();
    let restore = |d: &mut Direct, slot, incarnation| {
        let socket = SocketId { domain: DOMAIN, slot };
        d.ask(|request| SocketsToTransport::Restore { request, socket, incarnation })
    };
    let page = left_behind(&d, 6, 64, 128);
    let incarnation = page.incarnation();
    assert_eq!(restore(&mut d, 6, incarnation + 1).errno, EINVAL, "another incarnation");
    assert_eq!(restore(&mut d, 7, 0).errno, EINVAL, "udp's slot");
    assert_eq!(restore(&mut d, 1 << 20, 0).errno, EINVAL, "no slot");
    let answer = restore(&mut d, 6, incarnation);
    assert_eq!((answer.errno, answer.socket.slot, answer.incarnation), (0, 6, incarnation));
    assert_eq!(restore(&mut d, 6, incarnation).errno, 0, "asked again");
    assert_eq!((page.inode(), page.receive_end(), page.receive_taken()), (17, 128, 64));
    // No other socket gets it, and it does what its program asks for, except what a listener cannot
    // do.
    assert!((0..8).all(|_| d.open().socket.slot != 6));
    assert_eq!(d.connect(answer.socket, [10, 0, 0, 2], 80).errno, EINVAL);
    assert_eq!(d.bind(answer.socket, ANY, 80, 0).errno, 0);
    assert_eq!(d.listen(answer.socket).errno, 0);
    assert_eq!(page.flags(), eft_channel::socket::flag::LISTENING);
    d.world.crash(0);
    assert_eq!(d.listen(answer.socket).errno, 0, "it survives what others survive");
    // A page may say anything.
    for (taken, end) in [(128, 64), (0, u64::MAX), (u64::MAX - 64, u64::MAX), (0, 1 << 30), (1, 65)] {
        let incarnation = left_behind(&d, 20, taken, end).incarnation();
        assert_eq!(restore(&mut d, 20, incarnation).errno, EINVAL, "{taken} {end}");
    }
}

#[test]
fn an_open_that_is_asked_again_after_a_rebirth_gives_the_same_socket() {
    let mut d = Direct::new();
    let open = |request| SocketsToTransport::Open { request, socket: SocketId { domain: DOMAIN, slot: 0 } };
    let first = d.ask_as(77, open).socket;
    d.world.crash(0);
    assert_eq!(d.ask_as(77, open).socket, first);
    // Only once: the next one with that number is another.
    assert_ne!(d.ask_as(77, open).socket, first);
    // A socket that was used since is not given out again, nor is one after a rebirth of sockets.
    let second = d.ask_as(78, open).socket;
    d.bind(second, ANY, 99, 0);
    let third = d.ask_as(79, open).socket;
    d.world.crash(0);
    assert_ne!(d.ask_as(78, open).socket, second);
    d.world.at(0).with(|tcp, cx, out| tcp.peer_reborn(cx, ComponentId::SOCKETS, out));
    assert_ne!(d.ask_as(79, open).socket, third);
}

#[test]
fn a_domain_is_closed_when_its_last_byte_is_sent() {
    let mut w = World::new(1, Conditions { delay_us: 1000, ..Conditions::default() });
    let bytes = 700_000;
    App::listen(&mut w, 1, PORT, 16, plan(0, bytes));
    App::connect(&mut w, 0, PORT, plan(bytes, 0));
    w.run_until(Duration::from_secs(10), |w| w.sides[0].app.streams[0].sent == bytes);
    let id = w.request(0, |request| SocketsToTransport::CloseDomain {
        request,
        socket: SocketId { domain: DOMAIN, slot: 0 },
        pool: ARENA_POOL,
    });
    assert!(w.sides[0].unanswered.contains_key(&id), "answered before the bytes were sent");
    let done = w.run_until(Duration::from_secs(10), |w| {
        w.sides[1].app.streams.first().is_some_and(|s| s.received == bytes)
    });
    assert!(done);
    for s in w.sides[1].app.streams.iter().map(|s| s.socket).collect::<Vec<_>>() {
        App::close(&mut w, 1, s);
    }
    let answered = w.run_until(Duration::from_secs(40), |w| !w.sides[0].unanswered.contains_key(&id));
    assert!(answered);
}

#[test]
fn a_domain_whose_peer_is_silent_is_closed_all_the_same() {
    let (mut s, _) = Script::connected(crate::app::Plan { send: 50_000, ..quiet_plan() });
    let id = s.world.request(1, |request| SocketsToTransport::CloseDomain {
        request,
        socket: SocketId { domain: DOMAIN, slot: 0 },
        pool: ARENA_POOL,
    });
    let answered = s.world.run_until(Duration::from_secs(60), |w| !w.sides[1].unanswered.contains_key(&id));
    assert!(answered);
    assert_eq!(s.counter("blocks"), 0);
}

#[test]
fn a_full_backlog_drops_connections_which_come_later() {
    let mut w = World::new(1, Conditions::default());
    App::listen(&mut w, 1, PORT, 2, plan(0, 100));
    w.sides[1].app.idle = true;
    for _ in 0..8 {
        App::connect(&mut w, 0, PORT, plan(100, 0));
    }
    w.run_for(Duration::from_secs(2));
    assert_eq!(w.sides[1].counter("accepted_connections"), 3, "a backlog of 2 lets 3 wait");
    let dropped = w.sides[1].counter("drop_syn_backlog") + w.sides[1].counter("drop_accept_queue");
    assert!(dropped > 0);
    w.sides[1].app.idle = false;
    App::accept(&mut w, 1);
    run_to_end(&mut w);
    assert_eq!(w.sides[1].app.accepted, 8);
    crate::streams::close_all(&mut w);
}

#[test]
fn a_domain_that_has_all_its_sockets_lets_newcomers_wait() {
    let mut w = World::new(1, Conditions::default());
    App::listen(&mut w, 1, PORT, 8, plan(0, 100));
    // The listener is one of the 32 sockets that a domain may have.
    for _ in 0..32 {
        App::connect(&mut w, 0, PORT, plan(100, 0));
        w.run_for(Duration::from_millis(100));
    }
    assert_eq!(w.sides[1].counter("accepted_connections"), 31);
    assert!(w.sides[1].counter("drop_no_slot") > 0);
    assert_eq!(w.sides[1].counter("blocks"), 32, "nobody waits with half of a connection");
    let one = w.sides[1].app.streams[0].socket;
    App::close(&mut w, 1, one);
    let one = w.sides[0].app.streams[0].socket;
    App::close(&mut w, 0, one);
    assert!(w.run_until(Duration::from_secs(60), |w| w.sides[1].counter("accepted_connections") == 32));
}

#[test]
fn a_closed_listener_resets_connections_that_were_not_taken() {
    let mut w = World::new(1, Conditions::default());
    App::listen(&mut w, 1, PORT, 8, plan(0, 100));
    w.sides[1].app.idle = true;
    for _ in 0..3 {
        App::connect(&mut w, 0, PORT, plan(0, 0));
    }
    w.run_for(Duration::from_secs(1));
    let listener = w.sides[1].app.listener.unwrap();
    App::close(&mut w, 1, listener);
    w.run_for(Duration::from_secs(1));
    assert!(w.sides[0].app.streams.iter().all(|s| s.error == ECONNRESET), "{:?}", w.sides[0].app.streams);
    assert_eq!(w.sides[1].counter("blocks"), 0);
}

#[test]
fn a_late_request_does_not_find_the_slots_next_socket() {
    let mut d = Direct::new();
    let old = d.open().socket;
    let incarnation = d.incarnation(old);
    d.bind(old, ANY, 80, 0);
    assert_eq!(d.listen(old).errno, 0);
    d.close(old);
    // A reborn engine gives out the lowest slots first: the next socket may have this one.
    d.world.crash(0);
    let new = d.open();
    assert_eq!(new.socket, old);
    assert_eq!(new.incarnation, d.incarnation(old));
    assert_ne!(new.incarnation, incarnation);
    let (address, port) = (v4(ANY), 81);
    let late: [&dyn Fn(RequestId) -> SocketsToTransport; 4] = [
        &|request| SocketsToTransport::Bind { request, socket: old, incarnation, address, port, reuse: 0 },
        &|request| SocketsToTransport::Listen { request, socket: old, incarnation, backlog: 1 },
        &|request| SocketsToTransport::Connect { request, socket: old, incarnation, address, port },
        &|request| SocketsToTransport::Attached { request, socket: old, incarnation },
    ];
    for make in late {
        assert_eq!(d.ask(make).errno, EINVAL);
    }
    // Whose end it was stands in the answer, so that an end that came damaged is not believed.
    let answer = d.ask(|request| SocketsToTransport::Close { request, socket: old, incarnation });
    assert_eq!((answer.errno, answer.incarnation), (0, incarnation));
    assert_eq!(d.bind(new.socket, ANY, 82, 0).port, 82, "the new socket is untouched");
}

#[test]
fn a_late_end_of_a_domain_spares_the_next_domain_of_that_number() {
    let mut d = Direct::new();
    let socket = d.open().socket;
    let pool = eft_base::PoolId(ARENA_POOL.0 + 1);
    let end = |pool| move |request| SocketsToTransport::CloseDomain { request, socket, pool };
    assert_eq!(d.ask(end(pool)).errno, 0);
    assert_eq!(d.bind(socket, ANY, 80, 0).errno, 0);
    assert_eq!(d.ask(end(ARENA_POOL)).errno, 0);
    assert_eq!(d.bind(socket, ANY, 80, 0).errno, EINVAL);
}

/// Side 1 takes a connection from its accept queue, and its worker dies before it attaches it.
pub fn take_and_forget(w: &mut World) -> (SocketId, u32) {
    let listener = w.sides[1].app.listener.expect("a listener");
    let page = w.sides[1].page(listener);
    let taken = page.receive_taken();
    let mut record = eft_channel::socket::AcceptRecord::default();
    page.read_receive(taken, zerocopy::IntoBytes::as_mut_bytes(&mut record));
    page.set_receive_taken(taken + size_of_val(&record) as u64);
    (SocketId { domain: DOMAIN, slot: record.slot }, record.incarnation)
}

/// A world with `clients` connections that lie in side 1's accept queue.
pub fn world_with_queue(clients: usize) -> World {
    let mut w = World::new(1, Conditions::default());
    App::listen(&mut w, 1, PORT, 8, plan(100, 100));
    w.sides[1].app.idle = true;
    for _ in 0..clients {
        App::connect(&mut w, 0, PORT, plan(100, 100));
    }
    w.run_for(Duration::from_secs(1));
    assert_eq!(w.sides[1].counter("accepted_connections"), clients as u64);
    w
}

#[test]
fn a_connection_that_was_taken_and_forgotten_is_reset_and_no_other() {
    let mut w = world_with_queue(3);
    let (socket, incarnation) = take_and_forget(&mut w);
    w.run_for(Duration::from_secs(8));
    assert_eq!(w.sides[1].counter("abandoned_connections"), 0, "too early");
    w.run_for(Duration::from_secs(120));
    assert_eq!(w.sides[1].counter("abandoned_connections"), 1);
    let lost = w.sides[0].app.streams.iter().filter(|s| s.hung_up).count();
    assert_eq!(lost, 1, "its peer is told, and nobody else");
    // A worker that was only stopped attaches late.
    let attached = |request| SocketsToTransport::Attached { request, socket, incarnation };
    w.request(1, attached);
    assert_eq!(w.sides[1].app.failures, [EINVAL]);
    // Connections that were not taken wait without limit.
    w.sides[1].app.idle = false;
    App::accept(&mut w, 1);
    let done = w.run_until(Duration::from_secs(10), |w| {
        w.sides[1].app.streams.len() == 2 && w.sides[1].app.all_done()
    });
    assert!(done, "{:?}", w.sides[1].app.streams);
}

#[test]
fn a_connection_that_was_taken_and_forgotten_is_reset_after_a_rebirth_too() {
    // Before and after a check has seen that it was taken.
    for seconds in [1, 12] {
        let mut w = world_with_queue(2);
        take_and_forget(&mut w);
        w.run_for(Duration::from_secs(seconds));
        w.crash(1);
        w.run_for(Duration::from_secs(60));
        assert_eq!(w.sides[1].counter("abandoned_connections"), 1, "{seconds}");
        assert_eq!(w.sides[1].counter("quarantined_blocks"), 0);
        w.sides[1].app.idle = false;
        App::accept(&mut w, 1);
        let done = w.run_until(Duration::from_secs(10), |w| {
            w.sides[1].app.streams.len() == 1 && w.sides[1].app.all_done()
        });
        assert!(done, "{seconds}: {:?}", w.sides[1].app.streams);
    }
}

#[test]
fn a_slow_worker_keeps_its_connection() {
    let mut w = world_with_queue(1);
    let (socket, incarnation) = take_and_forget(&mut w);
    w.run_for(Duration::from_secs(9));
    w.request(1, |request| SocketsToTransport::Attached { request, socket, incarnation });
    w.run_for(Duration::from_secs(120));
    assert_eq!(w.sides[1].counter("abandoned_connections"), 0);
    assert!(w.sides[1].app.failures.is_empty());
    assert!(!w.sides[0].app.streams[0].hung_up);
}

#[test]
fn a_connection_that_its_peer_reset_before_the_attach_leaves_no_block() {
    let mut w = world_with_queue(1);
    take_and_forget(&mut w);
    let used = w.sides[1].counter("blocks");
    let client = w.sides[0].app.streams[0].socket;
    w.sides[0].page(client).set_option(eft_channel::socket::Opt::Linger, 1);
    App::close(&mut w, 0, client);
    w.run_for(Duration::from_secs(60));
    assert_eq!(w.sides[1].counter("blocks"), used - 1);
}

#[test]
fn an_instance_takes_only_ports_of_its_own() {
    let names = b"tcp\ntcp1\ntcp2\n";
    let share = PortShare::among(ComponentId::TCP, names);
    let mut d = Direct::new();
    d.world.at(0).event(Event::Configure { key: PortShare::KEY.into(), value: names.to_vec() });
    for _ in 0..10 {
        let (bound, connected) = (d.open().socket, d.open().socket);
        assert!(share.has(d.bind(bound, ANY, 0, 0).port));
        assert!(share.has(d.connect(connected, [10, 0, 0, 2], 80).port));
    }
    let theirs = (2000..).find(|port| !share.has(*port)).unwrap();
    let s = d.open().socket;
    assert_eq!(d.bind(s, ANY, theirs, 0).errno, EADDRNOTAVAIL);
    let ours = (2000..).find(|port| share.has(*port)).unwrap();
    assert_eq!(d.bind(s, ANY, ours, 0).errno, 0);
}

/// A stack's first of three instances, and the ports and connections that are its own.
fn one_of_three() -> (Direct, PortShare) {
    let names = b"tcp\ntcp1\ntcp2\n";
    let mut d = Direct::new();
    d.world.at(0).event(Event::Configure { key: PortShare::KEY.into(), value: names.to_vec() });
    (d, PortShare::among(ComponentId::TCP, names))
}

#[test]
fn an_instance_listens_on_anothers_port_only_beside_its_listener() {
    let (mut d, share) = one_of_three();
    let theirs = (2000..).find(|port| !share.has(*port)).unwrap();
    let (program, beside) = (d.open().socket, d.open().socket);
    for s in [program, beside] {
        assert_eq!(d.bind(s, ANY, theirs, reuse::ELSEWHERE).errno, 0, "the port's owner decides who may");
    }
    assert_eq!(d.listen(program).errno, EINVAL);
    let (socket, incarnation) = (beside, d.incarnation(beside));
    let listened =
        d.ask(|request| SocketsToTransport::Listen { request, socket, incarnation, backlog: 5 | BESIDE });
    assert_eq!((listened.errno, listened.port), (0, theirs));
    let high = (40000..).find(|port| !share.has(*port)).unwrap();
    let s = d.open().socket;
    assert_eq!(d.bind(s, ANY, high, reuse::ELSEWHERE).errno, EADDRNOTAVAIL, "it has one owner");
}

#[test]
fn a_connection_from_a_bound_port_is_made_by_its_owner() {
    let (mut d, share) = one_of_three();
    let ours = (2000..).find(|port| share.has(*port)).unwrap();
    let to = |port| (v4([10, 0, 0, 2]), port);
    let [own, other] = [true, false]
        .map(|is_own| (1..).find(|port| share.has_connection(ours, to(*port)) == is_own).unwrap());
    let s = d.open().socket;
    assert_eq!(d.bind(s, ANY, ours, 0).errno, 0);
    assert_eq!(d.connect(s, [10, 0, 0, 2], other).errno, EXDEV);
    assert_eq!(d.connect(s, [10, 0, 0, 2], own).errno, 0);
}
