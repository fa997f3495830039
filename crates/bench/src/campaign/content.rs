//! What bulk connections carry: bytes that follow from their place in the stream, so that each can be checked where it arrives.

use std::sync::OnceLock;

use eft_base::Random;

/// A prime, so that data shifted by pages, segments or rings is detected.
const PERIOD: usize = 65_521;
pub const CHUNK: usize = 16 * 1024;

fn block() -> &'static [u8] {
    static BLOCK: OnceLock<Vec<u8>> = OnceLock::new();
    BLOCK.get_or_init(|| {
        let mut random = Random::new(7);
        (0..PERIOD + CHUNK).map(|i| if i < PERIOD { random.next_u32() as u8 } else { 0 }).collect::<Vec<u8>>()
    })
}

/// Fills `buffer`, of at most [`CHUNK`] bytes, with the content at `place` of a stream.
pub fn fill(buffer: &mut [u8], place: u64) {
    let from = (place % PERIOD as u64) as usize;
    let first = buffer.len().min(PERIOD - from);
    buffer[..first].copy_from_slice(&block()[from..from + first]);
    let rest = buffer.len() - first;
    buffer[first..].copy_from_slice(&block()[..rest]);
}

/// How many bytes differ from those of `place`.
pub fn damaged(buffer: &[u8], place: u64) -> u64 {
    let mut want = [0; CHUNK];
    let want = &mut want[..buffer.len()];
    fill(want, place);
    if want == buffer {
        return 0;
    }
    want.iter().zip(buffer).filter(|(a, b)| a != b).count() as u64
}

#[cfg(test)]
mod tests;
