//! The far ends of programs' descriptors, and which of them the keeper has.

use super::Supervisor;
use super::kept::Kept;
use eft_base::SocketId;
use eft_messages::ComponentId;
use std::os::fd::OwnedFd;

/// The far end of a socket's descriptor.
pub struct Far {
    pub fd: OwnedFd,
    /// The transport that owns the socket.
    pub transport: ComponentId,
    /// The keeper has it.
    pub kept: bool,
}

impl Far {
    pub fn keep(&mut self, socket: SocketId, kept: &mut Kept) {
        kept.put(name_of("far", socket), &self.transport, &[&self.fd]);
        self.kept = true;
    }
}

/// The keeper's folder of the kernel sockets beside sockets.
pub fn loopback(second: bool) -> &'static str {
    if second { "loopback-second" } else { "loopback" }
}

/// The keeper's name for an end of a socket.
pub fn name_of(folder: &str, socket: SocketId) -> String {
    format!("{folder}/{}/{}", socket.domain.0, socket.slot)
}

impl Supervisor {
    /// Gives the keeper the far ends that it does not have.
    pub(super) fn keep_far_ends(&mut self) {
        let Some(kept) = &mut self.kept else { return self.keeping.unkept.clear() };
        for socket in std::mem::take(&mut self.keeping.unkept) {
            if let Some(far) = self.keeping.far.get_mut(&socket).filter(|far| !far.kept) {
                far.keep(socket, kept);
            }
        }
    }
}
