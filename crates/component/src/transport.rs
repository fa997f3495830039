//! The events and effects of tcp and udp: programs that ring, and the state of their descriptors.

use crate::events::FromWorld;
use alloc::string::String;
use alloc::vec::Vec;
use eft_base::{DomainId, PoolId, SocketId};
use eft_channel::socket::Arena;

/// Something from the world.
#[derive(Clone)]
pub enum Event {
    /// The application has put bytes in, taken bytes out, or set a wish.
    Dirty(SocketId),
    /// A domain's arena is mapped; packet references name it `pool`.
    DomainOpened { domain: DomainId, pool: PoolId, arena: Arena },
    /// A key of the store and its present value.
    Configure { key: String, value: Vec<u8> },
}

impl FromWorld for Event {
    fn configure(key: String, value: Vec<u8>) -> Option<Event> {
        Some(Event::Configure { key, value })
    }

    fn domain_opened(domain: DomainId, pool: PoolId, arena: Arena) -> Option<Event> {
        Some(Event::DomainOpened { domain, pool, arena })
    }
}

/// What a transport asks of the world. Carried out after the turn's commit, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The socket has something to read (or accept): post its read token.
    Readable(SocketId),
    /// There is room to send: clear the write plug, if it is set.
    Writable(SocketId),
    /// Nothing more will come: the descriptor stays readable and shows RDHUP.
    EndOfStream(SocketId),
    /// The connection is over in both directions: the descriptor stays readable and writable and
    /// shows HUP.
    HangUp(SocketId),
    /// Urgent data are announced: the owner of the descriptor, if it has one, is signalled.
    Urgent(SocketId),
}
