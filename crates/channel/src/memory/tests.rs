use super::*;

#[test]
fn an_unknown_pool_is_noted_and_a_bad_place_in_a_known_one_is_not() {
    let mut memory = Memory::new();
    let reference = |pool, slot| PacketRef { pool: PoolId(pool), slot, generation: 0, offset: 0, len: 8 };
    let segment = Segment::heap(128);
    memory.insert(PoolId(3), PoolView { segment, base: 0, slot_size: 64, slots: 2 });
    assert!(memory.resolve(reference(3, 1)).is_some() && memory.resolve(reference(3, 2)).is_none());
    assert_eq!(memory.take_missed(), None);
    assert!(memory.resolve(reference(2, 0)).is_none() && memory.read(reference(9, 0), &mut [0; 4]).is_none());
    assert_eq!(memory.take_missed(), Some(PoolId(9)));
    assert_eq!(memory.take_missed(), None);
    memory.remove(PoolId(3));
    assert!(memory.resolve(reference(3, 1)).is_none());
    assert_eq!(memory.take_missed(), Some(PoolId(3)));
}
