//! An inspection of a queue by a third party, when its two ends accuse each other: which of them has damaged it.
//!
//! Both ends may be at work meanwhile. Damage that is there now is found; damage that was repaired is not.

use super::{Line, Message, Position, mark, number};
use crate::atomic::Ordering;
use crate::shared::Shared;

/// A queue under inspection.
#[derive(Clone)]
pub struct Inspection {
    lines: Shared<[Line]>,
    consumed: Shared<Position>,
}

impl Inspection {
    pub fn new(lines: Shared<[Line]>, consumed: Shared<Position>) -> Inspection {
        Inspection { lines, consumed }
    }

    fn number(&self, line: usize) -> u64 {
        number(self.lines[line].sequence.load(Ordering::Acquire))
    }

    /// Whether `number` can be that of a message in this line; 0: there was none yet.
    fn belongs(&self, line: usize, number: u64) -> bool {
        number == 0 || (number - 1) % self.lines.len() as u64 == line as u64
    }

    /// Messages written so far.
    fn written(&self) -> u64 {
        let all = (0..self.lines.len()).map(|i| (i, self.number(i)));
        all.filter(|(i, number)| self.belongs(*i, *number)).map(|(_, number)| number).max().unwrap_or(0)
    }

    /// Whether some line has a number that a sound writer cannot have left there: one of another line, or one that was
    /// overwritten long ago.
    pub fn writer_is_guilty(&self) -> bool {
        let written = self.written();
        let capacity = self.lines.len() as u64;
        let is_sound = |i: usize| {
            let number = self.number(i);
            // Writes meanwhile only make numbers larger. A line that must have been written does not hold 0.
            self.belongs(i, number)
                && (number.saturating_add(capacity) > written && (number > 0 || written <= i as u64))
        };
        !(0..self.lines.len()).all(is_sound)
    }

    /// Whether the position is one that a sound reader cannot have: past what is written, or so far back that it was
    /// overwritten. Only meaningful when the writer is not guilty.
    pub fn reader_is_guilty(&self) -> bool {
        let capacity = self.lines.len() as u64;
        // The position first: what is written only grows.
        let ahead = self.consumed.0.load(Ordering::Acquire) > self.written();
        let written = self.written();
        ahead || self.consumed.0.load(Ordering::Acquire).saturating_add(capacity) < written
    }

    /// The next message by the reader's published position.
    pub fn next(&self) -> Option<Message> {
        self.waiting().next()
    }

    /// The messages from the reader's published position on, in order. Exact only while neither side is at work.
    pub fn waiting(&self) -> impl Iterator<Item = Message> {
        let head = self.consumed.0.load(Ordering::Acquire);
        (0..self.lines.len() as u64).map_while(move |ahead| {
            let at = head.wrapping_add(ahead);
            let line = &self.lines[at as usize & (self.lines.len() - 1)];
            let written = line.sequence.load(Ordering::Acquire) == mark(at.wrapping_add(1));
            written.then(|| line.message())
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
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
            while consumer.pop().is_some() {}
            consumer.publish();
            assert_eq!(inspection.waiting().count(), 0);
        }
        // A full ring ends.
        (0..8).for_each(|n| producer.push(&[n; 7]).unwrap());
        assert_eq!(inspection.waiting().count(), 8);
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
        for (position, guilty) in
            [(11, true), (12, false), (20, false), (21, true), (u64::MAX, true), (0, true)]
        {
            inspection.consumed.0.store(position, Ordering::Relaxed);
            assert_eq!(inspection.reader_is_guilty(), guilty, "at {position}");
        }
        // It publishes the true position again in its next turn.
        consumer.publish();
        assert!(!inspection.reader_is_guilty());
    }
}
