//! supervisor ↔ server: set-up, rebirths of neighbours, descriptors. One packet a message, encoded
//! with postcard; descriptors ride along. Never on the data path.

use eft_base::{DomainId, MacAddress, PoolId, SlotShare};
use eft_component::fault::Fault;
use eft_cores::member::{MemberView, Place};
use eft_machine::CpuId;
use eft_messages::ComponentId;
use serde::{Deserialize, Serialize};

/// Which language the supervisor and its servers speak: what is in this file, the messages of the edges, queues, status pages.
/// A program file that speaks another is refused by `eft update`; a whole stack can be replaced by it (`eft up --take-over`).
pub const PROTOCOL: u32 = 7;

/// Bytes of the largest packet.
pub const PACKET_MAX: usize = 128 * 1024;

/// The descriptor on which a server finds its control socket.
pub const CONTROL_FD: i32 = 3;

/// How a domain's arena is cut, as numbers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ArenaShape {
    pub slots: usize,
    pub send_len: usize,
    pub receive_len: usize,
}

/// Which device a NIC drives; its descriptor comes along.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum DeviceKind {
    Tap,
    Packet,
    Pair,
}

/// Whose an application's connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Of one process, for its requests.
    Process,
    /// Inherited by all processes of a domain, for their hellos. The domain ends with it.
    Root,
    /// Of whoever asked for the domain, and restores it at the next stack.
    Custodian,
}

/// A device for a NIC.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceSetup {
    pub kind: DeviceKind,
    pub interface: u8,
    pub mac: MacAddress,
    pub mtu: u16,
}

/// Who a server is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Identity {
    pub peer: ComponentId,
    pub stack: String,
    pub seed: u64,
    /// Grows with every rebirth.
    pub generation: u32,
    pub cpu: Option<CpuId>,
    pub dedicated: bool,
    pub with_filter: bool,
    pub connections: usize,
    pub sockets_per_domain: usize,
    pub listeners_per_domain: usize,
    /// Which slots of domains' arenas a transport gives out.
    pub slots: Option<SlotShare>,
    pub device: Option<DeviceSetup>,
    /// Where to write down what the server is told, and bytes of it at most.
    pub record: Option<(std::path::PathBuf, usize)>,
    /// The predecessor died of itself, and not from outside: of what it was told, perhaps.
    pub predecessor_failed: bool,
}

/// From the supervisor to a server. Descriptors in brackets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToServer {
    /// Before the first message of one that is to replace a server: whether it can. [the arena, read-only, if there is one]
    Examine(Identity),
    /// To one that is to be no server: what is in the first arena goes into the third, which is empty, in the layout of the
    /// second. Answered by `Suits`. [its own, read-only; an older one, read-only; an empty one]
    Revert(Identity),
    /// First message. [status page, own eventfd, supervisor's bell, device if any (1 or more)]
    Identity(Identity),
    /// A pool of one's own, in constructor order. [segment]
    OwnPool {
        id: PoolId,
        slot_size: usize,
    },
    /// The durable arena; and, from another version of eft perhaps, an empty one to convert it into. [segment, or two]
    Arena,
    /// Everything needed to construct the engine is there.
    Construct,
    /// Another component's pool. [segment, read-only]
    Pool {
        id: PoolId,
        slot_size: usize,
    },
    /// A dead component's pool is no longer used by anybody.
    DropPool {
        id: PoolId,
    },
    /// A neighbour (or its successor). [our queue, their queue (ro), position of theirs in ours (ro),
    /// our position in theirs, their status (ro), their eventfd]
    Connect {
        peer: ComponentId,
    },
    /// A neighbour died.
    Disconnect {
        peer: ComponentId,
    },
    /// A domain's arena; for who may write to it also its bell. [segment, eventfd]
    Domain {
        domain: DomainId,
        pool: PoolId,
        shape: ArenaShape,
        writable: bool,
    },
    DomainClosed {
        domain: DomainId,
    },
    /// The far ends of the descriptors of a domain's sockets, at most [`crate::scm::FDS_MAX`]. [each]
    Far {
        domain: DomainId,
        slots: Vec<u32>,
        /// Whose the sockets are.
        transport: ComponentId,
    },
    DropFar {
        domain: DomainId,
        slot: u32,
    },
    /// sockets: an application's connection that outlived a predecessor. [it]
    Connection {
        id: u64,
        domain: Option<DomainId>,
        role: Role,
    },
    /// sockets: the listening socket for applications; the transports' status pages. [socket, tcp, udp]
    Listener,
    /// sockets: a kernel listener to watch, from a predecessor. [it]
    Loopback {
        domain: DomainId,
        slot: u32,
    },
    /// A value of the store.
    Configure {
        key: String,
        value: Vec<u8>,
    },
    /// nic: copy frames into this ring from now on. [segment, or none to stop]
    Capture,
    /// Begin.
    Run,
    /// Where to run from now on, answered by `Placed` with the same ticket.
    Place {
        place: Place,
        ticket: u64,
    },
    /// cores: how another component is now. [its status page, read-only]
    Member(MemberView),
    /// End now.
    Stop,
    /// Let so many messages pass, and break the next one. (The last, so that servers of before do not take others for it.)
    Inject {
        fault: Fault,
        skip: u32,
    },
}

/// From a server to the supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FromServer {
    /// What it was to examine suits it; its arena would have this length, 0 for none.
    Suits {
        arena_len: usize,
    },
    /// The arena was of an older layout, and the empty one is its arena now.
    Converted,
    /// Set up and running, in a Landlock domain if the kernel has it.
    Ready {
        landlock: bool,
    },
    /// sockets: a far end to keep and to hand to its transport. [it]
    Keep {
        domain: DomainId,
        slot: u32,
        /// Whose the socket is.
        transport: ComponentId,
    },
    /// sockets: forget it everywhere.
    Drop {
        domain: DomainId,
        slot: u32,
    },
    /// sockets: an application's connection to keep. [it]
    KeepConnection {
        id: u64,
        domain: Option<DomainId>,
        role: Role,
    },
    DropConnection {
        id: u64,
    },
    /// sockets: a kernel listener to keep. [it]
    KeepLoopback {
        domain: DomainId,
        slot: u32,
    },
    /// sockets: a new domain on connection `id`; or, with its arena, one of a stack that has ended. [arena]
    NewDomain {
        id: u64,
        /// How the arena that comes along is cut.
        shape: ArenaShape,
    },
    /// sockets: its last process is gone.
    CloseDomain {
        domain: DomainId,
    },
    /// The domain's arena is mapped: messages that speak of it may come.
    HasDomain {
        domain: DomainId,
    },
    /// filter: the answer to an operator.
    Answer {
        key: String,
        value: Vec<u8>,
    },
    /// Where it runs now; `refusal`: why it did not move.
    Placed {
        ticket: u64,
        place: Place,
        refusal: Option<String>,
    },
    /// cores: where everybody is to run.
    Arrange {
        places: Vec<(ComponentId, Place)>,
    },
    /// cores: what it has applied, to be told to its successor.
    Remember {
        value: Vec<u8>,
    },
    /// A last word before it ends.
    Dying {
        reason: String,
    },
    /// A neighbour damages its queue, or sends what is no message.
    Accuse {
        peer: ComponentId,
    },
}

/// Encodes a message; messages of the supervisor and its servers always fit.
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    postcard::to_allocvec(message).unwrap_or_default()
}
