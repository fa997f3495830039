use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use super::*;

const GEOMETRY: Geometry = Geometry { slots: 3, send_len: 1 << 16, receive_len: 1 << 16 };

fn arena() -> Arena {
    Arena::new(Segment::heap(GEOMETRY.arena_len()), GEOMETRY).unwrap()
}

fn bits() -> impl Iterator<Item = usize> {
    (0..usize::BITS).map(|bit| 1 << bit)
}

/// Whether all ways to a stream's bytes end.
fn ends(page: SocketPage) -> bool {
    let ways: [fn(&SocketPage); 4] = [
        |page| page.read_send(5, &mut [0; 8]),
        |page| _ = page.send_refs(eft_base::PoolId(1), 1, 5, 8),
        |page| _ = page.fill_receive(5, &Segment::heap(64), 0, 8),
        |page| page.read_receive(5, &mut [0; 8]),
    ];
    ways.into_iter().all(|way| catch_unwind(AssertUnwindSafe(|| way(&page))).is_err())
}

#[test]
fn a_page_that_was_led_elsewhere_is_not_used() {
    let page = arena().socket(1).unwrap();
    assert!(!ends(page.clone()));
    for bit in bits() {
        assert!(ends(SocketPage { base: page.base ^ bit, ..page.clone() }), "the base, bit {bit:x}");
        assert!(ends(SocketPage { send_len: page.send_len ^ bit, ..page.clone() }), "send ring, bit {bit:x}");
        assert!(
            ends(SocketPage { receive_len: page.receive_len ^ bit, ..page.clone() }),
            "receive ring, bit {bit:x}"
        );
    }
    assert!(ends(SocketPage { segment: arena().segment, ..page }), "another segment");
}

#[test]
fn an_arena_whose_geometry_was_changed_gives_no_pages() {
    let arena = arena();
    let gives =
        |arena: Arena| catch_unwind(AssertUnwindSafe(|| arena.socket(1))).is_ok_and(|page| page.is_some());
    assert!(gives(arena.clone()));
    for bit in bits() {
        let slots = Geometry { slots: GEOMETRY.slots ^ bit, ..GEOMETRY };
        assert!(!gives(Arena { geometry: slots, ..arena.clone() }), "slots, bit {bit:x}");
    }
    // What the arena cannot hold is refused before.
    let shorter = Geometry { receive_len: GEOMETRY.receive_len >> 1, ..GEOMETRY };
    assert!(!gives(Arena { geometry: shorter, ..arena.clone() }));
    assert!(!gives(Arena { segment: Segment::heap(GEOMETRY.arena_len()), ..arena }));
}
