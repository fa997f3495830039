//! Round-trip time and retransmission timeout (RFC 9293 §3.8.1, RFC 6298).

use core::time::Duration;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// §2.1
const INITIAL_US: u32 = 1_000_000;
/// §2.4 requires a timeout of at least a second. As on Linux, the variance has this lower bound instead: a peer may
/// delay an acknowledgement by this much, however long the round trip is.
const VARIANCE_MIN_US: u32 = 200_000;
const MIN_US: u32 = VARIANCE_MIN_US;
/// §2.5 allows 60 s or more.
const MAX_US: u32 = 120_000_000;

/// Timeouts in a row, as Linux's tcp_retries2.
pub(super) const RETRIES: u8 = 15;

/// Durable estimator.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Rtt {
    pub srtt_us: u32,
    pub rttvar_us: u32,
    rto_us: u32,
    /// The shortest ([`super::min_rtt`]); 0: none was measured.
    pub min_us: u32,
}

impl Rtt {
    pub fn new() -> Self {
        Rtt { srtt_us: 0, rttvar_us: 0, rto_us: INITIAL_US, min_us: 0 }
    }

    /// Takes a measured round trip (§2.2, §2.3). The caller applies Karn's algorithm (§3).
    pub fn sample(&mut self, us: u32) {
        let us = us.clamp(1, MAX_US);
        if self.srtt_us == 0 {
            self.srtt_us = us;
            self.rttvar_us = us / 2;
            self.min_us = us;
        } else {
            let error = self.srtt_us.abs_diff(us);
            self.rttvar_us = ((3 * self.rttvar_us as u64 + error as u64) / 4) as u32;
            self.srtt_us = (((7 * self.srtt_us as u64) + us as u64) / 8).max(1) as u32;
        }
        let rto = self.srtt_us as u64 + (4 * self.rttvar_us as u64).max(VARIANCE_MIN_US as u64);
        self.rto_us = rto.clamp(MIN_US as u64, MAX_US as u64) as u32;
    }

    /// The handshake's SYN was retransmitted: RFC 6298 §5.7.
    pub fn distrust_handshake(&mut self) {
        if self.srtt_us == 0 {
            self.rto_us = 3_000_000;
        }
    }

    pub fn rto(&self) -> Duration {
        Duration::from_micros(self.rto_us as u64)
    }

    /// The timeout after `backoff` expiries (§5.5).
    pub fn backed_off(&self, backoff: u32) -> Duration {
        let us = (self.rto_us as u64) << backoff.min(20);
        Duration::from_micros(us.min(MAX_US as u64))
    }

    pub fn rto_us(&self) -> u32 {
        self.rto_us
    }

    /// Repairs invalid values.
    pub fn sanitize(&mut self) {
        self.rto_us = self.rto_us.clamp(MIN_US, MAX_US);
        self.srtt_us = self.srtt_us.min(MAX_US);
        self.rttvar_us = self.rttvar_us.min(MAX_US);
        self.min_us = self.min_us.min(MAX_US);
    }
}

#[cfg(test)]
mod tests;
