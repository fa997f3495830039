use super::*;
use crate::descriptors::FarEnds;
use eft_base::ComponentId;
use eft_channel::Segment;
use eft_channel::lookers::{LOOKERS_MAX, Looker};
use eft_channel::sleepers::Left;
use eft_channel::socket::{Arena, Geometry, flag};
use rustix::event::{PollFd, PollFlags, poll};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

const SLOTS: u32 = 4;

/// Streams of one domain, and both ends of their descriptors.
struct Scene {
    arena: Arena,
    near: Vec<OwnedFd>,
    far: FarEnds,
}

impl Scene {
    fn new() -> Scene {
        let geometry = Geometry { slots: SLOTS as usize, send_len: 4096, receive_len: 4096 };
        let arena = Arena::new(Segment::heap(geometry.arena_len()), geometry).unwrap();
        let mut scene = Scene { arena, near: Vec::new(), far: FarEnds::default() };
        for slot in 0..SLOTS {
            scene.page(slot).reset(ComponentId::TCP);
            let (near, far) = crate::scm::pair().unwrap();
            scene.near.push(near);
            scene.far.insert(socket(slot), far, &scene.arena);
        }
        scene.far.take_up(SLOTS as usize, |_| {});
        scene
    }

    fn page(&self, slot: u32) -> SocketPage {
        self.arena.socket(slot).unwrap()
    }

    fn announce(&self, slot: u32, pid: u32) -> u32 {
        self.page(slot).sleepers().announce_reader(Tag::of_process(pid)).0
    }

    /// These sockets belong to a set whose program looks at marks.
    fn look(&self, slots: &[u32]) -> &Looker {
        let looker = self.arena.looker(5).unwrap();
        assert!(looker.claim(7));
        slots.iter().for_each(|slot| self.page(*slot).set_looker(Some(5)));
        looker
    }

    /// Input arrives.
    fn fill(&mut self, slot: u32, end: u64) {
        self.page(slot).set_receive_end(end);
        self.far.readable(socket(slot));
    }

    fn has_token(&self, slot: u32) -> bool {
        let mut near = [PollFd::new(&self.near[slot as usize], PollFlags::IN)];
        poll(&mut near, Some(&rustix::time::Timespec::default())).unwrap() > 0
    }
}

fn socket(slot: u32) -> SocketId {
    SocketId { domain: DomainId(1), slot }
}

fn at(ms: u64) -> Instant {
    Instant(ms * 1_000_000)
}

#[test]
fn who_sleeps_is_woken_without_a_token() {
    let mut scene = Scene::new();
    scene.fill(0, 5);
    assert!(scene.has_token(0), "nobody sleeps there");
    let word = scene.announce(1, 7);
    scene.fill(1, 5);
    assert_eq!(
        scene.page(1).sleepers().word().load(Ordering::SeqCst),
        word,
        "woken before the turn has ended"
    );
    assert_eq!(scene.far.wake_readers(|| at(1)), Some(at(3)));
    assert!(!scene.has_token(1));
    assert_eq!(scene.page(1).sleepers().leave(), Left::Woken);
    // The next input finds nobody.
    scene.fill(1, 6);
    assert!(scene.has_token(1));
}

#[test]
fn the_threads_of_a_process_wake_each_other() {
    let mut scene = Scene::new();
    for (slot, pid) in [(0, 7), (1, 7), (2, 8), (3, 7)] {
        scene.announce(slot, pid);
    }
    // One of them does not sleep any more: the one before it wakes the one behind.
    for slot in 0..SLOTS {
        scene.fill(slot, 1);
    }
    assert_eq!(scene.page(1).sleepers().leave(), Left::ByItself);
    let calls = scene.far.calls;
    scene.far.wake_readers(|| at(0));
    assert_eq!(scene.far.calls - calls, 2, "one for each process");
    let left: Vec<Left> = (0..SLOTS).map(|slot| scene.page(slot).sleepers().leave()).collect();
    assert_eq!(left, [Left::WokenBefore(3), Left::Woken, Left::Woken, Left::Woken]);
}

#[test]
fn input_that_nobody_takes_gets_its_token_after_a_moment() {
    let mut scene = Scene::new();
    for slot in [0, 1, 2] {
        scene.announce(slot, 7);
        scene.fill(slot, 5);
    }
    scene.far.wake_readers(|| at(1));
    // One takes all, one a part, one nothing; the last of them sleeps again.
    scene.page(0).set_receive_taken(5);
    scene.page(1).set_receive_taken(4);
    assert_eq!(scene.far.wake_readers(|| at(2)), Some(at(3)));
    scene.far.check_handed(|| at(2));
    assert!(!(0..3).any(|slot| scene.has_token(slot)), "too early");
    scene.far.check_handed(|| at(3));
    assert_eq!([0, 1, 2].map(|slot| scene.has_token(slot)), [false, true, true]);
    assert_eq!(scene.far.wake_readers(|| at(4)), None, "a server without such input need not look again");
}

#[test]
fn a_token_that_is_asked_for_comes_at_once() {
    let mut scene = Scene::new();
    scene.announce(0, 7);
    scene.fill(0, 5);
    scene.far.wake_readers(|| at(1));
    assert_eq!(scene.page(0).sleepers().want_token(), Left::Woken);
    assert!(scene.arena.sleepers(0).unwrap().take_wanted() && scene.arena.sleepers(SLOTS).is_none());
    scene.far.readable(socket(0));
    assert!(scene.has_token(0));
}

/// A server dies at each step of a hand-over; its successor knows nothing of it.
#[test]
fn a_successor_wakes_or_posts() {
    for steps in 0..=2 {
        let mut scene = Scene::new();
        scene.announce(0, 7);
        scene.page(0).set_receive_end(5);
        if steps >= 1 {
            scene.far.readable(socket(0));
        }
        if steps >= 2 {
            let reader = scene.page(0).sleepers().reader().unwrap();
            assert!(scene.page(0).sleepers().hand(reader, Some(3)));
        }
        let (near, far) = crate::scm::pair().unwrap();
        scene.near[0] = near;
        scene.far = FarEnds::default();
        scene.far.insert(socket(0), far, &scene.arena);
        scene.far.take_up(1, |_| {});
        scene.far.wake_readers(|| at(1));
        let woken = scene.page(0).sleepers().reader().is_none();
        assert!(woken && scene.has_token(0) == (steps == 2), "after {steps} steps");
        scene.far.check_handed(|| at(9));
        assert!(scene.has_token(0));
    }
}

#[test]
fn a_program_that_looks_is_told_by_marks_and_woken_by_one_token() {
    let mut scene = Scene::new();
    scene.look(&[0, 1, 2]);
    scene.fill(0, 5);
    scene.fill(3, 5);
    assert_eq!([0, 3].map(|slot| scene.has_token(slot)), [false, true]);
    let marks = |scene: &Scene| {
        let mut marks = Vec::new();
        scene.arena.looker(5).unwrap().take(|mark| marks.push(mark));
        marks
    };
    assert_eq!(marks(&scene), [0]);
    scene.page(0).set_receive_taken(5);
    assert!(scene.arena.looker(5).unwrap().announce());
    (0..3).for_each(|slot| scene.fill(slot, 9));
    assert_eq!([0, 1, 2].map(|slot| scene.has_token(slot)), [true, false, false], "one wake for all");
    assert_eq!(marks(&scene), [0, 1, 2]);
}

#[test]
fn marked_input_that_nobody_takes_gets_its_token_after_a_moment() {
    let mut scene = Scene::new();
    scene.look(&[0, 1]);
    (0..2).for_each(|slot| scene.fill(slot, 5));
    assert_eq!(scene.far.wake_readers(|| at(1)), Some(at(3)));
    scene.page(0).set_receive_taken(5);
    scene.far.check_handed(|| at(2));
    assert!(!scene.has_token(1), "too early");
    scene.far.check_handed(|| at(3));
    assert_eq!([0, 1].map(|slot| scene.has_token(slot)), [false, true]);
    assert_eq!(scene.far.wake_readers(|| at(4)), None);
}

/// It would be an edge.
#[test]
fn input_that_an_edge_triggered_program_was_told_of_gets_no_token() {
    let mut scene = Scene::new();
    scene.look(&[0]);
    scene.fill(0, 5);
    scene.far.wake_readers(|| at(1));
    scene.page(0).set_told(5);
    assert_eq!(scene.far.wake_readers(|| at(2)), None);
    scene.far.check_handed(|| at(3));
    assert!(!scene.has_token(0));
    scene.fill(0, 6);
    scene.far.wake_readers(|| at(4));
    scene.far.check_handed(|| at(6));
    assert!(scene.has_token(0), "of this it was not told");
}

/// A program may name any looker, and leave any state there.
#[test]
fn a_looker_that_is_not_there_gets_tokens() {
    let mut scene = Scene::new();
    scene.page(0).set_looker(Some(LOOKERS_MAX as u32));
    scene.page(1).set_looker(Some(u32::MAX - 1));
    scene.look(&[2]).leave();
    (0..3).for_each(|slot| scene.fill(slot, 5));
    assert_eq!([0, 1, 2].map(|slot| scene.has_token(slot)), [true; 3]);
}

/// What is no input shows at the descriptor, whoever looks.
#[test]
fn the_end_of_a_stream_shows_beside_marks() {
    let mut scene = Scene::new();
    scene.look(&[0]);
    scene.fill(0, 5);
    scene.far.end_of_stream(socket(0));
    assert!(scene.has_token(0));
}

/// A server dies after it marked input; its successor is told of the socket, and sees to it.
#[test]
fn a_successor_marks_again() {
    let mut scene = Scene::new();
    scene.look(&[0]);
    scene.fill(0, 5);
    let (near, far) = crate::scm::pair().unwrap();
    scene.near[0] = near;
    scene.far = FarEnds::default();
    scene.far.insert(socket(0), far, &scene.arena);
    scene.far.take_up(1, |_| {});
    assert!(scene.arena.looker(5).unwrap().has_marks() && !scene.has_token(0));
    scene.far.wake_readers(|| at(1));
    scene.far.check_handed(|| at(3));
    assert!(scene.has_token(0));
}

/// A connection that was just accepted: its far end is on its way, or never comes.
#[test]
fn a_thread_is_woken_whose_far_end_is_not_here() {
    let mut scene = Scene::new();
    let mut far = FarEnds::default();
    far.add_domain(DomainId(1), &scene.arena);
    scene.announce(1, 7);
    scene.page(1).set_receive_end(5);
    far.readable(socket(1));
    assert!(far.wake_readers(|| at(0)).is_some());
    assert_eq!(scene.page(1).sleepers().leave(), Left::Woken);
    // It took nothing. When the far end comes, the descriptor shows the input.
    far.check_handed(|| at(5));
    assert!(!scene.page(1).read_token().is_posted(), "nobody could take the message");
    let (near, end) = crate::scm::pair().unwrap();
    scene.near[1] = near;
    far.insert(socket(1), end, &scene.arena);
    far.take_up(1, |_| {});
    assert!(scene.has_token(1));
    // The slot has its next socket, whose far end is not here.
    scene.page(1).reset(ComponentId::TCP);
    scene.page(1).set_receive_end(5);
    far.readable(socket(1));
    assert!(!scene.page(1).read_token().is_posted());
    scene.announce(1, 7);
    scene.page(1).set_flags(flag::RECEIVE_END);
    far.end_of_stream(socket(1));
    assert_eq!(scene.page(1).sleepers().leave(), Left::Woken);
}

#[test]
fn marks_say_in_which_order_input_came() {
    let mut scene = Scene::new();
    scene.look(&[0, 1, 2]);
    [2, 0, 1, 2].into_iter().zip(1..).for_each(|(slot, end)| scene.fill(slot, end));
    let age = |slot| scene.arena.looker(5).unwrap().ages().of(scene.page(slot).arrival());
    assert!(age(2) > age(0) && age(0) > age(1), "{:?}", [0, 1, 2].map(age));
}
