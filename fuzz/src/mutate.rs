//! Inputs that are right in most places: valid ones, damaged a little.

use eft_base::Random;

/// Values at which length checks and signed arithmetic break.
const EDGES: [u32; 12] = [0, 1, 4, 20, 63, 64, 127, 255, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff];

/// Valid inputs of one kind.
pub struct Corpus {
    entries: Vec<Vec<u8>>,
    len_max: usize,
}

impl Corpus {
    pub fn new(entries: Vec<Vec<u8>>, len_max: usize) -> Corpus {
        assert!(!entries.is_empty());
        Corpus { entries, len_max }
    }

    pub fn of_texts(entries: &[&str], len_max: usize) -> Corpus {
        Corpus::new(entries.iter().map(|t| t.as_bytes().to_vec()).collect(), len_max)
    }

    pub fn pick(&self, random: &mut Random) -> &[u8] {
        &self.entries[random.below(self.entries.len() as u64) as usize]
    }

    /// One of them, usually damaged in a few places.
    pub fn mutated(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.pick(random).to_vec();
        for _ in 0..random.below(6) {
            self.damage(&mut bytes, random);
        }
        bytes
    }

    /// As [`Corpus::mutated`], as text.
    pub fn mutated_text(&self, random: &mut Random) -> String {
        let mut bytes = self.pick(random).to_vec();
        for _ in 0..random.below(8) {
            match random.below(3) {
                0 => self.damage(&mut bytes, random),
                _ => self.move_word(&mut bytes, random),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn damage(&self, bytes: &mut Vec<u8>, random: &mut Random) {
        let at = random.below(bytes.len() as u64) as usize;
        match random.below(9) {
            0..=1 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            2 if !bytes.is_empty() => bytes[at] = random.next_u32() as u8,
            3 => write_edge(bytes, at, random),
            4 => bytes.truncate(at),
            5 => {
                let n = random.below(40) as usize;
                bytes.splice(at..at, (0..n).map(|_| random.next_u32() as u8));
            }
            6 => {
                let end = (at + random.below(40) as usize).min(bytes.len());
                bytes.drain(at..end);
            }
            7 => {
                let end = (at + random.below(200) as usize).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len() as u64 + 1) as usize;
                bytes.splice(to..to, piece);
            }
            _ => {
                let other = self.pick(random);
                let from = random.below(other.len() as u64) as usize;
                let piece = other[from..].to_vec();
                bytes.truncate(at);
                bytes.extend(piece);
            }
        }
        bytes.truncate(self.len_max);
    }

    /// Puts a word of some entry between two words: texts that go wrong late.
    fn move_word(&self, bytes: &mut Vec<u8>, random: &mut Random) {
        let other = self.pick(random);
        let words: Vec<&[u8]> = other.split(|b| b.is_ascii_whitespace()).collect();
        let word = words[random.below(words.len() as u64) as usize];
        let gaps: Vec<usize> = (0..bytes.len()).filter(|i| bytes[*i].is_ascii_whitespace()).collect();
        let at = match gaps.len() {
            0 => bytes.len(),
            n => gaps[random.below(n as u64) as usize],
        };
        let mut piece = vec![b' '];
        piece.extend_from_slice(word);
        let end = match random.below(3) {
            // In place of the word that was there.
            0 => gaps.iter().copied().find(|g| *g > at).unwrap_or(bytes.len()),
            _ => at,
        };
        bytes.splice(at..end, piece);
        bytes.truncate(self.len_max);
    }
}

/// Writes a number at which checks break, in 1, 2 or 4 bytes of either order.
pub fn write_edge(bytes: &mut [u8], at: usize, random: &mut Random) {
    let value = EDGES[random.below(EDGES.len() as u64) as usize];
    let all = if random.chance(0.5) { value.to_be_bytes() } else { value.to_le_bytes() };
    let n = [1, 2, 4][random.below(3) as usize];
    let piece = if value.to_be_bytes() == all { &all[4 - n..] } else { &all[..n] };
    for (to, from) in bytes.iter_mut().skip(at).zip(piece) {
        *to = *from;
    }
}

/// A 64-bit value as a hostile peer would choose it: at an edge, near `near`, or anything.
pub fn hostile_u64(near: u64, random: &mut Random) -> u64 {
    match random.below(6) {
        0 => 0,
        1 => u64::MAX - random.below(3),
        2 => near.wrapping_add(random.below(9)).wrapping_sub(4),
        3 => near.wrapping_add(1 << random.below(64)),
        4 => EDGES[random.below(EDGES.len() as u64) as usize] as u64,
        _ => random.next_u64(),
    }
}
