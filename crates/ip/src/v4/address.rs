//! What an IPv4 address may stand for.

use crate::config_error::AddressError;
use core::net::Ipv4Addr;
use eft_base::{Cidr, MacAddress};

/// Neither this-network, nor multicast, reserved or broadcast (RFC 1122 §3.2.1.3).
pub(crate) fn is_unicast(a: Ipv4Addr) -> bool {
    a.octets()[0] != 0 && a.octets()[0] < 224
}

/// Whether an interface may have this address; why not.
pub(crate) fn check_host(cidr: &Cidr, a: Ipv4Addr) -> Result<(), AddressError> {
    if !is_unicast(a) || a.is_loopback() {
        return Err(AddressError::NoHost);
    }
    if cidr.prefix_len == 0 {
        return Err(AddressError::NoPrefix);
    }
    let host_bits = u32::MAX.checked_shr(cidr.prefix_len as u32).unwrap_or(0);
    if cidr.prefix_len < 31 && (a.to_bits() & host_bits == 0 || cidr.broadcast() == Some(a)) {
        return Err(AddressError::OfNetwork);
    }
    Ok(())
}

/// The link's group for an address that is multicast or broadcast in every network (RFC 1112 §6.4).
pub(crate) fn link_group(a: Ipv4Addr) -> Option<MacAddress> {
    let [_, b, c, d] = a.octets();
    match a {
        _ if a.is_multicast() => Some(MacAddress([1, 0, 0x5e, b & 0x7f, c, d])),
        _ if a.is_broadcast() => Some(MacAddress::BROADCAST),
        _ => None,
    }
}
