//! What is known of the routers of a link: which version they speak, and how often a report is repeated.

use core::time::Duration;
use eft_base::Instant;

/// The Robustness Variable, and other defaults (RFC 9776 §8, RFC 9777 §9).
const ROBUSTNESS: u8 = 2;
const QUERY_INTERVAL: Duration = Duration::from_secs(125);
/// Each repetition of a change costs a packet, so a querier cannot ask for more.
const ROBUSTNESS_MAX: u8 = 7;

/// The version of a query, or that hosts speak because of it. MLDv1 is IGMPv2's equal, and MLDv2 IGMPv3's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    /// IGMPv1 alone.
    First,
    Second,
    Third,
}

/// The routers of one link, of one IP version.
#[derive(Debug)]
pub(super) struct Querier {
    pub robustness: u8,
    interval: Duration,
    /// Until when a querier of the first or second version counts as present.
    first_until: Option<Instant>,
    second_until: Option<Instant>,
    /// When a general query is to be answered.
    pub answer_at: Option<Instant>,
}

impl Default for Querier {
    fn default() -> Self {
        Querier {
            robustness: ROBUSTNESS,
            interval: QUERY_INTERVAL,
            first_until: None,
            second_until: None,
            answer_at: None,
        }
    }
}

impl Querier {
    /// The version to speak (RFC 9776 §7.2.1, RFC 9777 §8.2.1).
    pub fn version(&self, now: Instant) -> Version {
        let present = |until: Option<Instant>| until.is_some_and(|until| until > now);
        match (present(self.first_until), present(self.second_until)) {
            (true, _) => Version::First,
            (_, true) => Version::Second,
            _ => Version::Third,
        }
    }

    /// A query was heard. A robustness and an interval of 0 mean that it does not say them.
    pub fn hear(
        &mut self,
        now: Instant,
        version: Version,
        robustness: u8,
        interval: Duration,
        delay: Duration,
    ) {
        if version == Version::Third {
            // RFC 9776 §4.1.6: zero means "too large to be said".
            self.robustness = match robustness {
                0 => ROBUSTNESS,
                n => n.min(ROBUSTNESS_MAX),
            };
            self.interval = if interval.is_zero() { QUERY_INTERVAL } else { interval };
            return;
        }
        // Older Version Querier Present Timeout (RFC 9776 §8.12).
        let until = now + self.interval * self.robustness.into() + delay;
        match version {
            Version::First => self.first_until = Some(until),
            _ => self.second_until = Some(until),
        }
    }
}
