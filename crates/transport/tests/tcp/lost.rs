//! Sockets whose durable state is damaged beyond mending.

use crate::app::App;
use crate::streams::{PORT, plan};
use crate::world::{Conditions, World};
use eft_base::errno::ECONNRESET;
use eft_base::{ComponentId, Random, SocketId};
use eft_channel::socket::flag;
use eft_component::transport::Effect;
use eft_transport::tcp::block::Block;
use std::mem::size_of;
use std::time::Duration;
use zerocopy::{FromZeros, IntoBytes};

const BYTES: u64 = 3_000_000;
const LEN: usize = size_of::<Block>();

/// A stray write into the block of a socket of side 1.
fn damage(w: &World, socket: SocketId, random: &mut Random) {
    let noise: Vec<u8> = (0..16 + random.below(49)).map(|_| random.next_u32() as u8).collect();
    damage_at(w, socket, random.below((LEN - noise.len()) as u64 + 1) as usize, &noise);
}

fn damage_at(w: &World, socket: SocketId, offset: usize, noise: &[u8]) {
    let arena = &w.sides[1].durable;
    let port = w.sides[1].page(socket).local().port;
    let is_its = |at: &usize| {
        let mut block = Block::new_zeroed();
        arena.read(*at, block.as_mut_bytes()).unwrap();
        block.slot == socket.slot && block.tuple.local_port == port && block.state != 0
    };
    let at = (0..arena.len() - LEN).step_by(64).find(is_its).expect("a block");
    arena.write(at + offset, noise).unwrap();
}

/// Two connections that transfer data, and a listener; programs have all three.
fn busy(seed: u64) -> (World, [SocketId; 2], SocketId) {
    let mut w = World::new(seed, Conditions::default());
    App::listen(&mut w, 1, PORT, 16, plan(BYTES, BYTES));
    for _ in 0..2 {
        App::connect(&mut w, 0, PORT, plan(BYTES, BYTES));
    }
    assert!(w.run_until(Duration::from_secs(1), |w| w.sides[1].app.streams.len() == 2));
    w.run_for(Duration::from_millis(1));
    let app = &w.sides[1].app;
    let (one, other, listener) = (app.streams[0].socket, app.streams[1].socket, app.listener.unwrap());
    for (inode, socket) in [one, other, listener].into_iter().enumerate() {
        w.sides[1].page(socket).set_inode(inode as u64 + 1);
    }
    (w, [one, other], listener)
}

#[test]
fn the_program_of_a_damaged_connection_is_told_and_all_others_live() {
    for seed in 0..100 {
        let (mut w, [one, _], _) = busy(seed);
        damage(&w, one, &mut Random::new(seed));
        w.sides[1].app.effects.clear();
        w.crash(1);
        w.run_for(Duration::from_millis(1));
        let side = &w.sides[1];
        assert_eq!((side.counter("quarantined_blocks"), side.counter("taken_up")), (1, 1), "seed {seed}");
        let page = side.page(one);
        assert!(page.flags() & (flag::DEAD | flag::RECEIVE_END | flag::SEND_CLOSED) == 35, "seed {seed}");
        assert!(side.app.effects.contains(&Effect::HangUp(one)), "seed {seed}: {:?}", side.app.effects);
        // It stays so over another death, until it is closed.
        w.crash(1);
        assert_eq!(w.sides[1].counter("quarantined_blocks"), 1, "seed {seed}");
        let blocks = w.sides[1].counter("blocks");
        App::close(&mut w, 1, one);
        w.run_for(Duration::from_millis(1));
        assert_eq!(w.sides[1].counter("blocks"), blocks - 1, "seed {seed}");
        // Its peer hears of it, and the other connection loses nothing.
        let over = |w: &World| {
            let streams = &w.sides[0].app.streams;
            streams.iter().filter(|s| s.is_done()).count() == 1
                && streams.iter().any(|s| w.sides[0].page(s.socket).flags() & flag::DEAD != 0)
        };
        assert!(w.run_until(Duration::from_secs(60), over), "seed {seed}: {:?}", w.sides[0].app.streams);
    }
}

#[test]
fn what_had_come_is_read_before_the_error() {
    let (mut w, [one, _], _) = busy(1);
    let page = w.sides[1].page(one);
    // As if the program had read less.
    let (taken, end) = (page.receive_taken(), page.receive_end());
    assert!(end > 100);
    page.set_receive_taken(taken.min(end - 100));
    let left = page.receivable();
    damage(&w, one, &mut Random::new(1));
    w.sides[1].app.streams.clear();
    w.crash(1);
    assert_eq!((page.error(), page.receivable()), (ECONNRESET, left));
    assert_eq!(page.receive_end(), end);
}

#[test]
fn a_damaged_listener_listens_again() {
    for seed in 0..100 {
        let (mut w, _, listener) = busy(seed);
        damage(&w, listener, &mut Random::new(seed));
        w.crash(1);
        w.run_for(Duration::from_millis(1));
        assert_eq!(w.sides[1].counter("quarantined_blocks"), 1, "seed {seed}");
        let flags = w.sides[1].page(listener).flags();
        // A port for privileged programs is given only if what is left of the block names it.
        if flags & flag::LISTENING == 0 {
            assert!(flags & flag::DEAD != 0, "seed {seed}: its program must be told");
            continue;
        }
        App::connect(&mut w, 0, PORT, plan(BYTES, BYTES));
        let done = |w: &World| w.sides[0].app.streams.iter().all(|s| s.is_done());
        assert!(w.run_until(Duration::from_secs(60), done), "seed {seed}: {:?}", w.sides[0].app.streams);
    }
}

#[test]
fn a_program_gets_no_socket_by_writing_into_a_page() {
    let (mut w, _, _) = busy(1);
    let forged = w.sides[1].arena.socket(9).unwrap();
    forged.reset(ComponentId::TCP);
    forged.set_inode(9);
    let blocks = w.sides[1].counter("blocks");
    w.crash(1);
    assert_eq!((w.sides[1].counter("taken_up"), w.sides[1].counter("blocks")), (0, blocks));
}

#[test]
fn a_damaged_connection_that_nobody_has_is_not_taken_up() {
    let (mut w, [one, _], _) = busy(1);
    let page = w.sides[1].page(one);
    // Its close resets it if something is unread, and else it lives on for its peer.
    page.set_receive_taken(page.receive_end());
    App::close(&mut w, 1, one);
    assert_ne!(page.kind(), 0, "it has ended already");
    let blocks = w.sides[1].counter("blocks");
    damage_at(&w, one, 200, &[0xa5; 16]);
    w.crash(1);
    let side = &w.sides[1];
    assert_eq!((side.counter("quarantined_blocks"), side.counter("taken_up")), (1, 0));
    assert_eq!((side.counter("blocks"), page.kind()), (blocks - 1, 0));
}
