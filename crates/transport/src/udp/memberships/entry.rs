//! The durable form of memberships: entries of a table of their own, as many as there are blocks.

use core::net::IpAddr;
use eft_base::WireAddress;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Values of [`Entry::kind`].
pub mod kind {
    pub const FREE: u8 = 0;
    /// The socket is a member of the group and wants the sources that are listed.
    pub const INCLUDE: u8 = 1;
    /// The socket is a member of the group and wants all sources but those that are listed.
    pub const EXCLUDE: u8 = 2;
    /// A source that is listed for the group.
    pub const SOURCE: u8 = 3;
    /// The socket's last request, and how it was answered: it may come again.
    pub const ANSWER: u8 = 4;
}

/// One membership of a socket, a source that it lists, or its last answer.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Entry {
    pub kind: u8,
    /// The number of the NIC.
    pub interface: u8,
    /// Of a membership: whether it ever had a list of sources, as Linux remembers it. Of an answer: what was asked.
    pub change: u8,
    pub reserved: u8,
    /// Of an answer: the request's.
    pub token: u32,
    pub errno: i32,
    /// The socket.
    pub block: u32,
    pub generation: u32,
    pub reserved2: u32,
    /// Without a zone.
    pub group: WireAddress,
    pub source: WireAddress,
}

impl Entry {
    pub fn free() -> Entry {
        Entry::new_zeroed()
    }

    pub fn is_membership(&self) -> bool {
        matches!(self.kind, kind::INCLUDE | kind::EXCLUDE)
    }

    /// Whether it may be there: free, or of a socket of this generation; `None`: there is no such socket.
    pub(crate) fn is_sane(&self, generation: Option<u32>) -> bool {
        let groups = match self.kind {
            kind::FREE => return true,
            kind::INCLUDE | kind::EXCLUDE | kind::SOURCE => IpAddr::from(self.group).is_multicast(),
            kind::ANSWER => true,
            _ => false,
        };
        groups && generation == Some(self.generation)
    }
}
