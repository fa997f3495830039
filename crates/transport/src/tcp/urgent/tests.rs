use super::*;
use crate::tcp::block::Block;

#[test]
fn the_low_bits_say_where_an_urgent_byte_ends() {
    let mut block = Block::free(0);
    let mut cold = Cold::free();
    assert_eq!(end_of(&cold, &block), None);
    for next in [0, 5, (1 << 31) - 3, (1 << 31) + 7, (1 << 32) - 1, 1 << 40] {
        block.rcv_nxt = next;
        // As far back as the largest ring, as far ahead as it and the pointer.
        for end in [next.saturating_sub(1 << 26) + 1, next + 1, next + (1 << 26) + POINTER_MAX] {
            cold.urgent = kept(end);
            assert_eq!(end_of(&cold, &block), Some(end), "{next} {end}");
        }
    }
}
