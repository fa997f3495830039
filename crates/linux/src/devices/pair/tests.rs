use super::*;
use crate::protocol::DeviceKind;
use eft_base::{MacAddress, PoolId};
use eft_channel::journal::{self, Journal};
use rustix::event::EventfdFlags;
use rustix::fs::MemfdFlags;

fn setup() -> DeviceSetup {
    DeviceSetup { kind: DeviceKind::Pair, interface: 0, mac: MacAddress([2; 6]), mtu: 1500, ring: None }
}

fn event() -> OwnedFd {
    rustix::event::eventfd(0, EventfdFlags::NONBLOCK).unwrap()
}

#[test]
fn memory_that_could_shrink_under_us_is_refused() {
    let setup = setup();
    let sealed = |len| memory::create("eft-test", len).unwrap();
    let unsealed = |len: usize| {
        let fd = rustix::fs::memfd_create("eft-test", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&fd, len as u64).unwrap();
        fd
    };
    let open = |half, taken| {
        let rest = vec![sealed(HALF_LEN), sealed(TAKEN_LEN), half, taken, event()];
        PairDevice::new(event(), rest, &setup).map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(open(sealed(HALF_LEN), sealed(TAKEN_LEN)), Ok(()));
    let shrinks = Err("pair: the other side's memory could shrink under us".to_string());
    assert_eq!(open(unsealed(HALF_LEN), sealed(TAKEN_LEN)), shrinks);
    assert_eq!(open(sealed(HALF_LEN), unsealed(TAKEN_LEN)), shrinks);
    assert!(open(sealed(HALF_LEN / 2), sealed(TAKEN_LEN)).is_err());
}

#[test]
fn a_successor_gets_a_frame_from_the_other_side_or_from_its_predecessor_but_not_from_both() {
    let memory: Vec<OwnedFd> = [HALF_LEN, TAKEN_LEN, HALF_LEN, TAKEN_LEN]
        .iter()
        .map(|len| memory::create("eft-test", *len).unwrap())
        .collect();
    let open = |own: usize, peer: usize| {
        let halves = [own, own + 1, peer, peer + 1].map(|fd| memory[fd].try_clone().unwrap());
        let rest = halves.into_iter().chain([event()]).collect();
        PairDevice::new(event(), rest, &setup()).unwrap()
    };
    let mut other = open(2, 0);
    let segment = Segment::heap(2 * SLOT_LEN + journal::len(2));
    let mut pool = Pool::new(PoolId(3), segment, SLOT_LEN);
    let slot = pool.allocate().unwrap();
    let mut journal = Journal::new(pool.id(), pool.view());
    let mut send = |first| {
        other.own.write(slot_offset(other.sent), &[first; 60]).unwrap();
        other.producer.push(&[60, 0, 1, 0, 0, 0, 0]).unwrap();
        other.sent += 1;
    };
    let first_byte = |pool: &Pool| {
        let mut byte = [0];
        pool.view().segment.read(pool.view().locate(slot).unwrap(), &mut byte).unwrap();
        byte[0]
    };
    send(7);
    journal.begin(slot);
    assert_eq!(open(0, 2).recover(pool.view(), slot), None, "it died before it took one");
    // It dies after the note, and before it gives the place back.
    let taken = open(0, 2).take(&pool, slot).unwrap();
    let mut successor = open(0, 2);
    assert_eq!(successor.recover(pool.view(), slot), None);
    assert_eq!(successor.receive(&pool, slot), Ok(taken));
    assert_eq!(first_byte(&pool), 7);
    // It dies with that.
    let mut next = open(0, 2);
    assert_eq!(next.recover(pool.view(), slot), Some(taken));
    send(8);
    journal.begin(slot);
    assert!(next.receive(&pool, slot).is_ok());
    assert_eq!(first_byte(&pool), 8);
}
