//! Addresses. Messages always carry 16 bytes ([`WireAddress`], IPv4 as IPv4-mapped IPv6,
//! RFC 4291 §2.5.5.2), so that code that only passes them on treats both versions alike.
//!
//! **Zones.** A link-local IPv6 address means something only together with its link (RFC 4007 §5). Within the stack it
//! carries the number of its zone in its third and fourth byte, which are zero on the wire (RFC 4291 §2.5.6): so an
//! address alone says which neighbour is meant, in connections, routes and rules alike. ip puts the zone in when a packet
//! comes and leaves it out when one goes; the shim translates to and from `sin6_scope_id`.

use crate::hash::Key;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;
use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An IP address in 16 bytes.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(transparent)]
pub struct WireAddress(pub [u8; 16]);

impl From<IpAddr> for WireAddress {
    fn from(a: IpAddr) -> Self {
        match a {
            IpAddr::V4(a) => WireAddress(a.to_ipv6_mapped().octets()),
            IpAddr::V6(a) => WireAddress(a.octets()),
        }
    }
}

impl From<WireAddress> for IpAddr {
    fn from(a: WireAddress) -> Self {
        Ipv6Addr::from(a.0).to_canonical()
    }
}

/// The zone of what a device is connected to: the index by which programs know the interface (1 is `lo`).
pub const fn zone_of_nic(nic: u8) -> u16 {
    nic as u16 + 2
}

/// Whether an address needs a zone: link-local ones, and multicast groups of a link or less (RFC 4007 §5) that are not
/// made from a prefix or an interface identifier (RFC 3306, RFC 4489), whose bytes all mean something.
pub const fn needs_zone(a: Ipv6Addr) -> bool {
    let [first, second, ..] = a.octets();
    match first {
        0xfe => second & 0xc0 == 0x80,
        0xff => second & 0x0f <= 2 && second & 0x20 == 0,
        _ => false,
    }
}

/// The zone that an address carries; 0: none.
pub const fn zone(a: Ipv6Addr) -> u16 {
    if needs_zone(a) { a.segments()[1] } else { 0 }
}

/// The address in this zone, if it is one that needs a zone; 0 takes it out.
pub const fn with_zone(a: Ipv6Addr, zone: u16) -> Ipv6Addr {
    if !needs_zone(a) {
        return a;
    }
    let [a, _, c, d, e, f, g, h] = a.segments();
    Ipv6Addr::new(a, zone, c, d, e, f, g, h)
}

/// An address as it is on the wire, or as a person writes it.
pub const fn without_zone(a: IpAddr) -> IpAddr {
    match a {
        IpAddr::V4(_) => a,
        IpAddr::V6(a) => IpAddr::V6(with_zone(a, 0)),
    }
}

/// The link-local address of an interface with this link address: stable, and different from the one derived from the
/// link address, which a kernel that shares the interface uses (RFC 7217, RFC 8064).
pub fn link_local(mac: MacAddress) -> Ipv6Addr {
    const FIXED: Key = Key([0x6566_7420_6c69_6e6b, 0x2d6c_6f63_616c_2031]);
    let identifier = FIXED.hash(b'L', &mac);
    Ipv6Addr::from_bits(0xfe80 << 112 | identifier as u128)
}

/// One end of a transport connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    pub address: IpAddr,
    pub port: u16,
}

impl Endpoint {
    pub const UNSPECIFIED: Endpoint = Endpoint { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), port: 0 };

    pub const fn new(address: IpAddr, port: u16) -> Self {
        Endpoint { address, port }
    }
}

impl Default for Endpoint {
    fn default() -> Self {
        Endpoint::UNSPECIFIED
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            IpAddr::V4(a) => write!(f, "{a}:{}", self.port),
            IpAddr::V6(a) => write!(f, "[{a}]:{}", self.port),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An Ethernet address (EUI-48).
#[derive(
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(transparent)]
pub struct MacAddress(pub [u8; 6]);

/// Why a string is not a [`MacAddress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacError;

impl fmt::Display for MacError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected six bytes, for example 02:00:00:00:00:01")
    }
}

impl core::error::Error for MacError {}

impl FromStr for MacAddress {
    type Err = MacError;
    fn from_str(s: &str) -> Result<Self, MacError> {
        let mut bytes = [0; 6];
        let mut parts = s.split(':');
        for byte in &mut bytes {
            let part = parts
                .next()
                .filter(|part| matches!(part.len(), 1 | 2) && !part.starts_with('+'))
                .ok_or(MacError)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| MacError)?;
        }
        if parts.next().is_some() { Err(MacError) } else { Ok(MacAddress(bytes)) }
    }
}

/// A MAC that is written as a text in files and requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "alloc::string::String", into = "alloc::string::String")]
pub struct MacText(pub MacAddress);

impl TryFrom<alloc::string::String> for MacText {
    type Error = MacError;
    fn try_from(s: alloc::string::String) -> Result<Self, MacError> {
        s.parse().map(MacText)
    }
}

impl From<MacText> for alloc::string::String {
    fn from(mac: MacText) -> Self {
        alloc::format!("{}", mac.0)
    }
}

impl MacAddress {
    pub const BROADCAST: MacAddress = MacAddress([0xff; 6]);

    pub fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An address with a prefix length, `10.0.0.1/24`. The host bits are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "alloc::string::String", into = "alloc::string::String")]
pub struct Cidr {
    pub address: IpAddr,
    pub prefix_len: u8,
}

/// Why a string is not a [`Cidr`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CidrError;

impl fmt::Display for CidrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected ADDRESS/PREFIX, for example 10.77.0.2/24")
    }
}

impl core::error::Error for CidrError {}

impl Cidr {
    /// Whether `other` lies in this network.
    pub fn contains(&self, other: IpAddr) -> bool {
        match (self.address, other) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let shift = 32 - self.prefix_len.min(32) as u32;
                (a.to_bits() ^ b.to_bits()).checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                let shift = 128 - self.prefix_len.min(128) as u32;
                (a.to_bits() ^ b.to_bits()).checked_shr(shift).unwrap_or(0) == 0
            }
            _ => false,
        }
    }

    /// The network, with zeroes beyond the prefix.
    pub fn network(&self) -> Cidr {
        let len = self.prefix_len as u32;
        let address = match self.address {
            IpAddr::V4(a) => {
                Ipv4Addr::from_bits(a.to_bits() & u32::MAX.checked_shl(32 - len).unwrap_or(0)).into()
            }
            IpAddr::V6(a) => {
                Ipv6Addr::from_bits(a.to_bits() & u128::MAX.checked_shl(128 - len).unwrap_or(0)).into()
            }
        };
        Cidr { address, ..*self }
    }

    /// The directed broadcast address of an IPv4 network shorter than /31 (RFC 919, RFC 3021).
    pub fn broadcast(&self) -> Option<Ipv4Addr> {
        match self.address {
            IpAddr::V4(a) if self.prefix_len < 31 => {
                Some(Ipv4Addr::from_bits(a.to_bits() | (u32::MAX >> self.prefix_len)))
            }
            _ => None,
        }
    }

    /// Whether a host may have the address: neither the first of its network nor the last, which is the broadcast address
    /// (RFC 1122 §3.2.1.3).
    pub fn is_host(&self) -> bool {
        match (self.address, self.broadcast()) {
            (IpAddr::V4(a), Some(last)) => a != last && a.to_bits() & (u32::MAX >> self.prefix_len) != 0,
            _ => true,
        }
    }
}

impl FromStr for Cidr {
    type Err = CidrError;
    fn from_str(s: &str) -> Result<Self, CidrError> {
        let (address, prefix) = s.split_once('/').ok_or(CidrError)?;
        let address: IpAddr = address.parse().map_err(|_| CidrError)?;
        let prefix_len: u8 = prefix.parse().map_err(|_| CidrError)?;
        let max = if address.is_ipv4() { 32 } else { 128 };
        if prefix_len > max {
            return Err(CidrError);
        }
        Ok(Cidr { address, prefix_len })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_len)
    }
}

impl TryFrom<alloc::string::String> for Cidr {
    type Error = CidrError;
    fn try_from(s: alloc::string::String) -> Result<Self, CidrError> {
        s.parse()
    }
}

impl From<Cidr> for alloc::string::String {
    fn from(c: Cidr) -> Self {
        alloc::format!("{c}")
    }
}

#[cfg(test)]
mod tests;
