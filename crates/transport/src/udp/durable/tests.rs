use super::versions::{LAYOUT_3, LAYOUT_4, make_older, open_older};
use super::*;

#[test]
fn sockets_of_layout_2_are_taken_over() {
    let config = UdpConfig { sockets: 4, ..UdpConfig::default() };
    let mut blocks = [Block::free(1); 4];
    (blocks[2].flags, blocks[2].slot, blocks[2].local_port) = (bit::USED | bit::BOUND, 1, 53);
    let old = arena::new_v2(LAYOUT.magic, [1, 2], &blocks);
    let new = Segment::heap(arena_len(&config));
    convert(&old, new.clone(), &config).unwrap();
    let (arena, blocks, _, found) = open(new.clone(), &config, Default::default()).unwrap();
    assert_eq!((arena.secret, found, blocks[2].local_port), ([1, 2], Found::default(), 53));
    // And back, with what has happened since.
    drop((arena, blocks));
    let (arena, mut blocks, ..) = open(new.clone(), &config, Default::default()).unwrap();
    blocks[2].local_port = 54;
    blocks.seal();
    arena.commit();
    let back = Segment::heap(old.len());
    revert(&new, &old, back.clone(), &config).unwrap();
    let (secret, sockets) = arena::read_v2::<Block>(&back, LAYOUT.magic, 4).unwrap();
    assert_eq!((secret, sockets.map(|b| b.local_port).collect()), ([1, 2], alloc::vec![0, 0, 54, 0]));
    assert!(revert(&new, &new, back, &config).is_err(), "that is no older one");
}

#[test]
fn sockets_of_layouts_3_and_4_are_taken_over_and_back() {
    for layout in [LAYOUT_3, LAYOUT_4] {
        taken_over_and_back(layout);
    }
}

fn taken_over_and_back(layout: Layout) {
    let config = UdpConfig { sockets: 4, ..UdpConfig::default() };
    let mut blocks = [Block::free(1); 4];
    (blocks[2].flags, blocks[2].slot, blocks[2].local_port) = (bit::USED | bit::BOUND, 1, 53);
    let [old, back] = [0; 2].map(|_| Segment::heap(layout.arena_len(4)));
    make_older(layout, [1, 2], blocks.into_iter(), old.clone(), &config).unwrap();
    assert_eq!(examine(&old, &config), Err(Refused::Older { theirs: layout.version, ours: LAYOUT.version }));
    let new = Segment::heap(arena_len(&config));
    convert(&old, new.clone(), &config).unwrap();
    let (arena, blocks, _, found) = open(new.clone(), &config, Default::default()).unwrap();
    assert_eq!((arena.secret, found, blocks[2].local_port), ([1, 2], Found::default(), 53));
    drop((arena, blocks));
    revert(&new, &old, back.clone(), &config).unwrap();
    let (arena, blocks, found) = open_older(layout, back, &config).unwrap();
    assert_eq!((arena.secret, found, blocks[2].local_port), ([1, 2], Found::default(), 53));
}
