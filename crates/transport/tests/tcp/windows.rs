//! Flow control: closed windows, probes, silly windows, updates.

use crate::app::{App, Plan};
use crate::script::*;
use crate::streams::{close_all, plan, run_to_end};
use crate::world::{Conditions, World};
use eft_channel::socket::Opt;
use eft_component::transport::Effect;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_reader_that_pauses_closes_the_window_and_opens_it_again() {
    for ring in [4096, 65536, 1 << 20] {
        let mut w = World::new(1, Conditions { ring, ..Conditions::default() });
        let total = 3 * ring as u64;
        App::listen(&mut w, 1, PORT, 16, plan(0, total));
        App::connect(&mut w, 0, PORT, plan(total, 0));
        w.run_until(Duration::from_secs(1), |w| !w.sides[1].app.streams.is_empty());
        w.sides[1].app.streams[0].paused = true;
        w.run_for(Duration::from_secs(10));
        let held = w.sides[1].counter("received_bytes");
        assert!(held <= ring as u64 && held > ring as u64 / 2, "{held} of {ring}");
        assert!(w.sides[0].counter("probes_sent") > 2);
        assert_eq!(w.sides[0].counter("retransmitted_segments"), 0);
        let probes = w.sides[0].counter("probes_sent");
        w.sides[1].app.streams[0].paused = false;
        let socket = w.sides[1].app.streams[0].socket;
        let before = w.now;
        App::progress(&mut w, 1, socket);
        run_to_end(&mut w);
        let took = w.now.saturating_since(before);
        assert!(took < 100 * MS, "the window update came late: {took:?}");
        assert_eq!(w.sides[0].counter("probes_sent"), probes);
        close_all(&mut w);
    }
}

#[test]
fn a_closed_window_is_probed_ever_more_rarely_for_ever() {
    let (mut s, _) = Script::connected(Plan { send: 10_000, ..quiet_plan() });
    let heard = s.hear();
    let sent: usize = heard.iter().map(|h| h.len).sum();
    assert_eq!(sent, 10_000);
    s.ack = s.ack.wrapping_add(10_000);
    s.window = 0;
    s.say(ACK, &[]);
    let socket = s.world.sides[1].app.streams[0].socket;
    s.world.sides[1].app.streams[0].plan.send += 5000;
    App::progress(&mut s.world, 1, socket);
    assert!(s.hear().iter().all(|h| h.len == 0));
    let mut gaps = Vec::new();
    let mut last = s.world.now;
    for _ in 0..25 {
        let n = s.counter("probes_sent");
        s.world.run_until(Duration::from_secs(300), |w| w.sides[1].counter("probes_sent") > n);
        let probe = s.hear().pop().expect("a probe");
        assert_eq!((probe.len, probe.seq), (0, s.ack.wrapping_sub(1)));
        gaps.push(probe.at.saturating_since(last).as_millis());
        last = probe.at;
        // The peer lives, its reader does not read.
        s.say(ACK, &[]);
        s.hear();
    }
    assert!(gaps[0] <= 1000 && gaps[20] >= 60_000, "{gaps:?}");
    assert!(!s.world.sides[1].app.streams[0].hung_up);
    s.window = 65_000;
    s.say(ACK, &[]);
    assert_eq!(s.hear().iter().map(|h| h.len).sum::<usize>(), 5000);
}

#[test]
fn small_windows_are_not_filled_with_small_segments() {
    let (mut s, _) = Script::connected(Plan { send: 10_000, ..quiet_plan() });
    s.hear();
    s.ack = s.ack.wrapping_add(10_000);
    s.window = 0;
    s.say(ACK, &[]);
    let socket = s.world.sides[1].app.streams[0].socket;
    s.world.sides[1].app.streams[0].plan.send += 5000;
    App::progress(&mut s.world, 1, socket);
    s.hear();
    s.window = 300;
    s.say(ACK, &[]);
    assert!(s.hear().iter().all(|h| h.len == 0), "a silly segment");
    // The override timer lets it go in the end.
    let heard = s.wait(Duration::from_secs(2));
    assert_eq!(heard.iter().find(|h| h.len > 0).map(|h| h.len), Some(300));
}

#[test]
fn the_window_never_shrinks_while_the_reader_sleeps() {
    let (mut s, _) = Script::connected(quiet_plan());
    s.world.sides[1].app.streams[0].paused = true;
    let mut edge = None;
    let mut offset = 0u64;
    for i in 0..200 {
        let len = 1 + (i * 37) % 1000;
        s.say(ACK, &stream_bytes(40_000, offset, len as usize));
        offset += len;
        for h in s.wait(50 * MS) {
            let right = h.ack.wrapping_add(h.window as u32);
            if let Some(edge) = edge.replace(right) {
                let moved = right.wrapping_sub(edge) as i32;
                assert!(moved >= 0, "shrank by {}", -moved);
            }
        }
    }
    assert!(edge.is_some());
}

#[test]
fn writers_are_woken_when_a_third_is_free() {
    let mut w = World::new(1, Conditions { ring: 65536, delay_us: 2000, ..Conditions::default() });
    App::listen(&mut w, 1, PORT, 16, plan(0, 1 << 20));
    App::connect(&mut w, 0, PORT, plan(1 << 20, 0));
    run_to_end(&mut w);
    let woken = w.sides[0].app.effects.iter().filter(|e| matches!(e, Effect::Writable(_))).count();
    // 16 rings in pieces of at least a third of one: not once per acknowledgement.
    assert!(woken <= 16 * 3 + 2, "{woken}");
    close_all(&mut w);
}

/// Waking a program is expensive; in bulk one notification covers many segments, and none is late.
#[test]
fn in_bulk_the_reader_gets_few_and_prompt_notifications() {
    let (mut s, _) = Script::connected(quiet_plan());
    let told =
        |s: &Script| s.world.sides[1].app.effects.iter().filter(|e| matches!(e, Effect::Readable(_))).count();
    let segment = [0; 1000];
    s.world.sides[1].app.streams[0].careless = true;
    let begin = told(&s);
    for _ in 0..1000 {
        s.say(ACK, &segment);
    }
    assert_eq!(told(&s) - begin, 1000, "before it is bulk, each is told");
    for _ in 0..1000 {
        s.say(ACK, &segment);
    }
    let held = told(&s) - begin - 1000;
    assert!((1..500).contains(&held), "told {held} times of 1000 segments");
    s.world.run_for(Duration::from_micros(201));
    assert_eq!(s.world.sides[1].app.streams[0].received, 2_000_000, "the last were held for too long");
    s.world.run_for(MS * 2);
    let before = told(&s);
    s.say(ACK, &segment);
    assert_eq!(told(&s), before + 1, "after a pause it is told at once");
}

/// A listener with SO_RCVBUF: a larger first window would not be taken back, and a sender whose segments are larger than
/// half of it would wait for its timer before each one.
#[test]
fn a_syn_ack_offers_no_more_than_the_connection_will() {
    let mut s = Script::new(quiet_plan());
    let listener = s.world.sides[1].app.listener.unwrap();
    s.world.sides[1].page(listener).set_option(Opt::ReceiveBuffer, 8192);
    s.say(SYN, &[]);
    let windows: Vec<u16> = s.hear().iter().map(|heard| heard.window).collect();
    assert!(
        !windows.is_empty() && windows.iter().all(|window| (4096..=8192).contains(window)),
        "{windows:?}"
    );
}
