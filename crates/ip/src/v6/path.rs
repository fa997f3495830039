//! Path MTUs, as routers on the path reported them (RFC 8201).
//!
//! Only for datagrams, which are fragmented here: tcp keeps its own path MTUs, and accepts only reports that quote
//! bytes in flight.

use alloc::collections::BTreeMap;
use core::net::Ipv6Addr;
use core::time::Duration;
use eft_base::Instant;

/// The least MTU of every IPv6 link (RFC 8200 §5).
pub(crate) const MTU_MIN: u16 = 1280;
/// After that the larger size is tried again (RFC 8201 §4).
const LIFETIME: Duration = Duration::from_secs(600);
/// Beyond this many the oldest are forgotten.
const PATHS_MAX: usize = 1024;

#[derive(Default)]
pub(crate) struct Paths(BTreeMap<Ipv6Addr, (u16, Instant)>);

impl Paths {
    /// A router on the path to `destination` reported `mtu`. The least report counts.
    pub fn put(&mut self, now: Instant, destination: Ipv6Addr, mtu: u16) {
        if self.0.len() >= PATHS_MAX && !self.0.contains_key(&destination) {
            let oldest = self.0.iter().min_by_key(|(_, (_, until))| *until).map(|(a, _)| *a);
            oldest.and_then(|a| self.0.remove(&a));
        }
        let mtu = mtu.max(MTU_MIN).min(self.get(now, destination).unwrap_or(u16::MAX));
        self.0.insert(destination, (mtu, now + LIFETIME));
    }

    pub fn get(&self, now: Instant, destination: Ipv6Addr) -> Option<u16> {
        if self.0.is_empty() {
            return None;
        }
        let (mtu, until) = self.0.get(&destination)?;
        (*until > now).then_some(*mtu)
    }
}

#[cfg(test)]
mod tests;
