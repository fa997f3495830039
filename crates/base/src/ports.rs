//! Which instance of a transport owns which local port and which connection, if a stack has several.
//!
//! The instances of a role share the local ports without asking each other: a port's number alone says whose it is. So whoever has
//! a segment, a datagram, an error about one, or a program that wants to bind, finds the instance by himself, and finds the same
//! one after any crash.
//!
//! A server has all its connections on one port. So below [`EPHEMERAL_FIRST`] each connection of tcp has an owner of its own, which
//! its port and its peer say; the port's owner keeps who is bound to it.

use crate::WireAddress;
use crate::address::without_zone;
use crate::component::{ComponentId, Role};

/// The first port that is chosen for programs which name none, as on Linux. From here on a port's connections are its owner's.
pub const EPHEMERAL_FIRST: u16 = 32768;

/// 2³² divided by the golden ratio, as an odd number (Knuth, The Art of Computer Programming 3, §6.4): neighbouring ports are
/// spread as evenly as all are.
const GOLDEN: u32 = 0x9e37_79b1;

/// The instance of a role that owns a port, if there are so many. Programs of other versions and connections that outlive an
/// update rely on it: it must not change.
pub const fn owner(port: u16, instances: u8) -> u8 {
    let hash = (port as u32).wrapping_mul(GOLDEN);
    ((hash as u64 * instances as u64) >> 32) as u8
}

/// Whether each connection of this local port has its own owner.
pub const fn is_spread(port: u16) -> bool {
    port < EPHEMERAL_FIRST
}

/// The instance of tcp that owns a connection. As [`owner`], it must not change.
pub fn connection_owner(port: u16, (remote, remote_port): (WireAddress, u16), instances: u8) -> u8 {
    if !is_spread(port) {
        return owner(port, instances);
    }
    let address = u128::from_be_bytes(WireAddress::from(without_zone(remote.into())).0);
    let folded = (address ^ address >> 64) as u64;
    // The last steps of SplitMix64, after which each bit depends on all.
    let mut hash = folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ port as u64;
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    // A host's next connections come from ports next to each other, and are spread evenly.
    let place = ((hash >> 32) as u32).wrapping_add((remote_port as u32).wrapping_mul(GOLDEN));
    ((place as u64 * instances as u64) >> 32) as u8
}

/// The local ports that one instance of a transport owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortShare {
    instance: u8,
    /// Of the same role, this one too; not 0.
    instances: u8,
}

impl PortShare {
    /// The names of a stack's transports are told with this key, each on a line.
    pub const KEY: &'static str = "transports";
    /// Of the only instance.
    pub const ALL: PortShare = PortShare { instance: 0, instances: 1 };

    /// Of one of the transports whose names are listed; all ports if it is not among them.
    pub fn among(transport: ComponentId, names: &[u8]) -> PortShare {
        let instances = Instances::among(names).of(transport.role);
        match transport.instance < instances {
            true => PortShare { instance: transport.instance, instances },
            false => PortShare::ALL,
        }
    }

    #[inline]
    pub fn has(&self, port: u16) -> bool {
        self.instances == 1 || owner(port, self.instances) == self.instance
    }

    /// Whether a connection from this local port to this peer is its own.
    #[inline]
    pub fn has_connection(&self, port: u16, peer: (WireAddress, u16)) -> bool {
        self.instances == 1 || connection_owner(port, peer, self.instances) == self.instance
    }
}

/// How many instances of each transport a stack has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instances {
    tcp: u8,
    udp: u8,
}

impl Instances {
    /// Of the transports whose names are listed.
    pub fn among(names: &[u8]) -> Instances {
        let names = core::str::from_utf8(names).unwrap_or_default();
        let mut instances = Instances::default();
        for id in names.lines().filter_map(|name| name.parse::<ComponentId>().ok()) {
            match id.role {
                Role::Tcp => instances.tcp += 1,
                Role::Udp => instances.udp += 1,
                _ => {}
            }
        }
        instances
    }

    pub fn of(&self, role: Role) -> u8 {
        match role {
            Role::Tcp => self.tcp,
            Role::Udp => self.udp,
            _ => 0,
        }
    }

    /// The transport of this role that owns a port; the first if the stack has one, or is not known.
    #[inline]
    pub fn owner(&self, role: Role, port: u16) -> ComponentId {
        match self.of(role) {
            0 | 1 => ComponentId::new(role, 0),
            instances => ComponentId::new(role, owner(port, instances)),
        }
    }

    /// The instance of tcp that owns a connection from this local port to this peer.
    #[inline]
    pub fn connection_owner(&self, port: u16, peer: (WireAddress, u16)) -> ComponentId {
        match self.tcp {
            0 | 1 => ComponentId::TCP,
            instances => ComponentId::new(Role::Tcp, connection_owner(port, peer, instances)),
        }
    }

    /// Whether a port's connections have several owners.
    pub fn spreads(&self, role: Role, port: u16) -> bool {
        role == Role::Tcp && self.tcp > 1 && is_spread(port)
    }
}

#[cfg(test)]
mod tests;
