//! SO_MAX_PACING_RATE in a page: two words, with all bits flipped, so that a fresh page has no limit.

use super::Opt;

/// The limit in bytes per second as `option` has it; `u64::MAX` is none.
pub fn limit(option: impl Fn(Opt) -> u32) -> u64 {
    !((option(Opt::PacingLimitHigh) as u64) << 32 | option(Opt::PacingLimitLow) as u64)
}

/// The words of a limit.
pub fn words(limit: u64) -> [(Opt, u32); 2] {
    [(Opt::PacingLimitLow, !limit as u32), (Opt::PacingLimitHigh, (!limit >> 32) as u32)]
}
