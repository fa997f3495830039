//! A single-producer, single-consumer queue of 64-byte messages between two processes.
//!
//! One message is one cache line: its first word is the sequence mark that says "written", the
//! other seven are payload. So a message costs one line transfer; the consumer never reads an index
//! of the producer, and the producer reads the consumer's position only when its cached copy says
//! "full".
//!
//! Memory: the lines lie in a segment that only the producer writes; the consumer's position lies in a segment that only
//! the consumer writes. Each side keeps its own position privately. A broken peer can therefore send garbage or stall its
//! own queue, but cannot make the other side leave the ring or take a message twice.

mod inspection;

pub use inspection::Inspection;

use crate::atomic::{AtomicU64, Ordering};
use crate::shared::Shared;

/// Payload of a message: 56 bytes in seven words.
pub type Message = [u64; 7];

/// Marks of different messages differ in many bits, so that no mark with a flipped bit is another message's mark.
const MARK: u64 = 0x9e37_79b9_7f4a_7c15;
/// Its inverse modulo 2^64.
const NUMBER: u64 = 0xf1de_83e1_9937_733d;
const _: () = assert!(MARK.wrapping_mul(NUMBER) == 1);

/// The sequence mark of message `number`, from 1 on, which says that its line is written; 0: of no message.
pub fn mark(number: u64) -> u64 {
    number.wrapping_mul(MARK)
}

fn number(mark: u64) -> u64 {
    mark.wrapping_mul(NUMBER)
}

/// One message slot: sequence mark and payload in one cache line.
#[repr(C, align(64))]
pub struct Line {
    sequence: AtomicU64,
    payload: [AtomicU64; 7],
}

impl Line {
    pub fn empty() -> Line {
        Line { sequence: AtomicU64::new(0), payload: core::array::from_fn(|_| AtomicU64::new(0)) }
    }

    fn message(&self) -> Message {
        core::array::from_fn(|i| self.payload[i].load(Ordering::Relaxed))
    }
}

/// The consumer's published position, alone in its line.
#[repr(C, align(64))]
pub struct Position(AtomicU64);

impl Position {
    pub fn zero() -> Position {
        Position(AtomicU64::new(0))
    }
}

/// The writing end.
pub struct Producer {
    lines: Shared<[Line]>,
    consumed: Shared<Position>,
    /// Messages written so far.
    tail: u64,
    /// The consumer's position as last read; it may have moved on.
    cached_head: u64,
    /// What kind of position was read last.
    seen: Seen,
}

/// A consumer's position as its producer finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Sound,
    /// Behind an earlier one: not believed; a sound consumer publishes the true one in its next turn.
    Back,
    /// No consumer can have this position.
    Impossible,
}

/// The reading end.
pub struct Consumer {
    lines: Shared<[Line]>,
    consumed: Shared<Position>,
    head: u64,
    published: u64,
    /// The next line held a mark that no sound producer writes there.
    broken: bool,
}

/// # Panics
/// If the number of lines is not a power of two. The supervisor lays queues out, so no peer can cause this.
pub fn queue(lines: Shared<[Line]>, consumed: Shared<Position>) -> (Producer, Consumer) {
    (Producer::new(lines.clone(), consumed.clone()), Consumer::new(lines, consumed))
}

impl Producer {
    pub fn new(lines: Shared<[Line]>, consumed: Shared<Position>) -> Producer {
        assert!(lines.len().is_power_of_two());
        Producer { lines, consumed, tail: 0, cached_head: 0, seen: Seen::Sound }
    }

    /// Goes on with a ring that a dead predecessor wrote: the tail is where the lines' sequence
    /// marks end. All lines are this side's own, so they can be believed.
    pub fn resume(lines: Shared<[Line]>, consumed: Shared<Position>) -> Producer {
        let tail = lines.iter().map(|l| number(l.sequence.load(Ordering::Acquire))).max().unwrap_or(0);
        let mut producer = Producer::new(lines, consumed);
        producer.tail = tail;
        let head = producer.consumed.0.load(Ordering::Acquire);
        // A consumer cannot be ahead of us nor more than a ring behind.
        producer.cached_head = head.clamp(tail.saturating_sub(producer.lines.len() as u64), tail);
        producer
    }

    /// Messages written so far.
    pub fn position(&self) -> u64 {
        self.tail
    }

    pub fn capacity(&self) -> usize {
        self.lines.len()
    }

    /// Free places; reads the consumer's position if fewer than `wanted` are known to be free.
    pub fn room(&mut self, wanted: usize) -> usize {
        let capacity = self.lines.len() as u64;
        let in_flight = self.tail.wrapping_sub(self.cached_head);
        // Both numbers lie in this side's own memory, so only a stray write can break this. The consumer asserts the same
        // of its side.
        assert!(in_flight <= capacity, "{in_flight} messages lie in a queue of {capacity}");
        let known = capacity - in_flight;
        if known >= wanted as u64 {
            return known as usize;
        }
        let head = self.consumed.0.load(Ordering::Acquire);
        if head < self.cached_head || head > self.tail {
            // Positions only grow and never pass the tail. If we believed anything else, a broken consumer could make us
            // overwrite what it has not read, or spin.
            let possible = head < self.tail && self.tail - head <= capacity;
            self.seen = if possible { Seen::Back } else { Seen::Impossible };
            return known as usize;
        }
        self.seen = Seen::Sound;
        self.cached_head = head;
        (capacity - (self.tail - head)) as usize
    }

    /// Messages written that the consumer has not yet reported as taken.
    pub fn in_flight(&mut self) -> usize {
        self.capacity() - self.room(self.capacity())
    }

    /// Writes a message; gives it back if the queue is full.
    pub fn push(&mut self, message: &Message) -> Result<(), Full> {
        if self.room(1) == 0 {
            return Err(Full);
        }
        let line = &self.lines[(self.tail as usize) & (self.lines.len() - 1)];
        for (to, from) in line.payload.iter().zip(message) {
            to.store(*from, Ordering::Relaxed);
        }
        self.tail += 1;
        line.sequence.store(mark(self.tail), Ordering::Release);
        Ok(())
    }

    /// What was seen of the consumer when its position was read last.
    pub fn seen(&self) -> Seen {
        self.seen
    }
}

/// The queue has no free line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Consumer {
    pub fn new(lines: Shared<[Line]>, consumed: Shared<Position>) -> Consumer {
        assert!(lines.len().is_power_of_two());
        Consumer { lines, consumed, head: 0, published: 0, broken: false }
    }

    /// Continues at the position that a dead predecessor published last; messages that it took after that come again.
    pub fn resume(lines: Shared<[Line]>, consumed: Shared<Position>) -> Consumer {
        let head = consumed.0.load(Ordering::Acquire);
        Consumer { published: head, head, ..Consumer::new(lines, consumed) }
    }

    /// Messages taken so far.
    pub fn position(&self) -> u64 {
        self.head
    }

    pub fn capacity(&self) -> usize {
        self.lines.len()
    }

    fn next_line(&self) -> &Line {
        &self.lines[(self.head as usize) & (self.lines.len() - 1)]
    }

    /// Whether a message waits.
    pub fn has_message(&self) -> bool {
        self.next_line().sequence.load(Ordering::Acquire) == mark(self.head + 1)
    }

    fn is_written(&self, ahead: u64) -> bool {
        let position = self.head + ahead;
        let line = &self.lines[(position as usize) & (self.lines.len() - 1)];
        line.sequence.load(Ordering::Acquire) == mark(position + 1)
    }

    /// Messages that wait. Reads a logarithmic number of lines, since it reads no index of the producer.
    pub fn backlog(&self) -> usize {
        let capacity = self.lines.len() as u64;
        // Lines are written in order: those up to some place are, those from there on are not.
        let (mut written, mut step) = (0, 1);
        while written + step <= capacity && self.is_written(written + step - 1) {
            written += step;
            step *= 2;
        }
        while step > 0 {
            if written + step <= capacity && self.is_written(written + step - 1) {
                written += step;
            }
            step /= 2;
        }
        written as usize
    }

    /// The next message, which stays in the queue.
    pub fn peek(&mut self) -> Option<Message> {
        let line = self.next_line();
        let sequence = line.sequence.load(Ordering::Acquire);
        let written = sequence == mark(self.head + 1);
        // Not written yet: the line still has the mark of the last round.
        self.broken = !written && sequence != mark((self.head + 1).saturating_sub(self.lines.len() as u64));
        written.then(|| self.next_line().message())
    }

    /// Moves past the message that was peeked at. The position is published lazily: every quarter of the ring and by
    /// [`Consumer::publish`].
    pub fn advance(&mut self) {
        let capacity = self.lines.len() as u64;
        self.head += 1;
        let unpublished = self.head.wrapping_sub(self.published);
        assert!(unpublished <= capacity, "{unpublished} messages of a queue of {capacity} were taken untold");
        if unpublished >= (capacity / 4).max(1) {
            self.publish();
        }
    }

    /// Takes the next message.
    pub fn pop(&mut self) -> Option<Message> {
        let message = self.peek()?;
        self.advance();
        Some(message)
    }

    /// Whether the next line held a mark that no sound producer writes there.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Publishes the position for the producer. Called at the end of a batch and before sleeping. This also repairs what a
    /// stray write left there.
    pub fn publish(&mut self) {
        if self.published != self.head || self.consumed.0.load(Ordering::Relaxed) != self.head {
            self.published = self.head;
            self.consumed.0.store(self.head, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
