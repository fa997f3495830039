//! What a program is: steps of an application, which makes socket calls, and of a peer, which sends packets.

use serde::{Deserialize, Serialize};

/// Sockets that an application may have at a time; a slot is a number below.
pub const SLOTS: usize = 4;
/// Connections of a program: each has a port of the peer, and slots may come to any.
pub const CONNECTIONS: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Whether its addresses are IPv6.
    pub v6: bool,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// A call on the socket in a slot.
    Call(usize, Call),
    /// Something that the peer sends.
    Peer(Sent),
    /// Waits for what is delayed: acknowledgments, window updates. Then the wire is compared in more detail.
    Settle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    Stream,
    Datagram,
}

/// Which address a socket is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    Own,
    Any,
    /// The peer's, which the host does not have.
    Foreign,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    Socket { kind: Kind, nonblocking: bool },
    Bind { place: Place, port: u8 },
    Listen { backlog: i32 },
    Connect { port: u8 },
    Accept { into: usize, nonblocking: bool },
    Receive { len: u32, flags: i32 },
    Send { len: u32, flags: i32 },
    SendTo { port: u8, len: u32 },
    WriteParts { lengths: Vec<u32> },
    Shutdown { how: i32 },
    Set { level: i32, option: i32, value: i32 },
    Get { level: i32, option: i32 },
    Linger { on: bool, seconds: i32 },
    Name,
    PeerName,
    Nonblocking { on: bool },
    Duplicate { into: usize },
    Close,
}

impl Call {
    /// Whether it may wait on a blocking socket.
    pub fn may_wait(&self) -> bool {
        matches!(
            self,
            Call::Connect { .. }
                | Call::Accept { .. }
                | Call::Receive { .. }
                | Call::Send { .. }
                | Call::SendTo { .. }
                | Call::WriteParts { .. }
                | Call::Close
        )
    }
}

/// What the peer acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Acknowledgment {
    /// Everything that it has seen.
    All,
    /// Nothing: no ACK flag.
    None,
    /// So many bytes less than everything.
    Behind(u32),
    /// So many bytes more, which were never sent.
    Ahead(u32),
}

/// Options of a SYN or of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub mss: u16,
    pub sack: bool,
    pub scale: Option<u8>,
    pub timestamps: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub connection: usize,
    /// Where its data begin in the peer's stream; negative is before the stream.
    pub from: i64,
    pub len: u16,
    pub flags: u8,
    pub acknowledgment: Acknowledgment,
    pub window: u16,
    /// Its checksum is wrong.
    pub corrupt: bool,
}

/// An ICMP error by what it says; the numbers differ by version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Complaint {
    NetworkUnreachable,
    HostUnreachable,
    ProtocolUnreachable,
    PortUnreachable,
    Prohibited,
    TimeExceeded,
    TooBig { mtu: u16 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sent {
    /// A SYN to a port that a socket may listen at.
    Syn {
        connection: usize,
        port: u8,
        offer: Offer,
    },
    /// The answer to the SYN that came.
    SynAck {
        connection: usize,
        offer: Offer,
    },
    Segment(Segment),
    /// About the last packet that came.
    Complaint {
        connection: usize,
        what: Complaint,
    },
    /// A datagram to a port that a socket may be bound to.
    Datagram {
        connection: usize,
        port: u8,
        len: u16,
    },
}

/// TCP's flags.
pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const PSH: u8 = 8;
pub const ACK: u8 = 16;

/// The byte at a place of a stream, which depends on who sends it.
pub fn content(sender: u8, at: u64) -> u8 {
    (at.wrapping_mul(131) ^ (at >> 7)) as u8 ^ sender
}

/// What the application sends, and what the peer does.
pub const APPLICATION: u8 = 0x5a;
pub const PEER: u8 = 0xa5;
