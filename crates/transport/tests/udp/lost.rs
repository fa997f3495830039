//! Sockets whose durable state is damaged beyond mending.

use crate::groups::GROUP;
use crate::host::*;
use core::mem::offset_of;
use eft_base::errno::*;
use eft_base::{Random, SocketId};
use eft_channel::socket::flag;
use eft_component::transport::Effect;
use eft_messages::sockets::{membership, reuse};
use eft_transport::udp::durable::{Block, bit};
use std::mem::size_of;
use zerocopy::{FromZeros, IntoBytes};

/// Where the blocks of an arena begin.
const BLOCKS: usize = 4096;

/// Where a socket's block lies.
fn place(h: &Host, socket: SocketId) -> usize {
    let at = |i: usize| BLOCKS + i * size_of::<Block>();
    let is_its = |i: &usize| {
        let mut block = Block::new_zeroed();
        h.durable.read(at(*i), block.as_mut_bytes()).unwrap();
        block.has(bit::USED) && block.slot == socket.slot
    };
    at((0..32).find(is_its).expect("a block"))
}

/// A stray write into a socket's block.
fn damage(h: &Host, socket: SocketId, offset: usize, bytes: &[u8]) {
    h.durable.write(place(h, socket) + offset, bytes).unwrap();
}

fn crash(h: &mut Host) {
    h.effects.clear();
    h.crash();
}

#[test]
fn a_socket_whose_block_is_damaged_goes_on() {
    const LEN: usize = size_of::<Block>();
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut h = Host::new();
        let (bound, connected, other) = (h.open(), h.open(), h.open());
        h.bind(bound, [0; 4], 5300, 0);
        h.bind(other, [0; 4], 5301, 0);
        h.connect(connected, PEER, 99);
        let port = h.page(connected).local().port;
        h.deliver(&datagram((PEER, 1), (OWN, 5300), b"before"), true);
        h.deliver(&datagram((PEER, 99), (OWN, port), b"before"), true);
        let noise: Vec<u8> = (0..8 + random.below(57)).map(|_| random.next_u32() as u8).collect();
        let at = random.below((LEN - noise.len()) as u64 + 1) as usize;
        for s in [bound, connected] {
            damage(&h, s, at, &noise);
        }
        crash(&mut h);
        assert_eq!((h.counter("remade_sockets"), h.counter("quarantined_blocks")), (2, 0), "seed {seed}");
        assert_eq!(h.counter("blocks"), 3);
        for s in [bound, connected] {
            assert!(h.effects.contains(&Effect::Readable(s)), "seed {seed}");
        }
        h.deliver(&datagram((PEER, 1), (OWN, 5300), b"after"), true);
        h.deliver(&datagram((PEER, 99), (OWN, port), b"after"), true);
        for s in [bound, connected] {
            assert_eq!(h.receive(s).unwrap().1, b"before", "seed {seed}");
            assert_eq!(h.receive(s).unwrap().1, b"after", "seed {seed}");
        }
        h.deliver(&datagram(([10, 0, 0, 7], 99), (OWN, port), b"not the peer"), true);
        assert!(h.receive(connected).is_none());
        h.sent.clear();
        h.send(connected, None, b"and back");
        h.send(bound, Some((PEER, 7)), b"and back");
        assert_eq!(h.sent.len(), 2, "seed {seed}");
        // Nothing was given away, and its close frees it.
        let next = h.open();
        assert_eq!(h.bind(next, [0; 4], 5300, 0), EADDRINUSE, "seed {seed}");
        h.close(bound);
        assert_eq!(h.bind(next, [0; 4], 5300, 0), 0, "seed {seed}");
    }
}

#[test]
fn a_damaged_block_costs_no_membership_and_no_shared_port() {
    let mut h = Host::new();
    let (a, b) = (h.open(), h.open());
    for s in [a, b] {
        assert_eq!(h.bind(s, [0; 4], 5353, reuse::ADDRESS), 0);
        assert_eq!(h.change(s, 1, membership::JOIN, [0; 4]), 0);
    }
    for s in [a, b] {
        damage(&h, s, offset_of!(Block, sent), &[0xa5; 24]);
    }
    crash(&mut h);
    assert_eq!((h.counter("remade_sockets"), h.counter("quarantined_blocks")), (2, 0));
    h.deliver(&datagram((PEER, 1), (GROUP, 5353), b"to the group"), true);
    for s in [a, b] {
        assert_eq!(h.receive(s).unwrap().1, b"to the group");
    }
}

#[test]
fn what_was_not_answered_is_sent_once_more() {
    let mut h = Host::new();
    let s = h.open();
    h.connect(s, PEER, 99);
    h.answer_sends = false;
    h.send(s, None, b"under way");
    damage(&h, s, offset_of!(Block, remote), &[0xa5; 8]);
    h.sent.clear();
    h.answer_sends = true;
    crash(&mut h);
    assert_eq!(h.sent.iter().map(|s| s.1.as_slice()).collect::<Vec<_>>(), [b"under way"]);
    assert_eq!(h.page(s).send_released(), h.page(s).send_end());
}

#[test]
fn a_damaged_socket_that_nobody_has_is_not_made_anew() {
    let mut h = Host::new();
    let s = h.open();
    h.connect(s, PEER, 99);
    h.answer_sends = false;
    h.send(s, None, b"last words");
    h.close(s);
    damage(&h, s, offset_of!(Block, remote), &[0xa5; 8]);
    crash(&mut h);
    assert_eq!(
        (h.counter("remade_sockets"), h.counter("quarantined_blocks"), h.counter("blocks")),
        (0, 1, 0)
    );
    assert_eq!(h.open(), s, "its slot is free");
}

#[test]
fn a_program_that_wrote_its_page_gets_what_it_may_have() {
    // A port of another domain's, or for privileged programs alone: it learns that it has none.
    for (port, errno) in [(5301, EADDRINUSE), (53, EACCES)] {
        let mut h = Host::new();
        let (s, other) = (h.open(), h.open());
        h.bind(s, [0; 4], 5300, reuse::PORT);
        h.bind(other, [0; 4], 5301, 0);
        damage(&h, s, offset_of!(Block, sent), &[0xa5; 8]);
        let mut local = h.page(s).local();
        local.port = port;
        h.page(s).set_local(local);
        crash(&mut h);
        assert!(h.effects.contains(&Effect::Readable(s)));
        assert_eq!((h.page(s).take_error(), h.page(s).local().port), (errno, 0));
    }
    // Impossible positions end it, and it learns that.
    let mut h = Host::new();
    let s = h.open();
    h.bind(s, [0; 4], 5300, 0);
    damage(&h, s, offset_of!(Block, sent), &[0xa5; 8]);
    h.page(s).set_receive_taken(8);
    crash(&mut h);
    assert_eq!(h.page(s).flags() & flag::DEAD, flag::DEAD);
    assert!(h.effects.contains(&Effect::HangUp(s)));
    // A page of a free slot that says that it is in use is none of a lost socket.
    let mut h = Host::new();
    let s = h.open();
    h.page(s);
    h.arena.socket(3).unwrap().reset(eft_messages::ComponentId::UDP);
    crash(&mut h);
    assert_eq!((h.counter("remade_sockets"), h.counter("blocks")), (0, 1));
}
