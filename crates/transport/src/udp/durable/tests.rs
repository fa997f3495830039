use super::*;

#[test]
fn sockets_of_layout_2_are_taken_over() {
    let config = UdpConfig { sockets: 4, ..UdpConfig::default() };
    let mut blocks = [Block::free(1); 4];
    (blocks[2].flags, blocks[2].slot, blocks[2].local_port) = (bit::USED | bit::BOUND, 1, 53);
    let old = arena::write_v2(LAYOUT.magic, [1, 2], &blocks);
    let new = Segment::heap(arena_len(&config));
    convert(&old, new.clone(), &config).unwrap();
    let (arena, blocks, quarantined) = open(new, &config).unwrap();
    assert_eq!((arena.secret, quarantined, blocks[2].local_port), ([1, 2], 0, 53));
}
