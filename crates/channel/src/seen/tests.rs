use super::*;
use crate::{Pool, Segment};

#[test]
fn a_message_about_a_slot_counts_once_and_so_does_an_older_one() {
    let mut pool = Pool::new(PoolId(3), Segment::heap(2 * 64), 64);
    let mut memory = Memory::new();
    memory.insert(pool.id(), pool.view().clone());
    let mut seen = Seen::default();
    let mut is_repeated = |r| seen.is_repeated(&memory, r);
    let first = pool.allocate().unwrap();
    assert!(!is_repeated(first) && is_repeated(first));
    assert!(is_repeated(PacketRef { offset: 10, len: 5, ..first }), "whichever part of the slot it is about");
    pool.free(first);
    let second = pool.allocate().unwrap();
    assert_eq!(first.slot, second.slot);
    assert!(!is_repeated(second) && is_repeated(first));
    assert!(!is_repeated(pool.allocate().unwrap()), "slots are independent of each other");
    // Generations go round.
    for generation in [second.generation.wrapping_add(0x7fff), second.generation.wrapping_sub(2)] {
        assert!(!is_repeated(PacketRef { generation, ..second }));
    }
    // A reference that names no slot of a pool is refused for that, elsewhere.
    assert!(!is_repeated(PacketRef { slot: 9, ..first }));
    assert!(!is_repeated(PacketRef { pool: PoolId(9), ..first }));
    seen.forget();
    assert!(!seen.is_repeated(&memory, first));
}

#[test]
fn a_slot_may_have_had_any_number_of_uses_in_between() {
    let mut pool = Pool::new(PoolId(3), Segment::heap(64), 64);
    let mut memory = Memory::new();
    memory.insert(pool.id(), pool.view().clone());
    let first = pool.allocate().unwrap();
    for uses in (1..=u16::MAX - WINDOW).step_by(101).chain([0x7fff, 0x8000, 0x8001]) {
        let mut seen = Seen::default();
        assert!(!seen.is_repeated(&memory, first));
        let generation = first.generation.wrapping_add(uses);
        assert!(!seen.is_repeated(&memory, PacketRef { generation, ..first }), "after {uses} uses");
        assert!(seen.is_repeated(&memory, PacketRef { generation, ..first }), "after {uses} uses");
    }
    // Where the generations wrap around to the last one, no more than these are left out before one comes
    // through.
    let mut seen = Seen::default();
    assert!(!seen.is_repeated(&memory, first));
    let left_out = (0..WINDOW).map(|later| first.generation.wrapping_sub(WINDOW - 1).wrapping_add(later));
    assert!(
        left_out.map(|generation| PacketRef { generation, ..first }).all(|r| seen.is_repeated(&memory, r))
    );
    assert!(!seen.is_repeated(&memory, PacketRef { generation: first.generation.wrapping_add(1), ..first }));
}

#[test]
fn pools_that_are_not_mapped_any_more_are_forgotten() {
    let (mut memory, mut seen) = (Memory::new(), Seen::default());
    for life in 1..100 {
        let mut pool = Pool::new(PoolId(life), Segment::heap(64), 64);
        memory.insert(pool.id(), pool.view().clone());
        let packet = pool.allocate().unwrap();
        assert!(!seen.is_repeated(&memory, packet));
        memory.remove(pool.id());
    }
    assert_eq!(seen.pools.len(), 1);
}
