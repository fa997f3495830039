//! Supervisor ↔ server: set-up, rebirths of neighbours, descriptors. Each packet holds one message, encoded with
//! postcard; descriptors go along with it. It is not used on the data path.

use eft_base::{DomainId, MacAddress, PoolId, SlotShare};
use eft_component::fault::Fault;
use eft_cores::member::{MemberView, Place};
use eft_machine::CpuId;
use eft_messages::ComponentId;
use serde::{Deserialize, Serialize};

/// The version of everything that the supervisor and its servers share: this file, the messages of the edges, queues,
/// status pages. `eft update` refuses a program file of another version; a whole stack of it can replace this one (`eft
/// up --take-over`).
pub const PROTOCOL: u32 = 11;

/// Bytes of the largest packet.
pub const PACKET_MAX: usize = 128 * 1024;

/// The environment variable of a process that is started before it is needed. It is no argument, since another version of eft
/// would refuse one that it does not know.
pub const AHEAD: &str = "EFT_AHEAD";

/// The descriptor on which a server finds its control socket.
pub const CONTROL_FD: i32 = 3;

/// The shape of a domain's arena: how many slots, and the bytes of their rings.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ArenaShape {
    pub slots: usize,
    pub send_len: usize,
    pub receive_len: usize,
}

/// The kind of device that a NIC drives; the device's descriptor comes along.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum DeviceKind {
    Tap,
    Packet,
    Pair,
    /// Without offloads.
    PlainTap,
}

/// What an application's connection to sockets is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// It belongs to one process, for its requests.
    Process,
    /// All processes of a domain inherit it, for their hellos. The domain ends with it.
    Root,
    /// It belongs to the process that asked for the domain and restores the domain at the next stack.
    Custodian,
}

/// A device for a NIC.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceSetup {
    pub kind: DeviceKind,
    pub interface: u8,
    pub mac: MacAddress,
    pub mtu: u16,
    /// The receive ring that a packet socket has.
    pub ring: Option<RingShape>,
}

/// How the receive ring of a packet socket is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingShape {
    pub slots: u32,
    /// Bytes.
    pub slot_len: u32,
}

/// What a server learns about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Identity {
    pub peer: ComponentId,
    pub stack: String,
    pub seed: u64,
    /// One more with every rebirth.
    pub generation: u32,
    pub cpu: Option<CpuId>,
    pub dedicated: bool,
    pub with_filter: bool,
    pub connections: usize,
    pub sockets_per_domain: usize,
    pub listeners_per_domain: usize,
    /// The slots of domains' arenas that this transport gives out.
    pub slots: Option<SlotShare>,
    pub device: Option<DeviceSetup>,
    /// The most bytes of the recording of its inputs, whose file is the last descriptor.
    pub record: Option<usize>,
    /// The predecessor was not killed from outside: perhaps one of its inputs killed it.
    pub predecessor_failed: bool,
}

/// From the supervisor to a server. Brackets name the descriptors that come along.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToServer {
    /// Asks a process that is to replace a server whether it can, before its first message. [the arena, read-only, if
    /// there is one]
    Examine(Identity),
    /// Asks a process that will not be a server to convert the content of the first arena into the third, which is
    /// empty, in the layout of the second. Answered by `Suits`. [its own, read-only; an older one, read-only; an empty
    /// one]
    Revert(Identity),
    /// The first message. [status page, own eventfd, supervisor's bell, device if any (1 or more), recording if any]
    Identity(Identity),
    /// One of the server's own pools, in constructor order. [segment; if a predecessor left something in its pool: that one, read-only;
    /// and if the reader of that lives: the lines and the position of the queue to it, read-only]
    OwnPool {
        id: PoolId,
        slot_size: usize,
    },
    /// The durable arena. If another version of eft may have written it, an empty one comes along into which it is
    /// converted. [segment, or two]
    Arena,
    /// Everything that the engine's constructor needs has been sent.
    Construct,
    /// Another component's pool. [segment, read-only]
    Pool {
        id: PoolId,
        slot_size: usize,
    },
    /// No component uses this pool of a dead one any more.
    DropPool {
        id: PoolId,
    },
    /// A neighbour, or its successor. [our queue, their queue (ro), position of theirs in ours (ro), our position in
    /// theirs, their status (ro), their eventfd]
    Connect {
        peer: ComponentId,
    },
    /// A neighbour died.
    Disconnect {
        peer: ComponentId,
    },
    /// A domain's arena; a server that may write to it also gets its bell. [segment, eventfd]
    Domain {
        domain: DomainId,
        pool: PoolId,
        shape: ArenaShape,
        writable: bool,
    },
    DomainClosed {
        domain: DomainId,
    },
    /// The far ends of the descriptors of a domain's sockets, at most [`crate::scm::FDS_MAX`]. sockets may be told which there
    /// are before. [each, or none]
    Far {
        domain: DomainId,
        slots: Vec<u32>,
        /// The transport that owns the sockets.
        transport: ComponentId,
    },
    DropFar {
        domain: DomainId,
        slot: u32,
    },
    /// sockets: an application's connection that outlived a predecessor. [the connection]
    Connection {
        id: u64,
        domain: Option<DomainId>,
        role: Role,
    },
    /// sockets: the listening socket for applications, and the transports' status pages. [socket, tcp, udp]
    Listener,
    /// sockets: a kernel listener to watch, which a predecessor kept. [the listener]
    Loopback {
        domain: DomainId,
        slot: u32,
        /// The second one of a listener of both IP versions.
        second: bool,
    },
    /// tcp: who is signalled when urgent data come to a socket; see `op::OWNER`. [the socket that has the owner]
    Owner {
        domain: DomainId,
        slot: u32,
        /// Its program waits until tcp knows it, which a message there says.
        is_new: bool,
    },
    /// A setting.
    Configure {
        key: String,
        value: Vec<u8>,
    },
    /// nic: copy frames into this ring from now on. [segment, or none to stop]
    Capture,
    /// Begin to serve.
    Run,
    /// Where to run from now on. Answered by `Placed` with the same ticket.
    Place {
        place: Place,
        ticket: u64,
    },
    /// cores: the present state of another component. [its status page, read-only]
    Member(MemberView),
    /// End now.
    Stop,
    /// Let `skip` messages pass, and break the next one. (Variants are added behind it, so that an older server does not take
    /// another message for it.)
    Inject {
        fault: Fault,
        skip: u32,
    },
    /// sockets: a transport has no far end for this socket; say [`FromServer::Keep`] again.
    Repeat {
        domain: DomainId,
        slot: u32,
    },
    /// The keeper has its end of this socket: from now on only the end of both keeper and supervisor ends it.
    Kept,
}

/// What tcp is told when the stack ends: nobody will answer its peers any more, so it resets their connections.
pub fn farewell() -> ToServer {
    ToServer::Configure { key: "farewell".into(), value: Vec::new() }
}

/// From a server to the supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FromServer {
    /// The server can take over what it examined. `arena_len` is the length that its arena would have; 0: it needs
    /// none.
    Suits {
        arena_len: usize,
    },
    /// The arena had an older layout; it was converted into the empty one, which is the server's arena now.
    Converted,
    /// The server is set up and runs, in a Landlock domain if the kernel supports that.
    Ready {
        landlock: bool,
    },
    /// sockets: a far end to keep and to pass to its transport. [the far end]
    Keep {
        domain: DomainId,
        slot: u32,
        /// The transport that owns the socket.
        transport: ComponentId,
    },
    /// sockets: a socket that everyone must forget.
    Drop {
        domain: DomainId,
        slot: u32,
    },
    /// sockets: an application's connection to keep. [the connection]
    KeepConnection {
        id: u64,
        domain: Option<DomainId>,
        role: Role,
    },
    DropConnection {
        id: u64,
    },
    /// sockets: a kernel listener to keep. [the listener]
    KeepLoopback {
        domain: DomainId,
        slot: u32,
        second: bool,
    },
    /// sockets: the owner of a stream, to be kept and to be given to its transport. [the socket that has the owner]
    KeepOwner {
        domain: DomainId,
        slot: u32,
        transport: ComponentId,
    },
    /// sockets: connection `id` asks for a new domain, or brings the arena of one whose stack has ended. [the arena, if
    /// so]
    NewDomain {
        id: u64,
        /// The shape of the arena that comes along.
        shape: ArenaShape,
    },
    /// sockets: the domain's last process is gone.
    CloseDomain {
        domain: DomainId,
    },
    /// The domain's arena is mapped: the server accepts messages about it.
    HasDomain {
        domain: DomainId,
    },
    /// filter: the answer to an operator.
    Answer {
        key: String,
        value: Vec<u8>,
    },
    /// Where the server runs now; `refusal` says why it did not move.
    Placed {
        ticket: u64,
        place: Place,
        refusal: Option<String>,
    },
    /// cores: where each component is to run.
    Arrange {
        places: Vec<(ComponentId, Place)>,
    },
    /// cores: what it has applied, for its successor.
    Remember {
        value: Vec<u8>,
    },
    /// The reason for which the server ends; its last message.
    Dying {
        reason: String,
    },
    /// What earlier builds say in place of [`FromServer::AccuseQueue`].
    Accuse {
        peer: ComponentId,
    },
    /// The program that the server executes has changed in its memory.
    Altered,
    /// A transport has something to tell a program, and has had no far end for that for a second.
    Lacks {
        domain: DomainId,
        slot: u32,
    },
    /// A neighbour damages its queue, or sends something that is not a message.
    AccuseQueue {
        peer: ComponentId,
        /// The queue, by [`crate::memory::number`]: each life of the neighbour has another one.
        queue: u64,
    },
    /// A message refers to a pool that the server has not; say [`ToServer::Pool`] again of all that it reads.
    LacksPool {
        id: PoolId,
    },
}

/// Encodes a message. Messages between the supervisor and its servers always fit a packet.
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    postcard::to_allocvec(message).unwrap_or_default()
}
