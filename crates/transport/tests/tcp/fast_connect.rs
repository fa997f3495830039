//! TCP Fast Open between two engines (RFC 7413): cookies, data with the SYN, what happens without, and deaths in the midst.

use crate::app::App;
use crate::script::{ACK, SYN, find_option};
use crate::streams::{PORT, plan, run_to_end};
use crate::world::{Conditions, Packet, World};
use eft_channel::socket::Opt;
use std::time::Duration;

const FAST_OPEN: u8 = 34;
const EARLY: u64 = 600;

/// Side 1 serves, side 0 connects with data in its ring.
fn world(seed: u64, conditions: Conditions, queue: u32) -> World {
    let mut w = World::new(seed, conditions);
    w.capture = Some(Vec::new());
    w.at(0).configure("fastopen", "client");
    w.at(1).configure("fastopen", "server");
    w.sides[0].app.early_from = Some(5000);
    App::listen(&mut w, 1, PORT, 16, plan(900, EARLY));
    let listener = w.sides[1].app.listener.expect("it listens");
    w.sides[1].page(listener).set_option(Opt::FastOpenQueue, queue);
    w
}

fn connect(w: &mut World) {
    App::connect(w, 0, PORT, plan(EARLY, 900));
}

/// Connects, and both streams end. The SYNs that went meanwhile.
fn exchange(w: &mut World) -> Vec<Packet> {
    let before = w.capture.as_ref().unwrap().len();
    connect(w);
    run_to_end(w);
    syns(w, before)
}

fn syns(w: &World, from: usize) -> Vec<Packet> {
    let sent = w.capture.as_ref().unwrap()[from..].iter();
    sent.filter(|(_, side, p)| *side == 0 && p.flags() & SYN != 0).map(|(_, _, p)| p.clone()).collect()
}

/// The Fast Open option of a SYN, and its bytes of data.
fn said(syn: &Packet) -> (Option<usize>, usize) {
    let options = &syn.bytes[40..20 + syn.header_len()];
    (find_option(options, FAST_OPEN).map(<[u8]>::len), syn.payload().len())
}

fn all_said(syns: &[Packet]) -> Vec<(Option<usize>, usize)> {
    syns.iter().map(said).collect()
}

fn counter(w: &World, side: usize, name: &str) -> u64 {
    w.sides[side].counter(name)
}

#[test]
fn the_second_connection_sends_its_data_with_the_syn() {
    let mut w = world(1, Conditions::default(), 8);
    assert_eq!(all_said(&exchange(&mut w)), [(Some(0), 0)]);
    assert_eq!(all_said(&exchange(&mut w)), [(Some(8), EARLY as usize)]);
    assert_eq!((counter(&w, 0, "fast_open_sent"), counter(&w, 0, "fast_open_taken")), (1, 1));
    assert_eq!((counter(&w, 1, "fast_open_asked"), counter(&w, 1, "fast_opened")), (1, 1));
    let options = |w: &World, side: usize, n: usize| {
        w.sides[side].page(w.sides[side].app.streams[n].socket).info().options & 32
    };
    assert_eq!([options(&w, 0, 0), options(&w, 0, 1), options(&w, 1, 0), options(&w, 1, 1)], [0, 32, 0, 32]);
    assert_eq!(counter(&w, 0, "retransmitted_segments"), 0);
}

/// A SYN carries no more than one segment, the rest goes behind the handshake.
#[test]
fn more_than_a_segment_goes_partly_with_the_syn() {
    let mut w = world(1, Conditions { mtu: 1000, ..Conditions::default() }, 8);
    w.sides[1].app.accept_plan = Some(plan(900, 50_000));
    for _ in 0..2 {
        App::connect(&mut w, 0, PORT, plan(50_000, 900));
        run_to_end(&mut w);
    }
    let (option, len) = said(&syns(&w, 0)[1]);
    assert_eq!(option, Some(8));
    // Of IP and of TCP with all options that it can have.
    let headers = 20 + 60;
    assert_eq!(headers + len, 1000);
}

#[test]
fn without_the_option_or_if_it_is_off_no_cookie_is_asked_for() {
    let mut w = world(1, Conditions::default(), 8);
    w.sides[0].app.early_from = None;
    assert_eq!(all_said(&exchange(&mut w)), [(None, 0)]);
    w.sides[0].app.early_from = Some(5000);
    w.at(0).configure("fastopen", "server");
    connect(&mut w);
    w.run_for(Duration::from_secs(1));
    assert_eq!(w.sides[0].app.failures, [eft_base::errno::EOPNOTSUPP]);
}

#[test]
fn data_that_the_server_does_not_take_go_again_at_once() {
    let mut w = world(1, Conditions::default(), 8);
    exchange(&mut w);
    // The server forgets how its cookies were made, and makes others.
    let listener = w.sides[1].app.listener.unwrap();
    w.sides[1].page(listener).set_option(Opt::FastOpenQueue, 0);
    assert_eq!(all_said(&exchange(&mut w)), [(Some(8), EARLY as usize)]);
    assert_eq!((counter(&w, 0, "fast_open_taken"), counter(&w, 0, "fast_open_failed")), (0, 1));
    assert_eq!(counter(&w, 0, "retransmit_timeouts"), 0);
    // That may be chance. After another time it is avoided for a minute, and asked again then.
    assert_eq!(all_said(&exchange(&mut w)), [(Some(8), EARLY as usize)]);
    w.sides[1].page(listener).set_option(Opt::FastOpenQueue, 8);
    assert_eq!(all_said(&exchange(&mut w)), [(None, 0)]);
    w.run_for(Duration::from_secs(61));
    assert_eq!(all_said(&exchange(&mut w)), [(Some(0), 0)]);
    assert_eq!(all_said(&exchange(&mut w)), [(Some(8), EARLY as usize)]);
    assert_eq!(counter(&w, 0, "fast_open_taken"), 1);
}

/// A box on the way drops SYNs with data.
#[test]
fn a_syn_that_is_not_answered_comes_again_without_data() {
    let mut w = world(1, Conditions::default(), 8);
    exchange(&mut w);
    for failures in 1..=2 {
        let before = w.capture.as_ref().unwrap().len();
        w.blackhole[1] = true;
        connect(&mut w);
        w.run_for(Duration::from_millis(500));
        w.blackhole[1] = false;
        run_to_end(&mut w);
        assert_eq!(all_said(&syns(&w, before)), [(Some(8), EARLY as usize), (None, 0)]);
        assert_eq!(counter(&w, 0, "fast_open_failed"), failures);
    }
    assert_eq!(all_said(&exchange(&mut w)), [(None, 0)]);
}

/// The server took the data, and its answer is lost: the SYN without data is answered for the first.
#[test]
fn data_are_taken_once_if_the_answer_is_lost() {
    let mut w = world(1, Conditions::default(), 8);
    exchange(&mut w);
    w.blackhole[0] = true;
    connect(&mut w);
    w.run_for(Duration::from_millis(500));
    assert_eq!(w.sides[1].app.streams.last().unwrap().received, EARLY);
    w.blackhole[0] = false;
    run_to_end(&mut w);
    assert_eq!(counter(&w, 1, "received_bytes"), 2 * EARLY);
}

#[test]
fn the_client_may_die_between_syn_and_answer() {
    for answered in [false, true] {
        let mut w = world(1, Conditions { delay_us: 20_000, ..Conditions::default() }, 8);
        exchange(&mut w);
        w.blackhole[1] = !answered;
        connect(&mut w);
        w.run_for(Duration::from_millis(10));
        w.blackhole[1] = false;
        w.crash(0);
        run_to_end(&mut w);
        assert_eq!(counter(&w, 1, "received_bytes"), 2 * EARLY, "answered: {answered}");
        // The cookie was forgotten; the successor's SYN, if one was needed, was not the first.
        assert_eq!(all_said(&exchange(&mut w)), [(Some(0), 0)]);
        assert_eq!(all_said(&exchange(&mut w)), [(Some(8), EARLY as usize)]);
    }
}

#[test]
fn the_server_may_die_between_syn_and_acknowledgement() {
    let mut w = world(1, Conditions { delay_us: 20_000, ..Conditions::default() }, 8);
    exchange(&mut w);
    connect(&mut w);
    w.run_until(Duration::from_secs(1), |w| counter(w, 1, "fast_opened") == 1);
    w.crash(1);
    run_to_end(&mut w);
    assert_eq!(counter(&w, 0, "fast_open_taken"), 1);
}

#[test]
fn refused_data_are_an_ordinary_refusal() {
    let mut w = world(1, Conditions::default(), 8);
    exchange(&mut w);
    App::connect(&mut w, 0, PORT + 1, plan(EARLY, 900));
    w.run_for(Duration::from_secs(1));
    let stream = w.sides[0].app.streams.last().unwrap();
    assert_eq!(stream.error, eft_base::errno::ECONNREFUSED);
    let packets = w.capture.as_ref().unwrap();
    assert_eq!(packets.last().unwrap().2.flags() & ACK, ACK);
}

#[test]
fn streams_begin_early_through_loss_and_deaths() {
    for seed in 0..150 {
        let conditions = Conditions {
            loss: 0.05,
            duplicate: 0.02,
            jitter_us: 300,
            crash: 0.005,
            ip_crash: 0.002,
            ..Conditions::default()
        };
        let mut w = world(seed, conditions, 2);
        w.capture = None;
        w.sides[1].app.accept_plan = Some(plan(9000, 7000));
        for _ in 0..6 {
            App::connect(&mut w, 0, PORT, plan(7000, 9000));
            App::connect(&mut w, 0, PORT, plan(7000, 9000));
            run_to_end(&mut w);
        }
    }
}
