use super::super::memory;
use super::*;
use eft_base::ComponentId;
use eft_channel::Segment;
use eft_channel::socket::{Geometry, SOCKET_HEADER_LEN};

const GEOMETRY: Geometry = Geometry { slots: 4, send_len: 8192, receive_len: 8192 };

fn arena() -> Arena {
    Arena::new(Segment::heap(GEOMETRY.arena_len()), GEOMETRY).unwrap()
}

#[test]
fn only_what_waits_in_a_ring_of_payload_is_struck() {
    let arena = arena();
    let [_, used, listener, free] = [0, 1, 2, 3].map(|slot| arena.socket(slot).unwrap());
    arena.touch(ComponentId::TCP, 4);
    for page in [&used, &listener, &free] {
        page.reset(ComponentId::TCP);
        page.set_send_end(100);
        page.set_receive_end(5000);
        page.set_receive_taken(4000);
    }
    listener.set_flags(flag::LISTENING);
    free.set_free();
    let begin = GEOMETRY.offset_of(1) + SOCKET_HEADER_LEN;
    assert_eq!(waiting(&arena), [begin..begin + 100, begin + 8192 + 4000..begin + 8192 + 5000]);
}

#[test]
fn a_range_is_cut_at_the_ends_of_pages() {
    let (_, mapping) =
        memory::mapping("7000-a000 rw-s 00002000 00:01 5 /memfd:eft-domain-1 (deleted)").unwrap();
    let cut = |range| -> Vec<_> { cut(&mapping, range).into_iter().map(|place| place.addresses).collect() };
    assert_eq!(cut(0x2ff0..0x4010), [0x7ff0..0x8000, 0x8000..0x9000, 0x9000..0x9010]);
    assert_eq!(cut(0x2000..0x3001), [0x7000..0x8000, 0x8000..0x8001]);
    assert_eq!(cut(0x3000..0x5000), [0x8000..0x9000, 0x9000..0xa000]);
    // Not all of it is mapped.
    assert!(cut(0x1fff..0x2001).is_empty() && cut(0x4000..0x5001).is_empty());
}

#[test]
fn arenas_are_known_by_their_names() {
    let names = ["domain-7", "domain-", "domain-x", "pool-nic", "queue-domain-7"];
    assert_eq!(names.map(number), [Some(7), None, None, None, None]);
}
