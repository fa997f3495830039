use super::super::{Consumer, Producer, queue};
use super::*;
use alloc::vec::Vec;

fn scene(capacity: usize) -> (Producer, Consumer, Inspection) {
    let lines = Shared::heap_slice((0..capacity).map(|_| Line::empty()).collect::<Vec<_>>());
    let position = Shared::heap(Position::zero());
    let (producer, consumer) = queue(lines.clone(), position.clone());
    (producer, consumer, Inspection::new(lines, position))
}

fn is_quiet(inspection: &Inspection) -> bool {
    !inspection.writer_is_guilty() && !inspection.reader_is_guilty()
}

#[test]
fn the_sound_are_not_guilty_at_any_level() {
    for capacity in [1, 2, 8] {
        let (mut producer, mut consumer, inspection) = scene(capacity);
        for n in 0..40u64 {
            for i in 0..=n as usize % capacity {
                assert!(is_quiet(&inspection), "{capacity} {n} {i}");
                producer.push(&[n; 7]).unwrap();
            }
            assert!(is_quiet(&inspection), "{capacity} {n}");
            while let Some(message) = consumer.peek() {
                consumer.publish();
                assert_eq!(inspection.next(), Some(message));
                consumer.advance();
            }
            consumer.publish();
            assert!(is_quiet(&inspection) && inspection.next().is_none(), "{capacity} {n}");
        }
    }
}

#[test]
fn what_waits_is_all_that_was_written_and_not_taken() {
    let (mut producer, mut consumer, inspection) = scene(8);
    for round in 0..5u64 {
        for n in 0..7 {
            producer.push(&[round * 7 + n; 7]).unwrap();
        }
        let waiting: Vec<u64> = inspection.waiting().map(|message| message[0]).collect();
        assert_eq!(waiting, (round * 7..round * 7 + 7).collect::<Vec<_>>());
        assert_eq!(inspection.count(), 7);
        let behind: Vec<u64> = inspection.waiting_behind(5).map(|message| message[0]).collect();
        assert_eq!(behind, [round * 7 + 5, round * 7 + 6]);
        while consumer.pop().is_some() {}
        consumer.publish();
        assert_eq!((inspection.waiting().count(), inspection.count()), (0, 0));
    }
    // A full ring ends.
    (0..8).for_each(|n| producer.push(&[n; 7]).unwrap());
    assert_eq!((inspection.waiting().count(), inspection.count()), (8, 8));
    assert_eq!(inspection.waiting_behind(8).count(), 0);
}

#[test]
fn every_flipped_bit_of_a_number_is_the_writers() {
    for before in [0, 3, 8, 21] {
        for (line, bit) in (0..8).flat_map(|line| (0..64).map(move |bit| (line, bit))) {
            let (mut producer, mut consumer, inspection) = scene(8);
            for _ in 0..before {
                producer.push(&[0; 7]).unwrap();
                consumer.pop();
                consumer.publish();
            }
            inspection.lines[line].sequence.fetch_xor(1 << bit, Ordering::Relaxed);
            assert!(inspection.writer_is_guilty(), "{before} messages, bit {bit} of line {line}");
        }
    }
}

#[test]
fn a_position_that_cannot_be_is_the_readers() {
    let (mut producer, mut consumer, inspection) = scene(8);
    for _ in 0..20 {
        producer.push(&[0; 7]).unwrap();
        consumer.pop();
        consumer.publish();
    }
    for (position, guilty) in [(11, true), (12, false), (20, false), (21, true), (u64::MAX, true), (0, true)]
    {
        inspection.consumed.0.store(position, Ordering::Relaxed);
        assert_eq!(inspection.reader_is_guilty(), guilty, "at {position}");
    }
    // It publishes the true position again in its next turn.
    consumer.publish();
    assert!(!inspection.reader_is_guilty());
}
