use super::*;
use eft_channel::Segment;
use eft_channel::socket::Geometry;

#[test]
fn no_transport_takes_the_slot_of_another() {
    let geometry = Geometry { slots: 9, send_len: 4096, receive_len: 4096 };
    let share = SlotShare { first: 2, stride: 3, ..SlotShare::TCP };
    let mut domain = Domain::new(share);
    assert!(!domain.claim(4, 7) && domain.claim(5, 7) && !domain.claim(5, 8));
    domain.open(Arena::new(Segment::heap(geometry.arena_len()), geometry).unwrap(), PoolId(1));
    assert!(!domain.allocate_at(3, 9));
    assert_eq!([(); 3].map(|()| domain.allocate(1)), [Some(2), Some(8), None]);
    let mut domains = Domains::new(Key([1, 2]), share);
    *domains.enter(DomainId(1)) = domain;
    let found = [4, 5, 6].map(|slot| domains.find(SocketId { domain: DomainId(1), slot }));
    assert_eq!(found, [None, Some(7), None]);
}

#[test]
fn freed_slots_are_reused_before_unused_ones_but_not_at_once() {
    let geometry = Geometry { slots: 128, send_len: 4096, receive_len: 4096 };
    let arena = Arena::new(Segment::heap(geometry.arena_len()), geometry).unwrap();
    let mut domain = Domain::new(SlotShare::TCP);
    domain.open(arena, PoolId(1));
    let mut last = Vec::new();
    for block in 0..1000 {
        let slot = domain.allocate(block).unwrap();
        assert!(slot as usize <= 2 * FRESH_MAX, "{slot}: a program would map ever more slots");
        assert!(!last.contains(&slot), "{slot} was freed just now");
        domain.free(slot);
        last.push(slot);
        if last.len() > FRESH_MAX {
            last.remove(0);
        }
    }
    // When no others are left, they are reused at once.
    let all: BTreeSet<u32> = (0..64).filter_map(|block| domain.allocate(block)).collect();
    assert_eq!(all.len(), 64);
    assert_eq!(domain.allocate(64), None);
}
