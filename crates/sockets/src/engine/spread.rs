//! Which instance of a transport gets a socket: the one that owns the port, or each in turn.

use super::Sockets;
use core::cell::Cell;
use eft_base::Instances;
use eft_base::errno::{EPROTONOSUPPORT, EXDEV};
use eft_messages::control::Request;
use eft_messages::sockets::reuse;
use eft_messages::{ComponentId, Role};

/// How sockets are spread over the instances of each transport.
#[derive(Default)]
pub(super) struct Spread {
    /// How many the stack has.
    pub instances: Instances,
    /// Counts the sockets of tcp and of udp that were opened without a port.
    turns: [Cell<usize>; 2],
}

impl Spread {
    /// A socket can be bound to the ports of its own instance alone: EXDEV says that another one's was wanted. To one whose
    /// connections are spread it can be bound elsewhere, if its program says so.
    pub fn check_bind(&self, transport: ComponentId, port: u16, wishes: u8) -> Result<(), i32> {
        let owner = self.instances.owner(transport.role, port);
        let elsewhere = wishes & reuse::ELSEWHERE != 0 && self.instances.spreads(transport.role, port);
        if port == 0 || self.instances.of(transport.role) < 2 || owner == transport || elsewhere {
            Ok(())
        } else {
            Err(EXDEV)
        }
    }
}

impl Sockets {
    /// The instance of tcp that has a connection from this port to this peer.
    pub(super) fn transport_for_connection(&self, r: &Request) -> Result<ComponentId, i32> {
        let owner = self.spread.instances.connection_owner(r.port, (r.address, r.args[1] as u16));
        self.transports.get(&owner).copied().ok_or(EPROTONOSUPPORT)
    }

    /// The transport for a new socket of this kind, which is to be bound to this port; 0: to none yet, or to any.
    pub(super) fn transport_for(&self, role: Role, port: u16) -> Result<ComponentId, i32> {
        let all = self.transports.iter().filter(|t| t.role == role);
        if self.spread.instances.of(role) < 2 {
            return all.copied().next().ok_or(EPROTONOSUPPORT);
        }
        if port != 0 {
            let owner = self.spread.instances.owner(role, port);
            return self.transports.get(&owner).copied().ok_or(EPROTONOSUPPORT);
        }
        let turn = &self.spread.turns[usize::from(role == Role::Udp)];
        let nth = turn.replace(turn.get().wrapping_add(1)) % all.clone().count().max(1);
        all.copied().nth(nth).ok_or(EPROTONOSUPPORT)
    }
}
