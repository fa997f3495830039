//! AccECN's option (RFC 9768 §3.2.3): how many bytes came in packets with each of the ECN field's codes.
//!
//! Counts are of 24 bits on the wire and lie in the order of the codes: ECT(1), ECT(0), CE. What a connection does with them is in
//! [`super::byte_counting`].

/// The kinds of the option: which count it begins with. CE is always the second.
const FROM_ECT_0: u8 = 172;
const FROM_ECT_1: u8 = 174;
const FIELD_LEN: usize = 3;
const FIELDS: usize = 3;
/// The whole option and its padding.
pub const LEN_MAX: usize = 12;
/// No-Operation.
const PADDING: u8 = 1;
const MASK: u32 = 0xff_ffff;
/// Not among the option's counts.
const UNTOLD: u32 = u32::MAX;

/// Counts begin here, so that an option that something on the way clears is noticed (RFC 9768 §3.2.1).
pub const FIRST: [u32; FIELDS] = [1, 1, 0];
/// Where the counts of ECT(1), ECT(0) and CE lie.
pub const ECT_1: usize = 0;
pub const ECT_0: usize = 1;
pub const CE: usize = 2;

/// What an option tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteCounts([u32; FIELDS]);

/// Which counts the fields of an option of this kind are.
fn order(kind: u8) -> Option<[usize; FIELDS]> {
    match kind {
        FROM_ECT_0 => Some([ECT_0, CE, ECT_1]),
        FROM_ECT_1 => Some([ECT_1, CE, ECT_0]),
        _ => None,
    }
}

impl ByteCounts {
    /// Reads an option. It may have any number of fields; what lies behind the third is not known (RFC 9768 §3.2.3).
    pub fn parse(kind: u8, data: &[u8]) -> Option<ByteCounts> {
        let order = order(kind)?;
        let mut counts = [UNTOLD; FIELDS];
        for (field, at) in data.chunks_exact(FIELD_LEN).zip(order) {
            counts[at] = u32::from_be_bytes([0, field[0], field[1], field[2]]);
        }
        Some(ByteCounts(counts))
    }

    /// The count of this code, if it is told.
    pub fn get(&self, at: usize) -> Option<u32> {
        Some(self.0[at]).filter(|count| *count != UNTOLD)
    }

    /// By how much a count grew beyond `known` bytes, or shrank: this option was overtaken by another.
    pub fn growth(&self, at: usize, known: u32) -> i32 {
        let told = self.get(at).map_or(0, |told| told.wrapping_sub(FIRST[at]).wrapping_sub(known));
        // Of 24 bits, with sign.
        (told << 8) as i32 >> 8
    }

    pub fn is_empty(&self) -> bool {
        self.0 == [UNTOLD; FIELDS]
    }

    /// Whether a count is 0 that does not begin so: something has cleared the option (RFC 9768 §3.2.3.2.4).
    pub fn is_cleared(&self) -> bool {
        self.get(ECT_1) == Some(0) || self.get(ECT_0) == Some(0)
    }
}

/// How many fields fit into `room` bytes of a header, padded to words; 0: not one.
pub fn fitting(room: usize) -> usize {
    match room {
        LEN_MAX.. => 3,
        8.. => 2,
        _ => 0,
    }
}

/// The option with the first so many `fields` (2 or 3), padded to words. One code of the two that say that a packet may be marked is
/// mostly not in use: with two fields it is the one that is left out.
pub fn option(bytes: [u32; FIELDS], fields: usize) -> ([u8; LEN_MAX], usize) {
    let kind = if fields < FIELDS && bytes[ECT_1] == 0 { FROM_ECT_0 } else { FROM_ECT_1 };
    let len = 2 + fields * FIELD_LEN;
    let mut option = [PADDING; LEN_MAX];
    option[..2].copy_from_slice(&[kind, len as u8]);
    let order = order(kind).into_iter().flatten();
    for (field, at) in option[2..len].chunks_exact_mut(FIELD_LEN).zip(order) {
        let count = bytes[at].wrapping_add(FIRST[at]) & MASK;
        field.copy_from_slice(&count.to_be_bytes()[1..]);
    }
    (option, len.next_multiple_of(4))
}

#[cfg(test)]
mod tests;
