use super::*;

#[test]
fn a_count_goes_round_and_is_taken_to_have_done_so_while_most_are_marked() {
    let rarely = [(5, 5, 3), (5, 7, 3), (7, 1, 3), (5, 5, 40)].map(|(a, b, n)| marked(a, b, n, None, false));
    assert_eq!(rarely, [0, 2, 2, 0]);
    // Of nine, none or eight, one or nine, two.
    let mostly =
        [(5, 5, 9), (5, 6, 9), (5, 7, 9), (5, 4, 20), (5, 7, 7)].map(|(a, b, n)| marked(a, b, n, None, true));
    assert_eq!(mostly, [8, 9, 2, 15, 2]);
}

#[test]
fn where_the_bytes_are_known_they_say_how_often_the_count_went_round() {
    // The field, segments delivered, segments that the marked bytes make: how many.
    let known = [
        (5, 20, 0, 0),
        (5, 20, 8, 8),
        (7, 20, 9, 10),
        (7, 20, 5, 2),
        (7, 20, 7, 10),
        (7, 40, 40, 34),
        (7, 7, 7, 2),
    ];
    for (field, delivered, segments, many) in known {
        for mostly in [false, true] {
            assert_eq!(
                marked(5, field, delivered, Some(segments), mostly),
                many,
                "{field} {delivered} {segments}"
            );
        }
    }
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
