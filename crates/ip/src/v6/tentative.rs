//! The tentative addresses: duplicate address detection for them is not over
//! ([`super::duplicates`]).

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use eft_base::Instant;

pub(super) struct Tentative {
    pub interface: u8,
    pub address: Ipv6Addr,
    until: Instant,
}

/// Addresses of ours for which duplicate address detection is not over.
#[derive(Default)]
pub(crate) struct Tentatives(Vec<Tentative>);

impl Tentatives {
    pub fn contains(&self, interface: u8, address: Ipv6Addr) -> bool {
        self.0.iter().any(|t| t.interface == interface && t.address == address)
    }

    pub(super) fn put(&mut self, interface: u8, address: Ipv6Addr, until: Instant) {
        self.remove(interface, address);
        self.0.push(Tentative { interface, address, until });
    }

    pub(super) fn remove(&mut self, interface: u8, address: Ipv6Addr) {
        self.0.retain(|t| t.interface != interface || t.address != address);
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.0.iter().map(|t| t.until).min()
    }

    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Tentative> {
        self.0.extract_if(.., |t| t.until <= now).collect()
    }
}
