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
        self.waiting_behind(0)
    }

    /// The same without so many of the first ones.
    pub fn waiting_behind(&self, count: usize) -> impl Iterator<Item = Message> {
        let head = self.consumed.0.load(Ordering::Acquire);
        (count..self.lines.len()).map_while(move |ahead| self.written_at(head, ahead).map(Line::message))
    }

    /// The messages that were written last, also those that were taken, in no order. Where the next one goes, the writer may have
    /// died while it wrote, so what lies there is left out.
    pub fn last_written(&self) -> impl Iterator<Item = Message> {
        let (written, capacity) = (self.written(), self.lines.len() as u64);
        let is_whole = move |i: &usize| {
            let number = self.number(*i);
            number > 0 && self.belongs(*i, number) && number.saturating_add(capacity) > written + 1
        };
        (0..self.lines.len()).filter(is_whole).map(|i| self.lines[i].message())
    }

    /// How many messages wait. Exact only while neither side is at work.
    pub fn count(&self) -> usize {
        let head = self.consumed.0.load(Ordering::Acquire);
        let (mut waiting, mut free) = (0, self.lines.len());
        // All that are written lie before all that are not.
        while waiting < free {
            let middle = waiting + (free - waiting) / 2;
            match self.written_at(head, middle) {
                Some(_) => waiting = middle + 1,
                None => free = middle,
            }
        }
        waiting
    }

    /// The line so far behind a position, if there is a message in it.
    fn written_at(&self, head: u64, behind: usize) -> Option<&Line> {
        let at = head.wrapping_add(behind as u64);
        let line = &self.lines[at as usize & (self.lines.len() - 1)];
        let is_written = line.sequence.load(Ordering::Acquire) == mark(at.wrapping_add(1));
        is_written.then_some(line)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
