//! How much may be in flight (RFC 9293 §3.8.2, RFC 5681): slow start here, its early end in [`hystart`], congestion avoidance by one of two
//! algorithms; or all of it by [`bbr`], which also says at what rate.

pub mod bbr;
pub mod cubic;
pub mod hystart;
pub mod newreno;

use bbr::Model;
use core::str::FromStr;
use core::time::Duration;
use cubic::Cubic;
use eft_base::Instant;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute, transmute_mut, transmute_ref};

/// The values of `Opt::Congestion`, less one.
pub const CUBIC: u32 = 0;
pub const NEWRENO: u32 = 1;
pub const BBR: u32 = 2;

/// Which algorithm connections use that choose none, as `eft up --congestion` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    #[default]
    Cubic,
    NewReno,
    Bbr,
}

impl Algorithm {
    const ALL: [Algorithm; 3] = [Algorithm::Cubic, Algorithm::NewReno, Algorithm::Bbr];

    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Cubic => "cubic",
            Algorithm::NewReno => "reno",
            Algorithm::Bbr => "bbr",
        }
    }

    pub(super) fn number(self) -> u32 {
        match self {
            Algorithm::Cubic => CUBIC,
            Algorithm::NewReno => NEWRENO,
            Algorithm::Bbr => BBR,
        }
    }
}

impl FromStr for Algorithm {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Algorithm, &'static str> {
        let found = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == text);
        found.ok_or("is none of cubic, reno and bbr")
    }
}

/// Slow start has no threshold yet.
const UNLIMITED: u32 = u32::MAX;
/// More than any ring; keeps the arithmetic far from wrapping.
pub(super) const WINDOW_MAX: u32 = 1 << 28;

/// Durable state of congestion control.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Congestion {
    pub cwnd: u32,
    pub ssthresh: u32,
    pub algorithm: u32,
    /// Bytes acknowledged since NewReno last grew.
    pub(crate) credit: u32,
    /// The algorithm's own: [`Cubic`] or [`Model`].
    pub(super) own: Own,
}

/// The algorithm by `Opt::Congestion`; unknown numbers mean the default.
pub fn chosen(option: u32, default: Algorithm) -> u32 {
    match option {
        n @ 1..=3 => n - 1,
        _ => default.number(),
    }
}

/// Room for the state of one algorithm.
pub(super) type Own = [u64; 4];

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
            own: transmute!(Cubic::new()),
        }
    }

    /// Takes another algorithm.
    pub fn choose(&mut self, algorithm: u32) {
        self.algorithm = algorithm;
        self.own = match algorithm {
            BBR => transmute!(Model::default()),
            _ => transmute!(Cubic::new()),
        };
        self.credit = 0;
    }

    /// Whether [`bbr`] sets window and rate.
    pub fn is_by_rate(&self) -> bool {
        self.algorithm == BBR
    }

    pub(crate) fn cubic(&self) -> &Cubic {
        transmute_ref!(&self.own)
    }

    fn cubic_mut(&mut self) -> &mut Cubic {
        transmute_mut!(&mut self.own)
    }

    pub fn model(&self) -> Model {
        if self.is_by_rate() { transmute!(self.own) } else { Model::default() }
    }

    fn set_model(&mut self, model: Model) {
        self.own = transmute!(model);
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
        if !self.is_by_rate() {
            self.cubic_mut().shift(pause);
        }
    }

    /// The threshold after a loss, in bytes.
    fn reduced(&mut self, flight_size: u32, mss: u32) -> u32 {
        let cwnd = self.cwnd;
        match self.algorithm {
            NEWRENO => newreno::reduced(flight_size, mss),
            BBR => self.ssthresh,
            _ => self.cubic_mut().reduced(cwnd, mss),
        }
    }

    /// Loss was detected by duplicate or selective acknowledgements.
    pub fn on_loss(&mut self, flight_size: u32, mss: u32) {
        if self.is_by_rate() {
            return;
        }
        self.ssthresh = self.reduced(flight_size, mss);
        self.cwnd = self.ssthresh;
        self.credit = 0;
    }

    /// The retransmission timer expired (RFC 5681 §3.1, RFC 9438 §4.8). `first`: for the first time for this data.
    pub fn on_timeout(&mut self, flight_size: u32, mss: u32, first: bool) {
        if first {
            self.ssthresh = self.reduced(flight_size, mss);
        }
        self.cwnd = mss;
        self.credit = 0;
    }

    /// Nothing was lost: restores the state `before` the reduction, without a burst (RFC 4015 §3.2, step 4; RFC 9438 §4.9).
    pub fn restore(&mut self, before: &Congestion, flight_size: u32, acked: u32, mss: u32) {
        if self.is_by_rate() {
            // The window before the recovery comes back with the next acknowledgment.
            return;
        }
        let burst = flight_size.saturating_add(acked.min(initial_window(mss)));
        let cwnd = burst.max(self.cwnd).clamp(mss, WINDOW_MAX);
        *self = *before;
        self.ssthresh = before.ssthresh.max(before.cwnd);
        self.cwnd = cwnd;
    }

    /// The connection was silent for longer than its RTO: the window is halved for each RTO but the first, down to the restart window
    /// (RFC 5681 §4.1), and slow start brings back three quarters of it (RFC 2861 §3.1), as on Linux.
    pub fn on_idle(&mut self, first: u32, silence: Duration, rto: Duration) {
        if self.is_by_rate() {
            // The rate, not the window, keeps a burst away.
            return;
        }
        self.ssthresh = self.ssthresh.max(self.cwnd / 4 * 3);
        let halvings = silence.as_nanos().div_ceil(rto.as_nanos().max(1)).saturating_sub(1).min(31);
        self.restart_with(first, self.cwnd >> halvings);
    }

    /// Nothing is known of the present state of the path: begins with the restart window (RFC 5681 §4.1).
    pub fn restart(&mut self, first: u32) {
        if !self.is_by_rate() {
            self.restart_with(first, 0);
        }
    }

    /// `first`: the initial window, which bounds the restart window.
    fn restart_with(&mut self, first: u32, wanted: u32) {
        self.cwnd = wanted.max(self.cwnd.min(first));
        self.cubic_mut().restart();
    }

    /// Repairs invalid values; used when an arena is opened.
    pub fn sanitize(&mut self, mss: u32) {
        self.cwnd = self.cwnd.clamp(mss, WINDOW_MAX);
        self.ssthresh = self.ssthresh.max(2 * mss);
        self.algorithm = self.algorithm.min(BBR);
        match self.is_by_rate() {
            true => self.set_model(self.model().sane()),
            false if !self.cubic().is_sane() => self.own = transmute!(Cubic::new()),
            false => {}
        }
    }
}

#[cfg(test)]
mod tests;
