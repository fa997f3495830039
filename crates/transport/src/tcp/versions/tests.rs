use super::super::block::{State, bit};
use super::*;
use crate::arena::write_v2;

const CONFIG: TcpConfig =
    TcpConfig { connections: 4, sockets_per_family: 4, listeners_per_family: 4, seed: 9 };

fn connection() -> V2 {
    let mut hot = Block::free(7);
    hot.set_state(State::Established);
    hot.set(bit::CONNECTED | bit::ROUTED);
    (hot.slot, hot.tuple.local_port, hot.rcv_nxt, hot.rcv_adv) = (2, 80, 1000, 5000);
    let cold = Cold { path_mtu: 1500, incarnation: 3, ..Cold::free() };
    let mut notes = Reassembly::new();
    notes.insert(2000, 3000);
    V2 { hot, cold, notes }
}

#[test]
fn connections_of_layout_2_are_taken_over_with_their_secret() {
    let free = V2 { hot: Block::free(0), cold: Cold::free(), notes: Reassembly::new() };
    let old = write_v2(LAYOUT.magic, [5, 6], &[free, connection(), free, free]);
    let mut before = alloc::vec![0; old.len()];
    old.read(0, &mut before).unwrap();
    assert_eq!(examine(&old, &CONFIG), Err(Refused::Older { theirs: 2, ours: 3 }));
    let new = Segment::heap(super::super::arena_len(&CONFIG));
    convert(&old, new.clone(), &CONFIG).unwrap();
    let t = Tables::open(new.clone(), &CONFIG).unwrap();
    assert_eq!((t.arena.secret, t.arena.reborn, t.quarantined), ([5, 6], true, 0));
    assert_eq!((t.blocks[1].rcv_nxt, t.cold[1].incarnation, t.notes[1].holds(2000, 3000)), (1000, 3, true));
    let mut after = alloc::vec![0; old.len()];
    old.read(0, &mut after).unwrap();
    assert_eq!(after, before, "the old one goes on");
    drop(t);
    assert_eq!(convert(&old, new, &CONFIG), Err(Refused::Foreign), "not into one that is in use");
}

#[test]
fn what_is_of_no_known_layout_is_refused() {
    let new = || Segment::heap(super::super::arena_len(&CONFIG));
    let other = write_v2(*b"eft-udp\0", [1, 1], &[connection(); 4]);
    assert_eq!(convert(&other, new(), &CONFIG), Err(Refused::Foreign));
    let fewer = write_v2(LAYOUT.magic, [1, 1], &[connection(); 3]);
    assert!(convert(&fewer, new(), &CONFIG).is_err());
    fewer.write(8, &9u32.to_le_bytes()).unwrap();
    assert_eq!(convert(&fewer, new(), &CONFIG), Err(Refused::Newer { theirs: 9, ours: 3 }));
}
