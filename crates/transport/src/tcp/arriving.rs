//! What TCP_INFO tells of a stream that comes: the round trip as its receiver sees it, and how much its reader takes in one. Both as
//! Linux measures them (`tcp_rcv_rtt_measure_ts`, `tcp_rcv_space_adjust`), which sizes its receive buffers by them; a ring of eft has
//! its size from the beginning.
//!
//! Derived state.

use core::time::Duration;
use eft_base::Instant;

/// Milliseconds; an echo that seems older is none.
const AGE_MAX: u32 = 120_000;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arriving {
    /// Eighths of a microsecond, so that a smoothed value keeps its fraction; 0: not measured.
    rtt_eighths: u32,
    /// The last echo that was looked at: of those that repeat it only the first tells a round trip.
    echo: u32,
    /// The present round trip: when it began, and what had been taken then.
    round: Option<(Instant, u64)>,
    /// The most that was taken in one.
    space: u32,
}

impl Arriving {
    /// A full segment came; `clock`: our timestamp clock, in milliseconds; `waiting`: the reader has not taken all before it.
    pub fn on_echo(&mut self, echo: u32, clock: u32, waiting: bool) {
        let age = clock.wrapping_sub(echo);
        if echo == 0 || echo == self.echo || age > AGE_MAX {
            return;
        }
        self.echo = echo;
        if age == 0 {
            // Less than the clock can tell, as on Linux.
            return;
        }
        let us = age * 1000;
        let old = self.rtt_eighths;
        self.rtt_eighths = match us.saturating_mul(8) {
            sample if old == 0 || sample < old => sample,
            _ if waiting => old,
            _ => old - old / 8 + us,
        };
    }

    /// The reader has taken `taken` bytes in all, and `waiting` wait for it.
    pub fn on_taken(&mut self, now: Instant, taken: u64, waiting: u64) {
        let rtt = Duration::from_micros(self.rtt_us() as u64);
        match self.round {
            Some((began, _)) if rtt.is_zero() || now.saturating_since(began) < rtt => return,
            Some((_, before)) => {
                let copied = taken.saturating_sub(before).saturating_sub(waiting);
                self.space = self.space.max(copied.min(u32::MAX as u64) as u32);
            }
            None => {}
        }
        self.round = Some((now, taken));
    }

    pub fn rtt_us(&self) -> u32 {
        self.rtt_eighths / 8
    }

    /// The most that was taken in a round trip, and at least `first`.
    pub fn space(&self, first: u32) -> u32 {
        self.space.max(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn the_shortest_round_trip_counts_and_longer_ones_little_by_little() {
        let mut a = Arriving::default();
        a.on_echo(0, 5000, false);
        assert_eq!(a.rtt_us(), 0, "no echo");
        a.on_echo(900, 900, false);
        assert_eq!(a.rtt_us(), 0, "less than a millisecond");
        a.on_echo(1000, 1040, false);
        assert_eq!(a.rtt_us(), 40_000);
        a.on_echo(1000, 1090, false);
        assert_eq!(a.rtt_us(), 40_000, "an old echo once more");
        a.on_echo(1100, 1120, true);
        assert_eq!(a.rtt_us(), 20_000);
        a.on_echo(1200, 1300, true);
        assert_eq!(a.rtt_us(), 20_000, "the reader is slow");
        a.on_echo(1300, 1400, false);
        assert_eq!(a.rtt_us(), 30_000);
        a.on_echo(5000, 4000, false);
        assert_eq!(a.rtt_us(), 30_000, "from the future");
    }

    #[test]
    fn what_a_reader_takes_in_a_round_trip_is_its_space() {
        let mut a = Arriving::default();
        a.on_taken(ms(0), 0, 0);
        a.on_taken(ms(50), 40_000, 0);
        assert_eq!(a.space(14_600), 14_600, "no round trip is known");
        a.on_echo(1000, 1020, false);
        a.on_taken(ms(60), 50_000, 0);
        assert_eq!(a.space(14_600), 50_000);
        a.on_taken(ms(70), 90_000, 0);
        a.on_taken(ms(80), 190_000, 50_000);
        assert_eq!(a.space(14_600), 90_000, "less than it had, without what waits");
    }
}
