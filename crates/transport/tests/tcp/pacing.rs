//! Pacing: how fast segments leave, by SO_MAX_PACING_RATE, by the window, or not at all.

use crate::app::App;
use crate::streams::{PORT, plan, run_to_end, transfer};
use crate::world::{Conditions, World};
use eft_channel::socket::Opt;
use eft_component::transport::Event;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Option words for SO_MAX_PACING_RATE.
fn limit(rate: u64) -> Vec<(Opt, u32)> {
    vec![(Opt::PacingLimitLow, !rate as u32), (Opt::PacingLimitHigh, (!rate >> 32) as u32)]
}

/// A stream of `bytes` from side 0, over a round trip of 20 ms.
fn stream(seed: u64, bytes: u64, setting: &str, options: Vec<(Opt, u32)>, conditions: Conditions) -> World {
    let mut world = World::new(seed, Conditions { delay_us: 10_000, ..conditions });
    world.capture = Some(Vec::new());
    world.at(0).event(Event::Configure { key: "pacing".into(), value: setting.into() });
    world.sides[0].app.options = options;
    App::listen(&mut world, 1, PORT, 16, plan(0, bytes));
    App::connect(&mut world, 0, PORT, plan(bytes, 0));
    run_to_end(&mut world);
    world
}

/// Bytes that side 0 sent, with the time in microseconds since its first data.
fn sent(world: &World) -> Vec<(u64, u64)> {
    let packets = world.capture.as_ref().expect("captured");
    let data = packets.iter().filter(|(_, side, packet)| *side == 0 && packet.bytes.len() > 100);
    let data: Vec<_> =
        data.map(|(at, _, packet)| (at.as_nanos() / 1000, packet.bytes.len() as u64)).collect();
    data.iter().map(|(at, len)| (at - data[0].0, *len)).collect()
}

/// The most bytes that left within some 5 ms.
fn burst(sent: &[(u64, u64)]) -> u64 {
    let within =
        |from: u64| sent.iter().filter(|(at, _)| (from..from + 5_000).contains(at)).map(|(_, len)| len).sum();
    sent.iter().map(|(at, _)| within(*at)).max().expect("something was sent")
}

#[test]
fn no_more_than_the_applications_rate_leaves() {
    let w = stream(1, 1_000_000, "auto", limit(1_000_000), Conditions::default());
    let sent = sent(&w);
    let seconds = sent.last().expect("data").0 as f64 / 1e6;
    // A second, less what the first ten segments are ahead, and headers.
    assert!((0.9..1.1).contains(&seconds), "{seconds} s");
    // 5 ms of the rate, and two segments before and after.
    let later: Vec<_> = sent.into_iter().filter(|(at, _)| *at > 100_000).collect();
    assert!(burst(&later) <= 5_000 + 4 * 1_500, "{} bytes in 5 ms", burst(&later));
    assert_eq!(w.sides[0].counter("retransmitted_segments"), 0);
}

/// Acknowledgements that take longer than all before make a probe due, and new data are what it would send.
#[test]
fn no_probe_leaves_before_the_pace_allows_it() {
    let mut w = World::new(7, Conditions { delay_us: 10_000, ..Conditions::default() });
    w.capture = Some(Vec::new());
    w.sides[0].app.options = limit(10_000);
    App::listen(&mut w, 1, PORT, 16, plan(0, 60_000));
    App::connect(&mut w, 0, PORT, plan(60_000, 0));
    w.run_for(1500 * MS);
    w.conditions.delay_us = 90_000;
    run_to_end(&mut w);
    // What the first ten segments are ahead is over by then. Half of the time that segments take may be made up for.
    let later: Vec<_> = sent(&w).into_iter().filter(|(at, _)| *at > 1_000_000).collect();
    assert!(later.len() > 5, "{later:?}");
    for pair in later.windows(2) {
        let gap_us = pair[1].0 - pair[0].0;
        assert!(gap_us * 2 >= pair[0].1 * 100, "{later:?}");
    }
}

#[test]
fn a_rate_of_64_bits_is_taken_whole() {
    // Its low half alone would be a byte a second.
    let w = stream(2, 200_000, "auto", limit((1 << 33) + 1), Conditions::default());
    assert!(w.now.as_millis() < 2_000, "it took until {:?}", w.now);
}

#[test]
fn a_window_leaves_within_a_round_trip_if_all_are_paced() {
    // A ring that does not grow bounds what is in flight, as the receiver's does: so the windows of both are alike.
    let bounded = || vec![(Opt::SendBuffer, 1 << 20)];
    let whole = burst(&sent(&stream(3, 4_000_000, "auto", bounded(), Conditions::default())));
    let paced = burst(&sent(&stream(3, 4_000_000, "on", bounded(), Conditions::default())));
    // Twice a window in 20 ms is half of one in 5 ms.
    assert!(paced * 10 <= whole * 7, "{paced} bytes in 5 ms, {whole} without pacing");
}

#[test]
fn streams_arrive_whole_at_any_rate_over_bad_wires() {
    for seed in 0..12 {
        let bad = Conditions { loss: 0.03, jitter_us: 500, split: seed % 2 == 0, ..Conditions::default() };
        let (setting, options) = match seed % 3 {
            0 => ("on", vec![]),
            1 => ("auto", limit(300_000)),
            _ => ("on", limit(2_000_000)),
        };
        stream(seed, 300_000, setting, options, bad);
    }
}

#[test]
fn a_successor_keeps_the_applications_rate() {
    let mut w = World::new(5, Conditions { delay_us: 10_000, ..Conditions::default() });
    w.sides[0].app.options = limit(1_000_000);
    App::listen(&mut w, 1, PORT, 16, plan(0, 1_000_000));
    App::connect(&mut w, 0, PORT, plan(1_000_000, 0));
    let begun = w.now;
    w.run_for(500 * MS);
    w.crash(0);
    run_to_end(&mut w);
    let took = w.now.saturating_since(begun);
    assert!(took > 900 * MS, "only {took:?} for a second's worth");
    let page = w.sides[0].page(w.sides[0].app.streams[0].socket);
    let told = page.statistics().expect("published");
    assert_eq!(!told.pacing_limit, 1_000_000);
    assert!(!told.pacing_rate <= 1_000_000);
}

#[test]
fn a_short_path_is_not_paced_by_default() {
    let w = transfer(6, Conditions::default(), 8 << 20, 0);
    let page = w.sides[0].page(w.sides[0].app.streams[0].socket);
    let told = page.statistics().expect("published");
    assert_eq!(!told.pacing_limit, u64::MAX);
    // What it would be is told all the same, as on Linux.
    assert!((1..u64::MAX).contains(&!told.pacing_rate));
}
