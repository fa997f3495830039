use super::*;
use eft_base::PoolId;
use eft_channel::journal::Journal;
use eft_channel::{Pool, Segment};

const SLOT: usize = 4096;

/// A pool whose owner is about to receive into a slot.
fn reading() -> (Pool, PacketRef) {
    let mut pool = Pool::new(PoolId(3), Segment::heap(2 * SLOT + journal::len(2)), SLOT);
    let slot = pool.allocate().unwrap();
    Journal::new(pool.id(), pool.view()).begin(slot);
    (pool, slot)
}

#[test]
fn a_frame_that_the_kernel_brought_is_found_with_its_length() {
    let (pool, slot) = reading();
    assert_eq!(find(pool.view(), slot), None, "the call has not returned");
    let vnet = VnetHeader { flags: 1, gso_type: 1, gso_size: 1400, ..VnetHeader::default() };
    let at = header(pool.view()).unwrap();
    // SAFETY: as the kernel writes there.
    unsafe { std::ptr::copy_nonoverlapping(vnet.as_bytes().as_ptr(), at, VNET_HEADER_LEN) };
    let found = |ethertype: u16, at: usize, field: u16| {
        let mut bytes = [0; 60];
        bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
        bytes[at..at + 2].copy_from_slice(&field.to_be_bytes());
        assert!(pool.write(slot, 0, &bytes));
        find(pool.view(), slot)
    };
    let read = |len| Some(Noted::Read(vnet, len));
    assert_eq!(found(0x0800, 16, 1500), read(1514));
    assert_eq!(found(0x86dd, 18, 60000), read(14 + 40 + 60000));
    assert_eq!(found(0x0806, 20, 1), read(42));
    assert_eq!(found(0x88cc, 20, 1), None, "nobody here wants that");
}

#[test]
fn a_frame_that_was_copied_is_found_with_its_place() {
    let (pool, slot) = reading();
    let vnet = VnetHeader { flags: 2, ..VnetHeader::default() };
    take(pool.view(), vnet, 1000, [1, 2, 3]);
    assert_eq!(find(pool.view(), slot), Some(Noted::Taken(vnet, 1000, [1, 2, 3])));
    // Its owner died before the last store.
    let at = journal::note(pool.view()).unwrap() + offset_of!(Note, state);
    pool.view().segment.atomic_u32(at).unwrap().store(BEGUN, Ordering::Relaxed);
    assert_eq!(find(pool.view(), slot), None);
}

#[test]
fn a_pool_without_a_journal_has_no_note() {
    let mut pool = Pool::new(PoolId(3), Segment::heap(2 * SLOT), SLOT);
    let slot = pool.allocate().unwrap();
    take(pool.view(), VnetHeader::default(), 1000, [1, 2, 3]);
    assert_eq!((header(pool.view()), find(pool.view(), slot)), (None, None));
}
