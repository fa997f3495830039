//! What applications send: each byte tells its stream and position.

/// The byte at `offset` of the stream with the salt `salt`.
pub fn byte_at(salt: u64, offset: u64) -> u8 {
    let x = (offset / 8).wrapping_add(salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x >> (offset % 8 * 8)) as u8
}
