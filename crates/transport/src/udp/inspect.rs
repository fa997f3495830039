//! The arena as `eft ss` sees it: mapped read-only, while the engine may be writing it.

use super::durable::{Block, LAYOUT, bit};
use alloc::vec::Vec;
use eft_arena as arena;
use eft_base::{DomainId, Endpoint};
use eft_channel::Segment;

/// One socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub domain: DomainId,
    pub slot: u32,
    pub local: Endpoint,
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
        remote: b.has(bit::CONNECTED).then(|| b.remote_endpoint()),
        receive_queue: b.receive_end.saturating_sub(b.receive_taken),
        send_queue: b.sent.saturating_sub(b.released),
    }
}
