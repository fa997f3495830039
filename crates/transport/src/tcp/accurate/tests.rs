use super::*;

#[test]
fn a_count_goes_round_and_is_taken_to_have_done_so_while_most_are_marked() {
    let rarely = [(5, 5, 3), (5, 7, 3), (7, 1, 3), (5, 5, 40)].map(|(a, b, n)| marked(a, b, n, false));
    assert_eq!(rarely, [0, 2, 2, 0]);
    // Of nine, none or eight, one or nine, two.
    let mostly =
        [(5, 5, 9), (5, 6, 9), (5, 7, 9), (5, 4, 20), (5, 7, 7)].map(|(a, b, n)| marked(a, b, n, true));
    assert_eq!(mostly, [8, 9, 2, 15, 2]);
}

#[test]
fn the_handshake_tells_the_ecn_bits_of_its_packets() {
    assert_eq!([0, 1, 2, 3].map(reflection), [0b010, 0b011, 0b100, 0b110]);
}

#[test]
fn a_block_keeps_the_count_in_the_bits_that_are_the_flags() {
    let mut block = Block::free(0);
    for count in 0..8 {
        block.set_count(count);
        assert_eq!(block.count(), count);
    }
    assert_eq!((flags(4), flags(2), flags(1)), (0x100, 0x80, 0x40));
}
