use super::*;
use eft_base::ComponentId;
use eft_base::DomainId;
use eft_channel::Segment;
use eft_channel::socket::Geometry;
use rustix::event::{PollFd, PollFlags, poll};

const SOCKET: SocketId = SocketId { domain: DomainId(1), slot: 0 };

/// A connected stream in an arena, and both ends of its descriptor.
struct Scene {
    arena: Arena,
    near: OwnedFd,
    far: OwnedFd,
}

impl Scene {
    fn new() -> Scene {
        let geometry = Geometry { slots: 4, send_len: 1 << 16, receive_len: 1 << 16 };
        let arena = Arena::new(Segment::heap(geometry.arena_len()), geometry).unwrap();
        let (near, far) = crate::scm::pair().unwrap();
        rustix::net::sockopt::set_socket_send_buffer_size(&near, 1).unwrap();
        let page = arena.socket(SOCKET.slot).unwrap();
        page.reset(ComponentId::TCP);
        page.set_flags(flag::CONNECTED);
        Scene { arena, near, far }
    }

    fn page(&self) -> SocketPage {
        self.arena.socket(SOCKET.slot).unwrap()
    }

    /// Sets the plug, as the shim does when it finds no room.
    fn plug(&self) {
        if !self.page().write_plug().is_set() {
            rustix::net::send(&self.near, &[0; PLUG_LEN], SendFlags::DONTWAIT).unwrap();
            self.page().write_plug().set();
        }
    }

    /// A server that takes up the descriptor.
    fn server(&self) -> FarEnds {
        let mut far = FarEnds::default();
        far.insert(SOCKET, self.far.try_clone().unwrap(), &self.arena);
        far.take_up(1, |_| {});
        far
    }

    fn is(&self, what: PollFlags) -> bool {
        let mut near = [PollFd::new(&self.near, what)];
        poll(&mut near, Some(&rustix::time::Timespec::default())).unwrap();
        near[0].revents().contains(what)
    }
}

/// Whether `what` becomes true within ten seconds.
fn comes_true(mut what: impl FnMut() -> bool) -> bool {
    (0..10_000).any(|_| {
        let is_true = what();
        if !is_true {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        is_true
    })
}

#[test]
fn the_last_close_is_told_from_hanging_up() {
    let what_lies_there: [fn(&Scene); 3] = [
        |_| (),
        Scene::plug,
        |scene| {
            scene.page().set_receive_end(5);
        },
    ];
    for prepare in what_lies_there {
        for is_over in [false, true] {
            let mut scene = Scene::new();
            let mut server = scene.server();
            prepare(&scene);
            server.readable(SOCKET);
            assert!(!is_closed(&scene.far));
            if is_over {
                server.hang_up(SOCKET);
                let all = PollFlags::IN | PollFlags::OUT | PollFlags::RDHUP | PollFlags::HUP;
                assert!(scene.is(all), "a connection that is over does not show it");
                // A successor that does the same again changes nothing.
                scene.server().hang_up(SOCKET);
                server.readable(SOCKET);
            }
            let held = scene.near.try_clone().unwrap();
            let near = std::mem::replace(&mut scene.near, crate::scm::pair().unwrap().0);
            drop(near);
            assert!(!is_closed(&scene.far), "a duplicate is open");
            drop(held);
            // A child process that another test starts holds a duplicate until it executes its program.
            assert!(comes_true(|| is_closed(&scene.far)), "the last close is not seen (over: {is_over})");
        }
    }
}

#[test]
fn half_an_end_is_no_hang_up() {
    let scene = Scene::new();
    let mut server = scene.server();
    server.end_of_stream(SOCKET);
    assert!(scene.is(PollFlags::IN | PollFlags::RDHUP) && !scene.is(PollFlags::HUP));
    assert!(!is_closed(&scene.far));
    server.hang_up(SOCKET);
    assert!(scene.is(PollFlags::HUP) && !is_closed(&scene.far));
}

#[test]
fn a_token_for_which_there_is_no_memory_is_sent_later() {
    let scene = Scene::new();
    let mut server = scene.server();
    assert!(scene.page().read_token().post_anyway());
    server.send(SOCKET, |_| false);
    assert!(server.owes() && !scene.is(PollFlags::IN));
    server.settle();
    assert!(!server.owes() && scene.is(PollFlags::IN));
    let mut failures = 3;
    let sent = scm::insist(|| {
        failures -= 1;
        if failures > 0 { Err(Errno::NOMEM) } else { Ok(()) }
    });
    assert_eq!(sent, Ok(()));
    assert_eq!(scm::insist(|| Err::<(), _>(Errno::NOBUFS)), Err(Errno::NOBUFS));
}

#[test]
fn a_death_at_any_step_leaves_no_plug_behind() {
    for steps in 0..=3 {
        let scene = Scene::new();
        let server = scene.server();
        scene.plug();
        assert!(!scene.is(PollFlags::OUT), "the plug does not stop the descriptor");
        // The first steps of `writable`, up to the death.
        let page = scene.page();
        if steps >= 1 {
            assert!(page.write_plug().take());
        }
        if steps >= 2 {
            rustix::net::recv(&scene.far, &mut [0u8; PLUG_LEN], RecvFlags::DONTWAIT).unwrap();
        }
        if steps >= 3 {
            page.write_plug().taken();
        }
        drop(server);
        let mut successor = scene.server();
        successor.writable(SOCKET);
        assert!(scene.is(PollFlags::OUT), "the writer hangs after a death at step {steps}");
        assert!(!page.write_plug().is_set());
        // The next plug works as before.
        scene.plug();
        assert!(!scene.is(PollFlags::OUT));
        successor.writable(SOCKET);
        assert!(scene.is(PollFlags::OUT));
    }
}

#[test]
fn a_writer_that_fills_the_ring_while_its_plug_is_taken_has_another() {
    // The program's wake comes with the message, so the program may run before the server records that the plug is out.
    let scene = Scene::new();
    let mut server = scene.server();
    scene.plug();
    let page = scene.page();
    assert!(page.write_plug().take());
    rustix::net::recv(&scene.far, &mut [0u8; PLUG_LEN], RecvFlags::DONTWAIT).unwrap();
    scene.plug();
    page.write_plug().taken();
    assert!(!scene.is(PollFlags::OUT), "an edge-triggered program waits for ever");
    server.writable(SOCKET);
    assert!(scene.is(PollFlags::OUT));
}

#[test]
fn a_death_at_any_step_loses_no_token() {
    for steps in 0..=2 {
        let scene = Scene::new();
        drop(scene.server());
        let page = scene.page();
        page.set_receive_end(5);
        if steps >= 1 {
            assert!(page.read_token().post(5));
        }
        if steps >= 2 {
            assert!(send_token(&scene.far));
        }
        let _successor = scene.server();
        assert!(scene.is(PollFlags::IN), "the reader hangs after a death at step {steps}");
        rustix::net::recv(&scene.near, &mut [0u8; 1], RecvFlags::DONTWAIT).unwrap();
        assert!(!scene.is(PollFlags::IN), "readable twice for one piece of news (step {steps})");
    }
}

#[test]
fn who_was_refused_before_the_far_end_came_is_woken() {
    let refuse: [fn(&SocketPage); 2] = [|page| page.set_error(111), |page| page.set_errors_end(1)];
    for refuse in refuse {
        let scene = Scene::new();
        scene.page().reset(ComponentId::UDP);
        refuse(&scene.page());
        let _server = scene.server();
        assert!(scene.is(PollFlags::IN), "a program that waits hangs");
        assert!(scene.page().read_token().is_posted());
    }
}

#[test]
fn far_ends_are_taken_up_a_few_at_a_time_or_when_there_is_something_to_tell() {
    let scene = Scene::new();
    let mut far = FarEnds::default();
    // The supervisor has the far ends, too.
    let (mut nears, mut ends) = (Vec::new(), Vec::new());
    for slot in 0..4 {
        let page = scene.arena.socket(slot).unwrap();
        page.reset(ComponentId::TCP);
        page.set_flags(flag::CONNECTED);
        page.set_receive_end(1);
        let (near, end) = crate::scm::pair().unwrap();
        far.insert(SocketId { domain: DomainId(1), slot }, end.try_clone().unwrap(), &scene.arena);
        nears.push(near);
        ends.push(end);
    }
    let readable = |slot: usize| {
        let mut near = [PollFd::new(&nears[slot], PollFlags::IN)];
        poll(&mut near, Some(&rustix::time::Timespec::default())).unwrap() == 1
    };
    assert!((0..4).all(|slot| !readable(slot)), "nobody was told yet");
    let taken = |far: &mut FarEnds| {
        let mut taken = Vec::new();
        far.take_up(2, |socket| taken.push(socket.slot));
        taken
    };
    assert_eq!(taken(&mut far), [0, 1]);
    assert!(readable(0) && readable(1) && !readable(2) && !readable(3));
    far.readable(SocketId { domain: DomainId(1), slot: 3 });
    assert!(!readable(2) && readable(3), "what happens to a socket is told at once");
    far.remove(SocketId { domain: DomainId(1), slot: 2 });
    assert!(far.has_new());
    assert_eq!(taken(&mut far), [2, 3]);
    assert!(!far.has_new() && !readable(2), "one that was closed meanwhile is told nothing");
}

#[test]
fn a_far_end_that_is_missed_is_asked_for_each_second() {
    let scene = Scene::new();
    let mut far = FarEnds::default();
    far.add_domain(SOCKET.domain, &scene.arena);
    let second = |n: u64| move || Instant(n * 1_000_000_000);
    // One that no program has, or that has no descriptor, lacks none.
    far.readable(SOCKET);
    assert_eq!(far.lacking(second(1)), []);
    scene.page().hold(7);
    far.readable(SOCKET);
    assert_eq!(
        (far.lacking(second(1)), far.lacking(second(3)), far.lacking_deadline()),
        (vec![], vec![], None)
    );
    scene.page().end_hold(1);
    far.writable(SOCKET);
    assert_eq!(far.lacking(second(4)), []);
    assert_eq!(far.lacking_deadline(), Some(second(5)()));
    assert_eq!(far.lacking(second(5)), [SOCKET]);
    assert_eq!(far.lacking(second(5)), []);
    assert_eq!(far.lacking(second(6)), [SOCKET]);
    // It is here, and told what there was to tell.
    far.insert(SOCKET, scene.far.try_clone().unwrap(), &scene.arena);
    far.take_up(1, |_| {});
    assert_eq!((far.lacking(second(9)), far.lacking_deadline()), (vec![], None));
    // The next socket of the slot has not missed it.
    far.remove(SOCKET);
    far.readable(SOCKET);
    scene.page().reset(ComponentId::TCP);
    assert_eq!((far.lacking(second(10)), far.lacking_deadline()), (vec![], None));
}

/// A program that writes into its pages gets no more of a server's time by it.
#[test]
fn few_are_missed_at_a_time() {
    let geometry = Geometry { slots: 200, send_len: 4096, receive_len: 4096 };
    let arena = Arena::new(Segment::heap(geometry.arena_len()), geometry).unwrap();
    let mut far = FarEnds::default();
    far.add_domain(SOCKET.domain, &arena);
    for slot in 0..200 {
        let page = arena.socket(slot).unwrap();
        page.reset(ComponentId::TCP);
        page.set_inode(1);
        far.readable(SocketId { slot, ..SOCKET });
    }
    far.lacking(|| Instant(1));
    assert_eq!(far.lacking(|| Instant(2_000_000_000)).len(), 64);
}

#[test]
fn only_a_socket_for_messages_is_a_far_end() {
    let scene = Scene::new();
    assert!(is_far_end(&scene.far));
    let stream = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(!is_far_end(&stream.into()) && !is_far_end(&std::fs::File::open("/dev/null").unwrap().into()));
}

/// A program waits for the kernel's word of several descriptors, whose far ends come only after input has come.
#[test]
fn tokens_are_posted_in_the_order_of_input_that_came_before_the_far_ends() {
    let scene = Scene::new();
    let mut server = FarEnds::default();
    server.add_domain(SOCKET.domain, &scene.arena);
    let set = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC).unwrap();
    let mut ends = Vec::new();
    for slot in 0..4 {
        let page = scene.arena.socket(slot).unwrap();
        page.reset(ComponentId::TCP);
        page.set_flags(flag::CONNECTED);
        let (near, far) = crate::scm::pair().unwrap();
        let data = rustix::event::epoll::EventData::new_u64(slot.into());
        rustix::event::epoll::add(&set, &near, data, rustix::event::epoll::EventFlags::IN).unwrap();
        ends.push((near, far));
    }
    for slot in [2, 0, 3] {
        scene.arena.socket(slot).unwrap().set_receive_end(1);
        server.readable(SocketId { slot, ..SOCKET });
    }
    for (slot, (_, far)) in ends.iter().enumerate() {
        server.insert(SocketId { slot: slot as u32, ..SOCKET }, far.try_clone().unwrap(), &scene.arena);
    }
    let mut taken = Vec::new();
    server.take_up(8, |socket| taken.push(socket.slot));
    assert_eq!(taken, [2, 0, 3, 1]);
    let mut told = Vec::with_capacity(8);
    let none = rustix::time::Timespec::default();
    rustix::event::epoll::wait(&set, rustix::buffer::spare_capacity(&mut told), Some(&none)).unwrap();
    assert_eq!(told.iter().map(|event| event.data.u64()).collect::<Vec<_>>(), [2, 0, 3]);
}
