//! Datagrams under reassembly, and how a fragment fits those that came before.

use crate::counters::Counter;
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_base::address::zone;
use eft_base::wire::{ECN_EXPERIENCED, ECN_INCAPABLE};
use eft_base::{Instant, PacketRef};

const FRAGMENTS_MAX: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub id: u32,
    pub protocol: u8,
}

impl Key {
    /// The zone of the addresses; 0: they need none.
    pub fn zone(&self) -> u16 {
        let zone_of = |a: IpAddr| match a {
            IpAddr::V4(_) => 0,
            IpAddr::V6(a) => zone(a),
        };
        zone_of(self.source).max(zone_of(self.destination))
    }
}

pub(crate) struct Entry {
    pub key: Key,
    pub expires: Instant,
    pub interface: u8,
    pub group: bool,
    /// `None`: spoilt; the rest is dropped until it expires.
    pub slot: Option<PacketRef>,
    /// What has come: start and end in the body, sorted, not overlapping.
    pub ranges: Vec<(usize, usize)>,
    pub received: usize,
    /// Length of the first fragment's header, once it has come.
    pub header_len: Option<usize>,
    /// The marks of congestion that fragments had: bit n for mark n.
    pub marks: u8,
    /// Length of the body, once the last fragment has come.
    pub body_len: Option<usize>,
}

impl Entry {
    /// Whether a router marked a fragment. An error if another fragment says that its sender does not use ECN: then the
    /// datagram is dropped (RFC 3168 §5.3).
    pub fn is_congested(&self) -> Result<bool, Counter> {
        let has = |mark: u8| self.marks & 1 << mark != 0;
        match (has(ECN_EXPERIENCED), has(ECN_INCAPABLE)) {
            (true, true) => Err(Counter::DropFragment),
            (congested, _) => Ok(congested),
        }
    }

    pub fn is_complete(&self) -> bool {
        self.header_len.is_some() && self.body_len == Some(self.received)
    }
}

/// The datagrams being collected.
pub(crate) struct Reassembly {
    pub entries: Vec<Entry>,
    pub slots_max: usize,
}

/// A fragment's place in the body.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub start: usize,
    pub end: usize,
    pub last: bool,
}

/// A fragment that came in, checked on its own.
pub(crate) struct Fragment<'a> {
    pub key: Key,
    pub place: Place,
    /// The IP header, and what else the whole packet has before the fragments' data.
    pub header: &'a [u8],
    /// What follows it.
    pub body: PacketRef,
}

pub(crate) enum Fit {
    New,
    Duplicate,
}

impl Reassembly {
    pub fn new(slots_max: usize) -> Reassembly {
        Reassembly { entries: Vec::new(), slots_max }
    }

    pub fn deadline(&self) -> Option<Instant> {
        // Entries expire in the order in which they began.
        self.entries.first().map(|e| e.expires)
    }

    pub fn slots(&self) -> usize {
        self.entries.iter().filter(|e| e.slot.is_some()).count()
    }
}

impl Entry {
    /// Whether a fragment fits what has come before.
    pub fn fit(&mut self, place: Place) -> Result<Fit, Counter> {
        let Place { start, end, last } = place;
        if self.ranges.contains(&(start, end)) {
            return Ok(Fit::Duplicate);
        }
        if self.ranges.iter().any(|(s, e)| start < *e && end > *s) {
            return Err(Counter::DropFragmentOverlap);
        }
        let highest = self.ranges.last().map_or(0, |(_, e)| *e);
        let beyond = self.body_len.is_some_and(|n| end > n || last);
        if beyond || (last && highest > end) || self.ranges.len() >= FRAGMENTS_MAX {
            return Err(Counter::DropFragment);
        }
        let at = self.ranges.partition_point(|(s, _)| *s < start);
        self.ranges.insert(at, (start, end));
        self.received += end - start;
        if last {
            self.body_len = Some(end);
        }
        Ok(Fit::New)
    }
}
