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

/// So many bytes show their place in a stream.
const MARK: usize = 64;

/// The bytes of `buffer` that differ from those of `place`, and how far the stream has come with it. Where bytes are missing or
/// come twice, all that follows is shifted: they count once, and the stream goes on from the place that its last bytes show.
pub fn follow(buffer: &[u8], place: u64) -> (u64, u64) {
    let len = buffer.len() as u64;
    let damaged = damaged(buffer, place);
    let Some(mark) = buffer.last_chunk::<MARK>().filter(|_| damaged > 0) else { return (damaged, len) };
    let is_here = self::damaged(mark, place + len - MARK as u64) == 0;
    let Some(at) = (!is_here).then(|| position(mark)).flatten() else { return (damaged, len) };
    let (period, end) = (PERIOD as u64, (at + MARK) as u64);
    (damaged, (end + period - place % period) % period)
}

/// Where in a period these bytes are.
fn position(mark: &[u8; MARK]) -> Option<usize> {
    let mut here = [0; MARK];
    (0..PERIOD).find(|at| {
        block()[*at] == mark[0] && {
            fill(&mut here, *at as u64);
            here == *mark
        }
    })
}

#[cfg(test)]
mod tests;
