//! A checksum of what a transport has ip send, beside the packet's own.
//!
//! The checksum of a segment or datagram is completed by the device, over the header and the payload that ip names. So what is
//! wrong by then gets a right one: a changed bit of ip's memory would have other bytes of a ring go out, or these with another
//! sequence number, and no receiver would notice. (A TAP has none computed at all.) Therefore a transport seals its header and
//! its references, ip passes the seal on, and who uses the references compares: the NIC before it hands a frame to the device,
//! ip before it copies a packet or cuts it.
//!
//! Against accidents, not against forgery: ip may seal what it likes.

use eft_base::PacketRef;
use zerocopy::IntoBytes;

/// Random and odd, so that no multiple by an odd number lacks a bit.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// Words of the longest header: those of references are weighed from there on.
const HEADER_WORDS: u64 = 16;

/// The sum of words, each weighed by its place.
struct Weighed {
    sum: u64,
    weight: u64,
}

impl Weighed {
    /// From the word at this place on.
    fn from(place: u64) -> Weighed {
        Weighed { sum: 0, weight: weight(place) }
    }

    #[inline]
    fn add(&mut self, word: [u8; 4]) {
        self.sum = self.sum.wrapping_add(u64::from(u32::from_le_bytes(word)).wrapping_mul(self.weight));
        self.weight = self.weight.wrapping_add(STEP.wrapping_mul(2));
    }
}

fn weight(place: u64) -> u64 {
    STEP.wrapping_mul(2 * place + 1)
}

/// The seal of a transport's header, but for the two bytes at `checksum_at`, and of the references to its payload. Never 0, which
/// stands for none. A `checksum_at` outside of the header leaves no bytes out.
#[inline]
pub fn seal(header: &[u8], checksum_at: usize, payload: &[PacketRef]) -> u32 {
    let mut head = Weighed::from(0);
    let (words, rest) = header.as_chunks::<4>();
    words.iter().for_each(|word| head.add(*word));
    if !rest.is_empty() {
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        head.add(last);
    }
    let mut refs = Weighed::from(HEADER_WORDS);
    for r in payload {
        r.as_bytes().as_chunks::<4>().0.iter().for_each(|word| refs.add(*word));
    }
    let lengths = (header.len() as u64) << 32 | payload.len() as u64;
    let sum = head.sum.wrapping_add(refs.sum).wrapping_add(lengths.wrapping_mul(STEP));
    let sum = sum.wrapping_sub(checksum(header, checksum_at));
    ((sum >> 32) as u32 ^ sum as u32).max(1)
}

/// What the two bytes at `at` add to the sum.
fn checksum(header: &[u8], at: usize) -> u64 {
    let Some(field) = at.checked_add(2).and_then(|end| header.get(at..end)) else { return 0 };
    let byte = |at: usize| (u64::from(header[at]) << (8 * (at % 4))).wrapping_mul(weight(at as u64 / 4));
    debug_assert!(field.len() == 2);
    byte(at).wrapping_add(byte(at + 1))
}

#[cfg(test)]
mod tests;
