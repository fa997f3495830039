use super::*;
use crate::tcp::{TcpConfig, arena_len};
use eft_base::{PoolId, Random};
use eft_channel::status::Status;
use eft_channel::{Memory, Pool, Segment};
use eft_messages::transport::SEND_SLOT_LEN;

#[test]
fn a_block_that_is_released_twice_is_given_out_once() {
    let config = TcpConfig { connections: 4, ..TcpConfig::default() };
    let headers = Pool::new(PoolId(1), Segment::heap(4 * SEND_SLOT_LEN), SEND_SLOT_LEN);
    let mut tcp = Tcp::open(Segment::heap(arena_len(&config)), headers, config).unwrap();
    let (mut random, memory, status) = (Random::new(1), Memory::new(), Status::heap());
    let cx = Context { now: Instant::ZERO, random: &mut random, memory: &memory, status: &status };
    let first = tcp.allocate(&cx).expect("a free block");
    tcp.release(&cx, first);
    tcp.release(&cx, first);
    tcp.free_block(&cx, first);
    assert_eq!(tcp.free.used(), 0);
    let mut given: alloc::vec::Vec<u32> = (0..4).map(|_| tcp.allocate(&cx).expect("a free block")).collect();
    assert_eq!(tcp.allocate(&cx), None);
    given.sort_unstable();
    assert_eq!(given, [0, 1, 2, 3]);
}
