//! The ends of connections.

use crate::app::{App, Plan};
use crate::script::*;
use crate::streams::{close_all, plan, run_to_end, transfer};
use crate::world::{Conditions, World};
use eft_base::errno::{ECONNREFUSED, ECONNRESET};
use eft_channel::socket::{Opt, flag};
use eft_messages::sockets::SocketsToTransport;
use eft_transport::tcp::block::State;
use eft_transport::tcp::inspect;
use std::time::Duration;

/// States of the connections of a side.
pub fn states(w: &World, side: usize) -> Vec<State> {
    let rows = inspect::list(&w.sides[side].durable).unwrap();
    rows.iter().map(|r| r.state).filter(|s| *s != State::Listen).collect()
}

#[test]
fn the_side_that_closes_first_waits() {
    let mut w = World::new(1, Conditions::default());
    App::listen(&mut w, 1, PORT, 16, Plan { shutdown: false, ..plan(1000, 1000) });
    App::connect(&mut w, 0, PORT, Plan { shutdown: false, ..plan(1000, 1000) });
    run_to_end(&mut w);
    let (a, b) = (w.sides[0].app.streams[0].socket, w.sides[1].app.streams[0].socket);
    App::close(&mut w, 0, a);
    w.run_for(Duration::from_millis(100));
    App::close(&mut w, 1, b);
    w.run_for(Duration::from_millis(900));
    let all = [states(&w, 0), states(&w, 1)].concat();
    assert_eq!(all, [State::TimeWait], "exactly one side waits");
    w.run_for(Duration::from_secs(58));
    assert_eq!([states(&w, 0), states(&w, 1)].concat(), [State::TimeWait]);
    w.run_for(Duration::from_secs(3));
    assert!(states(&w, 0).is_empty() && states(&w, 1).is_empty());
}

#[test]
fn half_closed_connections_go_on_in_the_other_direction() {
    let mut w = World::new(1, Conditions::default());
    App::listen(&mut w, 1, PORT, 16, Plan { shutdown: false, ..plan(500_000, 10) });
    App::connect(&mut w, 0, PORT, Plan { receive: 500_000, ..plan(10, 0) });
    let done = w.run_until(Duration::from_secs(10), |w| {
        w.sides[1].app.streams.first().is_some_and(|s| s.end_seen && s.sent == 500_000)
            && w.sides[0].app.streams[0].received == 500_000
    });
    assert!(done);
    w.run_for(Duration::from_secs(1));
    assert_eq!(states(&w, 0), [State::FinWait2]);
    assert_eq!(states(&w, 1), [State::CloseWait]);
    close_all(&mut w);
}

#[test]
fn both_sides_may_close_and_open_at_once() {
    let mut w = transfer(1, Conditions { delay_us: 10_000, ..Conditions::default() }, 10, 10);
    // Both FINs cross.
    let mut s = Script::connected(quiet_plan()).0;
    let socket = s.world.sides[1].app.streams[0].socket;
    App::close(&mut s.world, 1, socket);
    let fin = s.hear();
    assert!(fin.iter().any(|h| h.flags & FIN != 0));
    s.say(FIN | ACK, &[]);
    assert_eq!(states(&s.world, 1), [State::Closing]);
    s.ack = s.ack.wrapping_add(1);
    s.say(ACK, &[]);
    assert_eq!(states(&s.world, 1), [State::TimeWait]);
    close_all(&mut w);
}

#[test]
fn a_fin_is_acknowledged_by_the_programs_own_or_after_a_moment() {
    let half_closed = || {
        let (mut s, socket) = Script::connected(quiet_plan());
        let text = stream_bytes(s.source_port, 0, 4);
        s.say(ACK, &text);
        assert_eq!(s.hear().len(), 1, "the first text is acknowledged at once");
        s.say(FIN | ACK, &[]);
        assert_eq!(states(&s.world, 1), [State::CloseWait]);
        assert!(s.hear().is_empty(), "the program may close, too");
        (s, socket)
    };
    let (mut s, socket) = half_closed();
    let next = s.seq;
    App::close(&mut s.world, 1, socket);
    let heard = s.hear();
    assert_eq!(heard.iter().map(|h| (h.flags, h.ack)).collect::<Vec<_>>(), [(FIN | ACK, next)]);

    let (mut s, _) = half_closed();
    assert!(s.wait(Duration::from_millis(30)).is_empty());
    let next = s.seq;
    let heard = s.wait(Duration::from_millis(20));
    assert_eq!(heard.iter().map(|h| (h.flags, h.ack)).collect::<Vec<_>>(), [(ACK, next)]);

    // As on Linux, that of a connection without text is acknowledged at once.
    let (mut s, _) = Script::connected(quiet_plan());
    s.say(FIN | ACK, &[]);
    let next = s.seq;
    let heard = s.hear();
    assert_eq!(heard.iter().map(|h| (h.flags, h.ack)).collect::<Vec<_>>(), [(ACK, next)]);

    // One that comes again was not acknowledged in time.
    let (mut s, _) = half_closed();
    let next = s.seq;
    s.say_at(next.wrapping_sub(1), FIN | ACK, &[]);
    let heard = s.hear();
    assert_eq!(heard.iter().map(|h| (h.flags, h.ack)).collect::<Vec<_>>(), [(ACK, next)]);
}

#[test]
fn simultaneous_open_gives_one_connection() {
    let mut s = Script::new(quiet_plan());
    // Side 1 connects to the script, which answers with a SYN of its own.
    App::connect(&mut s.world, 1, 5555, quiet_plan());
    let syn = s.hear().pop().unwrap();
    assert_eq!(syn.flags, SYN);
    let local_port = s.world.sides[1].page(s.world.sides[1].app.streams[0].socket).local().port;
    let to = (s.world.sides[1].address, local_port);
    let from = (s.source, 5555);
    let say = |s: &mut Script, seq: u32, ack: u32, flags: u8| {
        let p = segment(from, to, (seq, ack), flags, 60_000, &[], &[]);
        s.world.deliver(1, &p);
        s.world.turn(1);
    };
    say(&mut s, 900, 0, SYN);
    assert_eq!(states(&s.world, 1), [State::SynReceived]);
    let answer = s.hear().pop().unwrap();
    assert_eq!((answer.flags, answer.seq, answer.ack), (SYN | ACK, syn.seq, 901));
    say(&mut s, 900, syn.seq.wrapping_add(1), SYN | ACK);
    assert_eq!(states(&s.world, 1), [State::Established]);
    let flags = s.world.sides[1].page(s.world.sides[1].app.streams[0].socket).flags();
    assert!(flags & flag::CONNECTED != 0);
}

#[test]
fn unread_bytes_at_close_reset_the_connection() {
    let (mut s, socket) = Script::connected(quiet_plan());
    s.world.sides[1].app.streams[0].paused = true;
    s.say(ACK, &stream_bytes(40_000, 0, 100));
    s.hear();
    App::close(&mut s.world, 1, socket);
    let h = s.hear().pop().unwrap();
    assert!(h.flags & RST != 0);
    assert_eq!((h.seq, states(&s.world, 1).len()), (s.ack, 0));
}

#[test]
fn what_was_written_before_an_abort_goes_first() {
    for linger in [0, 1] {
        let (mut s, socket) = Script::connected(quiet_plan());
        s.world.sides[1].app.streams[0].paused = true;
        if linger == 0 {
            s.say(ACK, &stream_bytes(40_000, 0, 100));
        }
        s.hear();
        s.world.sides[1].page(socket).set_option(Opt::Linger, linger);
        let (plan, ack) = (&mut s.world.sides[1].app.streams[0].plan, s.ack);
        plan.send += 1500;
        App::write_and_close(&mut s.world, 1, socket, None);
        let heard: Vec<_> =
            s.hear().iter().map(|h| (h.flags & RST != 0, h.seq.wrapping_sub(ack), h.len)).collect();
        assert_eq!(heard, [(false, 0, 1500), (true, 1500, 0)]);
        s.world.run_for(Duration::from_millis(10));
        assert_eq!(states(&s.world, 1).len(), 0);
    }
}

#[test]
fn what_was_written_goes_before_the_reset_that_later_bytes_bring() {
    let (mut s, socket) = Script::connected(quiet_plan());
    let ack = s.ack;
    s.world.sides[1].app.streams[0].plan.send += 500;
    let packet = s.packet(ACK, &stream_bytes(40_000, 0, 100), &[]);
    App::write_and_close(&mut s.world, 1, socket, Some(&packet));
    let heard: Vec<_> =
        s.hear().iter().map(|h| (h.flags & RST != 0, h.seq.wrapping_sub(ack), h.len)).collect();
    assert_eq!(heard, [(false, 0, 500), (true, 501, 0)]);
}

#[test]
fn within_a_host_a_part_of_a_segment_is_acknowledged_at_once_if_nothing_is_said() {
    for local in [false, true] {
        let conditions = Conditions { local, ..Conditions::default() };
        let mut s = Script::under(conditions, quiet_plan(), 16);
        s.handshake(&[4, 2, 1, 1]);
        s.world.run_for(Duration::from_millis(50));
        let mut delayed = 0;
        for n in 0..40 {
            s.say(ACK, &stream_bytes(40_000, n * 100, 100));
            delayed += s.hear().is_empty() as u32;
        }
        // Elsewhere every other one is, after the first ones.
        assert_eq!(delayed, if local { 0 } else { 12 });
    }
}

/// Its peer is connected by then, and may only listen to what comes: nothing but a reset tells it.
#[test]
fn a_handshake_that_ends_just_after_its_listener_is_reset() {
    let mut s = Script::new(quiet_plan());
    s.say(SYN, &[]);
    s.ack = s.hear()[0].seq.wrapping_add(1);
    let socket = s.world.sides[1].app.listener.expect("it listens");
    let incarnation = s.world.sides[1].incarnation(socket);
    s.world.at(1).ask(|request| SocketsToTransport::Close { request, socket, incarnation });
    let last = s.packet(ACK, &[], &[]);
    s.world.deliver(1, &last);
    s.world.turn(1);
    let heard: Vec<_> = s.hear().iter().map(|h| (h.flags & RST != 0, h.seq)).collect();
    assert_eq!(heard, [(true, s.ack)]);
}

#[test]
fn linger_of_no_time_resets() {
    let (mut s, socket) = Script::connected(quiet_plan());
    s.world.sides[1].page(socket).set_option(Opt::Linger, 1);
    App::close(&mut s.world, 1, socket);
    assert!(s.hear().pop().unwrap().flags & RST != 0);
}

#[test]
fn bytes_for_a_closed_socket_reset_the_connection() {
    let (mut s, socket) = Script::connected(quiet_plan());
    App::close(&mut s.world, 1, socket);
    s.hear();
    s.say(ACK, &stream_bytes(40_000, 0, 100));
    assert!(s.hear().pop().unwrap().flags & RST != 0);
    assert!(states(&s.world, 1).is_empty());
}

#[test]
fn an_orphan_still_sends_what_it_was_given() {
    let mut w = World::new(1, Conditions { delay_us: 1000, ..Conditions::default() });
    let bytes = 700_000;
    App::listen(&mut w, 1, PORT, 16, plan(0, bytes));
    App::connect(&mut w, 0, PORT, Plan { shutdown: false, ..plan(bytes, 0) });
    let written = w.run_until(Duration::from_secs(10), |w| w.sides[0].app.streams[0].sent == bytes);
    assert!(written && w.sides[1].counter("received_bytes") < bytes);
    let socket = w.sides[0].app.streams[0].socket;
    App::close(&mut w, 0, socket);
    let done = w.run_until(Duration::from_secs(10), |w| w.sides[1].app.all_done());
    assert!(done, "{:?}", w.sides[1].app.streams);
}

#[test]
fn an_orphan_does_not_wait_for_ever() {
    let (mut s, socket) = Script::connected(Plan { send: 5000, ..quiet_plan() });
    App::close(&mut s.world, 1, socket);
    s.hear();
    // The peer acknowledges all, the FIN too, and never sends its own FIN.
    s.ack = s.ack.wrapping_add(5001);
    s.say(ACK, &[]);
    assert_eq!(states(&s.world, 1), [State::FinWait2]);
    s.wait(Duration::from_secs(61));
    assert!(states(&s.world, 1).is_empty());
}

#[test]
fn a_port_without_a_listener_refuses() {
    let mut w = World::new(1, Conditions::default());
    App::connect(&mut w, 0, 4711, plan(10, 0));
    w.run_until(Duration::from_secs(5), |w| w.sides[0].app.streams[0].error != 0);
    let stream = &w.sides[0].app.streams[0];
    assert_eq!(stream.error, ECONNREFUSED);
    assert!(stream.hung_up);
    let socket = stream.socket;
    App::close(&mut w, 0, socket);
    assert_eq!(w.sides[0].counter("blocks"), 0);
}

#[test]
fn time_wait_ignores_resets_and_lets_a_new_connection_in() {
    let mut s = Script::new(quiet_plan());
    s.timestamp = Some(100);
    let socket = s.handshake(&timestamps(100, 0));
    App::close(&mut s.world, 1, socket);
    s.hear();
    s.ack = s.ack.wrapping_add(1);
    s.say(FIN | ACK, &[]);
    s.hear();
    assert_eq!(states(&s.world, 1), [State::TimeWait]);
    s.say(RST, &[]);
    assert_eq!(states(&s.world, 1), [State::TimeWait], "RFC 1337");
    // An old SYN is not let in, a newer one is.
    s.seq = s.seq.wrapping_sub(500);
    s.timestamp = Some(99);
    s.say_with(SYN, &[], &timestamps(99, 0));
    assert!(s.hear().iter().all(|h| h.flags & SYN == 0));
    s.seq = s.seq.wrapping_add(5000);
    s.timestamp = Some(200);
    s.handshake(&timestamps(200, 0));
    assert_eq!(states(&s.world, 1), [State::Established]);
    assert_eq!(s.counter("time_wait_reused"), 1);
}

/// As on Linux, where TIME-WAIT is separate from the socket: a client that reuses its port is served.
#[test]
fn time_wait_lets_a_new_connection_in_although_the_program_has_not_closed_the_old_one() {
    let mut s = Script::new(Plan { shutdown: true, ..quiet_plan() });
    s.timestamp = Some(100);
    let socket = s.handshake(&timestamps(100, 0));
    s.hear();
    s.ack = s.ack.wrapping_add(1);
    s.say(FIN | ACK, &[]);
    s.hear();
    assert_eq!(states(&s.world, 1), [State::TimeWait]);
    s.seq = s.seq.wrapping_add(5000);
    s.timestamp = Some(200);
    let new = s.handshake(&timestamps(200, 0));
    assert_eq!(s.counter("time_wait_reused"), 1);
    // The program still has both; the old one shows that it ended, without an error.
    let page = s.world.sides[1].page(socket);
    assert!(new != socket && page.flags() & flag::RECEIVE_END != 0);
    assert_eq!(s.world.sides[1].app.streams[0].error, 0);
    App::close(&mut s.world, 1, socket);
    assert_eq!(states(&s.world, 1), [State::FinWait1]);
}

#[test]
fn a_reset_wakes_waiting_applications() {
    let (mut s, socket) = Script::connected(quiet_plan());
    let seq = s.seq;
    s.say_at(seq, RST | ACK, &[]);
    let page = s.world.sides[1].page(socket);
    assert!(page.flags() & flag::DEAD != 0 && page.flags() & flag::RECEIVE_END != 0);
    assert_eq!(s.world.sides[1].app.streams[0].error, ECONNRESET);
    let effects = &s.world.sides[1].app.effects;
    assert!(effects.iter().any(|e| matches!(e, eft_component::transport::Effect::HangUp(x) if *x == socket)));
}

#[test]
fn many_short_connections_leave_nothing() {
    let mut w = World::new(1, Conditions::default());
    App::listen(&mut w, 1, PORT, 16, plan(2000, 100));
    for round in 0..200 {
        App::connect(&mut w, 0, PORT, plan(100, 2000));
        run_to_end(&mut w);
        let first = round % 2;
        for side in [first, 1 - first] {
            let socket = w.sides[side].app.streams[0].socket;
            App::close(&mut w, side, socket);
            w.sides[side].app.streams.clear();
        }
    }
    // More than there are blocks: TIME-WAIT gave way.
    assert!(w.sides[0].counter("time_wait_evicted") + w.sides[1].counter("time_wait_evicted") > 0);
    w.run_for(Duration::from_secs(70));
    assert_eq!(w.sides[0].counter("blocks"), 0);
    assert_eq!(w.sides[1].counter("blocks"), 1);
}

/// The number of open connections divided by closes per second is their mean lifetime (Little's law), so both counts
/// leave TIME-WAIT and listeners out.
#[test]
fn connections_are_counted_while_data_may_be_sent() {
    let mut w = World::new(1, Conditions::default());
    let counts = |w: &World, side: usize| {
        (w.sides[side].counter("connections_open"), w.sides[side].counter("closed_connections"))
    };
    App::listen(&mut w, 1, PORT, 16, Plan { shutdown: false, ..plan(1000, 1000) });
    assert_eq!(counts(&w, 1), (0, 0), "a listener");
    App::connect(&mut w, 0, PORT, Plan { shutdown: false, ..plan(1000, 1000) });
    App::connect(&mut w, 0, PORT, Plan { shutdown: false, ..plan(1000, 1000) });
    assert_eq!(counts(&w, 0), (0, 0), "on its way");
    run_to_end(&mut w);
    assert_eq!((counts(&w, 0), counts(&w, 1)), ((2, 0), (2, 0)));
    w.crash(0);
    assert_eq!(counts(&w, 0).0, 2, "found again");
    let (a, b) = (w.sides[0].app.streams[0].socket, w.sides[1].app.streams[0].socket);
    App::close(&mut w, 0, a);
    w.run_for(Duration::from_millis(100));
    assert_eq!((counts(&w, 0), counts(&w, 1)), ((2, 0), (2, 0)), "half closed");
    App::close(&mut w, 1, b);
    w.run_for(Duration::from_millis(100));
    assert!(states(&w, 0).contains(&State::TimeWait));
    assert_eq!((counts(&w, 0), counts(&w, 1)), ((1, 1), (1, 1)));
    w.crash(0);
    w.run_for(Duration::from_secs(61));
    assert_eq!((counts(&w, 0), counts(&w, 1)), ((1, 1), (1, 1)), "the end of TIME-WAIT ends nothing");
    // A reset ends it at once, at both ends.
    let c = w.sides[0].app.streams[1].socket;
    w.sides[0].page(c).set_option(Opt::Linger, 1);
    App::close(&mut w, 0, c);
    w.run_for(Duration::from_millis(100));
    assert_eq!((counts(&w, 0), counts(&w, 1)), ((0, 2), (0, 2)));
}

#[test]
fn segments_without_payload_are_counted_in_both_directions() {
    let (mut s, _) = Script::connected(quiet_plan());
    let empty = s.counter("received_empty_segments");
    assert_eq!(empty, 2, "SYN and ACK");
    s.say(ACK, &stream_bytes(40_000, 0, 100));
    s.say(ACK, &[]);
    assert_eq!(s.counter("received_empty_segments"), empty + 1);
    assert_eq!((s.counter("received_segments"), s.counter("pure_acks_sent")), (4, 1));
}
