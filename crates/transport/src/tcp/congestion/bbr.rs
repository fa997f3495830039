//! BBR (draft-cardwell-iccrg-bbr-congestion-control-00, version 1): sends at the rate that the path delivers, with about what
//! the path holds at the shortest round trip in flight. Losses alone do not slow it down.
//!
//! It is the version that Linux has under the name `bbr`, so programs that choose it there get the same here. Linux's search for
//! policers (`lt_bw`) is left out.
//!
//! The model of the path is durable ([`Model`]); the phase of the search is not, and a successor goes on with cruising if the
//! path was known to be full.

mod aggregation;
mod filter;
mod model;

use super::{Congestion, WINDOW_MAX, initial_window};
use crate::tcp::rate::Sample;
use aggregation::Aggregation;
use core::cmp::Ordering;
use core::time::Duration;
use eft_base::Instant;
use filter::Maximum;
use model::BANDWIDTH_MAX;
pub use model::Model;

/// Gains are in 256ths.
const UNIT: u64 = 256;
/// 2/ln 2, by which the rate doubles in each round trip (§4.3.2), and its inverse, which drains what it queued.
const HIGH_GAIN: u64 = 739;
const DRAIN_GAIN: u64 = 88;
/// That gain in percent, less the margin of a hundredth that Linux keeps.
pub const FIRST_PERCENT: u64 = 286;
/// Cruising (§4.3.4): one round trip more than the path delivers, one less, and six as much.
const CYCLE: [u64; 8] = [320, 192, 256, 256, 256, 256, 256, 256];
const CRUISING_GAIN: u64 = 512;
/// The path is full when the rate grew by less than a quarter in so many rounds (§4.3.2.2).
const FULL_ROUNDS: u8 = 3;
/// How long a shortest round trip counts (§4.1.2), and how long the queue is emptied for the next one.
const MIN_RTT_LIFE: Duration = Duration::from_secs(10);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Segments in flight meanwhile, and at least (§4.2.3.2).
const LEAST_SEGMENTS: u32 = 4;
/// Round trip before one is measured, as on Linux.
const FIRST_RTT_US: u64 = 1000;
/// Largest piece that is sent at once, in bytes.
const PIECE_MAX: u64 = 65536;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    Cruise,
    ProbeRtt,
}

/// How the sender handles loss at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Calm,
    Recovery,
    Timeout,
}

/// What an acknowledgment says.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    pub now: Instant,
    pub sample: Option<Sample>,
    /// Bytes delivered in all, by this acknowledgment, and newly lost.
    pub delivered: u64,
    pub acked: u64,
    pub lost: u64,
    /// Bytes in the network before and after it.
    pub prior_in_flight: u64,
    pub in_flight: u64,
    pub rtt_us: Option<u32>,
    /// The connection's shortest, that of its handshake included; 0: none was measured.
    pub known_rtt_us: u32,
    pub srtt_us: u32,
    pub mss: u32,
    pub stage: Stage,
    /// For the choice of a place in the cycle.
    pub chance: u64,
}

/// The derived state.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    bandwidth: Maximum,
    /// Round trips, counted by delivered data (§4.1.1.3).
    round: u64,
    round_end: u64,
    round_began: bool,
    full_bandwidth: u64,
    full_rounds: u8,
    cycle: usize,
    cycle_at: Instant,
    probe_done_at: Option<Instant>,
    probe_round_done: bool,
    /// Sending went on after a silence, and nothing was delivered since.
    restarts: bool,
    /// No more is sent than arrives.
    conserves: bool,
    stage: Stage,
    aggregation: Aggregation,
    /// Bytes per second; 0: not known yet.
    rate: u64,
}

impl Bbr {
    /// A connection begins, or goes on after a rebirth with what its predecessor knew of the path.
    pub fn new(congestion: &Congestion) -> Bbr {
        let model = congestion.model();
        let mut bandwidth = Maximum::default();
        bandwidth.update(0, model.bandwidth);
        Bbr {
            mode: if model.is_full != 0 { Mode::Cruise } else { Mode::Startup },
            bandwidth,
            round: 0,
            round_end: 0,
            round_began: false,
            full_bandwidth: 0,
            full_rounds: 0,
            cycle: 2,
            cycle_at: Instant::ZERO,
            probe_done_at: None,
            probe_round_done: false,
            restarts: false,
            conserves: false,
            stage: Stage::Calm,
            aggregation: Aggregation::default(),
            rate: model.cruising_rate(),
        }
    }

    /// Bytes per second at which to send; `None`: nothing is known yet.
    pub fn rate(&self) -> Option<u64> {
        (self.rate > 0).then_some(self.rate)
    }

    /// Gains of the rate and of the window, in 256ths.
    pub fn gains(&self) -> (u32, u32) {
        let (pacing, cwnd) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::Cruise => (CYCLE[self.cycle % CYCLE.len()], CRUISING_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
        (pacing as u32, cwnd as u32)
    }

    /// Whether the queue is being emptied: what is measured then says nothing about the path's rate.
    pub fn is_emptying(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }

    /// Sending goes on after the application was silent (§4.3.4.4): no faster than the path delivers.
    pub fn on_restart(&mut self, congestion: &Congestion) {
        self.restarts = true;
        self.aggregation = Aggregation::default();
        if self.mode == Mode::Cruise {
            self.rate = congestion.model().cruising_rate();
        }
    }

    /// Nothing was lost: whether the path is full is asked again.
    pub fn on_undo(&mut self) {
        (self.full_bandwidth, self.full_rounds) = (0, 0);
    }

    /// Takes an acknowledgment; sets window and rate.
    pub fn on_ack(&mut self, congestion: &mut Congestion, ack: &Ack) {
        let mut model = congestion.model();
        self.count_round(ack);
        self.measure(&mut model, ack);
        if ack.sample.is_some() && ack.acked > 0 {
            self.aggregation.on_ack(ack.now, ack.acked, model.bandwidth, self.round_began);
        }
        self.turn_cycle(&model, ack);
        self.judge_fullness(&mut model, ack);
        self.drain(&model, congestion, ack);
        self.measure_min_rtt(&mut model, congestion, ack);
        self.set_rate(&model, congestion.cwnd, ack);
        let cwnd = self.window(&model, congestion.cwnd, ack);
        congestion.cwnd = cwnd.clamp(ack.mss as u64, WINDOW_MAX as u64) as u32;
        if self.stage == Stage::Calm && self.mode != Mode::ProbeRtt {
            model.prior_cwnd = congestion.cwnd;
        }
        congestion.set_model(model);
    }

    fn count_round(&mut self, ack: &Ack) {
        self.round_began = false;
        if let Some(sample) = &ack.sample
            && sample.prior_delivered >= self.round_end
        {
            self.round_end = ack.delivered;
            self.round += 1;
            self.round_began = true;
            self.conserves = false;
        }
    }

    /// §4.1.1.2
    fn measure(&mut self, model: &mut Model, ack: &Ack) {
        let Some(sample) = &ack.sample else {
            return;
        };
        let bandwidth = sample.bandwidth().min(BANDWIDTH_MAX);
        if !sample.limited || bandwidth >= model.bandwidth {
            self.bandwidth.update(self.round, bandwidth);
            model.bandwidth = self.bandwidth.get();
        }
    }

    /// §4.3.4.3
    fn turn_cycle(&mut self, model: &Model, ack: &Ack) {
        if self.mode != Mode::Cruise {
            return;
        }
        let min_rtt = Duration::from_micros(model.min_rtt_us as u64);
        let is_long = ack.now.saturating_since(self.cycle_at) > min_rtt;
        let gain = CYCLE[self.cycle];
        let turns = match gain.cmp(&UNIT) {
            Ordering::Equal => is_long,
            // Until the path holds as much as this, or shows that it cannot.
            Ordering::Greater => {
                is_long && (ack.lost > 0 || ack.prior_in_flight >= self.held(model, gain, ack))
            }
            Ordering::Less => is_long || ack.prior_in_flight <= self.held(model, UNIT, ack),
        };
        if turns {
            self.cycle = (self.cycle + 1) % CYCLE.len();
            self.cycle_at = ack.now;
        }
    }

    fn judge_fullness(&mut self, model: &mut Model, ack: &Ack) {
        let limited = ack.sample.is_none_or(|sample| sample.limited);
        if model.is_full != 0 || !self.round_began || limited {
            return;
        }
        if model.bandwidth >= self.full_bandwidth.saturating_add(self.full_bandwidth / 4) {
            (self.full_bandwidth, self.full_rounds) = (model.bandwidth, 0);
            return;
        }
        self.full_rounds += 1;
        model.is_full = (self.full_rounds >= FULL_ROUNDS) as u32;
    }

    /// §4.3.3
    fn drain(&mut self, model: &Model, congestion: &mut Congestion, ack: &Ack) {
        if self.mode == Mode::Startup && model.is_full != 0 {
            self.mode = Mode::Drain;
            // Nothing here depends on it: it tells who looks that slow start is over.
            congestion.ssthresh = self.held(model, UNIT, ack).min(WINDOW_MAX as u64) as u32;
        }
        if self.mode == Mode::Drain && ack.in_flight <= self.held(model, UNIT, ack) {
            self.cruise(ack);
        }
    }

    /// Begins at a random place of the cycle, but for the one that drains (§4.3.4.2): flows must not probe together.
    fn cruise(&mut self, ack: &Ack) {
        self.mode = Mode::Cruise;
        self.cycle = match (ack.chance % (CYCLE.len() as u64 - 1)) as usize {
            0 => 0,
            n => n + 1,
        };
        self.cycle_at = ack.now;
    }

    /// §4.1.2, §4.3.5
    fn measure_min_rtt(&mut self, model: &mut Model, congestion: &mut Congestion, ack: &Ack) {
        if model.min_rtt_us == 0 {
            // It begins with what the connection knows, as on Linux.
            (model.min_rtt_us, model.min_rtt_at) = (ack.known_rtt_us, ack.now.as_nanos());
        }
        let age = ack.now.saturating_since(Instant(model.min_rtt_at));
        let is_old = model.min_rtt_us != 0 && age > MIN_RTT_LIFE;
        if let Some(us) = ack.rtt_us
            && (model.min_rtt_us == 0 || us <= model.min_rtt_us || is_old)
        {
            (model.min_rtt_us, model.min_rtt_at) = (us.max(1), ack.now.as_nanos());
        }
        if is_old && !self.restarts && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.probe_done_at = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_min_rtt(model, congestion, ack);
        }
        self.restarts &= ack.acked == 0;
    }

    fn probe_min_rtt(&mut self, model: &mut Model, congestion: &mut Congestion, ack: &Ack) {
        let Some(done_at) = self.probe_done_at else {
            if ack.in_flight <= (LEAST_SEGMENTS * ack.mss) as u64 {
                self.probe_done_at = Some(ack.now + PROBE_RTT_TIME);
                self.probe_round_done = false;
                self.round_end = ack.delivered;
            }
            return;
        };
        self.probe_round_done |= self.round_began;
        if !self.probe_round_done || ack.now <= done_at {
            return;
        }
        model.min_rtt_at = ack.now.as_nanos();
        congestion.cwnd = congestion.cwnd.max(model.prior_cwnd);
        match model.is_full {
            0 => self.mode = Mode::Startup,
            _ => self.cruise(ack),
        }
    }

    /// §4.2.1
    fn set_rate(&mut self, model: &Model, cwnd: u32, ack: &Ack) {
        if self.rate == 0 {
            let rtt_us = if ack.srtt_us == 0 { FIRST_RTT_US } else { ack.srtt_us as u64 };
            self.rate = cwnd as u64 * 10_000 * FIRST_PERCENT / rtt_us;
        }
        let gain = self.gains().0 as u128;
        let rate = (model.cruising_rate() as u128 * gain / UNIT as u128).min(u64::MAX as u128) as u64;
        if rate > self.rate || (model.is_full != 0 && rate > 0) {
            self.rate = rate;
        }
    }

    /// §4.2.3
    fn window(&mut self, model: &Model, cwnd: u32, ack: &Ack) -> u64 {
        let least = (LEAST_SEGMENTS * ack.mss) as u64;
        let mut cwnd = cwnd as u64;
        if ack.acked > 0 {
            cwnd = match self.window_in_recovery(model, cwnd, ack) {
                Ok(bound) => bound,
                Err(free) => self.grown(model, free, ack).max(least),
            };
        }
        if self.mode == Mode::ProbeRtt { cwnd.min(least) } else { cwnd }
    }

    /// Towards what the path holds, times the gain; without a bound while nothing is known of it.
    fn grown(&self, model: &Model, cwnd: u64, ack: &Ack) -> u64 {
        let target = self.held(model, self.gains().1 as u64, ack);
        let allowance = if model.is_full == 0 { 0 } else { self.aggregation.allowance(model.bandwidth) };
        let target = target.saturating_add(allowance);
        let grown = cwnd.saturating_add(ack.acked);
        match model.is_full {
            0 if cwnd < target || ack.delivered < initial_window(ack.mss) as u64 => grown,
            0 => cwnd,
            _ => grown.min(target),
        }
    }

    /// In the first round of a recovery no more is sent than arrives (§4.2.3.4): Ok. Else the window from which to go on.
    fn window_in_recovery(&mut self, model: &Model, cwnd: u64, ack: &Ack) -> Result<u64, u64> {
        let before = core::mem::replace(&mut self.stage, ack.stage);
        let mut cwnd = cwnd.saturating_sub(ack.lost).max(ack.mss as u64);
        if ack.stage == Stage::Recovery && before != Stage::Recovery {
            self.conserves = true;
            self.round_end = ack.delivered;
            cwnd = ack.in_flight + ack.acked;
        } else if ack.stage == Stage::Calm && before != Stage::Calm {
            cwnd = cwnd.max(model.prior_cwnd as u64);
            self.conserves = false;
        }
        if self.conserves { Ok(cwnd.max(ack.in_flight + ack.acked)) } else { Err(cwnd) }
    }

    /// Bytes that the path holds, times `gain`, with what pieces and delayed acknowledgments need (§4.2.3.2).
    fn held(&self, model: &Model, gain: u64, ack: &Ack) -> u64 {
        if model.min_rtt_us == 0 || model.bandwidth == 0 {
            return initial_window(ack.mss) as u64 * gain / UNIT;
        }
        let product = model.bandwidth as u128 * model.min_rtt_us as u128 / 1_000_000;
        let held = (product * gain as u128 / UNIT as u128).min(WINDOW_MAX as u128) as u64;
        let mss = ack.mss as u64;
        let piece = (self.rate >> 10).clamp(2 * mss, PIECE_MAX.max(2 * mss));
        let probing = if self.mode == Mode::Cruise && self.cycle == 0 { 2 * mss } else { 0 };
        held + 3 * piece + probing
    }
}

#[cfg(test)]
mod tests;
