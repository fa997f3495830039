//! The first hops that routers have named ([`super::redirect`]).

use alloc::collections::BTreeMap;
use core::net::IpAddr;

/// Beyond this many the oldest are forgotten.
const REDIRECTS_MAX: usize = 1024;

/// A first hop that a router named.
struct Redirect {
    interface: u8,
    next: IpAddr,
    order: u64,
}

/// Destinations that have another first hop than their route says: until it falls silent, or routes change.
#[derive(Default)]
pub(crate) struct Redirects {
    by_destination: BTreeMap<IpAddr, Redirect>,
    count: u64,
}

impl Redirects {
    /// The first hop to a destination that is reached by a router of this interface (RFC 4861 §8.3).
    pub fn next(&self, interface: u8, destination: IpAddr) -> Option<IpAddr> {
        if self.by_destination.is_empty() {
            return None;
        }
        let redirect = self.by_destination.get(&destination)?;
        (redirect.interface == interface).then_some(redirect.next)
    }

    /// Whether this neighbour is the first hop to some destination.
    pub fn leads_to(&self, interface: u8, next: IpAddr) -> bool {
        self.by_destination.values().any(|r| r.interface == interface && r.next == next)
    }

    pub fn put(&mut self, interface: u8, destination: IpAddr, next: IpAddr) {
        if self.by_destination.len() >= REDIRECTS_MAX && !self.by_destination.contains_key(&destination) {
            let oldest = self.by_destination.iter().min_by_key(|(_, r)| r.order).map(|(a, _)| *a);
            oldest.and_then(|a| self.by_destination.remove(&a));
        }
        self.count += 1;
        self.by_destination.insert(destination, Redirect { interface, next, order: self.count });
    }

    /// A first hop is silent: routers are asked again (RFC 4861 §7.3.3).
    pub fn forget(&mut self, interface: u8, next: IpAddr) {
        self.by_destination.retain(|_, r| r.interface != interface || r.next != next);
    }
}

#[cfg(test)]
mod tests;
