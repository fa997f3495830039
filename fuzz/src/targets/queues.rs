//! Queues over memory that the other side scribbles on.

use super::Target;
use crate::mutate::hostile_u64;
use crate::source::Source;
use eft_channel::queue::{Consumer, Line, Position, Producer, mark};
use eft_channel::{Segment, Shared};
use std::collections::VecDeque;

const LINES: usize = 64;

struct Memory {
    lines: Segment,
    position: Segment,
}

impl Memory {
    fn new() -> Memory {
        Memory { lines: Segment::heap(LINES * 64), position: Segment::heap(64) }
    }

    fn lines(&self) -> Shared<[Line]> {
        // SAFETY: lines are made of atomics.
        unsafe { self.lines.shared_slice(0, LINES) }.expect("the segment holds them")
    }

    fn position(&self) -> Shared<Position> {
        // SAFETY: a position is one atomic.
        unsafe { self.position.shared(0) }.expect("the segment holds it")
    }
}

/// A consumer reads what a mad producer wrote.
pub struct HostileProducer {
    memory: Memory,
    consumer: Consumer,
    taken: u64,
}

impl HostileProducer {
    pub fn new() -> HostileProducer {
        let memory = Memory::new();
        let consumer = Consumer::new(memory.lines(), memory.position());
        HostileProducer { memory, consumer, taken: 0 }
    }
}

impl Target for HostileProducer {
    fn feed(&mut self, source: &mut Source) {
        for _ in 0..source.below(8) {
            let line = match source.below(2) {
                0 => self.taken as usize % LINES,
                _ => source.below(LINES as u64) as usize,
            };
            // Often just what a line's first word must be, or nothing would ever be taken.
            let (word, value) = match source.below(3) {
                0 => (0, mark(self.taken + 1)),
                _ => (source.below(8) as usize, hostile_u64(mark(self.taken + 1), source)),
            };
            self.memory.lines.write(line * 64 + word * 8, &value.to_le_bytes()).expect("within");
        }
        // Lines that are not written meanwhile hold at most one ring of messages.
        let mut popped = 0;
        while self.consumer.has_message() {
            assert!(self.consumer.pop().is_some());
            popped += 1;
            assert!(popped <= LINES, "a message was taken twice");
        }
        assert!(self.consumer.pop().is_none());
        self.taken += popped as u64;
        assert_eq!(self.consumer.position(), self.taken);
        if source.chance(0.1) {
            self.consumer.publish();
        }
        if source.chance(0.01) {
            self.consumer.publish();
            self.consumer = Consumer::resume(self.memory.lines(), self.memory.position());
            assert_eq!(self.consumer.position(), self.taken);
        }
    }
}

/// A producer writes for a mad consumer; what is written and not taken must stay as it is.
pub struct HostileConsumer {
    memory: Memory,
    producer: Producer,
    /// The largest position that the producer may have believed.
    claimed: u64,
    written: VecDeque<(u64, [u64; 7])>,
}

impl HostileConsumer {
    pub fn new() -> HostileConsumer {
        let memory = Memory::new();
        let producer = Producer::new(memory.lines(), memory.position());
        HostileConsumer { memory, producer, claimed: 0, written: VecDeque::new() }
    }

    fn check(&self) {
        for (at, message) in &self.written {
            let mut bytes = [0; 64];
            self.memory.lines.read(*at as usize % LINES * 64, &mut bytes).expect("within");
            let words: Vec<u64> = bytes
                .chunks_exact(8)
                .map(|c| u64::from_le_bytes(c.try_into().expect("eight bytes")))
                .collect();
            assert_eq!(
                (words[0], &words[1..]),
                (mark(at + 1), &message[..]),
                "an unread message was overwritten"
            );
        }
    }
}

impl Target for HostileConsumer {
    fn feed(&mut self, source: &mut Source) {
        let tail = self.producer.position();
        let claim = match source.below(3) {
            0 => self.claimed + source.below(tail - self.claimed + 1),
            _ => hostile_u64(tail, source),
        };
        self.memory.position.write(0, &claim.to_le_bytes()).expect("within");
        let mut random = source.generator();
        for _ in 0..source.below(LINES as u64 * 2) {
            let room = self.producer.room(1);
            assert!(room <= LINES);
            let message = core::array::from_fn(|_| random.next_u64());
            let at = self.producer.position();
            match self.producer.push(&message) {
                Ok(()) => self.written.push_back((at, message)),
                Err(_) => break,
            }
        }
        assert!(self.producer.in_flight() <= LINES);
        if (self.claimed..=self.producer.position()).contains(&claim) {
            // A possible position by now: it is the consumer's own loss if it has not read so far.
            self.claimed = claim;
            self.written.retain(|(at, _)| *at >= claim);
        }
        self.check();
        if source.chance(0.02) {
            // A successor goes on with what the lines say, which are its own.
            self.producer = Producer::resume(self.memory.lines(), self.memory.position());
            assert!(self.producer.room(LINES) <= LINES);
            let tail = self.producer.position();
            self.claimed = tail.min(claim.clamp(tail.saturating_sub(LINES as u64), tail));
            let claimed = self.claimed;
            self.written.retain(|(at, _)| *at >= claimed);
        }
    }
}
