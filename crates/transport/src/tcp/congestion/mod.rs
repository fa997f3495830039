//! How much may be in flight (RFC 5681): slow start here, its early end in [`hystart`], congestion avoidance by one of two
//! algorithms.

pub mod cubic;
pub mod hystart;
pub mod newreno;

use core::time::Duration;
use cubic::Cubic;
use eft_base::Instant;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The values of `Opt::Congestion`, less one.
pub const CUBIC: u32 = 0;
pub const NEWRENO: u32 = 1;

/// Slow start has no threshold yet.
const UNLIMITED: u32 = u32::MAX;
/// More than any ring; keeps the arithmetic far from wrapping.
const WINDOW_MAX: u32 = 1 << 28;

/// Durable state of congestion control.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Congestion {
    pub cwnd: u32,
    pub ssthresh: u32,
    pub algorithm: u32,
    /// Bytes acknowledged since NewReno last grew.
    pub(crate) credit: u32,
    pub(crate) cubic: Cubic,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    pub bytes: u32,
    pub mss: u32,
    pub now: Instant,
    pub srtt_us: u32,
}

/// The initial window of RFC 6928 §2.
pub fn initial_window(mss: u32) -> u32 {
    (10 * mss).min((2 * mss).max(14600))
}

impl Congestion {
    pub fn new(mss: u32) -> Self {
        Congestion {
            cwnd: initial_window(mss),
            ssthresh: UNLIMITED,
            algorithm: CUBIC,
            credit: 0,
            cubic: Cubic::new(),
        }
    }

    /// Takes `Opt::Congestion`; unknown numbers mean the default.
    pub fn choose(&mut self, option: u32) {
        let algorithm = match option {
            2 => NEWRENO,
            _ => CUBIC,
        };
        if self.algorithm != algorithm {
            self.algorithm = algorithm;
            self.cubic = Cubic::new();
            self.credit = 0;
        }
    }

    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// New data was acknowledged while the window was in use. `acked.bytes` may be many segments
    /// (RFC 5681 §3.1 with appropriate byte counting, unlimited as in RFC 9406 §4.2, since receivers
    /// acknowledge merged segments at once).
    pub fn on_ack(&mut self, mut acked: Acked) {
        if self.in_slow_start() {
            let grow = acked.bytes.min(self.ssthresh - self.cwnd);
            self.cwnd += grow;
            acked.bytes -= grow;
        }
        if acked.bytes > 0 {
            match self.algorithm {
                NEWRENO => newreno::on_ack(self, acked),
                _ => cubic::on_ack(self, acked),
            }
        }
        self.cwnd = self.cwnd.min(WINDOW_MAX);
    }

    /// Whether it is the first slow start, that HyStart++ watches (RFC 9406 §4.3).
    pub fn in_first_slow_start(&self) -> bool {
        self.ssthresh == UNLIMITED
    }

    /// Slow start ended without a loss (RFC 9406 §4.2).
    pub fn end_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
    }

    /// For `pause` the application, not the window, limited sending: CUBIC's time stood still (RFC 9438 §5.8).
    pub fn on_limited(&mut self, pause: Duration) {
        self.cubic.shift(pause);
    }

    /// Loss was detected by duplicate or selective acknowledgements.
    pub fn on_loss(&mut self, flight_size: u32, mss: u32) {
        self.ssthresh = match self.algorithm {
            NEWRENO => newreno::reduced(flight_size, mss),
            _ => self.cubic.reduced(self.cwnd, mss),
        };
        self.cwnd = self.ssthresh;
        self.credit = 0;
    }

    /// The retransmission timer expired (RFC 5681 §3.1, RFC 9438 §4.8). `first`: for the first time for this data.
    pub fn on_timeout(&mut self, flight_size: u32, mss: u32, first: bool) {
        if first {
            self.ssthresh = match self.algorithm {
                NEWRENO => newreno::reduced(flight_size, mss),
                _ => self.cubic.reduced(self.cwnd, mss),
            };
        }
        self.cwnd = mss;
        self.credit = 0;
    }

    /// Nothing was lost: restores the state `before` the reduction, without a burst (RFC 4015 §3.2, step 4).
    pub fn restore(&mut self, before: &Congestion, flight_size: u32, acked: u32, mss: u32) {
        let burst = flight_size.saturating_add(acked.min(initial_window(mss)));
        let cwnd = burst.max(self.cwnd).clamp(mss, WINDOW_MAX);
        *self = *before;
        self.ssthresh = before.ssthresh.max(before.cwnd);
        self.cwnd = cwnd;
    }

    /// The connection was idle longer than its RTO (RFC 5681 §4.1).
    pub fn on_idle(&mut self, mss: u32) {
        self.cwnd = self.cwnd.min(initial_window(mss));
        self.cubic.restart();
    }

    /// Repairs invalid values; used when an arena is opened.
    pub fn sanitize(&mut self, mss: u32) {
        self.cwnd = self.cwnd.clamp(mss, WINDOW_MAX);
        self.ssthresh = self.ssthresh.max(2 * mss);
        self.algorithm = self.algorithm.min(NEWRENO);
        if !self.cubic.is_sane() {
            self.cubic = Cubic::new();
        }
    }
}

#[cfg(test)]
mod tests;
