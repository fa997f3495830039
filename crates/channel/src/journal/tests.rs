use super::*;
use crate::Pool;

const SLOTS: usize = 4;
const SLOT: usize = 256;

fn pool() -> (Pool, Journal) {
    let pool = Pool::new(PoolId(7), Segment::heap(SLOTS * SLOT + len(SLOTS)), SLOT);
    let journal = Journal::new(pool.id(), pool.view());
    (pool, journal)
}

fn content(len: u32) -> Content {
    Content {
        len,
        checksum_ok: len % 2 == 1,
        segment_size: 1400,
        joined: [None, Some(false), Some(true)][len as usize % 3],
    }
}

#[test]
fn what_is_in_slots_is_found_in_the_order_in_which_it_came() {
    let (mut pool, mut journal) = pool();
    let slots: Vec<PacketRef> = (0..3).map(|_| pool.allocate().unwrap()).collect();
    for (slot, len) in slots.iter().zip(60..) {
        journal.begin(*slot);
        journal.put(*slot, content(len));
    }
    journal.pass();
    journal.forget(slots[0].slot);
    pool.free(slots[0]);
    let again = pool.allocate().unwrap();
    assert_eq!(again.slot, slots[0].slot);
    journal.begin(again);
    let last = Left { slot: again, content: None, passed: false };
    let whole = |n: usize, passed| Left { slot: slots[n], content: Some(content(60 + n as u32)), passed };
    assert_eq!(left(pool.view()), [whole(1, true), whole(2, true), last]);
    journal.put(again, content(5));
    journal.pass_nothing();
    let last = Left { content: Some(content(5)), ..last };
    assert_eq!(left(pool.view()), [whole(1, false), whole(2, false), last]);
    journal.forget(again.slot);
    assert_eq!(left(pool.view()).len(), 2);
}

#[test]
fn a_note_is_wiped_before_a_slot_counts() {
    let (mut pool, mut journal) = pool();
    let at = note(pool.view()).unwrap();
    let noted = |pool: &Pool| {
        let mut bytes = [0; NOTE_LEN];
        pool.view().segment.read(at, &mut bytes).unwrap();
        bytes
    };
    let slot = pool.allocate().unwrap();
    journal.begin(slot);
    assert_eq!(noted(&pool), [WIPED; NOTE_LEN]);
    pool.view().segment.write(at, &[1; NOTE_LEN]).unwrap();
    journal.forget(slot.slot);
    assert_eq!(left(pool.view()), []);
    journal.begin(slot);
    assert_eq!(noted(&pool), [WIPED; NOTE_LEN]);
}

#[test]
fn a_pool_without_room_has_none() {
    let short = Pool::new(PoolId(7), Segment::heap(SLOTS * SLOT), SLOT);
    let mut journal = Journal::new(short.id(), short.view());
    journal.begin(PacketRef::default());
    journal.pass();
    assert_eq!((note(short.view()), left(short.view())), (None, Vec::new()));
    // One that nobody has begun, or of a later layout.
    let (pool, _) = pool();
    let word = pool.view().segment.atomic_u64(SLOTS * SLOT).unwrap();
    for version in [0, VERSION + 1] {
        word.store(version << 32 | 7, Ordering::Relaxed);
        assert_eq!(left(pool.view()), []);
    }
}
