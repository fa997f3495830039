//! Where a target's decisions come from: a string of bytes. A coverage-guided fuzzer brings its own; a seeded run draws
//! them from a generator and remembers them, so that what it found is a string of bytes, too.

use eft_base::Random;

/// Bytes, read from the front. Small decisions take one byte, so that a fuzzer that changes one changes one decision.
pub struct Source {
    bytes: Vec<u8>,
    at: usize,
    /// Brings more bytes when these are used up.
    more: Random,
    /// What `more` brings is remembered, and the source has no end.
    is_seeded: bool,
}

impl Source {
    /// Endless; the same seed gives the same bytes.
    pub fn seeded(seed: u64) -> Source {
        Source { bytes: Vec::new(), at: 0, more: Random::new(seed), is_seeded: true }
    }

    /// What `bytes` say. An input that is begun when they end is finished with numbers that are always the same.
    pub fn of_bytes(bytes: &[u8]) -> Source {
        Source { bytes: bytes.to_vec(), at: 0, more: Random::new(0), is_seeded: false }
    }

    /// No further input is to begin.
    pub fn is_at_end(&self) -> bool {
        !self.is_seeded && self.at >= self.bytes.len()
    }

    /// Ends a seeded source here, as if it had been made of the bytes that were used.
    pub fn end(&mut self) {
        if self.is_seeded {
            *self = Source { at: self.at, ..Source::of_bytes(self.used()) };
        }
    }

    /// The bytes that were used so far.
    pub fn used(&self) -> &[u8] {
        &self.bytes[..self.at.min(self.bytes.len())]
    }

    pub fn byte(&mut self) -> u8 {
        if self.at >= self.bytes.len() {
            let more = self.more.next_u64().to_le_bytes();
            if !self.is_seeded {
                return more[0];
            }
            self.bytes.extend(more);
        }
        self.at += 1;
        self.bytes[self.at - 1]
    }

    fn number(&mut self, len: usize) -> u64 {
        (0..len).fold(0, |n, i| n | (self.byte() as u64) << (8 * i))
    }

    pub fn next_u32(&mut self) -> u32 {
        self.number(4) as u32
    }

    pub fn next_u64(&mut self) -> u64 {
        self.number(8)
    }

    /// A number below `bound`, from as few bytes as can hold it; 0 if `bound` is 0 or 1, from none.
    pub fn below(&mut self, bound: u64) -> u64 {
        let Some(last @ 1..) = bound.checked_sub(1) else { return 0 };
        let len = (8 - last.leading_zeros() as usize / 8).max(1);
        self.number(len) % bound
    }

    /// True with probability `p`, in steps of 1/65536. Bytes of zero say no, unless `p` is 1.
    pub fn chance(&mut self, p: f64) -> bool {
        self.number(2) as f64 >= (1.0 - p) * 65536.0
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }

    /// A generator of its own, for what no fuzzer needs to steer: contents of payloads, keys, an engine's randomness.
    pub fn generator(&mut self) -> Random {
        Random::new(self.number(2))
    }

    /// Bytes that no fuzzer needs to steer.
    pub fn noise(&mut self, len: usize) -> Vec<u8> {
        let mut random = self.generator();
        (0..len).map(|_| random.next_u32() as u8).collect()
    }
}

#[cfg(test)]
mod tests;
