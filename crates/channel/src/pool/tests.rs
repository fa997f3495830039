use super::*;

#[test]
fn a_slot_is_freed_once_and_only_by_its_generation() {
    let mut p = Pool::new(PoolId(3), Segment::heap(4 * 64), 64);
    let a = p.allocate().unwrap();
    assert!(p.write(a, 60, &[1; 4]));
    assert!(!p.write(a, 61, &[1; 4]));
    assert!(p.free(a));
    assert!(!p.free(a));
    let b = p.allocate().unwrap();
    assert_eq!(a.slot, b.slot);
    assert!(!p.free(a));
    assert!(!p.free(PacketRef { slot: 99, ..b }));
    assert!(!p.free(PacketRef { pool: PoolId(4), ..b }));
    for _ in 0..3 {
        p.allocate().unwrap();
    }
    assert_eq!(p.allocate(), None);
}
