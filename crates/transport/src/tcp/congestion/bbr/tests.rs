use super::super::{Algorithm, BBR};
use super::aggregation::amount;
use super::*;
use crate::tcp::rate::{Rate, Stamp};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

const MSS: u32 = 1000;
const STEP_NS: u64 = 100_000;

/// A sender that always has data, and a path with one bottleneck. Lost segments are noticed after a round trip.
struct Path {
    now: Instant,
    congestion: Congestion,
    bbr: Bbr,
    rate: Rate,
    /// Bytes per second, round trip without queue, segments lost of 1000, queue in bytes.
    bottleneck: u64,
    rtt: Duration,
    loss: u64,
    queue_max: u64,
    /// When the bottleneck has sent all that it holds.
    busy_until: Instant,
    next_send: Instant,
    in_flight: VecDeque<(Instant, Instant, Stamp, bool)>,
    sent: u64,
    delivered: u64,
    queue_most: u64,
    windows: Vec<u32>,
    known_rtt_us: u32,
}

impl Path {
    fn new(bottleneck: u64, rtt_ms: u64) -> Path {
        let mut congestion = Congestion::new(MSS);
        congestion.choose(BBR);
        Path {
            now: Instant::from_millis(1000),
            bbr: Bbr::new(&congestion),
            congestion,
            rate: Rate::default(),
            bottleneck,
            rtt: Duration::from_millis(rtt_ms),
            loss: 0,
            queue_max: u64::MAX,
            busy_until: Instant::ZERO,
            next_send: Instant::ZERO,
            in_flight: VecDeque::new(),
            sent: 0,
            delivered: 0,
            queue_most: 0,
            windows: Vec::new(),
            known_rtt_us: 0,
        }
    }

    fn pipe(&self) -> u64 {
        self.in_flight.len() as u64 * MSS as u64
    }

    fn send(&mut self) {
        let stamp = self.rate.on_send(self.now, self.in_flight.is_empty());
        self.sent += 1;
        let waits = self.busy_until.saturating_since(self.now);
        let queue = amount(self.bottleneck, waits);
        // A fixed pattern that no cycle of eight follows.
        let lost = self.sent.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 0x3ff < self.loss * 1024 / 1000;
        let lost = lost || queue > self.queue_max;
        let back = if lost {
            self.now + waits + self.rtt
        } else {
            self.queue_most = self.queue_most.max(queue);
            let service = Duration::from_nanos(MSS as u64 * 1_000_000_000 / self.bottleneck);
            self.busy_until = self.busy_until.max(self.now) + service;
            self.busy_until + self.rtt
        };
        self.in_flight.push_back((back, self.now, stamp, lost));
        let rate = self.bbr.rate().unwrap_or(u64::MAX / 2_000_000_000).max(1);
        let gap = Duration::from_nanos(MSS as u64 * 1_000_000_000 / rate);
        // What the step of time came late is made up for.
        self.next_send = self.next_send.max(Instant(self.now.as_nanos() - STEP_NS)) + gap;
    }

    fn hear(&mut self) {
        while let Some(&(back, at, stamp, lost)) = self.in_flight.front() {
            if back > self.now {
                return;
            }
            let prior_in_flight = self.pipe();
            self.in_flight.pop_front();
            let acked = if lost { 0 } else { MSS as u64 };
            self.delivered += acked;
            let min_rtt = Duration::from_micros(self.congestion.model().min_rtt_us as u64);
            let sample = self.rate.on_ack(self.now, acked, Some((at, stamp)), min_rtt);
            let rtt_us = (!lost).then(|| self.now.saturating_since(at).as_micros() as u32);
            let ack = Ack {
                now: self.now,
                sample,
                delivered: self.rate.delivered(),
                acked,
                lost: MSS as u64 - acked,
                prior_in_flight,
                in_flight: self.pipe(),
                rtt_us,
                known_rtt_us: self.known_rtt_us,
                srtt_us: self.rtt.as_micros() as u32,
                mss: MSS,
                stage: Stage::Calm,
                chance: self.sent,
            };
            self.bbr.on_ack(&mut self.congestion, &ack);
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_nanos(STEP_NS);
            self.hear();
            while self.pipe() + MSS as u64 <= self.congestion.cwnd as u64 && self.next_send <= self.now {
                self.send();
            }
            self.windows.push(self.congestion.cwnd);
        }
    }

    /// Bytes per second delivered in a further time.
    fn goodput(&mut self, time: Duration) -> u64 {
        let before = self.delivered;
        self.run(time);
        (self.delivered - before) * 1000 / time.as_millis() as u64
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn the_rate_of_the_path_is_found_and_its_queue_stays_short() {
    for (bottleneck, rtt_ms) in [(1_250_000, 40), (12_500_000, 20), (125_000, 100)] {
        let mut path = Path::new(bottleneck, rtt_ms);
        path.run(4 * SECOND);
        assert_eq!(path.bbr.mode, Mode::Cruise, "{bottleneck}");
        let bandwidth = path.congestion.model().bandwidth;
        assert!(bandwidth.abs_diff(bottleneck) < bottleneck / 10, "{bandwidth} of {bottleneck}");
        path.queue_most = 0;
        let goodput = path.goodput(4 * SECOND);
        assert!(goodput > bottleneck * 9 / 10, "{goodput} of {bottleneck}");
        // A quarter more for a round trip, and the bursts that the window allows for.
        let held = bottleneck * rtt_ms / 1000;
        assert!(path.queue_most < held / 2 + 6 * MSS as u64, "{} of {held}", path.queue_most);
    }
}

#[test]
fn random_loss_does_not_slow_it_down() {
    for loss in [10, 50] {
        let mut path = Path { loss, ..Path::new(1_250_000, 40) };
        path.run(4 * SECOND);
        let goodput = path.goodput(4 * SECOND);
        assert!(goodput > 1_250_000 * (1000 - loss) / 1000 * 17 / 20, "{goodput} with {loss} of 1000 lost");
    }
}

#[test]
fn the_queue_is_emptied_after_ten_seconds_to_measure_the_round_trip() {
    let mut path = Path::new(1_250_000, 40);
    path.run(9 * SECOND);
    path.windows.clear();
    path.run(4 * SECOND);
    let short = path.windows.iter().filter(|w| **w <= LEAST_SEGMENTS * MSS).count();
    // In steps of time; at least the time that it takes, and a round trip.
    assert!((2000..5000).contains(&short), "{short}");
    assert_eq!(path.bbr.mode, Mode::Cruise);
    assert!(path.congestion.cwnd > 50 * MSS);
}

/// Data may take longer from the first segment on, as behind others in a queue.
#[test]
fn the_round_trip_of_the_handshake_counts() {
    let mut path = Path { known_rtt_us: 30_000, ..Path::new(1_250_000, 40) };
    path.run(SECOND);
    assert_eq!(path.congestion.model().min_rtt_us, 30_000);
}

#[test]
fn a_path_that_becomes_slower_is_noticed() {
    let mut path = Path::new(1_250_000, 40);
    path.run(4 * SECOND);
    path.bottleneck = 312_500;
    path.run(4 * SECOND);
    let bandwidth = path.congestion.model().bandwidth;
    assert!(bandwidth < 400_000, "{bandwidth}");
}

#[test]
fn a_successor_goes_on_at_the_rate_that_was_known() {
    let mut path = Path::new(1_250_000, 40);
    path.run(4 * SECOND);
    let next = Bbr::new(&path.congestion);
    assert_eq!(next.mode, Mode::Cruise);
    assert!(next.rate().unwrap().abs_diff(1_250_000) < 130_000);
    let mut congestion = path.congestion;
    congestion.sanitize(MSS);
    assert_eq!(congestion.model().bandwidth, path.congestion.model().bandwidth);
}

#[test]
fn numbers_that_cannot_be_are_forgotten() {
    let mut congestion = Congestion::new(MSS);
    congestion.choose(BBR);
    congestion.set_model(Model { bandwidth: u64::MAX, ..Model::default() });
    congestion.sanitize(MSS);
    assert_eq!(congestion.model().bandwidth, 0);
    assert_eq!(Bbr::new(&congestion).mode, Mode::Startup);
}

#[test]
fn a_window_before_a_recovery_comes_back_after_it() {
    let mut path = Path::new(1_250_000, 40);
    path.run(4 * SECOND);
    let before = path.congestion.cwnd;
    let mut ack = Ack {
        now: path.now,
        sample: None,
        delivered: path.rate.delivered(),
        acked: MSS as u64,
        lost: MSS as u64,
        prior_in_flight: 20_000,
        in_flight: 18_000,
        rtt_us: None,
        known_rtt_us: 0,
        srtt_us: 40_000,
        mss: MSS,
        stage: Stage::Recovery,
        chance: 1,
    };
    path.bbr.on_ack(&mut path.congestion, &ack);
    assert_eq!(path.congestion.cwnd, 19_000, "what arrives may be replaced");
    ack.stage = Stage::Calm;
    path.bbr.on_ack(&mut path.congestion, &ack);
    assert!(path.congestion.cwnd >= before);
}

#[test]
fn it_is_known_by_its_name() {
    assert_eq!("bbr".parse(), Ok(Algorithm::Bbr));
    assert!("vegas".parse::<Algorithm>().is_err());
}
