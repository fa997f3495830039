//! The arena as `eft ss` and `eft maddr` see it: mapped read-only, while the engine may be writing it.

use super::durable::{Block, LAYOUT, bit};
use super::memberships::entry::{Entry, kind};
use alloc::vec::Vec;
use core::net::IpAddr;
use eft_arena as arena;
use eft_base::{DomainId, Endpoint};
use eft_channel::Segment;

/// One socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub domain: DomainId,
    pub slot: u32,
    pub local: Endpoint,
    /// Bound as IPV6_V6ONLY.
    pub v6only: bool,
    pub remote: Option<Endpoint>,
    /// Bytes of records in the receive ring, when it was last checked.
    pub receive_queue: u64,
    /// Bytes of records that ip still refers to.
    pub send_queue: u64,
}

/// Every socket in an arena; `None` if it is not (yet) an arena of this version.
pub fn list(arena: &Segment) -> Option<Vec<Row>> {
    Some(arena::copies::<Block>(arena, LAYOUT, 0)?.filter(|b| b.has(bit::USED)).map(|b| row(&b)).collect())
}

fn row(b: &Block) -> Row {
    Row {
        domain: b.domain,
        slot: b.slot,
        local: b.local_endpoint(),
        v6only: b.has(bit::V6ONLY),
        remote: b.has(bit::CONNECTED).then(|| b.remote_endpoint()),
        receive_queue: b.receive_end.saturating_sub(b.receive_taken),
        send_queue: b.sent.saturating_sub(b.released),
    }
}

/// A socket's membership in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The number of the NIC.
    pub interface: u8,
    pub group: IpAddr,
    /// All sources are wanted but those that are listed; else those alone.
    pub exclude: bool,
    pub sources: Vec<IpAddr>,
    pub local: Endpoint,
    pub domain: DomainId,
    pub slot: u32,
}

/// Every membership in an arena; `None` if it is not (yet) an arena of this version.
pub fn memberships(arena: &Segment) -> Option<Vec<Membership>> {
    let blocks: Vec<Block> = arena::copies::<Block>(arena, LAYOUT, 0)?.collect();
    let entries: Vec<Entry> = arena::copies::<Entry>(arena, LAYOUT, 1)?.collect();
    let of = |m: &Entry| {
        let block = blocks.get(m.block as usize)?;
        let lists = |e: &&Entry| {
            e.kind == kind::SOURCE && (e.block, e.interface, e.group) == (m.block, m.interface, m.group)
        };
        m.is_sane(Some(block.generation).filter(|_| block.has(bit::USED))).then(|| Membership {
            interface: m.interface,
            group: m.group.into(),
            exclude: m.kind == kind::EXCLUDE,
            sources: entries.iter().filter(lists).map(|e| e.source.into()).collect(),
            local: block.local_endpoint(),
            domain: block.domain,
            slot: block.slot,
        })
    };
    Some(entries.iter().filter(|e| e.is_membership()).filter_map(of).collect())
}
