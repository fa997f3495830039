//! How large a segment is that the device cuts: as large as the device takes, so that the cost per byte is that of a few large
//! messages, but no burst that a slow path would have to queue. The same bounds as Linux's:
//!
//! - about what the connection sends in a millisecond (`tcp_tso_autosize`), and the more in a shorter round trip, so that
//!   paths within a machine room have no bound;
//! - half of the congestion window, and half of the largest window that the peer offered: acknowledgements come while the
//!   other half is under way.

use core::str::FromStr;

/// The least that a rate bounds a large segment to, in full segments: as Linux's `net.ipv4.tcp_min_tso_segs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinSegments(u16);

impl MinSegments {
    pub const MAX: u16 = 1000;

    pub fn count(self) -> u16 {
        self.0
    }
}

impl Default for MinSegments {
    fn default() -> Self {
        MinSegments(2)
    }
}

impl core::fmt::Display for MinSegments {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for MinSegments {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<MinSegments, &'static str> {
        let count = text.parse().ok().filter(|count| (1..=MinSegments::MAX).contains(count));
        count.map(MinSegments).ok_or("is no number from 1 to 1000")
    }
}

/// What the bounds depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizing {
    pub mss: u32,
    /// Largest payload that the device takes.
    pub device: u32,
    /// The largest window that the peer ever offered.
    pub window_max: u32,
    pub cwnd: u32,
    pub min_rtt_us: u32,
    /// Bytes per second at which the connection sends; `u64::MAX`: not known.
    pub rate: u64,
}

impl Sizing {
    /// Largest payload of one `Send`: a multiple of the segment size, at least one.
    pub fn chunk(&self, least: MinSegments) -> u64 {
        let mss = self.mss.max(1) as u64;
        let rate = self.per_millisecond().max(least.count() as u64 * mss);
        let halves = (self.cwnd / 2).min(self.window_max / 2) as u64;
        (rate.min(halves).min(self.device as u64) / mss).max(1) * mss
    }

    /// Bytes that the connection sends in about a millisecond, at the rate at which it is or would be paced.
    fn per_millisecond(&self) -> u64 {
        if self.rate == u64::MAX {
            return u64::MAX;
        }
        let short_path = (self.device as u64).checked_shr(self.min_rtt_us >> 9).unwrap_or(0);
        (self.rate >> 10) + short_path
    }
}

#[cfg(test)]
mod tests;
