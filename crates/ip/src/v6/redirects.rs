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
    /// To how many destinations a neighbour leads: asked for each address that may be on the link.
    by_hop: BTreeMap<(u8, IpAddr), u32>,
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
        self.by_hop.contains_key(&(interface, next))
    }

    pub fn put(&mut self, interface: u8, destination: IpAddr, next: IpAddr) {
        if self.by_destination.len() >= REDIRECTS_MAX && !self.by_destination.contains_key(&destination) {
            let oldest = self.by_destination.iter().min_by_key(|(_, r)| r.order).map(|(a, _)| *a);
            oldest.into_iter().for_each(|a| self.remove(a));
        }
        self.remove(destination);
        self.count += 1;
        self.by_destination.insert(destination, Redirect { interface, next, order: self.count });
        *self.by_hop.entry((interface, next)).or_default() += 1;
    }

    fn remove(&mut self, destination: IpAddr) {
        let Some(Redirect { interface, next, .. }) = self.by_destination.remove(&destination) else { return };
        if let Some(leads) = self.by_hop.get_mut(&(interface, next)) {
            *leads -= 1;
            if *leads == 0 {
                self.by_hop.remove(&(interface, next));
            }
        }
    }

    /// A first hop is silent: routers are asked again (RFC 4861 §7.3.3).
    pub fn forget(&mut self, interface: u8, next: IpAddr) {
        if self.by_hop.remove(&(interface, next)).is_some() {
            self.by_destination.retain(|_, r| r.interface != interface || r.next != next);
        }
    }
}

#[cfg(test)]
mod tests;
