//! SYN cookies (RFC 4987 §3.6): a listener that has no room for another handshake answers a SYN and forgets it. The
//! initial sequence number of the answer is a keyed hash of the SYN, and contains the peer's MSS; the other options that
//! were agreed on lie in the lowest bits of the answer's timestamp, which the peer echoes, as on Linux. A peer that
//! acknowledges a cookie has received it, so a connection is made from its acknowledgment.
//!
//! Only the arena's secret is durable: a successor accepts the cookies of its predecessor.
//!
//! Without timestamps only the MSS is agreed on. The answer is not sent again if it is lost (the peer's SYN is), and the
//! first segment after the handshake must arrive first, both as on Linux.
//! What the engine does with them is in [`super::stateless`].

use super::asked::MTU_MIN;
use super::block::clock;
use super::options::{Options, SCALE_MAX};
use core::time::Duration;
use eft_base::Instant;

/// Cookies are equal within a period; a cookie is valid in its own period and in the next.
const PERIOD: Duration = Duration::from_secs(64);
/// A cookie keeps the largest of these that is not larger than the peer's MSS. They fit the usual paths of IPv4 and IPv6.
pub(super) const SIZES: [u16; 8] = [64, 536, 1220, 1300, 1400, 1440, 1460, 8940];
/// Bits of a cookie that are an index of [`SIZES`].
pub(super) const SIZE_MASK: u32 = 7;
/// Bits of a timestamp that say what was agreed on: the window shift, or [`NO_SCALE`], SACK, and ECN.
const STAMP_MASK: u32 = 63;
const SCALE_BITS: u32 = 15;
const NO_SCALE: u32 = 15;
const SACK_BIT: u32 = 16;
const ECN_BIT: u32 = 32;
/// MTU of the path until ip has answered: the default MSS and its headers (RFC 9293 §3.7.1).
const MTU_UNKNOWN: u16 = 576;

/// What the engine remembers of cookies.
pub(super) struct SynCookies {
    /// Until when a sent cookie may come back.
    pub until: Instant,
    /// MTU of the path that ip answered about last. ip is not asked about every peer of a flood, and most paths of a host
    /// begin at one device.
    pub mtu: u16,
}

impl SynCookies {
    pub fn new() -> SynCookies {
        SynCookies { until: Instant::ZERO, mtu: MTU_UNKNOWN }
    }

    /// A cookie was sent, or a predecessor may have sent one.
    pub fn expect(&mut self, now: Instant) {
        self.until = now + 2 * PERIOD;
    }

    pub fn note_mtu(&mut self, mtu: u16) {
        self.mtu = mtu.max(MTU_MIN);
    }
}

pub(super) fn period(now: Instant) -> u64 {
    now.as_nanos() / PERIOD.as_nanos() as u64
}

/// The index of the largest of [`SIZES`] that the peer accepts.
pub(super) fn size_index(mss: u16) -> u32 {
    SIZES.iter().rposition(|size| *size <= mss).unwrap_or(0) as u32
}

/// The latest timestamp that is not in the future and contains `agreed`. One in the future would make later ones look old
/// (RFC 7323 §5.2).
pub(super) fn stamp(now: Instant, agreed: u32) -> u32 {
    let clock = clock(now, 0);
    let stamp = clock & !STAMP_MASK | agreed;
    if agreed > clock & STAMP_MASK { stamp.wrapping_sub(STAMP_MASK + 1) } else { stamp }
}

/// The options that a SYN offers, for [`stamp`]. `marks`: it asks for ECN (RFC 3168).
pub(super) fn agreed(options: &Options, marks: bool) -> u32 {
    let sack = if options.sack_permitted { SACK_BIT } else { 0 };
    options.scale.map_or(NO_SCALE, u32::from) | sack | if marks { ECN_BIT } else { 0 }
}

/// Whether a SYN that was answered with a cookie asked for ECN, from the timestamps that came back.
pub(super) fn offered_marks(timestamps: Option<(u32, u32)>, ts_offset: u32) -> bool {
    timestamps.is_some_and(|(_, echo)| echo.wrapping_sub(ts_offset) & ECN_BIT != 0)
}

/// The options of a SYN that was answered with a cookie, from the timestamps that came back.
pub(super) fn offered(mss: u16, timestamps: Option<(u32, u32)>, ts_offset: u32) -> Options {
    let mut options = Options { mss: Some(mss), timestamps, ..Options::default() };
    if let Some((_, echo)) = timestamps {
        let agreed = echo.wrapping_sub(ts_offset) & STAMP_MASK;
        options.scale = Some((agreed & SCALE_BITS) as u8).filter(|scale| *scale <= SCALE_MAX);
        options.sack_permitted = agreed & SACK_BIT != 0;
    }
    options
}

#[cfg(test)]
mod tests;
