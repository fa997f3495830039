use super::*;

#[test]
fn an_unknown_pool_is_noted_and_a_bad_place_in_a_known_one_is_not() {
    let mut memory = Memory::new();
    let reference = |pool, slot| PacketRef { pool: PoolId(pool), slot, generation: 0, offset: 0, len: 8 };
    let segment = Segment::heap(128);
    memory.insert(PoolId(3), PoolView::new(segment, 0, 64, 2));
    assert!(memory.resolve(reference(3, 1)).is_some() && memory.resolve(reference(3, 2)).is_none());
    assert_eq!(memory.take_missed(), None);
    assert!(memory.resolve(reference(2, 0)).is_none() && memory.read(reference(9, 0), &mut [0; 4]).is_none());
    assert_eq!(memory.take_missed(), Some(PoolId(9)));
    assert_eq!(memory.take_missed(), None);
    memory.remove(PoolId(3));
    assert!(memory.resolve(reference(3, 1)).is_none());
    assert_eq!(memory.take_missed(), Some(PoolId(3)));
}

#[test]
fn a_changed_view_is_not_used() {
    let view = || PoolView::new(Segment::heap(1 << 16), 1 << 12, 1 << 10, 60);
    let at = PacketRef { pool: PoolId(1), slot: 3, generation: 0, offset: 8, len: 8 };
    assert_eq!(view().locate(at), Some((1 << 12) + (3 << 10) + 8));
    let ends =
        |view: PoolView| std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| view.locate(at))).is_err();
    for bit in (0..usize::BITS).map(|bit| 1_usize << bit) {
        assert!(ends(PoolView { base: view().base ^ bit, ..view() }), "the first slot's place, bit {bit:x}");
        assert!(
            ends(PoolView { slot_size: view().slot_size ^ bit, ..view() }),
            "the slots' size, bit {bit:x}"
        );
        assert!(ends(PoolView { slots: view().slots ^ bit, ..view() }), "their number, bit {bit:x}");
    }
    assert!(ends(PoolView { segment: Segment::heap(1 << 16), ..view() }), "another segment");
}
