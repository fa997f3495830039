use super::super::block::{State, bit};
use super::super::durable::NEXT;
use super::*;
use eft_arena::new_v2;

const CONFIG: TcpConfig = TcpConfig {
    connections: 4,
    sockets_per_domain: 4,
    listeners_per_domain: 4,
    seed: 9,
    slots: eft_base::SlotShare::TCP,
};

fn connection() -> V2 {
    let mut hot = Block::free(7);
    hot.set_state(State::Established);
    hot.set(bit::CONNECTED | bit::ROUTED);
    (hot.slot, hot.tuple.local_port, hot.rcv_nxt, hot.rcv_adv) = (2, 80, 1000, 5000);
    let cold = Cold { path_mtu: 1500, incarnation: 3, ..Cold::free() };
    let mut notes = Reassembly::new();
    notes.keep(&[[2000, 3000]]);
    V2 { hot, cold, notes }
}

#[test]
fn connections_of_layout_2_are_taken_over_with_their_secret() {
    let free = V2 { hot: Block::free(0), cold: Cold::free(), notes: Reassembly::new() };
    let old = new_v2(LAYOUT.magic, [5, 6], &[free, connection(), free, free]);
    let mut before = alloc::vec![0; old.len()];
    old.read(0, &mut before).unwrap();
    assert_eq!(examine(&old, &CONFIG), Err(Refused::Older { theirs: 2, ours: LAYOUT.version }));
    let new = Segment::heap(super::super::arena_len(&CONFIG));
    convert(&old, new.clone(), &CONFIG).unwrap();
    let t = Tables::open(new.clone(), &CONFIG).unwrap();
    assert_eq!((t.arena.secret, t.arena.reborn, t.quarantined), ([5, 6], true, 0));
    assert_eq!(
        (t.blocks[1].rcv_nxt, t.cold[1].incarnation, t.notes[1].keeps(&[[2000, 3000]])),
        (1000, 3, true)
    );
    let mut after = alloc::vec![0; old.len()];
    old.read(0, &mut after).unwrap();
    assert_eq!(after, before, "the old one goes on");
    drop(t);
    assert_eq!(convert(&old, new, &CONFIG), Err(Refused::Foreign), "not into one that is in use");
}

#[test]
fn a_conversion_is_reverted_with_later_changes() {
    let free = V2 { hot: Block::free(0), cold: Cold::free(), notes: Reassembly::new() };
    let old = new_v2(LAYOUT.magic, [5, 6], &[free, connection(), free, connection()]);
    let new = Segment::heap(super::super::arena_len(&CONFIG));
    convert(&old, new.clone(), &CONFIG).unwrap();
    let mut t = Tables::open(new.clone(), &CONFIG).unwrap();
    t.blocks[1].rcv_nxt = 1500;
    t.commit();
    // This is not committed.
    t.cold[1].incarnation = 9;
    drop(t);
    let back = Segment::heap(old.len());
    revert(&new, &old, back.clone(), &CONFIG).unwrap();
    let (secret, sockets) = read_v2::<V2>(&back, LAYOUT.magic, 4).unwrap();
    let sockets: Vec<V2> = sockets.collect();
    assert_eq!((secret, sockets[1].hot.rcv_nxt, sockets[1].cold.incarnation), ([5, 6], 1500, 3));
    assert!(sockets[1].notes.keeps(&[[2000, 3000]]));
    assert_eq!(revert(&new, &new, back, &CONFIG), Err(Refused::Foreign), "that is no older one");
}

#[test]
fn tables_move_to_their_places_in_another_layout() {
    let free = V2 { hot: Block::free(0), cold: Cold::free(), notes: Reassembly::new() };
    let old = new_v2(LAYOUT.magic, [5, 6], &[free, connection(), free, connection()]);
    let contents = || {
        let sockets: Vec<V2> = read_v2::<V2>(&old, LAYOUT.magic, 4).unwrap().1.collect();
        ([5, 6], Box::new(sockets.into_iter().map(V3::from)) as Box<dyn Iterator<Item = V3>>)
    };
    let segment = |shape: &Shape| Segment::heap(shape.layout.arena_len(4));
    let (three, five, again) = (segment(&LAYOUT_3), segment(&NEXT), segment(&LAYOUT_3));
    Tables::make_as(&LAYOUT_3, contents(), three.clone(), &CONFIG).unwrap();
    // A stray write hurts one socket, in whichever layout.
    three.write(4096 + size_of::<Block>(), &[0xaa]).unwrap();
    Tables::make_as(&NEXT, read(&LAYOUT_3, &three, &CONFIG).unwrap(), five.clone(), &CONFIG).unwrap();
    Tables::make_as(&LAYOUT_3, read(&NEXT, &five, &CONFIG).unwrap(), again.clone(), &CONFIG).unwrap();
    let t = Tables::open_as(&LAYOUT_3, again, &CONFIG).unwrap();
    assert_eq!((t.arena.secret, t.quarantined), ([5, 6], 0));
    assert_eq!(State::from_number(t.blocks[1].state), Some(State::Free), "the damaged one");
    assert_eq!((t.blocks[3].rcv_nxt, t.cold[3].incarnation), (1000, 3));
    assert!(t.notes[3].keeps(&[[2000, 3000]]));
    assert!(read(&LAYOUT_3, &five, &CONFIG).is_none(), "it is another layout");
}

#[test]
fn an_unknown_layout_is_refused() {
    let new = || Segment::heap(super::super::arena_len(&CONFIG));
    let other = new_v2(*b"eft-udp\0", [1, 1], &[connection(); 4]);
    assert_eq!(convert(&other, new(), &CONFIG), Err(Refused::Foreign));
    let fewer = new_v2(LAYOUT.magic, [1, 1], &[connection(); 3]);
    assert!(convert(&fewer, new(), &CONFIG).is_err());
    fewer.write(8, &9u32.to_le_bytes()).unwrap();
    assert_eq!(convert(&fewer, new(), &CONFIG), Err(Refused::Newer { theirs: 9, ours: LAYOUT.version }));
}

#[test]
fn layout_3_is_taken_over_and_reverted() {
    let free = V2 { hot: Block::free(0), cold: Cold::free(), notes: Reassembly::new() };
    let old = new_v2(LAYOUT.magic, [5, 6], &[free, connection(), free, connection()]);
    let sockets: Vec<V2> = read_v2::<V2>(&old, LAYOUT.magic, 4).unwrap().1.collect();
    let contents = ([5, 6], sockets.into_iter().map(V3::from));
    let segment = |shape: &Shape| Segment::heap(shape.layout.arena_len(4));
    let (three, four, back) = (segment(&LAYOUT_3), segment(&CURRENT), segment(&LAYOUT_3));
    Tables::make_as(&LAYOUT_3, contents, three.clone(), &CONFIG).unwrap();
    assert_eq!(examine(&three, &CONFIG), Err(Refused::Older { theirs: 3, ours: LAYOUT.version }));
    convert(&three, four.clone(), &CONFIG).unwrap();
    let mut t = Tables::open(four.clone(), &CONFIG).unwrap();
    assert_eq!((t.quarantined, t.mended, t.blocks[3].rcv_nxt), (0, 0, 1000));
    t.blocks[3].rcv_nxt = 1500;
    t.commit();
    drop(t);
    revert(&four, &three, back.clone(), &CONFIG).unwrap();
    let t = Tables::open_as(&LAYOUT_3, back, &CONFIG).unwrap();
    assert_eq!((t.quarantined, t.blocks[1].rcv_nxt, t.blocks[3].rcv_nxt), (0, 1000, 1500));
}
