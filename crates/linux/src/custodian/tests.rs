use super::*;

#[test]
fn a_token_tells_every_slot_of_an_arena() {
    for slot in [0, 0xffff, 0x1_0000, DIRTY_SLOTS as u32 - 1] {
        assert_eq!(parts(token(FAR, slot, u32::MAX)), (FAR, slot, u32::MAX));
    }
}
