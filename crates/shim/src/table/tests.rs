use super::*;

#[test]
fn every_slot_of_an_arena_keeps_its_number() {
    for slot in [0, 1, 0xffff, 0x1_0000, 0x1_0001, DIRTY_SLOTS as u32 - 1] {
        let entry = Entry::Eft { slot, incarnation: u32::MAX };
        assert_eq!(Entry::decode(entry.encode()), entry);
    }
}
