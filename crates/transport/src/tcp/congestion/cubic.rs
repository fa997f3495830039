//! CUBIC (RFC 9438). Windows are kept in segments, as in the RFC's equations.

use super::{Acked, Congestion};
use core::time::Duration;
use eft_base::Instant;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// §5.1
const C: f32 = 0.4;
/// §4.6
const BETA: f32 = 0.7;
/// §4.3: 3 (1 - β) / (1 + β)
const ALPHA: f32 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// A connection that has lost nothing does not know what its path carries, and RFC 9438 would let its window creep after the
/// end of slow start (§4.10). As on Linux it grows by a twentieth in a round trip, at least.
const SEARCH: f32 = 0.05;

/// Durable state of CUBIC.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Cubic {
    /// When the present epoch of avoidance began, in nanoseconds; 0: it has not.
    epoch_at: u64,
    w_max: f32,
    k: f32,
    w_est: f32,
    cwnd_prior: f32,
    /// Fraction of a byte not yet added to the window.
    carry: f32,
    /// Not 0: something was lost. 0 also in arenas of releases that did not note it.
    has_lost: u32,
}

impl Default for Cubic {
    fn default() -> Self {
        Self::new()
    }
}

impl Cubic {
    pub fn new() -> Self {
        Cubic { epoch_at: 0, w_max: 0.0, k: 0.0, w_est: 0.0, cwnd_prior: 0.0, carry: 0.0, has_lost: 0 }
    }

    pub fn is_sane(&self) -> bool {
        [self.w_max, self.k, self.w_est, self.cwnd_prior, self.carry]
            .iter()
            .all(|x| x.is_finite() && *x >= 0.0)
    }

    /// Avoidance begins anew with the next acknowledgement.
    pub fn restart(&mut self) {
        self.epoch_at = 0;
    }

    /// Excludes a pause from the time since the epoch began (§4.2, §5.8).
    pub fn shift(&mut self, pause: Duration) {
        if self.epoch_at != 0 {
            self.epoch_at = self.epoch_at.saturating_add(pause.as_nanos() as u64);
        }
    }

    /// Multiplicative decrease (§4.6) and fast convergence (§4.7): the new threshold in bytes.
    /// The window, not FlightSize, is its base, since it does not grow beyond what is used (§4.6, [`super::super::usage`]).
    pub fn reduced(&mut self, cwnd: u32, mss: u32) -> u32 {
        let w = cwnd as f32 / mss as f32;
        self.w_max = if w < self.w_max { w * (1.0 + BETA) / 2.0 } else { w };
        self.cwnd_prior = w;
        self.epoch_at = 0;
        self.has_lost = 1;
        ((cwnd as f32 * BETA) as u32).max(2 * mss)
    }

    fn begin(&mut self, now: Instant, w: f32) {
        self.epoch_at = now.as_nanos().max(1);
        self.w_est = w;
        self.carry = 0.0;
        if self.w_max <= w {
            // Slow start ended without loss (§4.10): the plateau is here.
            self.w_max = w;
            self.k = 0.0;
            self.cwnd_prior = w;
        } else {
            // §4.2, equation 2 with cwnd at the beginning of the epoch.
            self.k = libm::cbrtf((self.w_max - w) / C);
        }
    }
}

/// Congestion avoidance (§4.2 to §4.5).
pub(super) fn on_ack(c: &mut Congestion, acked: Acked) {
    let mss = acked.mss as f32;
    let w = c.cwnd as f32 / mss;
    let cubic = c.cubic_mut();
    if cubic.epoch_at == 0 {
        cubic.begin(acked.now, w);
    }
    let t = acked.now.as_nanos().saturating_sub(cubic.epoch_at) as f32 / 1e9;
    let rtt = acked.srtt_us as f32 / 1e6;
    let segments = acked.bytes as f32 / mss;
    // §4.3: at least as much as AIMD would have.
    let alpha = if cubic.w_est < cubic.cwnd_prior { ALPHA } else { 1.0 };
    cubic.w_est += alpha * segments / w;
    let at = |t: f32| {
        let d = t - cubic.k;
        C * d * d * d + cubic.w_max
    };
    let grow = if at(t) < cubic.w_est {
        (cubic.w_est - w).max(0.0)
    } else {
        // §4.4, §4.5: reach the target one round trip ahead, at most half as much again.
        let target = at(t + rtt).clamp(w, 1.5 * w);
        (target - w) / w * segments
    };
    let grow = if cubic.has_lost == 0 { grow.max(segments * SEARCH) } else { grow };
    let bytes = grow.min(w) * mss + cubic.carry;
    let whole = bytes as u32;
    cubic.carry = bytes - whole as f32;
    c.cwnd = c.cwnd.saturating_add(whole);
}

#[cfg(test)]
mod tests;
