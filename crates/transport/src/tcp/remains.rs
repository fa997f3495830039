//! What a successor finds of a socket whose durable state is damaged beyond mending.

use super::block::{Block, Cold, NONE, State};
use eft_base::SocketId;

/// What is left of a block that was given up; the damage may be anywhere in it.
#[derive(Clone, Copy)]
pub(super) struct Remains {
    pub socket: SocketId,
    pub local_port: u16,
    pub flags: u32,
    pub backlog: u32,
}

impl Remains {
    /// `None`: it had no socket that a program could wait for.
    pub fn of(block: &Block, cold: &Cold) -> Option<Remains> {
        let Block { domain, slot, flags, tuple, .. } = *block;
        let is_free = State::from_number(block.state) == Some(State::Free);
        (!is_free && slot != NONE).then_some(Remains {
            socket: SocketId { domain, slot },
            local_port: tuple.local_port,
            flags,
            backlog: cold.backlog,
        })
    }
}
