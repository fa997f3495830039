use super::*;
use crate::batch::calibrated::{Ablation, profile};
use crate::calibration::Calibration;

fn eft() -> Profile {
    let mut eft = profile(&Calibration::e5520().unwrap(), "eft", Ablation::default()).unwrap();
    (eft.window_bytes, eft.buffer_bytes, eft.segment_bytes) = (65_536, 131_072, 65_535);
    (eft.initial_window_bytes, eft.streams) = (65_536, 1);
    eft
}

#[test]
fn a_ring_takes_what_fits_and_tcp_sees_all_of_it_at_once() {
    let (eft, mut streams) = (eft(), Streams::new(&eft()));
    assert!(
        (0..8).all(|_| streams.fill(&eft, 0, eft.write_bytes)) && !streams.fill(&eft, 0, eft.write_bytes)
    );
    assert_eq!(streams.see(0).copied_bytes, 131_072);
    assert_eq!(streams.emit(&eft, 0), [44 * 1460]);
    let done = streams.acknowledge(&eft, 0, 20_000);
    assert!(done.accepted && streams.fill(&eft, 0, eft.write_bytes), "a program goes on when there is room");
}

#[test]
fn only_one_small_segment_is_in_flight_and_small_pieces_wait_for_larger_ones() {
    let (eft, mut streams) = (eft(), Streams::new(&eft()));
    let write = |streams: &mut Streams| {
        streams.fill(&eft, 0, eft.write_bytes);
        streams.see(0);
        streams.emit(&eft, 0)
    };
    assert_eq!(write(&mut streams), [16_384]);
    assert_eq!(write(&mut streams), [11 * 1460]);
    streams.acknowledge(&eft, 0, 16_384);
    assert_eq!(write(&mut streams), [16_384 + 324]);
    // 32,768 of 65,536 bytes are in flight.
    assert_eq!(write(&mut streams), [11 * 1460]);
    streams.fill(&eft, 0, eft.write_bytes);
    assert!(write(&mut streams).is_empty(), "a quarter of the window is too little");
    assert_eq!(streams.begins_to_wait(&eft, 0), Some(1));
    assert_eq!(streams.begins_to_wait(&eft, 0), None);
    assert!(!streams.lose_patience(0, 0) && streams.lose_patience(0, 1));
    assert_eq!(streams.emit(&eft, 0).len(), 1);
}
