//! Congestion avoidance of RFC 5681 §3.1; the recovery of RFC 6582 is in `recovery`.

use super::{Acked, Congestion};

/// One segment per window of acknowledged bytes.
pub(super) fn on_ack(c: &mut Congestion, acked: Acked) {
    c.credit = c.credit.saturating_add(acked.bytes);
    while c.credit >= c.cwnd {
        c.credit -= c.cwnd;
        c.cwnd = c.cwnd.saturating_add(acked.mss);
    }
}

/// Half of what was in flight, at least two segments (equation 4).
pub(super) fn reduced(flight_size: u32, mss: u32) -> u32 {
    (flight_size / 2).max(2 * mss)
}
