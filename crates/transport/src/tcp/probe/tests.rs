use super::*;
use crate::tcp::arena_len;

#[test]
fn every_block_can_be_changed() {
    let config = TcpConfig { connections: 1000, ..TcpConfig::default() };
    let arena = Segment::heap(arena_len(&config));
    let mut probe = CommitProbe::open(arena, &config).unwrap();
    probe.turn(0..1000);
    assert!((0..1000).all(|i| probe.0.blocks[i].snd_nxt == 1));
}
