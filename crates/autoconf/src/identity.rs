//! Who the host is: identifiers that stay the same over restarts, and tell nobody else anything.

use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv6Addr;
use eft_base::Cidr;
use eft_base::hash::Key;

/// The type of a DUID that is a UUID (RFC 6355 §4).
const DUID_UUID: [u8; 2] = [0, 4];
/// A client identifier that consists of IAID and DUID (RFC 4361 §6.1).
const CLIENT_ID_NODE: u8 = 255;

/// A secret of the machine and the stack's name, from which all identifiers are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity(pub [u64; 2]);

/// As [`Identity::parse`] reads it.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0[0], self.0[1])
    }
}

impl Identity {
    /// From 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Identity> {
        let bits = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32)?;
        Some(Identity([(bits >> 64) as u64, bits as u64]))
    }

    /// That of one stack of a machine.
    pub fn of(&self, stack: &str) -> Identity {
        Identity([0u8, 1].map(|half| self.key().hash(b's', &(half, stack.as_bytes()))))
    }

    fn key(&self) -> Key {
        Key(self.0)
    }

    /// The DHCP unique identifier of the stack.
    pub fn duid(&self) -> Vec<u8> {
        let halves = [self.key().hash(b'u', &0u8), self.key().hash(b'u', &1u8)];
        [&DUID_UUID[..], &halves[0].to_be_bytes(), &halves[1].to_be_bytes()].concat()
    }

    /// The identity association identifier of an interface (RFC 8415 §4.2).
    pub fn iaid(&self, interface: &str) -> u32 {
        self.key().hash(b'i', &interface.as_bytes()) as u32
    }

    /// The client identifier that an interface sends to DHCPv4 servers (RFC 4361 §6.1).
    pub fn client_id(&self, interface: &str) -> Vec<u8> {
        let iaid = self.iaid(interface).to_be_bytes();
        [&[CLIENT_ID_NODE][..], &iaid, &self.duid()].concat()
    }

    /// The address of an interface in a network of 64 bits: the same each time, another in each network (RFC 7217 §5).
    /// `counter`: how many before it another host had.
    pub fn address_in(&self, network: &Cidr, interface: &str, counter: u8) -> Option<Ipv6Addr> {
        let core::net::IpAddr::V6(prefix) = network.address else { return None };
        let prefix = prefix.to_bits() >> 64 << 64;
        let mut counter = u32::from(counter);
        // RFC 5453: reserved identifiers are skipped; one of 2^40 is reserved, so this ends.
        for _ in 0..4 {
            let identifier = self.key().hash(b'a', &(prefix, interface.as_bytes(), counter));
            if !is_reserved(identifier) {
                return Some(Ipv6Addr::from_bits(prefix | u128::from(identifier)));
            }
            counter += 1 << 8;
        }
        None
    }
}

/// Interface identifiers that belong to routers or anycast (RFC 5453).
fn is_reserved(identifier: u64) -> bool {
    identifier == 0
        || identifier >> 24 == 0x02_005e_fffe
        || (0xfdff_ffff_ffff_ff80..=0xfdff_ffff_ffff_ffff).contains(&identifier)
}

#[cfg(test)]
mod tests;
