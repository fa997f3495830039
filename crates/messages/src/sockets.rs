//! sockets ↔ tcp and udp: opening, binding, connecting and closing sockets. Data never passes here.
//!
//! The transport owns the slots of its kind in every arena: it allocates one at `Open` (and for each
//! arriving connection) and frees it at `Close`.
//!
//! **Which socket is meant.** Slots are reused, and a request may arrive late: after a rebirth it is sent again.
//! So every request says the incarnation of the slot that it means, as the `Reply` to `Open` or the accept record
//! gave it, and the transport, which stores it where the application cannot write, answers any other as it answers
//! for a socket that is gone. Domains are distinguished in the same way, by the pool id of their arena.
//!
//! **Full.** Requests wait in sockets, which has at most one request outstanding per socket.
//!
//! **Lost.** sockets repeats what has not been answered for a second (`rounds.rs` in channel): a transport that has it under
//! way ignores that, and one that has answered answers again.
//!
//! **Restart.** transport reborn: sockets resubmits what is unanswered; every request is idempotent
//! by its id or by the socket's state. sockets reborn: applications resubmit to it, and it asks the
//! transports anew.

use eft_base::{PoolId, RequestId, SocketId, WireAddress};

/// What a program allows, or wants, for a binding.
pub mod reuse {
    /// SO_REUSEADDR.
    pub const ADDRESS: u8 = 1;
    /// SO_REUSEPORT.
    pub const PORT: u8 = 2;
    /// IPV6_V6ONLY.
    pub const V6ONLY: u8 = 4;
    /// IP_FREEBIND: an address that the stack does not have will do.
    pub const FREE_BIND: u8 = 8;
    /// Nothing uses the port yet, although the socket may share it later: it was chosen for a program that named none.
    pub const NEW: u8 = 16;
    /// The port is another instance's, which has checked who else uses it: the socket is to connect to a peer whose connections
    /// from there are this instance's, or to listen beside that instance's listener ([`super::BESIDE`]).
    pub const ELSEWHERE: u8 = 32;
    pub const ALL: u8 = ADDRESS | PORT | V6ONLY | FREE_BIND | NEW | ELSEWHERE;
}

/// A bit of the backlog of `Listen`: the socket listens beside one at the port's own instance. Only sockets itself sets it.
pub const BESIDE: u32 = 1 << 31;

/// Changes of a membership (RFC 3678 §3).
pub mod membership {
    /// All sources are wanted.
    pub const JOIN: u8 = 1;
    pub const LEAVE: u8 = 2;
    /// One source is not wanted.
    pub const BLOCK: u8 = 3;
    pub const UNBLOCK: u8 = 4;
    /// One source is wanted, beside others that were named so.
    pub const JOIN_SOURCE: u8 = 5;
    pub const LEAVE_SOURCE: u8 = 6;
    /// The sources of a whole filter follow, each by [`FILTER_SOURCE`]; they have no effect yet.
    pub const FILTER_BEGIN: u8 = 7;
    pub const FILTER_SOURCE: u8 = 8;
    /// The filter replaces what there was, all at once: those sources alone are wanted, or all but them. `source` is their
    /// number: if so many have not come (the transport has a new life, another process began, too), EAGAIN, and nothing is
    /// changed.
    pub const FILTER_INCLUDE: u8 = 9;
    pub const FILTER_EXCLUDE: u8 = 10;
    /// Nothing is changed: the reply's `address` is the source whose index `source` is (unspecified: there are fewer), its
    /// `port` how many there are, with [`EXCLUDED`] if they are those that are not wanted.
    pub const FILTER_TELL: u8 = 11;
    pub const EXCLUDED: u16 = 1 << 15;
}

crate::messages! {
    /// From sockets to a transport.
    pub enum SocketsToTransport {
        /// Allocate a slot for a new socket in the domain's arena. `socket.slot` is ignored.
        1 => Open { request: RequestId, socket: SocketId },
        /// Bind. Port 0 chooses one; an unspecified address is a wildcard.
        /// `reuse`: bits of [`reuse`].
        2 => Bind {
            request: RequestId,
            socket: SocketId,
            incarnation: u32,
            address: WireAddress,
            port: u16,
            reuse: u8,
        },
        /// Listen (tcp).
        3 => Listen { request: RequestId, socket: SocketId, incarnation: u32, backlog: u32 },
        /// Connect. Answered when the attempt has begun (tcp) or the peer is set (udp); how a TCP
        /// attempt ends shows in the socket page. An unspecified address with port 0 disconnects (udp).
        4 => Connect {
            request: RequestId,
            socket: SocketId,
            incarnation: u32,
            address: WireAddress,
            port: u16,
        },
        /// The application's last descriptor is gone: close as the kernel would (linger, FIN, or RST if unread
        /// bytes are left), then free the slot. The reply comes at once; the slot is reused only when nothing of
        /// the connection is left. Also for a connection that was never accepted.
        5 => Close { request: RequestId, socket: SocketId, incarnation: u32 },
        /// The application took this connection from a listener's ring and attached a descriptor.
        /// Refused if the connection is gone, or was taken too long ago and has been reset.
        6 => Attached { request: RequestId, socket: SocketId, incarnation: u32 },
        /// The domain has no process left; all its sockets were closed before. Answered when nothing of the domain
        /// needs its arena any more: unsent bytes of closed connections still go out, as with orphans in the
        /// kernel.
        7 => CloseDomain { request: RequestId, socket: SocketId, pool: PoolId },
        /// Take this very slot for a socket of an earlier stack, which its application still holds: page and
        /// positions go on as they are, unbound. Refused if another transport owns the slot or its page has
        /// another incarnation.
        8 => Restore { request: RequestId, socket: SocketId, incarnation: u32 },
        /// Change the socket's membership in a group on the NIC of this number (udp): one of [`membership`]. Answered when ip
        /// receives the group as it is wanted then. `token` tells a request that comes again from a new one.
        9 => Membership {
            request: RequestId,
            socket: SocketId,
            incarnation: u32,
            token: u16,
            change: u8,
            interface: u8,
            group: WireAddress,
            source: WireAddress,
        },
    }
}

impl SocketsToTransport {
    /// The request's id and its socket; for `Open` and `CloseDomain` only the domain counts.
    pub fn asks(&self) -> (RequestId, SocketId) {
        use SocketsToTransport::*;
        match *self {
            Open { request, socket }
            | Bind { request, socket, .. }
            | Listen { request, socket, .. }
            | Connect { request, socket, .. }
            | Close { request, socket, .. }
            | Attached { request, socket, .. }
            | CloseDomain { request, socket, .. }
            | Restore { request, socket, .. }
            | Membership { request, socket, .. } => (request, socket),
        }
    }
}

crate::messages! {
    /// From a transport to sockets.
    pub enum TransportToSockets {
        /// Answer to any request: `errno` is 0 or the reason of refusal; `socket` is the request's socket (for
        /// `Open` the new one) with its incarnation, for `Close` the one that was asked to end; address and port: what it is bound to now; `taken`: how many of the
        /// bytes that a program put in before its `Connect` the transport has taken.
        1 => Reply {
            request: RequestId,
            errno: i32,
            socket: SocketId,
            incarnation: u32,
            address: WireAddress,
            port: u16,
            taken: u32,
        },
    }
}
