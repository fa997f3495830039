//! The stack's own addresses, as the configuration key `addresses` lists them: one CIDR per line.

use alloc::vec::Vec;
use core::net::IpAddr;
use eft_base::{Cidr, WireAddress};

/// Which addresses an application may bind to. Empty: not told yet, so nothing is refused here and
/// ip has the last word.
#[derive(Default)]
pub(crate) struct Addresses(Vec<Cidr>);

impl Addresses {
    /// Takes a new list. Lines that are no CIDR are skipped: the supervisor checked them.
    pub fn configure(&mut self, value: &[u8]) {
        self.0 = core::str::from_utf8(value)
            .unwrap_or("")
            .lines()
            .filter_map(|line| line.trim().parse().ok())
            .collect();
    }

    /// Whether a socket may be bound to `address`.
    pub fn may_bind(&self, address: WireAddress) -> bool {
        let address = IpAddr::from(address);
        address.is_unspecified() || self.0.is_empty() || self.0.iter().any(|own| own.address == address)
    }

    /// Whether `address` is a broadcast address of one of our networks, or of all.
    pub fn is_broadcast(&self, address: WireAddress) -> bool {
        match IpAddr::from(address) {
            IpAddr::V4(a) => a.is_broadcast() || self.0.iter().any(|own| own.broadcast() == Some(a)),
            IpAddr::V6(_) => false,
        }
    }
}

/// Whether a wire address means "any".
pub(crate) fn is_unspecified(address: WireAddress) -> bool {
    IpAddr::from(address).is_unspecified()
}

/// Whether a socket on `a` and a socket on `b` would get the same packets.
pub(crate) fn overlap(a: WireAddress, b: WireAddress) -> bool {
    a == b || is_unspecified(a) || is_unspecified(b)
}

/// The addresses of an IP header; `None` if it is neither version.
pub(crate) fn ip_addresses(header: &[u8]) -> Option<(WireAddress, WireAddress)> {
    let address4 = |at: usize| -> Option<WireAddress> {
        let b: [u8; 4] = header.get(at..at + 4)?.try_into().ok()?;
        Some(IpAddr::from(b).into())
    };
    let address6 =
        |at: usize| -> Option<WireAddress> { Some(WireAddress(header.get(at..at + 16)?.try_into().ok()?)) };
    match header.first()? >> 4 {
        4 if header.len() >= 20 => Some((address4(12)?, address4(16)?)),
        6 if header.len() >= 40 => Some((address6(8)?, address6(24)?)),
        _ => None,
    }
}
