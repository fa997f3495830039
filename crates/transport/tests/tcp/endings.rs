//! What an end excludes: text that nobody will read, and a FIN for which the peer has no room. And what a path error leaves.

use crate::app::{App, Plan};
use crate::closing::states;
use crate::script::*;
use crate::world::{Conditions, World};
use eft_base::SocketId;
use eft_base::errno::{ECONNRESET, EHOSTUNREACH, EPIPE};
use eft_channel::socket::{Opt, flag, wish};
use eft_component::transport::Event;
use eft_harness::Quote;
use eft_transport::tcp::block::State;
use std::time::Duration;

fn shut(s: &mut Script, socket: SocketId, wishes: u32) {
    s.world.sides[1].page(socket).add_wish(wishes);
    s.world.dirty(1, socket);
}

/// A router says of what is in flight that the peer cannot be reached.
fn unreachable(s: &mut Script) {
    let (local, remote) = ((s.world.sides[1].address, PORT), (s.source, s.source_port));
    let quote = segment(local, remote, (s.ack, 0), ACK, 0, &[], &[]);
    s.world.at(1).deliver_error(&quote.bytes[..28], Quote::new(3, 1, 0));
    s.world.turn(1);
}

/// RFC 1122 §4.2.2.13, RFC 9293 §3.6.1.
#[test]
fn text_after_both_directions_were_shut_down_is_answered_with_a_reset() {
    for (wishes, resets) in [(wish::SHUT_READ | wish::SHUT_WRITE, true), (wish::SHUT_WRITE, false)] {
        let (mut s, socket) = Script::connected(quiet_plan());
        s.say(ACK, &stream_bytes(40_000, 0, 100));
        shut(&mut s, socket, wishes);
        s.hear();
        // What came before comes again.
        s.seq = s.seq.wrapping_sub(100);
        s.say(ACK, &stream_bytes(40_000, 0, 100));
        assert!(s.hear().iter().all(|h| h.flags & RST == 0));
        s.say(ACK, &stream_bytes(40_000, 100, 100));
        assert_eq!(s.hear().iter().any(|h| h.flags & RST != 0), resets, "{wishes}");
        assert_eq!(states(&s.world, 1), [if resets { State::Closed } else { State::FinWait1 }]);
    }
}

#[test]
fn text_that_contradicts_the_end_of_the_stream_is_answered_with_a_reset() {
    let (mut s, socket) = Script::connected(quiet_plan());
    s.say(ACK | FIN, &stream_bytes(40_000, 0, 100));
    s.hear();
    // The FIN took a number: 100 bytes end before it, and what begins behind it is out of the stream.
    s.seq = 1_000_001;
    s.say(ACK, &stream_bytes(40_000, 0, 100));
    assert_eq!(states(&s.world, 1), [State::CloseWait]);
    s.seq = 1_000_001;
    s.say(ACK, &stream_bytes(40_000, 0, 200));
    assert!(s.hear().iter().any(|h| h.flags & RST != 0));
    let page = s.world.sides[1].page(socket);
    assert_eq!((s.world.sides[1].app.streams[0].error, page.flags() & flag::DEAD), (EPIPE, flag::DEAD));
}

/// RFC 9293 §3.4: a FIN takes a sequence number.
#[test]
fn a_fin_waits_for_the_peer_s_window() {
    let (mut s, socket) = Script::connected(quiet_plan());
    s.window = 0;
    s.say(ACK, &stream_bytes(40_000, 0, 10));
    s.hear();
    shut(&mut s, socket, wish::SHUT_WRITE);
    let probes = s.wait(Duration::from_secs(2));
    assert!(!probes.is_empty() && probes.iter().all(|h| h.flags & FIN == 0), "{probes:?}");
    assert_eq!(s.world.sides[1].page(socket).info().unfinished, 1);
    s.window = 1;
    s.say(ACK, &[]);
    assert!(s.wait(Duration::from_secs(1)).iter().any(|h| h.flags & FIN != 0));
    s.ack = s.ack.wrapping_add(1);
    s.say(ACK, &[]);
    assert_eq!(states(&s.world, 1), [State::FinWait2]);
    assert_eq!(s.world.sides[1].page(socket).info().unfinished, 0);
}

/// As Linux's `sk_err_soft`: SO_ERROR tells it once, and an acknowledgment shows that the path works.
#[test]
fn a_path_error_is_known_until_something_is_acknowledged() {
    let (mut s, socket) = Script::connected(quiet_plan());
    s.world.sides[1].app.streams[0].plan.send = 2000;
    App::progress(&mut s.world, 1, socket);
    s.hear();
    let told = |s: &Script| {
        let info = s.world.sides[1].page(socket).info();
        (info.soft_error as i32, info.soft_errors)
    };
    unreachable(&mut s);
    assert_eq!(told(&s), (EHOSTUNREACH, 1));
    unreachable(&mut s);
    assert_eq!(told(&s), (EHOSTUNREACH, 2));
    assert_eq!((s.world.sides[1].page(socket).error(), states(&s.world, 1)[0]), (0, State::Established));
    s.ack = s.ack.wrapping_add(1000);
    s.say(ACK, &[]);
    assert_eq!(told(&s), (0, 2));
}

/// What SO_ERROR has told does not explain the timeout any more.
#[test]
fn a_path_error_that_was_told_is_not_the_error_of_a_timeout() {
    for told in [false, true] {
        let (mut s, socket) = Script::connected(quiet_plan());
        s.world.sides[1].page(socket).set_option(Opt::UserTimeout, 2000);
        s.world.sides[1].app.streams[0].plan.send = 2000;
        App::progress(&mut s.world, 1, socket);
        s.hear();
        unreachable(&mut s);
        if told {
            s.world.sides[1].page(socket).set_option(Opt::SoftErrorTold, 2);
        }
        s.wait(Duration::from_secs(5));
        let errno = if told { eft_base::errno::ETIMEDOUT } else { EHOSTUNREACH };
        assert_eq!(s.world.sides[1].app.streams[0].error, errno);
    }
}

/// Its peers would wait for ever for a stack that has ended.
#[test]
fn every_peer_is_told_when_the_stack_ends() {
    // More than there is room for in one turn.
    const COUNT: usize = 24;
    let mut w = World::new(1, Conditions { room: 8, ..Conditions::default() });
    App::listen(&mut w, 1, PORT, COUNT as u32, quiet_plan());
    for _ in 0..COUNT {
        App::connect(&mut w, 0, PORT, quiet_plan());
        w.run_for(Duration::from_millis(10));
    }
    let established = |w: &World| states(w, 0).iter().filter(|s| **s == State::Established).count();
    assert_eq!(established(&w), COUNT);
    w.at(1).event(Event::Configure { key: "farewell".into(), value: Vec::new() });
    w.turn(1);
    w.run_for(Duration::from_millis(100));
    assert_eq!(w.sides[1].counter("resets_sent"), COUNT as u64);
    assert_eq!(established(&w), 0);
    assert!(w.sides[0].app.streams.iter().all(|s| s.error == ECONNRESET), "how they ended");
}

/// The reset of a connection on which much is under way comes behind what its peer has not got, some of it lost where it waits for
/// the link. What the peer says then is answered with a reset, too.
#[test]
fn a_peer_that_is_sent_data_is_told_when_the_stack_ends() {
    for seed in 0..20 {
        let conditions = Conditions { rate: 100, queue: 30_000 + 10_000 * seed, ..Conditions::default() };
        let mut w = World::new(seed, conditions);
        let sends = Plan { send: u64::MAX / 4, ..quiet_plan() };
        App::listen(&mut w, 1, PORT, 4, sends);
        App::connect(&mut w, 0, PORT, quiet_plan());
        w.run_for(Duration::from_millis(300 + seed));
        let received = w.sides[0].app.streams[0].received;
        assert!(received > 100_000, "{received}");
        w.at(1).event(Event::Configure { key: "farewell".into(), value: Vec::new() });
        w.turn(1);
        w.run_for(Duration::from_millis(200));
        assert_eq!(w.sides[0].app.streams[0].error, ECONNRESET, "seed {seed}");
        // Nothing is sent any more.
        let sent = w.sides[1].counter("sent_segments");
        w.run_for(Duration::from_secs(5));
        assert_eq!(w.sides[1].counter("sent_segments"), sent);
        assert!(w.sides[1].app.streams.iter().all(|s| s.error == ECONNRESET), "its program is told, too");
    }
}
