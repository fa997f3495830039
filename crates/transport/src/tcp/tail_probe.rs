//! Tail loss probes (TLP, RFC 8985 §7): when the last segments may be lost, one more segment shows it, long before the
//! retransmission timer would.

use super::block::{Block, bit};
use super::rtt::Rtt;
use core::str::FromStr;
use core::time::Duration;
use eft_base::Instant;

/// How long a peer may delay its acknowledgement (`TLP.max_ack_delay`).
const ACK_DELAY_MAX: Duration = Duration::from_millis(200);
/// A probe waits at least this long: longer than a server of ours, or of the peer's, takes to be reborn.
const PATIENCE_MIN: Duration = Duration::from_millis(10);
/// §7.2, without a measured round trip.
const UNMEASURED: Duration = Duration::from_secs(1);

/// As `eft up --tail-probes` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TailProbes {
    #[default]
    On,
    /// Only the retransmission timer finds a loss at the end, as with Linux's `tcp_early_retrans=0`.
    Off,
}

impl TailProbes {
    pub fn name(self) -> &'static str {
        match self {
            TailProbes::On => "on",
            TailProbes::Off => "off",
        }
    }
}

impl FromStr for TailProbes {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<TailProbes, &'static str> {
        let all = [TailProbes::On, TailProbes::Off];
        all.into_iter().find(|choice| choice.name() == text).ok_or("is neither on nor off")
    }
}

/// A probe that was sent and is not acknowledged (§7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailProbe {
    /// The highest offset sent then (`TLP.end_seq`).
    pub end: u64,
    /// It carried old data (`TLP.is_retrans`).
    pub again: bool,
}

/// The result of a probe, by its acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Unknown,
    /// Nothing was lost.
    Needless,
    /// It repaired a loss, which is a sign of congestion.
    Repaired,
}

impl TailProbe {
    /// §7.4.2. `duplicate`: the end of the range that the peer reports as received twice; `repeated`: the acknowledgment is
    /// a duplicate.
    pub fn judge(&self, ack: u64, duplicate: Option<u64>, repeated: bool) -> Verdict {
        if ack < self.end {
            return Verdict::Unknown;
        }
        if !self.again || duplicate == Some(self.end) || (repeated && ack == self.end) {
            return Verdict::Needless;
        }
        if ack > self.end { Verdict::Repaired } else { Verdict::Unknown }
    }
}

/// How long to wait for an acknowledgment before a probe is sent (§7.2, `TLP_calc_PTO`).
pub fn patience(rtt: &Rtt, one_segment: bool) -> Duration {
    if rtt.srtt_us == 0 {
        return UNMEASURED;
    }
    let delay = if one_segment { ACK_DELAY_MAX } else { Duration::ZERO };
    (Duration::from_micros(2 * rtt.srtt_us as u64) + delay).max(PATIENCE_MIN)
}

/// Whether a probe makes sense: with SACK its acknowledgment tells what is lost.
pub fn is_of_use(block: &Block) -> bool {
    block.has(bit::SACK) && block.flight_size() > 0 && block.backoff == 0 && !block.has(bit::UNPROVEN)
}

/// When to probe: not after the retransmission timer.
pub fn due_at(block: &Block, now: Instant, retransmit_at: Instant) -> Instant {
    let one = block.flight_size() <= block.segment_size() as u64;
    (now + patience(&block.rtt, one)).min(retransmit_at)
}

#[cfg(test)]
mod tests;
