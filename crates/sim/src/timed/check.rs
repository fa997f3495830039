//! The two tiers held against each other, at random points: a setting of the cores, a draw of the parameters.

use super::run::run;
use super::web::run::initial_segments;
use crate::batch::run::{Outcome, Span, run_for};
use crate::batch::servers::{SERVERS, Server};
use crate::batch::{Profile, Setting};
use crate::web::Web;

/// Rates agree within this, percent.
pub const RATE_PERCENT: u64 = 5;
/// Shares of time agree within this, parts per million.
pub const BUSY_PPM: u64 = 50_000;

/// Where programs' writes of 16 KB meet a buffer of 65,535 bytes, what a write finds room for drifts from one round trip to the
/// next, and with it the segments: a turn of that takes some 200 ms.
const SPAN: Span = Span { warm_up_ms: 50, measured_ms: 600 };

/// Servers of one core have it for some 30 ms each, so that some hundred of their turns take this long.
const SPAN_OF_QUANTA: Span = Span { warm_up_ms: 100, measured_ms: 2_400 };

/// Payload of a segment with timestamps (RFC 7323), and what is on the wire beside it.
const TIMESTAMPED: u64 = 1448;
const OVERHEAD_TIMESTAMPED: u64 = 90;

/// A configuration of some machine, and a draw.
#[derive(Clone, Debug)]
pub struct Case {
    pub machine: &'static str,
    pub profile: Profile,
    pub setting: Setting,
}

/// The same with a web server.
#[derive(Clone, Debug)]
pub struct WebCase {
    pub machine: &'static str,
    pub file_bytes: u64,
    pub web: Web,
    pub setting: Setting,
}

/// What a point's stack does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    Bulk,
    /// Files of so many bytes for so many clients.
    Web {
        file_bytes: u64,
        clients: usize,
    },
}

#[derive(Clone, Debug)]
pub struct Point {
    pub seed: u64,
    pub machine: &'static str,
    pub setting: Setting,
    pub load: Load,
    /// There is a filter.
    pub is_filtered: bool,
    pub engines: Outcome,
    pub batches: Outcome,
}

/// The largest scale of windows here is 8 bits.
const UNIT: u64 = 256;

/// Timestamps in each segment, if tier 1 has them.
pub fn as_engines(profile: &Profile) -> Profile {
    let mut profile = *profile;
    if profile.modern_tcp {
        (profile.maximum_segment, profile.network.overhead_bytes) = (TIMESTAMPED, OVERHEAD_TIMESTAMPED);
    }
    profile
}

/// The same of a web server's stack.
pub fn web_as_engines(web: &Web) -> Web {
    let mut web = web.clone();
    web.stack = as_engines(&web.stack);
    // Windows of such rings are said in units, and buffers are as long; routes say whole segments.
    web.stack.window_bytes -= web.stack.window_bytes % UNIT;
    web.stack.buffer_bytes -= web.stack.buffer_bytes % UNIT;
    web.stack.initial_window_bytes = initial_segments(&web.stack) * web.stack.maximum_segment;
    web
}

/// Runs both tiers.
pub fn point(case: Case, seed: u64) -> Point {
    let span = if case.setting.shares_cores() { SPAN_OF_QUANTA } else { SPAN };
    point_of(case, seed, span)
}

/// The same over another time.
pub fn point_of(case: Case, seed: u64, span: Span) -> Point {
    let (profile, setting) = (as_engines(&case.profile), case.setting);
    Point {
        seed,
        machine: case.machine,
        setting,
        load: Load::Bulk,
        is_filtered: profile.filter.is_some(),
        engines: run(&profile, &setting, seed, span),
        batches: run_for(&profile, &setting, seed, span),
    }
}

/// Runs both tiers of a web server.
pub fn web_point(case: &WebCase, seed: u64) -> Point {
    web_point_of(case, seed, SPAN)
}

/// The same over another time.
pub fn web_point_of(case: &WebCase, seed: u64, span: Span) -> Point {
    let (web, setting) = (web_as_engines(&case.web), case.setting);
    Point {
        seed,
        machine: case.machine,
        setting,
        load: Load::Web { file_bytes: case.file_bytes, clients: web.stack.streams },
        is_filtered: false,
        engines: super::web::run_for(&web, &setting, seed, span).stack,
        batches: crate::web::run::run_for(&web, &setting, seed, span).stack,
    }
}

impl Point {
    /// In percent of the engines' rate.
    pub fn rate_off(&self) -> f64 {
        (self.batches.kbps as f64 / self.engines.kbps.max(1) as f64 - 1.0) * 100.0
    }

    /// The server whose share of time differs most, and by how many points.
    pub fn busy_off(&self) -> (Server, f64) {
        let off = |server: Server| {
            let of = |outcome: &Outcome| outcome.busy_ppm[server as usize] as f64;
            (of(&self.batches) - of(&self.engines)) / 10_000.0
        };
        let all = SERVERS.map(|server| (server, off(server)));
        all.into_iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs())).unwrap_or((Server::Tcp, 0.0))
    }

    pub fn agrees(&self) -> bool {
        let (ours, theirs) = (self.batches.kbps, self.engines.kbps);
        let rates = ours.abs_diff(theirs) * 100 <= theirs * RATE_PERCENT;
        rates && self.busy_off().1.abs() * 10_000.0 <= BUSY_PPM as f64
    }
}

/// Pairs of points that lie further apart than so many percent, and those of them that the tiers order differently.
pub fn orders(points: &[Point], percent: u64) -> (usize, usize) {
    let (mut apart, mut differ) = (0, 0);
    for (i, one) in points.iter().enumerate() {
        for other in &points[i + 1..] {
            let (a, b) = (one.engines.kbps, other.engines.kbps);
            if a.abs_diff(b) * 100 > a.max(b) * percent {
                apart += 1;
                differ += usize::from((a < b) != (one.batches.kbps < other.batches.kbps));
            }
        }
    }
    (apart, differ)
}
