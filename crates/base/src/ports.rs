//! Which instance of a transport owns which local port, if a stack has several.
//!
//! The instances of a role share the local ports without asking each other: a port's number alone says whose it is. So whoever has
//! a segment, a datagram, an error about one, or a program that wants to bind, finds the instance by himself, and finds the same
//! one after any crash.

use crate::component::{ComponentId, Role};

/// 2³² divided by the golden ratio, as an odd number (Knuth, The Art of Computer Programming 3, §6.4): neighbouring ports are
/// spread as evenly as all are.
const GOLDEN: u32 = 0x9e37_79b1;

/// The instance of a role that owns a port, if there are so many. Programs of other versions and connections that outlive an
/// update rely on it: it must not change.
pub const fn owner(port: u16, instances: u8) -> u8 {
    let hash = (port as u32).wrapping_mul(GOLDEN);
    ((hash as u64 * instances as u64) >> 32) as u8
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
}

#[cfg(test)]
mod tests;
