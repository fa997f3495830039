//! The wire, and a peer that gathers what arrives and acknowledges it.

use super::profile::Network;

pub struct Wire {
    network: Network,
    maximum_segment: u64,
    free_at_ps: u64,
    /// Of each stream what the peer has and has not acknowledged: bytes, and segments.
    gathered: Vec<(u64, u64)>,
    is_gathering: bool,
}

impl Wire {
    pub fn new(network: Network, maximum_segment: u64, streams: usize) -> Self {
        Self { network, maximum_segment, free_at_ps: 0, gathered: vec![(0, 0); streams], is_gathering: false }
    }

    /// Sends; returns when the last byte has left.
    pub fn send(&mut self, now_ps: u64, bytes: u64) -> u64 {
        self.free_at_ps = self.free_at_ps.max(now_ps) + self.takes_ps(bytes);
        self.free_at_ps
    }

    /// How long a segment with so much payload has the wire.
    pub fn takes_ps(&self, bytes: u64) -> u64 {
        // A segment without payload is a frame, too.
        let frames = bytes.div_ceil(self.maximum_segment).max(1);
        let on_wire = bytes + frames * self.network.overhead_bytes;
        on_wire * 8 * 1_000_000 / self.network.mbps
    }

    /// The peer has received `bytes`; returns whether it begins to gather with them.
    pub fn arrive(&mut self, stream: usize, bytes: u64) -> bool {
        let (known, segments) = &mut self.gathered[stream];
        *known += bytes;
        *segments += bytes.div_ceil(self.maximum_segment);
        !std::mem::replace(&mut self.is_gathering, true)
    }

    /// Takes a stream's unacknowledged bytes, for a frame of the peer that acknowledges them.
    pub fn take(&mut self, stream: usize) -> u64 {
        std::mem::take(&mut self.gathered[stream]).0
    }

    /// Acknowledgements of the gathered bytes, one for each stream: tcp answers once a turn, as tier 1 shows.
    /// `quickly`: whether a stream's first segment does not wait for more.
    pub fn acknowledge(&mut self, mut quickly: impl FnMut(usize, u64) -> bool) -> Vec<(usize, u64)> {
        self.is_gathering = false;
        let mut all = Vec::new();
        for (stream, gathered) in self.gathered.iter_mut().enumerate() {
            // Less than two segments waits for more (RFC 1122, section 4.2.3.2).
            if gathered.1 > 0 && (quickly(stream, gathered.1) || gathered.1 >= 2) {
                all.push((stream, std::mem::take(gathered).0));
            }
        }
        all
    }
}
