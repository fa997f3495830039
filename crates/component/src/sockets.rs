//! What sockets hears from its world and asks of it: the processes of applications and their descriptors.

use crate::events::FromWorld;
use alloc::string::String;
use alloc::vec::Vec;
use eft_base::{ComponentId, DomainId, PoolId, SocketId};
use eft_channel::socket::Arena;
use eft_messages::control::{Reply, Request};

/// A descriptor held by the world, by number. 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Handle(pub u64);

/// A connection of one application process to sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// Something from the world.
#[derive(Clone)]
pub enum Event {
    /// A domain's arena is mapped; packet references name it `pool`.
    DomainOpened { domain: DomainId, pool: PoolId, arena: Arena },
    /// A domain's last process is gone.
    DomainClosed(DomainId),
    /// A key of the store and its present value.
    Configure { key: String, value: Vec<u8> },
    /// A request of an application. `privileged`: the process may bind ports below 1024.
    Request { connection: ConnectionId, domain: DomainId, privileged: bool, request: Request, handle: Handle },
    /// The application's last descriptor of this socket is closed.
    Closed(SocketId),
    /// The process is gone that held this connection without a descriptor.
    Released(SocketId),
    /// After a rebirth: the descriptor of this socket of `transport`'s is still open.
    Survivor { socket: SocketId, transport: ComponentId },
}

impl FromWorld for Event {
    fn configure(key: String, value: Vec<u8>) -> Option<Event> {
        Some(Event::Configure { key, value })
    }

    fn domain_opened(domain: DomainId, pool: PoolId, arena: Arena) -> Option<Event> {
        Some(Event::DomainOpened { domain, pool, arena })
    }
}

/// What sockets asks of the world. Carried out after the turn's commit, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send a reply.
    Reply { connection: ConnectionId, reply: Reply },
    /// `handle` is the far end of this socket's descriptor; the supervisor and the socket's transport
    /// get a duplicate.
    Keep { socket: SocketId, transport: ComponentId, handle: Handle },
    /// This socket has the same descriptor as `of`, whose far end is kept: likewise.
    KeepBeside { socket: SocketId, transport: ComponentId, of: SocketId },
    /// `handle` has the owner of this stream, who is signalled when urgent data come: its transport gets it.
    Owner { socket: SocketId, transport: ComponentId, handle: Handle },
    /// Nothing more is to be heard of this descriptor, which is closed. Others keep its far end: a successor of this server is
    /// given it, and hears again that the descriptor is closed.
    Leave(SocketId),
    /// Drop the far end everywhere.
    Drop(SocketId),
    /// Nothing of this domain is left; its arena can go.
    DomainGone(DomainId),
    /// Close a handle that is not kept.
    Discard(Handle),
    /// `handle` is a kernel listener on the loopback: post `socket`'s read token when it becomes
    /// readable.
    WatchLoopback { socket: SocketId, handle: Handle },
    /// The kernel socket on the loopback beside a datagram socket: `handle` becomes it, if there is none
    /// yet, and is watched as a listener's; without a handle, the reply brings the existing one. `reply`
    /// is the answer on success.
    Shadow { socket: SocketId, second: bool, handle: Handle, connection: ConnectionId, reply: Reply },
    /// Inform the domain's custodian of what was done to this socket; see [`Reply`].
    Note { socket: SocketId, note: Reply },
}
