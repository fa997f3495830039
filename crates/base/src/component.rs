//! The components of a stack and their names.

use core::fmt::{Display, Formatter};
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// What a component does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    Sockets,
    Tcp,
    Udp,
    Ip,
    Filter,
    Nic,
    /// Observes the others and says where they run. It has no edge: it sees status pages only.
    Cores,
}

impl Role {
    /// All of them, in the order in which packets go out.
    pub const ALL: [Role; 7] =
        [Role::Sockets, Role::Tcp, Role::Udp, Role::Ip, Role::Filter, Role::Nic, Role::Cores];

    /// The name that topology files use.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Sockets => "sockets",
            Role::Tcp => "tcp",
            Role::Udp => "udp",
            Role::Ip => "ip",
            Role::Filter => "filter",
            Role::Nic => "nic",
            Role::Cores => "cores",
        }
    }

    /// Whether it owns sockets of programs.
    pub const fn is_transport(self) -> bool {
        matches!(self, Role::Tcp | Role::Udp)
    }

    /// Whether a stack may have several.
    const fn is_counted(self) -> bool {
        matches!(self, Role::Tcp | Role::Udp | Role::Nic)
    }
}

/// A component of a stack: the `instance`th of its role, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ComponentId {
    pub role: Role,
    pub instance: u8,
}

impl ComponentId {
    pub const SOCKETS: ComponentId = ComponentId::new(Role::Sockets, 0);
    /// The first tcp.
    pub const TCP: ComponentId = ComponentId::new(Role::Tcp, 0);
    /// The first udp.
    pub const UDP: ComponentId = ComponentId::new(Role::Udp, 0);
    pub const IP: ComponentId = ComponentId::new(Role::Ip, 0);
    pub const FILTER: ComponentId = ComponentId::new(Role::Filter, 0);
    pub const CORES: ComponentId = ComponentId::new(Role::Cores, 0);

    pub const fn new(role: Role, instance: u8) -> ComponentId {
        ComponentId { role, instance }
    }

    /// The driver of a stack's `n`th device.
    pub const fn nic(n: u8) -> ComponentId {
        ComponentId::new(Role::Nic, n)
    }

    /// A number for shared memory, never 0.
    pub const fn code(self) -> u32 {
        (self.role as u32 + 1) << 8 | self.instance as u32
    }

    /// The component of a [`code`](ComponentId::code); `None` for any other number.
    pub fn from_code(code: u32) -> Option<ComponentId> {
        let role = *Role::ALL.get((code >> 8).checked_sub(1)? as usize)?;
        Some(ComponentId::new(role, code as u8))
    }
}

impl Display for ComponentId {
    /// `tcp`, `tcp1`, `nic0`: the first of its role has no number, unless it drives a device.
    fn fmt(&self, f: &mut Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.role.name())?;
        if self.instance > 0 || self.role == Role::Nic {
            write!(f, "{}", self.instance)?;
        }
        Ok(())
    }
}

/// No component has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownComponent;

impl FromStr for ComponentId {
    type Err = UnknownComponent;

    /// Reads what [`Display`] writes, and nothing else: `tcp0` and `tcp01` are not accepted as further
    /// names of tcp and tcp1.
    fn from_str(name: &str) -> Result<ComponentId, UnknownComponent> {
        let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let role = Role::ALL.into_iter().find(|role| role.name() == letters).ok_or(UnknownComponent)?;
        let number = &name[letters.len()..];
        let instance = match number {
            "" => 0,
            _ => number.parse().map_err(|_| UnknownComponent)?,
        };
        let id = ComponentId::new(role, instance);
        let numbered = instance > 0 || role == Role::Nic;
        let is_canonical = number.is_empty() != numbered && !(number.len() > 1 && number.starts_with('0'));
        if is_canonical && (instance == 0 || role.is_counted()) { Ok(id) } else { Err(UnknownComponent) }
    }
}

#[cfg(test)]
mod tests;
