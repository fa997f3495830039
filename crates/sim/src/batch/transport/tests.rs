use super::*;
use crate::batch::calibrated::{Ablation, profile};
use crate::calibration::Calibration;

fn eft() -> Profile {
    let mut eft = profile(&Calibration::e5520().unwrap(), "eft", Ablation::default()).unwrap();
    (eft.window_bytes, eft.buffer_bytes, eft.segment_bytes) = (65_536, 131_072, 65_535);
    (eft.initial_window_bytes, eft.streams) = (65_536, 1);
    eft
}

fn emitted(streams: &mut Streams, profile: &Profile) -> Vec<u64> {
    streams.emit(profile, 0).collect()
}

#[test]
fn a_ring_takes_what_fits_and_tcp_sees_all_of_it_at_once() {
    let (eft, mut streams) = (eft(), Streams::new(&eft()));
    assert!((0..8).all(|_| streams.write(&eft, 0) == (16_384, true)));
    assert_eq!(streams.write(&eft, 0), (0, false));
    assert_eq!(streams.see(0), 131_072);
    assert_eq!(emitted(&mut streams, &eft), [22 * 1460, 22 * 1460], "halves of the window");
    assert!(!streams.acknowledge(&eft, 0, 43_690), "less than a third is free");
    assert!(streams.acknowledge(&eft, 0, 1));
    assert_eq!(streams.write(&eft, 0), (0, false), "the turn goes on");
    streams.end_turn();
    assert_eq!(streams.write(&eft, 0), (16_384, true));
}

#[test]
fn a_write_that_does_not_fit_goes_on_with_what_has_room() {
    let (mut eft, mut streams) = (eft(), Streams::new(&eft()));
    eft.buffer_bytes = 40_000;
    assert!((0..2).all(|_| streams.write(&eft, 0).1));
    assert_eq!(streams.write(&eft, 0), (40_000 - 2 * 16_384, false));
    assert_eq!((streams.see(0), emitted(&mut streams, &eft)), (40_000, vec![22 * 1460, 40_000 - 22 * 1460]));
    assert!(streams.acknowledge(&eft, 0, 32_120) && !streams.acknowledge(&eft, 0, 1460), "it is told once");
    streams.end_turn();
    assert_eq!(streams.write(&eft, 0), (3 * 16_384 - 40_000, true));
}

#[test]
fn only_one_small_segment_is_in_flight_and_small_pieces_wait_for_larger_ones() {
    let (eft, mut streams) = (eft(), Streams::new(&eft()));
    let write = |streams: &mut Streams| {
        streams.write(&eft, 0);
        streams.see(0);
        emitted(streams, &eft)
    };
    assert_eq!(write(&mut streams), [16_384]);
    assert_eq!(write(&mut streams), [11 * 1460]);
    streams.acknowledge(&eft, 0, 16_384);
    assert_eq!(write(&mut streams), [16_384 + 324]);
    // 32,768 of 65,536 bytes are in flight.
    assert_eq!(write(&mut streams), [11 * 1460]);
    streams.write(&eft, 0);
    assert!(write(&mut streams).is_empty(), "a quarter of the window is too little");
    assert_eq!(streams.begins_to_wait(&eft, 0), Some(1));
    assert_eq!(streams.begins_to_wait(&eft, 0), None);
    assert!(!streams.lose_patience(0, 0) && streams.lose_patience(0, 1));
    assert_eq!(streams.emit(&eft, 0).count(), 1);
}

#[test]
fn a_stream_waits_for_half_of_its_round_trip_and_not_less_than_a_millisecond_nor_more_than_ten() {
    let (eft, mut streams) = (eft(), Streams::new(&eft()));
    let mut waits = |round_trip_ms: u64| {
        streams.write(&eft, 0);
        streams.see(0);
        let bytes: u64 = streams.emit(&eft, 0).sum();
        streams.now_ps += round_trip_ms * PS_PER_MS;
        streams.acknowledge(&eft, 0, bytes);
        streams.end_turn();
        streams.patience_ps(0)
    };
    assert_eq!(waits(1), PS_PER_MS);
    assert_eq!(waits(57), 4 * PS_PER_MS, "half of (7 + 57) / 8 ms");
    assert_eq!(waits(800), 10 * PS_PER_MS);
    streams.begin_anew(&eft, 0);
    assert_eq!(streams.patience_ps(0), PS_PER_MS);
}
