//! A turn is as short with thousands of connections as with hundreds: servers that wait for this one rely on that, and so
//! does the detection of hangs.

use crate::script::{RST, SYN, Script, quiet_plan, stream_bytes};
use crate::world::Conditions;
use eft_base::SocketId;
use eft_base::wire::TCP_ACK as ACK;
use eft_component::Component;
use eft_component::transport::{Effect, Event};
use eft_harness::{ARENA_POOL, DOMAIN};
use eft_messages::sockets::SocketsToTransport;
use std::time::Duration;

const CONNECTIONS: u16 = 3_800;
/// Timers and connections handled in one turn: 256 of each.
const SHARE: u64 = 2 * 256;

/// Side 1 with that many connections of a peer that says nothing more.
fn crowd(send: u64) -> (Script, Vec<SocketId>) {
    let conditions = Conditions { connections: 8_192, ring: 4_096, ..Conditions::default() };
    let mut s = Script::under(conditions, crate::app::Plan { send, ..quiet_plan() }, 16);
    // Time for ip's answers about sent segments.
    s.rtt = Duration::from_micros(40);
    let sockets = (0..CONNECTIONS)
        .map(|i| {
            s.source_port = 1_024 + i;
            s.handshake(&[])
        })
        .collect();
    assert!(s.counter("blocks") > CONNECTIONS as u64, "they are all there");
    s.world.sides[1].longest_turn = 0;
    (s, sockets)
}

#[test]
fn timers_that_are_all_due_at_once_are_handled_in_many_turns() {
    let (mut s, sockets) = crowd(100);
    s.hear();
    // Nothing ran meanwhile, as if the machine had been stopped: the data of each connection must be sent again.
    s.world.now += Duration::from_secs(20);
    let mut again = std::collections::BTreeSet::new();
    let first = s.world.now;
    s.world.turn(1);
    let due = s.world.sides[1].host.engine.deadline();
    assert!(due.is_some_and(|at| at <= first), "the others follow at once");
    s.world.run_for(Duration::from_millis(500));
    let capture = s.world.capture.as_ref().unwrap();
    for (_, side, packet) in capture.iter().filter(|(at, ..)| *at >= first) {
        assert_eq!((*side, packet.payload().len()), (1, 100));
        again.insert(packet.bytes[22..24].to_vec());
    }
    assert_eq!(again.len(), sockets.len(), "each connection sends again");
    let most = s.world.sides[1].longest_turn;
    assert!(most > 0 && most <= SHARE, "{most} in one turn");
}

/// Programs that come to look at their connections, as new far ends do, have work done for these that is no input.
#[test]
fn who_rings_before_input_is_told_of_it_in_its_order() {
    let mut s = Script::new(quiet_plan());
    let mut handshake = |i: u16| {
        s.source_port = 2_000 + i;
        (s.handshake(&[]), s.seq, s.ack)
    };
    let mut connections: [_; 4] = [0, 1, 2, 3].map(&mut handshake);
    let mut said = 0;
    for ringing in [&[][..], &[3], &[2, 3], &[0, 1, 2, 3]] {
        for order in [[1, 0, 3, 2], [3, 2, 1, 0], [2, 3, 0, 1]] {
            s.world.sides[1].app.effects.clear();
            for i in ringing {
                let (socket, ..) = connections[*i];
                s.world.at(1).event(Event::Dirty(socket));
            }
            for i in order {
                s.source_port = 2_000 + i as u16;
                (_, s.seq, s.ack) = connections[i];
                let packet = s.packet(ACK, &stream_bytes(s.source_port, said, 10), &[]);
                s.world.deliver(1, &packet);
                connections[i].1 += 10;
            }
            s.world.turn(1);
            said += 10;
            let told: Vec<_> =
                s.world.sides[1].app.effects.iter().filter(|e| matches!(e, Effect::Readable(_))).collect();
            let came = order.map(|i| Effect::Readable(connections[i].0));
            assert_eq!(told, came.iter().collect::<Vec<_>>(), "after {ringing:?} rang");
        }
    }
}

#[test]
fn applications_that_all_ring_at_once_are_served_in_many_turns() {
    let (mut s, sockets) = crowd(0);
    for socket in sockets {
        s.world.at(1).event(Event::Dirty(socket));
    }
    let (begin, now) = (s.world.sides[1].host.status.progress(), s.world.now);
    let mut turns = 0;
    while s.world.sides[1].host.engine.deadline().is_some_and(|at| at <= now) || turns == 0 {
        s.world.turn(1);
        turns += 1;
    }
    let served = s.world.sides[1].host.status.progress() - begin;
    let most = s.world.sides[1].longest_turn;
    assert!(served >= CONNECTIONS as u64, "{served} were served");
    assert!(most <= SHARE, "{most} in one turn");
    // A share of 256 comes to 15 turns.
    assert!((8..40).contains(&turns), "{turns} turns");
}

#[test]
fn after_a_crash_nobody_waits_until_all_connections_are_revived() {
    let (mut s, sockets) = crowd(0);
    s.hear();
    let (begin, first) = (s.world.sides[1].host.status.progress(), s.world.now);
    s.world.crash(1);
    let revived = s.world.sides[1].host.status.progress() - begin;
    assert!(revived < SHARE, "{revived} before the first turn was over");
    // The youngest connection comes last in every order.
    s.say(ACK, &stream_bytes(s.source_port, 0, 100));
    assert!(s.hear().iter().any(|h| h.ack == s.seq), "the youngest connection is served at once");
    let due = s.world.sides[1].host.engine.deadline();
    assert!(due.is_some_and(|at| at <= s.world.now), "the others follow at once");
    s.world.run_for(Duration::from_millis(500));
    let capture = s.world.capture.as_ref().unwrap();
    let since = capture.iter().filter(|(at, side, _)| *at >= first && *side == 1);
    let heard: std::collections::BTreeSet<_> =
        since.map(|(.., packet)| packet.bytes[22..24].to_vec()).collect();
    assert_eq!(heard.len(), sockets.len(), "each connection is heard of");
}

/// A domain's end, or a listener's close, ends that many sockets in one turn at most: closed sockets, and a listener's connections.
const ENDED_PER_TURN: u64 = 2 * 256;

/// Side 1 with connections that its program has not accepted, and others whose handshakes are under way.
pub fn waiting_crowd(accepted: u16, embryonic: u16) -> Script {
    let (connections, ring) = (2 * usize::from(accepted + embryonic) + 64, 1 << 17);
    let conditions = Conditions { connections, ring, ..Conditions::default() };
    let mut s = Script::under(conditions, quiet_plan(), 4_096);
    s.world.sides[1].app.idle = true;
    for i in 0..accepted + embryonic {
        s.source_port = 1_024 + i;
        s.say_with(SYN, &[], &[]);
        if i < accepted {
            let syn_ack = s.hear().into_iter().find(|h| h.flags == SYN | ACK).expect("a SYN-ACK");
            s.ack = syn_ack.seq.wrapping_add(1);
            s.say(ACK, &[]);
        }
        s.world.run_for(Duration::from_micros(40));
    }
    s.hear();
    assert_eq!(s.counter("accepted_connections"), accepted.into());
    assert_eq!(
        s.counter("blocks"),
        u64::from(accepted + embryonic) + 1,
        "they are all there, and their listener"
    );
    s
}

/// Turns until nothing is left to do at once; each ends few sockets. After `deaths_after` turns side 1 dies.
fn end_in_turns(s: &mut Script, deaths_after: Option<usize>) -> usize {
    let mut turns = 0;
    loop {
        let before = s.counter("blocks");
        s.world.turn(1);
        turns += 1;
        let ended = before - s.counter("blocks");
        assert!(ended <= ENDED_PER_TURN, "{ended} sockets ended in one turn");
        if deaths_after == Some(turns) {
            assert!(ended > 0, "it is in the middle of its work");
            s.world.crash(1);
        }
        if s.world.sides[1].host.engine.deadline().is_none_or(|at| at > s.world.now) {
            return turns;
        }
    }
}

/// No socket is left, in this life and in the next one.
pub fn assert_nothing_is_left(s: &mut Script) {
    for _ in 0..2 {
        assert_eq!(s.counter("blocks"), 0);
        s.world.crash(1);
        s.world.run_for(Duration::from_millis(1));
    }
    assert_eq!(s.counter("quarantined_blocks"), 0);
}

fn assert_no_page_is_used(s: &Script) {
    let arena = &s.world.sides[1].arena;
    let pages = (0..arena.geometry().slots as u32).filter_map(|slot| arena.socket(slot));
    assert_eq!(pages.filter(|page| page.kind() != 0).count(), 0);
}

/// How many peers were told of the end.
fn told(s: &mut Script) -> usize {
    s.world.run_for(Duration::from_millis(10));
    s.hear().iter().filter(|h| h.flags & RST != 0).count()
}

pub fn close_listener(s: &mut Script) {
    let socket = s.world.sides[1].app.listener.expect("it listens");
    let incarnation = s.world.sides[1].incarnation(socket);
    s.world.at(1).ask(|request| SocketsToTransport::Close { request, socket, incarnation });
}

pub fn close_domain(s: &mut Script) {
    let socket = SocketId { domain: DOMAIN, slot: 0 };
    s.world.at(1).ask(|request| SocketsToTransport::CloseDomain { request, socket, pool: ARENA_POOL });
}

#[test]
fn a_listener_with_thousands_of_connections_is_closed_in_many_turns() {
    for deaths_after in [None, Some(1), Some(3)] {
        let mut s = waiting_crowd(1_500, 2_500);
        close_listener(&mut s);
        let turns = end_in_turns(&mut s, deaths_after);
        assert!(turns >= 15, "{turns} turns");
        // The others' resets had no room.
        let told = told(&mut s);
        assert!(told >= 1_000, "{told} peers were told");
        assert_no_page_is_used(&s);
        assert_nothing_is_left(&mut s);
    }
}

#[test]
fn a_domain_with_thousands_of_sockets_ends_in_many_turns() {
    for deaths_after in [None, Some(1), Some(3)] {
        let mut s = waiting_crowd(1_500, 500);
        close_domain(&mut s);
        let turns = end_in_turns(&mut s, deaths_after);
        assert!(turns >= 4, "{turns} turns");
        s.world.run_for(Duration::from_secs(1));
        let unanswered = &s.world.sides[1].unanswered;
        assert!(unanswered.is_empty(), "{unanswered:?} is not answered");
        assert_no_page_is_used(&s);
        assert_nothing_is_left(&mut s);
    }
}

/// A program may write impossible words into a listener's page: the listener ends, and its connections with it.
#[test]
fn a_listener_that_is_distrusted_leaves_its_connections_in_many_turns() {
    for deaths_after in [None, Some(2)] {
        let mut s = waiting_crowd(1_000, 1_000);
        let socket = s.world.sides[1].app.listener.expect("it listens");
        s.world.sides[1].page(socket).set_receive_taken(u64::MAX);
        s.world.at(1).event(Event::Dirty(socket));
        let turns = end_in_turns(&mut s, deaths_after);
        assert!(turns >= 7, "{turns} turns");
        assert_eq!(s.counter("blocks"), 1, "the listener, which the program has not closed");
        close_listener(&mut s);
        end_in_turns(&mut s, None);
        assert_no_page_is_used(&s);
        assert_nothing_is_left(&mut s);
    }
}
