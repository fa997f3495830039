//! The stack's own addresses, as the configuration key `addresses` lists them: one CIDR per line.

use alloc::vec::Vec;
use core::net::IpAddr;
use eft_base::address::{with_zone, without_zone};
use eft_base::{Cidr, WireAddress};
use eft_messages::sockets::reuse;

/// Which addresses an application may bind to. Empty: not configured yet, so nothing is refused
/// here and ip decides.
#[derive(Default)]
pub(crate) struct Addresses(Vec<Cidr>);

impl Addresses {
    /// Takes a new list. Lines that are not CIDRs are skipped: the supervisor checked them.
    pub fn configure(&mut self, value: &[u8]) {
        self.0 = core::str::from_utf8(value)
            .unwrap_or("")
            .lines()
            .filter_map(|line| line.trim().parse().ok())
            .collect();
    }

    /// Whether a socket may be bound to `address`; `wishes` as in the request to bind.
    pub fn may_bind(&self, address: WireAddress, wishes: u8) -> bool {
        let address = IpAddr::from(address);
        // Only ip knows the link-local addresses.
        let plain = without_zone(address);
        wishes & reuse::FREE_BIND != 0
            || address.is_unspecified()
            || plain != address
            || self.0.is_empty()
            || self.0.iter().any(|own| own.address == address)
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

/// Longest headers that ip leaves before a transport header: IPv6 with extension headers.
pub(crate) const IP_HEADERS_MAX: usize = 128;

/// The wildcard of IPv4.
pub(crate) fn any4() -> WireAddress {
    IpAddr::from([0u8; 4]).into()
}

/// The wildcard of IPv6, which includes IPv4 unless its socket is IPV6_V6ONLY (RFC 3493 §5.3).
pub(crate) const ANY6: WireAddress = WireAddress([0; 16]);

/// The wildcard that an unbound socket gets when it sends to `remote`.
pub(crate) fn any_towards(remote: WireAddress) -> WireAddress {
    if IpAddr::from(remote).is_ipv6() { ANY6 } else { any4() }
}

/// What a socket is bound to.
#[derive(Clone, Copy)]
pub(crate) struct Reach {
    pub address: WireAddress,
    /// It is IPV6_V6ONLY: the wildcard means IPv6 alone.
    pub v6only: bool,
}

impl Reach {
    /// Whether a socket that is bound like this gets packets for `address`.
    pub fn covers(self, address: WireAddress) -> bool {
        let ipv4 = IpAddr::from(address).is_ipv4();
        self.address == address
            || match self.address {
                ANY6 => !(self.v6only && ipv4),
                wildcard => wildcard == any4() && ipv4,
            }
    }
}

/// Whether a socket on `a` and a socket on `b` would get the same packets.
pub(crate) fn overlap(a: Reach, b: Reach) -> bool {
    a.covers(b.address) || b.covers(a.address)
}

/// The addresses of an IP header, link-local ones in `zone`; `None` if it is neither version.
pub(crate) fn ip_addresses(header: &[u8], zone: u16) -> Option<(WireAddress, WireAddress)> {
    let address4 = |at: usize| -> Option<WireAddress> {
        let b: [u8; 4] = header.get(at..at + 4)?.try_into().ok()?;
        Some(IpAddr::from(b).into())
    };
    let address6 = |at: usize| -> Option<WireAddress> {
        let b: [u8; 16] = header.get(at..at + 16)?.try_into().ok()?;
        Some(IpAddr::V6(with_zone(b.into(), zone)).into())
    };
    match header.first()? >> 4 {
        4 if header.len() >= 20 => Some((address4(12)?, address4(16)?)),
        6 if header.len() >= 40 => Some((address6(8)?, address6(24)?)),
        _ => None,
    }
}

/// Whether a packet of `len` bytes with this header, which [`ip_addresses`] has read, is what its header says: not a byte of the
/// next packet may count as payload, and the checksum may have been verified long before. A header of 0 bytes of content stands
/// for a packet that is too long for its field (RFC 2675 §3 of IPv6; Linux's BIG TCP of both versions).
pub(crate) fn is_whole(header: &[u8], len: u32) -> bool {
    let field = |at: usize| u32::from(header[at]) << 8 | u32::from(header[at + 1]);
    match header[0] >> 4 {
        4 => usize::from(header[0] & 15) * 4 == header.len() && [0, len].contains(&field(2)),
        _ => field(4) == 0 || field(4) + 40 == len,
    }
}

/// TTL and TOS, or hop limit and traffic class, of a header that [`ip_addresses`] has read.
pub(crate) fn hops_and_class(header: &[u8]) -> (u8, u8) {
    match header[0] >> 4 {
        4 => (header[8], header[1]),
        _ => (header[7], header[0] << 4 | header[1] >> 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_as_long_as_its_header_says() {
        let mut header4 = [0; 24];
        header4[..4].copy_from_slice(&[0x46, 0, 0x05, 0xdc]);
        let mut header6 = [0; 48];
        header6[..6].copy_from_slice(&[0x60, 0, 0, 0, 0x05, 0xb4]);
        for header in [&header4[..], &header6[..]] {
            assert!(is_whole(header, 1500));
            assert!((0..16).all(|bit| !is_whole(header, 1500 ^ 1 << bit)));
        }
        assert!(!is_whole(&header4[..20], 1500), "it has options");
        // Longer than the field can say.
        header4[2..4].fill(0);
        header6[4..6].fill(0);
        assert!(is_whole(&header4, 80_000) && is_whole(&header6, 80_000));
    }
}
