//! The application (shim) ↔ sockets: requests over a Unix SEQPACKET socket.
//!
//! One request is one packet of [`REQUEST_LEN`] bytes, possibly with descriptors; one reply is one packet of
//! [`REPLY_LEN`] bytes. `sequence` is chosen by the application and comes back in the reply. If sockets is reborn
//! before it replies (its generation in the info page changes), the application sends the request again; all
//! requests are idempotent.
//!
//! Hello opens a connection of one process; the descriptors that come with its reply are, in this
//! order: the domain's arena, its bell, the status pages of tcp and its further instances, those of udp (read-only). The reply to
//! Shadow may bring one.

use eft_base::WireAddress;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What a [`Request`] asks for.
pub mod op {
    /// `eft run`, and the custodian that it leaves behind: make a domain; this connection belongs to its
    /// custodian. Replies with `value` = domain, `args` as for Hello, and the arena. A domain of a stack that has
    /// ended passes its own arena, `args` saying how it is cut.
    pub const NEW_DOMAIN: u32 = 1;
    /// A process of the domain says hello on the inherited domain connection, passing one end of a
    /// fresh SEQPACKET socketpair, over which everything else (and the reply to this) goes. `args[0]` is 1 if it knows that there
    /// may be several instances of a transport, `args[1]` if it knows that each may have a listener of its own; others are refused
    /// by a stack that has several.
    pub const HELLO: u32 = 2;
    /// New socket: `args[0]` is 1 for stream, 2 for datagram; the far end of its descriptor is
    /// passed along; `value` is the inode of the near end; `port` is what it will be bound to (0: to none yet, or to any), since
    /// each port has its instance of the transport. If `args[1]` is not 0, it will be connected from that port to this port of
    /// `address`, and the connection's instance is wanted. Reply: `slot`.
    pub const OPEN: u32 = 3;
    /// `slot`, `address`, `port`, `args[0]` = reuse bits. Reply: bound address and port. EXDEV: the port belongs to another instance
    /// of the transport, where a new socket can be opened.
    pub const BIND: u32 = 4;
    /// `slot`, `args[0]` = backlog, `args[1]` = reuse bits. A kernel listener on the loopback to be merged may be passed. If the
    /// port's connections are spread over several instances, the others listen, too: the socket's page names their sockets
    /// ([`eft_channel::socket::SocketPage::beside`]), which share its descriptor.
    pub const LISTEN: u32 = 5;
    /// `slot`, `address`, `port`. The reply comes when the attempt has begun; of a stream, `value` says how many bytes of
    /// those in the send ring were taken to be sent with the SYN. EXDEV: the connection belongs to another instance than the port
    /// to which the socket is bound.
    pub const CONNECT: u32 = 6;
    /// A connection taken from a listener's ring: `slot`, `args[0]` = incarnation, `value` = inode
    /// of the near end; the far end is passed. `args[1]` is 1 if nobody waits for the descriptor in the kernel, so that its
    /// transport may get the far end some milliseconds later, or never if the connection is over by then. No reply.
    pub const ACCEPTED: u32 = 7;
    /// The shadow socket of `slot`, on the kernel's loopback. With a descriptor: it becomes the shadow and is
    /// watched from now on; EEXIST if there is one. Without: the reply brings a duplicate; ENOENT if there is
    /// none. `args[0]` is 1 for the second one of a listener of both IP versions, which is brought after LISTEN.
    pub const SHADOW: u32 = 8;
    /// Custodian: `slot` is a socket of a stack that has ended and is still open; `args[0]` =
    /// incarnation, `value` = inode of the near end; the far end is passed. The socket is unbound afterwards.
    pub const RESTORE: u32 = 9;
    /// Custodian: the domain's processes say hello on the other end of the SEQPACKET socketpair of which
    /// one end is passed. No reply.
    pub const ROOT: u32 = 10;
    /// How this process names itself in the pages of connections that it accepts and holds without descriptors: `value` of the reply.
    /// What it holds is closed when its connection to sockets ends.
    pub const HOLD: u32 = 14;
    /// Who is to be signalled when urgent data come to the stream `slot` (SIGURG): a datagram socket is passed, connected to
    /// itself, with an owner (fcntl(2): F_SETOWN), whom the kernel signals for whatever is sent there. It replaces the one
    /// before.
    pub const OWNER: u32 = 13;
    /// `slot`, `address` = group; `value` and `args` as [`super::MembershipRequest`] fills them in.
    pub const MEMBERSHIP: u32 = 11;
}

/// A request. Plain bytes, any of which may be hostile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Request {
    /// [`eft_channel::socket::LAYOUT_VERSION`] of the sender.
    pub version: u32,
    pub op: u32,
    pub sequence: u64,
    pub slot: u32,
    pub port: u16,
    pub reserved: u16,
    pub address: WireAddress,
    pub value: u64,
    pub args: [u32; 4],
}

/// What a request of [`op::MEMBERSHIP`] says beside the socket and the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MembershipRequest {
    /// One of [`crate::sockets::membership`].
    pub change: u8,
    /// The number of the NIC.
    pub interface: u8,
    pub source: WireAddress,
}

impl MembershipRequest {
    pub fn fill(self, request: Request) -> Request {
        let words = self.source.0.as_chunks::<4>().0;
        let args = core::array::from_fn(|i| u32::from_ne_bytes(words[i]));
        Request { value: u64::from(self.change) | u64::from(self.interface) << 8, args, ..request }
    }

    pub fn of(request: &Request) -> MembershipRequest {
        let mut source = WireAddress::default();
        let words = source.0.as_chunks_mut::<4>().0;
        words.iter_mut().zip(request.args).for_each(|(to, word)| *to = word.to_ne_bytes());
        MembershipRequest { change: request.value as u8, interface: (request.value >> 8) as u8, source }
    }
}

/// A reply.
///
/// A custodian also gets unsolicited replies, with `sequence` 0: they say what another process of the domain just
/// did to `slot`, to be repeated if the stack ends and returns. `value` is the operation: BIND (with the far end),
/// LISTEN (with the shadow, if there is one), CONNECT of a datagram socket (with the far end; `args[1]` its own
/// port), SHADOW (with the shadow). `address`, `port` and `args[0]` are as in the request, except for a port that
/// the transport chose; `args[3]` is the incarnation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Reply {
    pub version: u32,
    /// 0, or a Linux error number.
    pub errno: i32,
    pub sequence: u64,
    pub slot: u32,
    pub port: u16,
    /// For Hello: how many status pages of tcp came, and then of udp. 0, 0: one of tcp, and one of udp if there are two.
    pub instances: [u8; 2],
    pub address: WireAddress,
    pub value: u64,
    /// For Hello: slots, send ring length, receive ring length, domain.
    pub args: [u32; 4],
}

pub const REQUEST_LEN: usize = size_of::<Request>();
pub const REPLY_LEN: usize = size_of::<Reply>();

/// An interface of the stack, as the arena's info page lists them after an [`InfoHeader`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InterfaceInfo {
    /// NUL-padded name.
    pub name: [u8; 16],
    pub address: WireAddress,
    pub mac: [u8; 6],
    pub mtu: u16,
    pub prefix_len: u8,
    pub up: u8,
    pub index: u16,
    /// The gateway, if it lies in the address's network; 0.0.0.0: it does not.
    pub gateway: [u8; 4],
}

/// A route of the stack that is not to the network of an address, as the info page lists them after the interfaces, as
/// long as whole records follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RouteInfo {
    pub destination: WireAddress,
    /// Unspecified: the destination is a neighbour.
    pub gateway: WireAddress,
    pub metric: u32,
    /// The interface's, as in [`InterfaceInfo`].
    pub index: u16,
    pub prefix_len: u8,
    pub reserved: u8,
}

/// The head of the arena's info page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InfoHeader {
    /// Grows with every rebirth of sockets.
    pub sockets_generation: u32,
    pub interfaces: u32,
    /// Name server to ask first; unspecified: those of /etc/resolv.conf.
    pub nameserver: WireAddress,
}

/// Bits of the word at the end of the info page, behind the records of interfaces and routes: what the stack does not do, and what
/// it does by default. A page of an older release has no such word.
pub mod restriction {
    /// No connect sends data with its SYN (RFC 7413).
    pub const NO_EARLY_CONNECT: u32 = 1;
    /// Where the number of the congestion control lies that streams use which choose none, as in the socket's option word; and its
    /// bits.
    pub const CONGESTION_SHIFT: u32 = 8;
    pub const CONGESTION_MASK: u32 = 15;
}
