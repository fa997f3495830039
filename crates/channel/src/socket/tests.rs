use super::page::{FLAGS, RECEIVE_NOTIFY};
use super::*;
use eft_base::{Endpoint, PoolId};

const GEOMETRY: Geometry = Geometry { slots: 4, send_len: 4096, receive_len: 8192 };

fn arena() -> Arena {
    Arena::new(Segment::heap(GEOMETRY.arena_len()), GEOMETRY).unwrap()
}

#[test]
fn rings_wrap() {
    let arena = arena();
    let page = arena.socket(3).unwrap();
    let bytes: alloc::vec::Vec<u8> = (0..3000u32).map(|i| i as u8).collect();
    let mut back = alloc::vec![0; 3000];
    for round in 0..9u64 {
        page.write_send(round * 3000, &bytes);
        page.read_send(round * 3000, &mut back);
        assert_eq!(back, bytes);
        page.write_receive(round * 3000, &bytes);
        page.read_receive(round * 3000, &mut back);
        assert_eq!(back, bytes);
        let [a, b] = page.send_refs(PoolId(1), 3, round * 3000, 3000);
        assert_eq!(a.len + b.len, 3000);
        let (mut x, mut y) = (alloc::vec![0; a.len as usize], alloc::vec![0; b.len as usize]);
        let view = arena.view();
        view.segment.read(view.locate(a).unwrap(), &mut x).unwrap();
        view.segment.read(view.locate(b).unwrap(), &mut y).unwrap();
        x.extend(y);
        assert_eq!(x, bytes);
    }
}

#[test]
fn what_waits_in_rings_is_found_where_it_was_put() {
    let arena = arena();
    let page = arena.socket(2).unwrap();
    assert_eq!(page.waiting().count(), 0);
    // Both wrap.
    page.set_send_released(4090);
    page.write_send(4090, b"to the peer!");
    page.set_send_end(4102);
    page.set_receive_taken(8190);
    page.write_receive(8190, b"from it");
    page.set_receive_end(8197);
    let read = |place: core::ops::Range<usize>| {
        let mut bytes = alloc::vec![0; place.len()];
        arena.segment().read(place.start, &mut bytes).unwrap();
        alloc::string::String::from_utf8(bytes).unwrap()
    };
    let all: alloc::vec::Vec<_> = page.waiting().map(read).collect();
    assert_eq!(all, ["to the", " peer!", "fr", "om it"]);
    // Positions that cannot be lead nowhere else than into the rings.
    page.set_send_end(u64::MAX);
    page.set_receive_taken(0);
    let rings = GEOMETRY.offset_of(2) + SOCKET_HEADER_LEN..GEOMETRY.offset_of(3);
    for place in page.waiting() {
        assert!(rings.start <= place.start && place.end <= rings.end, "{place:?}");
    }
    page.set_send_released(u64::MAX);
    page.set_send_end(0);
    assert!(page.waiting().all(|place| place.start >= rings.start + GEOMETRY.send_len));
}

/// Adds one to whatever is read, and keeps what is written.
#[derive(Default)]
struct Meddler(std::sync::Mutex<alloc::vec::Vec<(usize, alloc::vec::Vec<u8>)>>);

impl AccessObserver for Meddler {
    fn read(&self, _: usize, bytes: &mut [u8]) {
        bytes[0] += 1;
    }

    fn wrote(&self, at: usize, bytes: &[u8]) {
        self.0.lock().unwrap().push((at, bytes.to_vec()));
    }
}

#[test]
fn a_transport_reads_what_the_observer_says() {
    let plain = arena();
    let meddler = Arc::new(Meddler::default());
    let page = plain.clone().observed_by(meddler.clone()).socket(0).unwrap();
    let program = plain.socket(0).unwrap();
    program.set_send_end(5);
    program.set_receive_taken(8);
    program.set_option(Opt::Ttl, 30);
    program.write_send(4094, &[1, 2, 3]);
    assert_eq!((page.send_end(), page.receive_taken(), page.option(Opt::Ttl)), (6, 9, 31));
    assert_eq!((page.wishes(), page.is_plugged(), page.arm_receive_notify(7)), (1, true, 9));
    let mut bytes = [0; 3];
    page.read_send(4094, &mut bytes);
    assert_eq!(bytes, [2, 2, 4]);
    // Its own words lie in the program's reach, too.
    assert_eq!((page.incarnation(), page.receive_end(), page.local().port), (1, 1, 0));
    page.set_flags(2);
    let from = Segment::heap(3);
    from.write(0, &[7, 8, 9]).unwrap();
    assert!(page.fill_receive(8190, &from, 0, 3));
    let ring = ARENA_HEADER_LEN + SOCKET_HEADER_LEN + 4096;
    let wrote = meddler.0.lock().unwrap();
    assert_eq!(wrote[0], (ARENA_HEADER_LEN + RECEIVE_NOTIFY, 7u64.to_le_bytes().to_vec()));
    assert_eq!(wrote[1], (ARENA_HEADER_LEN + FLAGS, 2u32.to_le_bytes().to_vec()));
    assert_eq!(wrote[2..], [(ring + 8190, alloc::vec![7, 8]), (ring, alloc::vec![9])]);
}

#[test]
fn waking_sleepers_leaves_the_options_alone() {
    let page = arena().socket(0).unwrap();
    page.reset(ComponentId::UDP);
    let all = [Opt::MaxSegment, Opt::NotSentLowWater, Opt::Flush, Opt::ReceiveErrors];
    all.iter().for_each(|option| page.set_option(*option, 1000));
    assert!(!page.sleepers().silence());
    assert_eq!(page.sleepers().word().load(Ordering::SeqCst), 0);
    assert!(all.iter().all(|option| page.option(*option) == 1000));
    assert_eq!(page.kind(), 2);
}

#[test]
fn a_slot_names_its_owner_even_when_it_is_free() {
    let page = arena().socket(2).unwrap();
    assert_eq!(page.owner(), None);
    for owner in [ComponentId::new(Role::Tcp, 1), ComponentId::UDP] {
        page.reset(owner);
        page.set_free();
        assert_eq!((page.kind(), page.owner()), (0, Some(owner)));
    }
    // A page of an older version, which did not write the word: the kind decides.
    page.u32_at(OWNER).store(0, Ordering::Relaxed);
    assert_eq!(page.owner(), None);
    for (kind, owner) in [(1, ComponentId::TCP), (2, ComponentId::UDP)] {
        page.u32_at(KIND).store(kind, Ordering::Relaxed);
        assert_eq!(page.owner(), Some(owner));
    }
    // A program may write anything there: only a transport can own sockets.
    for lie in [ComponentId::IP.code(), 1, u32::MAX] {
        page.u32_at(OWNER).store(lie, Ordering::Relaxed);
        assert_eq!(page.owner(), None);
    }
}

#[test]
fn every_transport_has_its_own_marks() {
    let arena = arena();
    let all =
        [Role::Tcp, Role::Udp].map(|role| (0..INSTANCES_MAX as u8).map(move |i| ComponentId::new(role, i)));
    let all: alloc::vec::Vec<ComponentId> = all.into_iter().flatten().collect();
    for one in &all {
        arena.dirty(*one).mark(3);
        let marked: alloc::vec::Vec<_> = all.iter().filter(|id| arena.dirty(**id).any()).collect();
        assert_eq!(marked, [one]);
        arena.dirty(*one).take(1, &mut 0, |slot| assert_eq!(slot, 3));
    }
    let bells: alloc::collections::BTreeSet<usize> =
        all.iter().map(|id| arena.doorbell(*id).word().as_ptr() as usize).collect();
    assert_eq!(bells.len(), all.len());
    assert!(!bells.contains(&(arena.stacks().as_ptr() as usize)));
}

#[test]
fn slots_do_not_touch_and_reset_counts() {
    let arena = arena();
    assert!(arena.socket(4).is_none());
    let (a, b) = (arena.socket(0).unwrap(), arena.socket(1).unwrap());
    a.reset(ComponentId::TCP);
    b.reset(ComponentId::TCP);
    a.set_send_end(5);
    a.set_local(Endpoint::new("10.0.0.1".parse().unwrap(), 80));
    assert_eq!(b.send_end(), 0);
    assert_eq!(a.local().port, 80);
    a.reset(ComponentId::TCP);
    assert_eq!(a.send_end(), 0);
    assert_eq!(a.incarnation(), 2);
    a.set_send_end(u64::MAX);
    assert_eq!(a.sendable(), 0);
}

#[test]
fn slots_that_were_never_given_out_need_not_be_visited() {
    let arena = arena();
    let tcp1 = ComponentId::new(Role::Tcp, 1);
    assert_eq!(arena.touched(), 0);
    arena.touch(ComponentId::UDP, 2);
    arena.touch(tcp1, 1);
    assert_eq!(arena.touched(), 2);
    // A newborn transport starts again; programs still have what its predecessor gave out.
    arena.touch(ComponentId::UDP, 1);
    assert_eq!(arena.touched(), 2);
    // Programs may write anything there.
    arena.touch(tcp1, u32::MAX);
    assert_eq!(arena.touched(), GEOMETRY.slots as u32);
    let bells = [ComponentId::TCP, ComponentId::UDP, tcp1]
        .map(|id| arena.doorbell(id).word().load(Ordering::Relaxed));
    assert_eq!(bells, [0; 3]);
}
