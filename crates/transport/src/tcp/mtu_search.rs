//! Path MTU discovery without ICMP (RFC 4821): which packet size is tried next, and what its fate means. As on Linux
//! (`tcp_mtu_probing`): segments of a size that every path should take, and between what passed and what may pass the middle is
//! tried.
//!
//! Derived state. The size that passed is the block's MSS, from which a successor takes the search up.

use super::scoreboard::Range;
use core::str::FromStr;
use core::time::Duration;
use eft_base::Instant;

/// When connections search for the MTU of their path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MtuProbing {
    /// Never: what ip and ICMP say holds.
    Off,
    /// When segments get lost again and again (RFC 4821 §7.7).
    #[default]
    BlackHole,
    /// From the beginning on.
    Always,
}

impl MtuProbing {
    const ALL: [MtuProbing; 3] = [MtuProbing::Off, MtuProbing::BlackHole, MtuProbing::Always];

    pub fn name(self) -> &'static str {
        match self {
            MtuProbing::Off => "off",
            MtuProbing::BlackHole => "blackhole",
            MtuProbing::Always => "always",
        }
    }
}

impl FromStr for MtuProbing {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<MtuProbing, &'static str> {
        let found = MtuProbing::ALL.into_iter().find(|mode| mode.name() == text);
        found.ok_or("is none of off, blackhole and always")
    }
}

/// Payload of the segments with which a search begins (RFC 4821 §7.2; Linux's `tcp_base_mss`).
const BASE_MSS: u16 = 1024;
/// The least that a search goes down to (Linux's `tcp_mtu_probe_floor`).
const FLOOR_MSS: u16 = 48;
/// The least MTU of an IPv6 link (RFC 8200 §5).
const MTU6_MIN: u16 = 1280;
/// A smaller gap is not halved any more (Linux's `tcp_probe_threshold`).
const NARROW: u16 = 8;
/// After this time the path may have changed (RFC 4821 §7.3; Linux's `tcp_probe_interval`).
const AGAIN: Duration = Duration::from_secs(600);

/// A segment that is larger than the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    range: Range,
    mtu: u16,
}

/// The search of a connection. Sizes are those of IP packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MtuSearch {
    /// As configured when the connection was established.
    pub mode: MtuProbing,
    /// What passes, while a search goes on.
    low: Option<u16>,
    /// The largest that may pass.
    high: u16,
    /// The largest was lost.
    refuted: bool,
    probe: Option<Probe>,
    /// When `high` became what it is.
    since: Instant,
}

/// IP and TCP header of a path, and the largest packet that ip and the peer let through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub headers: u16,
    pub ceiling: u16,
}

impl Bounds {
    fn mtu(&self, mss: u16) -> u16 {
        let least = if self.headers >= 60 { MTU6_MIN } else { 0 };
        mss.saturating_add(self.headers).max(least).min(self.ceiling)
    }
}

impl MtuSearch {
    /// The largest packet that may be sent but for probes.
    pub fn limit(&self) -> u16 {
        self.low.unwrap_or(u16::MAX)
    }

    /// A connection begins.
    pub fn begin(&mut self, now: Instant, bounds: Bounds) {
        if self.mode == MtuProbing::Always {
            self.start(now, bounds.mtu(BASE_MSS), bounds);
        }
    }

    /// Goes on where a predecessor was, which sent segments of `mss` bytes.
    pub fn resume(&mut self, now: Instant, mss: u16, bounds: Bounds) {
        if self.mode != MtuProbing::Off && mss < bounds.ceiling.saturating_sub(bounds.headers) {
            self.start(now, mss.saturating_add(bounds.headers), bounds);
        }
    }

    fn start(&mut self, now: Instant, low: u16, bounds: Bounds) {
        *self = MtuSearch {
            mode: self.mode,
            low: Some(low),
            high: bounds.ceiling,
            since: now,
            ..MtuSearch::default()
        };
    }

    /// Segments were lost again and again: the path may swallow packets of their size (RFC 4821 §7.7). True if it was thought
    /// to take larger ones.
    pub fn on_black_hole(&mut self, now: Instant, bounds: Bounds) -> bool {
        let before = self.limit().min(bounds.ceiling);
        match self.low {
            _ if self.mode == MtuProbing::Off => return false,
            None => self.start(now, bounds.mtu(BASE_MSS), bounds),
            Some(low) => {
                let half = low.saturating_sub(bounds.headers) / 2;
                self.low = Some(bounds.mtu(half.clamp(FLOOR_MSS, BASE_MSS)).min(low));
            }
        }
        self.probe = None;
        self.limit() < before
    }

    /// ip, ICMP or the peer say that nothing larger passes.
    pub fn cap(&mut self, ceiling: u16) {
        self.high = self.high.min(ceiling);
        self.low = self.low.map(|low| low.min(ceiling));
    }

    /// Whether there is anything to try at all.
    pub fn is_on(&self) -> bool {
        self.low.is_some()
    }

    /// The packet to try next.
    pub fn next(&mut self, now: Instant, bounds: Bounds) -> Option<u16> {
        let low = self.low?;
        if self.probe.is_some() {
            return None;
        }
        if now.saturating_since(self.since) >= AGAIN {
            (self.high, self.refuted, self.since) = (bounds.ceiling, false, now);
        }
        match self.high.saturating_sub(low) {
            0 => None,
            gap if gap < NARROW => (!self.refuted).then_some(self.high),
            gap => Some(low + gap / 2),
        }
    }

    /// A packet of `mtu` bytes was sent with `range`.
    pub fn on_sent(&mut self, range: Range, mtu: u16) {
        self.probe = Some(Probe { range, mtu });
    }

    /// The range of the probe under way.
    pub fn probe(&self) -> Option<Range> {
        self.probe.map(|probe| probe.range)
    }

    /// Everything below `una` is acknowledged. True if a larger packet has passed (RFC 4821 §7.6.1).
    pub fn on_acknowledged(&mut self, una: u64) -> bool {
        let Some(probe) = self.probe.take_if(|probe| probe.range.end <= una) else {
            return false;
        };
        self.low = Some(probe.mtu);
        true
    }

    /// The probe alone was lost (RFC 4821 §7.6.2).
    pub fn on_lost(&mut self, now: Instant) {
        if let Some(probe) = self.probe.take() {
            self.refuted |= self.high.saturating_sub(self.limit()) < NARROW;
            (self.high, self.since) = (probe.mtu - 1, now);
        }
    }

    /// More was lost than the probe, so its fate says nothing about its size (RFC 4821 §7.6.3).
    pub fn forget(&mut self) {
        self.probe = None;
    }
}

#[cfg(test)]
mod tests;
