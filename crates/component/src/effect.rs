//! What passes between an engine and its world, besides messages.

use alloc::string::String;
use alloc::vec::Vec;
use eft_base::{FamilyId, PoolId, SocketId};
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
    /// tcp, udp: the application has put bytes in, taken bytes out, or wished something.
    Dirty(SocketId),
    /// sockets, tcp, udp: a family's arena is mapped; packet references name it `pool`.
    FamilyOpened { family: FamilyId, pool: PoolId, arena: Arena },
    /// sockets: a family's last process is gone.
    FamilyClosed(FamilyId),
    /// Configuration from the store: `key` and its present value (TOML text unless the key's
    /// documentation says otherwise).
    Configure { key: String, value: Vec<u8> },
    /// sockets: a request of an application. `privileged`: the process may bind ports below 1024.
    Request { connection: ConnectionId, family: FamilyId, privileged: bool, request: Request, handle: Handle },
    /// sockets: the application's last descriptor of this socket is closed.
    Closed(SocketId),
    /// sockets, reborn: this socket's descriptor is still open.
    Survivor(SocketId),
}

/// What an engine asks of the world. Carried out after the batch, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The socket has something to read (or accept): post its read token.
    Readable(SocketId),
    /// There is room to send: clear the write plug, if it is set.
    Writable(SocketId),
    /// Nothing more will come: the descriptor becomes readable for good and shows RDHUP.
    EndOfStream(SocketId),
    /// The connection is over in both directions: the descriptor becomes readable and writable for
    /// good.
    HangUp(SocketId),
    /// sockets: send a reply.
    Reply { connection: ConnectionId, reply: Reply },
    /// sockets: `handle` is the far end of this socket's descriptor; the supervisor and the socket's
    /// transport get a duplicate.
    Keep { socket: SocketId, handle: Handle },
    /// sockets: drop the far end everywhere.
    Drop(SocketId),
    /// sockets: nothing of this family is left; its arena can go.
    FamilyGone(FamilyId),
    /// sockets: close a handle that is not kept.
    Discard(Handle),
    /// sockets: `handle` is a kernel listener on the loopback: post `socket`'s read token when it
    /// becomes readable.
    WatchLoopback { socket: SocketId, handle: Handle },
    /// sockets: the kernel socket on the loopback beside a datagram socket: `handle` is to be it, if
    /// there is none yet, and is watched as a listener's; without a handle, the reply brings the one
    /// that there is. `reply` is what to say if all is well.
    Twin { socket: SocketId, handle: Handle, connection: ConnectionId, reply: Reply },
    /// filter: send this answer to the operator who asked (`key` as in `Configure`).
    Answer { key: String, value: Vec<u8> },
}
