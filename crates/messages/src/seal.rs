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

/// Random and odd: no multiple of a changed bit by a power of it is 0.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A polynomial of words. (A sum of weighed words can be vectorized, which takes more instructions for so few.)
#[inline(always)]
fn take(sum: u64, word: u64) -> u64 {
    sum.wrapping_add(word).wrapping_mul(FACTOR)
}

/// The seal of a transport's header, but for the two bytes at `checksum_at`, and of the references to its payload. Never 0, which
/// stands for none. `checksum_at` is even.
#[inline]
pub fn seal(header: &[u8], checksum_at: usize, payload: &[PacketRef]) -> u32 {
    let mut sum = (header.len() as u64) << 32 | payload.len() as u64;
    let (words, rest) = header.as_chunks::<8>();
    let left_out = 0xffff << (8 * (checksum_at % 8));
    for (i, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        sum = take(sum, if i == checksum_at / 8 { word & !left_out } else { word });
    }
    if !rest.is_empty() {
        let word = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        sum = take(sum, if words.len() == checksum_at / 8 { word & !left_out } else { word });
    }
    for word in payload.as_bytes().as_chunks::<8>().0 {
        sum = take(sum, u64::from_le_bytes(*word));
    }
    ((sum >> 32) as u32 ^ sum as u32).max(1)
}

#[cfg(test)]
mod tests;
