//! Indicators of the traffic, derived from the counters of Table 1 (`multiserver-scheduling`, section 3): bulk or
//! request and response, sent or received, client or server, and the overhead per byte.
//!
//! Counters are summed over a recent window that decays exponentially, since ten milliseconds hold few connections.
//! Promises: every indicator is finite; [`Mix`] tells two kinds of traffic apart by their nature, not by their volume,
//! so that a change of speed does not look like a change of mix.

use core::fmt;
use core::time::Duration;

use eft_base::time::nanos;
use eft_machine::Share;
use serde::{Deserialize, Serialize};

use crate::sample::Traffic;
use crate::throughput::ByteRate;

/// The window's time constant.
const WINDOW_NS: f64 = 100_000_000.0;
/// Fewer segments than this in the window say nothing about their kind.
const SEGMENTS_MIN: f64 = 8.0;
/// A smaller segment than the first carries a request or a small answer; a larger one than the second is part of a bulk
/// transfer.
const SMALL_BYTES: f64 = 600.0;
const LARGE_BYTES: f64 = 1100.0;
/// What the decaying sum keeps of one connection after a long time; less counts as none.
const NONE_LATELY: f64 = 0.05;
/// With this many closed-loop clients or fewer, the stack's components are idle in turn.
const FEW_CONNECTIONS: f64 = 8.0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Indicators {
    #[serde(rename = "received_bytes_per_s")]
    pub received: ByteRate,
    #[serde(rename = "sent_bytes_per_s")]
    pub sent: ByteRate,
    pub segments_per_s: f64,
    pub connections_per_s: f64,
    /// Mean over the window.
    pub connections_open: f64,
    /// Payload bytes of a segment that carries any.
    pub mean_segment_bytes: f64,
    /// Bytes of headers per byte of payload.
    pub overhead_per_byte: f64,
    /// Segments of both directions per connection that began or ended; 0 while none does.
    pub segments_per_connection: f64,
    /// By Little's law: connections open now, divided by the rate at which they close; 0 while none does.
    pub mean_lifetime_s: f64,
    /// Share of the sent segments without payload.
    pub empty_share: Share,
    /// Share of the payload that was received.
    pub received_share: Share,
    pub kind: Kind,
    pub side: Side,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Too little to tell.
    #[default]
    Idle,
    Bulk,
    RequestResponse,
    Mixed,
}

/// Which side opens the connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    #[default]
    Unknown,
    Client,
    Server,
    Both,
}

impl fmt::Display for Indicators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Idle => return f.pad("no traffic"),
            Kind::Bulk => "bulk",
            Kind::RequestResponse => "requests",
            Kind::Mixed => "mixed",
        };
        let side = match self.side {
            Side::Unknown => "",
            Side::Client => " as client",
            Side::Server => " as server",
            Side::Both => " as both",
        };
        write!(
            f,
            "{kind}{side}, {:.1}/{:.1} Mbit/s in/out, {:.0} B a segment, {:.0}% empty",
            self.received.mbit_per_s(),
            self.sent.mbit_per_s(),
            self.mean_segment_bytes,
            self.empty_share.percent()
        )
    }
}

/// The nature of the traffic, each axis in 0..=1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    pub size: f64,
    pub empty: f64,
    pub received: f64,
    pub connections: f64,
    pub overhead: f64,
    /// Connections at the same time.
    pub parallel: f64,
}

impl Mix {
    pub fn axes(&self) -> [f64; 6] {
        [self.size, self.empty, self.received, self.connections, self.overhead, self.parallel]
    }

    /// Squared distance, for comparing.
    pub fn distance(&self, other: &Self) -> f64 {
        self.axes().iter().zip(other.axes()).map(|(here, there)| (here - there) * (here - there)).sum()
    }

    /// The largest difference on any axis but [`Mix::parallel`]: connections come and go without a change of the kind
    /// of traffic.
    pub fn difference(&self, other: &Self) -> f64 {
        let other = Self { parallel: self.parallel, ..*other };
        self.axes().iter().zip(other.axes()).map(|(here, there)| (here - there).abs()).fold(0.0, f64::max)
    }
}

impl Indicators {
    /// Saturating scales: each axis is at one half at the value that divides two kinds of traffic.
    pub fn mix(&self) -> Mix {
        let scale = |value: f64, half: f64| value / (value + half);
        let per_connection = scale(self.connections_per_s * 20.0, self.segments_per_s.max(1.0));
        Mix {
            size: scale(self.mean_segment_bytes, SMALL_BYTES),
            empty: self.empty_share.0,
            received: self.received_share.0,
            connections: per_connection,
            overhead: scale(self.overhead_per_byte, 0.5),
            parallel: scale(self.connections_open, FEW_CONNECTIONS),
        }
    }

    /// Payload of both directions.
    pub fn passed(&self) -> ByteRate {
        self.received + self.sent
    }
}

/// What one period delivered, in bytes. Each segment with payload counts for 512 bytes more than its own, so that in
/// mixed traffic bulk transfers do not hide requests, nor requests bulk transfers. Two such figures are comparable only
/// while the mix is the same.
pub fn delivered(traffic: &Traffic) -> f64 {
    const SEGMENT_WORTH_BYTES: f64 = 512.0;
    let sent = traffic.sent_segments.saturating_sub(traffic.sent_empty_segments) as f64;
    let received = traffic.received_segments.saturating_sub(traffic.received_empty_segments) as f64;
    let bytes = traffic.received_bytes as f64 + traffic.sent_bytes as f64;
    bytes + SEGMENT_WORTH_BYTES * (sent + received)
}

/// Whether no traffic passed.
pub fn is_silent(traffic: &Traffic) -> bool {
    let passed = [
        traffic.received_bytes,
        traffic.sent_bytes,
        traffic.received_segments,
        traffic.sent_segments,
        traffic.ip_received_bytes,
        traffic.ip_sent_bytes,
    ];
    passed.iter().all(|count| *count == 0)
}

/// Sums that decay exponentially.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    length_ns: f64,
    received_bytes: f64,
    sent_bytes: f64,
    received_segments: f64,
    sent_segments: f64,
    sent_empty_segments: f64,
    received_empty_segments: f64,
    outbound: f64,
    accepted: f64,
    closed: f64,
    ip_bytes: f64,
    /// Sum of open connections times nanoseconds.
    open_ns: f64,
}

impl Window {
    pub fn add(&mut self, traffic: &Traffic, period: Duration) {
        let period_ns = nanos(period);
        let kept = WINDOW_NS / (WINDOW_NS + period_ns as f64);
        let sums = [
            (&mut self.length_ns, period_ns),
            (&mut self.received_bytes, traffic.received_bytes),
            (&mut self.sent_bytes, traffic.sent_bytes),
            (&mut self.received_segments, traffic.received_segments),
            (&mut self.sent_segments, traffic.sent_segments),
            (&mut self.sent_empty_segments, traffic.sent_empty_segments),
            (&mut self.received_empty_segments, traffic.received_empty_segments),
            (&mut self.outbound, traffic.outbound_connections),
            (&mut self.accepted, traffic.accepted_connections),
            (&mut self.closed, traffic.closed_connections),
            (&mut self.ip_bytes, traffic.ip_received_bytes.saturating_add(traffic.ip_sent_bytes)),
        ];
        for (sum, more) in sums {
            *sum = *sum * kept + more as f64;
        }
        self.open_ns = self.open_ns * kept + traffic.connections_open as f64 * period_ns as f64;
    }

    pub fn indicators(&self) -> Indicators {
        let per_s = |sum: f64| ratio(sum * 1e9, self.length_ns);
        let payload = self.received_bytes + self.sent_bytes;
        let segments = self.received_segments + self.sent_segments;
        let with_payload = self.sent_with_payload() + self.received_with_payload();
        let begun = self.outbound + self.accepted;
        // A decaying sum never quite reaches zero.
        let lately = |sum: f64| if sum < NONE_LATELY { 0.0 } else { sum };
        let empty_share = ratio(self.sent_empty_segments, self.sent_segments).min(1.0);
        let mean_segment_bytes = ratio(payload, with_payload);
        Indicators {
            received: ByteRate(per_s(self.received_bytes)),
            sent: ByteRate(per_s(self.sent_bytes)),
            segments_per_s: per_s(segments),
            connections_per_s: per_s(begun.max(self.closed)),
            connections_open: ratio(self.open_ns, self.length_ns),
            mean_segment_bytes,
            overhead_per_byte: ratio((self.ip_bytes - payload).max(0.0), payload),
            segments_per_connection: ratio(segments, lately(begun.max(self.closed))),
            mean_lifetime_s: ratio(ratio(self.open_ns, self.length_ns), per_s(lately(self.closed))),
            empty_share: Share(empty_share),
            received_share: Share(ratio(self.received_bytes, payload)),
            kind: self.kind(segments, mean_segment_bytes),
            side: self.side(),
        }
    }

    fn sent_with_payload(&self) -> f64 {
        (self.sent_segments - self.sent_empty_segments).max(0.0)
    }

    fn received_with_payload(&self) -> f64 {
        (self.received_segments - self.received_empty_segments).max(0.0)
    }

    fn kind(&self, segments: f64, mean_segment_bytes: f64) -> Kind {
        if segments < SEGMENTS_MIN {
            return Kind::Idle;
        }
        // A bulk transfer has one direction; requests and answers are about equal in number.
        let data_out = self.sent_with_payload();
        let data_in = self.received_with_payload();
        let balance = ratio(data_in.min(data_out), data_in.max(data_out));
        match mean_segment_bytes {
            size if size >= LARGE_BYTES && balance < 0.5 => Kind::Bulk,
            size if size <= SMALL_BYTES && balance > 0.5 => Kind::RequestResponse,
            _ => Kind::Mixed,
        }
    }

    fn side(&self) -> Side {
        let begun = self.outbound + self.accepted;
        if begun < 0.5 {
            return Side::Unknown;
        }
        match self.accepted / begun {
            share if share >= 0.8 => Side::Server,
            share if share <= 0.2 => Side::Client,
            _ => Side::Both,
        }
    }
}

fn ratio(above: f64, below: f64) -> f64 {
    if below > 0.0 { above / below } else { 0.0 }
}
