//! Inputs that are right in most places: valid ones, damaged a little.

use crate::source::Source;

/// Values at which length checks and signed arithmetic break.
const EDGES: [u32; 12] = [0, 1, 4, 20, 63, 64, 127, 255, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff];

/// Valid inputs of one kind.
pub struct Examples {
    entries: Vec<Vec<u8>>,
    len_max: usize,
}

impl Examples {
    pub fn new(entries: Vec<Vec<u8>>, len_max: usize) -> Examples {
        assert!(!entries.is_empty());
        Examples { entries, len_max }
    }

    pub fn of_texts(entries: &[&str], len_max: usize) -> Examples {
        Examples::new(entries.iter().map(|t| t.as_bytes().to_vec()).collect(), len_max)
    }

    pub fn pick(&self, source: &mut Source) -> &[u8] {
        &self.entries[source.below(self.entries.len() as u64) as usize]
    }

    /// One of them, usually damaged in a few places; seldom, bytes as they come, since a fuzzer that sees coverage makes
    /// something of them.
    pub fn mutated(&self, source: &mut Source) -> Vec<u8> {
        if source.byte() >= 240 {
            return self.raw(source);
        }
        let mut bytes = self.pick(source).to_vec();
        for _ in 0..source.below(6) {
            self.damage(&mut bytes, source);
        }
        bytes
    }

    /// As [`Examples::mutated`], as text.
    pub fn mutated_text(&self, source: &mut Source) -> String {
        if source.byte() >= 240 {
            return String::from_utf8_lossy(&self.raw(source)).into_owned();
        }
        let mut bytes = self.pick(source).to_vec();
        for _ in 0..source.below(8) {
            match source.below(3) {
                0 => self.damage(&mut bytes, source),
                _ => self.move_word(&mut bytes, source),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn raw(&self, source: &mut Source) -> Vec<u8> {
        let len = source.below(512.min(self.len_max as u64)) as usize;
        source.bytes(len)
    }

    fn damage(&self, bytes: &mut Vec<u8>, source: &mut Source) {
        let at = source.below(bytes.len() as u64) as usize;
        match source.below(9) {
            0..=1 if !bytes.is_empty() => bytes[at] ^= 1 << source.below(8),
            2 if !bytes.is_empty() => bytes[at] = source.byte(),
            3 => write_edge(bytes, at, source),
            4 => bytes.truncate(at),
            5 => {
                let n = source.below(40) as usize;
                bytes.splice(at..at, source.bytes(n));
            }
            6 => {
                let end = (at + source.below(40) as usize).min(bytes.len());
                bytes.drain(at..end);
            }
            7 => {
                let end = (at + source.below(200) as usize).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = source.below(bytes.len() as u64 + 1) as usize;
                bytes.splice(to..to, piece);
            }
            _ => {
                let other = self.pick(source);
                let from = source.below(other.len() as u64) as usize;
                let piece = other[from..].to_vec();
                bytes.truncate(at);
                bytes.extend(piece);
            }
        }
        bytes.truncate(self.len_max);
    }

    /// Puts a word of some entry between two words: texts that go wrong late.
    fn move_word(&self, bytes: &mut Vec<u8>, source: &mut Source) {
        let other = self.pick(source);
        let words: Vec<&[u8]> = other.split(|b| b.is_ascii_whitespace()).collect();
        let word = words[source.below(words.len() as u64) as usize];
        let gaps: Vec<usize> = (0..bytes.len()).filter(|i| bytes[*i].is_ascii_whitespace()).collect();
        let at = match gaps.len() {
            0 => bytes.len(),
            n => gaps[source.below(n as u64) as usize],
        };
        let mut piece = vec![b' '];
        piece.extend_from_slice(word);
        let end = match source.below(3) {
            // In place of the word that was there.
            0 => gaps.iter().copied().find(|g| *g > at).unwrap_or(bytes.len()),
            _ => at,
        };
        bytes.splice(at..end, piece);
        bytes.truncate(self.len_max);
    }
}

/// Writes a number at which checks break, in 1, 2 or 4 bytes of either order.
pub fn write_edge(bytes: &mut [u8], at: usize, source: &mut Source) {
    let value = EDGES[source.below(EDGES.len() as u64) as usize];
    let all = if source.chance(0.5) { value.to_be_bytes() } else { value.to_le_bytes() };
    let n = [1, 2, 4][source.below(3) as usize];
    let piece = if value.to_be_bytes() == all { &all[4 - n..] } else { &all[..n] };
    for (to, from) in bytes.iter_mut().skip(at).zip(piece) {
        *to = *from;
    }
}

/// A 64-bit value as a hostile peer would choose it: at an edge, near `near`, or anything.
pub fn hostile_u64(near: u64, source: &mut Source) -> u64 {
    match source.below(6) {
        0 => 0,
        1 => u64::MAX - source.below(3),
        2 => near.wrapping_add(source.below(9)).wrapping_sub(4),
        3 => near.wrapping_add(1 << source.below(64)),
        4 => EDGES[source.below(EDGES.len() as u64) as usize] as u64,
        _ => source.next_u64(),
    }
}
