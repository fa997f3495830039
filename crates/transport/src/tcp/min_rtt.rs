//! The shortest round trip of the last five minutes (Linux's `tcp_min_rtt_wlen`): RFC 8985 §6.2 wants one that follows the path, and
//! Linux tells it in TCP_INFO. Kept as Linux keeps it, by the three best samples of ever later parts of the time, the first of which
//! is the shortest of all.
//!
//! Derived state: a successor goes on from the last value.

use core::time::Duration;
use eft_base::Instant;

const LIFE: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    at: Instant,
    us: u32,
}

/// The best of all, of what came after it, and of what came after that. `None`: nothing was measured yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MinRtt(Option<[Sample; 3]>);

impl MinRtt {
    /// Takes a round trip, and returns the shortest. `known` (0: none) was the shortest before the first call.
    pub fn update(&mut self, at: Instant, us: u32, known: u32) -> u32 {
        let new = Sample { at, us };
        let best = self.0.get_or_insert([if known == 0 { new } else { Sample { us: known, ..new } }; 3]);
        let age = |of: Sample| at.saturating_since(of.at);
        if us <= best[0].us || age(best[2]) > LIFE {
            *best = [new; 3];
        } else if us <= best[1].us {
            (best[1], best[2]) = (new, new);
        } else if us <= best[2].us {
            best[2] = new;
        }
        if age(best[0]) > LIFE {
            // The second may be as old.
            for _ in 0..2 {
                if age(best[0]) > LIFE {
                    *best = [best[1], best[2], new];
                }
            }
        } else if best[1].at == best[0].at && age(best[0]) > LIFE / 4 {
            (best[1], best[2]) = (new, new);
        } else if best[2].at == best[1].at && age(best[0]) > LIFE / 2 {
            best[2] = new;
        }
        best[0].us
    }
}

#[cfg(test)]
mod tests;
