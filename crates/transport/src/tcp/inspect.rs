//! The arena as `eft ss` sees it: mapped read-only, while the engine may be writing it.
//!
//! A row may therefore mix two moments; nothing worse can happen, since every block is copied out
//! before it is read.

use super::block::{Block, Cold, State, bit};
use super::durable::{CURRENT, LAYOUT};
use super::reassembly::Reassembly;
use alloc::vec::Vec;
use eft_arena as arena;
use eft_base::{DomainId, Endpoint};
use eft_channel::Segment;
use zerocopy::IntoBytes;

/// One socket or connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub state: State,
    pub domain: DomainId,
    /// `None`: a connection without a socket (not yet, or no longer).
    pub slot: Option<u32>,
    pub local: Endpoint,
    /// Bound as IPV6_V6ONLY.
    pub v6only: bool,
    pub remote: Endpoint,
    /// Bytes that the application has not taken; for a listener, connections waiting.
    pub receive_queue: u64,
    /// Bytes that the peer has not acknowledged; for a listener, the backlog.
    pub send_queue: u64,
    pub cwnd: u32,
    /// `None`: still unlimited.
    pub ssthresh: Option<u32>,
    pub mss: u32,
    pub rtt_us: u32,
    pub rttvar_us: u32,
    pub rto_us: u32,
    pub retransmits: u32,
    /// Expiries of the retransmission timer in a row.
    pub backoff: u8,
    pub peer_window: u64,
    pub timestamps: bool,
    pub sack: bool,
    /// ECN was agreed on (RFC 3168).
    pub ecn: bool,
    /// The application's last descriptor is gone.
    pub orphan: bool,
}

/// The name that `ss` shows.
pub fn state_name(state: State) -> &'static str {
    match state {
        State::Free => "FREE",
        State::Established => "ESTAB",
        State::SynSent => "SYN-SENT",
        State::SynReceived => "SYN-RECV",
        State::FinWait1 => "FIN-WAIT-1",
        State::FinWait2 => "FIN-WAIT-2",
        State::TimeWait => "TIME-WAIT",
        State::Closed => "UNCONN",
        State::CloseWait => "CLOSE-WAIT",
        State::LastAck => "LAST-ACK",
        State::Listen => "LISTEN",
        State::Closing => "CLOSING",
    }
}

/// Every socket in an arena; `None` if it is not (yet) an arena of this version.
pub fn list(arena: &Segment) -> Option<Vec<Row>> {
    let blocks = arena::copies::<Block>(arena, LAYOUT, CURRENT.blocks)?;
    let both = blocks.zip(arena::copies::<Cold>(arena, LAYOUT, CURRENT.cold)?);
    Some(both.filter(|(b, _)| b.state() != State::Free).map(|(b, c)| row(&b, &c)).collect())
}

/// The whole state of every socket, as bytes: for tests that compare.
pub fn contents(arena: &Segment) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    arena::copies::<Block>(arena, LAYOUT, CURRENT.blocks)?
        .for_each(|b| bytes.extend_from_slice(b.as_bytes()));
    arena::copies::<Cold>(arena, LAYOUT, CURRENT.cold)?.for_each(|c| bytes.extend_from_slice(c.as_bytes()));
    arena::copies::<Reassembly>(arena, LAYOUT, CURRENT.notes)?
        .for_each(|n| bytes.extend_from_slice(n.as_bytes()));
    Some(bytes)
}

fn row(b: &Block, c: &Cold) -> Row {
    let listens = b.state() == State::Listen;
    let unread = b.rcv_nxt.saturating_sub(b.rcv_taken);
    Row {
        state: b.state(),
        domain: b.domain,
        slot: (b.slot != super::block::NONE).then_some(b.slot),
        local: b.tuple.local_endpoint(),
        v6only: b.has(bit::V6ONLY),
        remote: b.tuple.remote_endpoint(),
        receive_queue: if listens {
            unread / size_of::<eft_channel::socket::AcceptRecord>() as u64
        } else {
            unread
        },
        send_queue: if listens { c.backlog as u64 } else { b.snd_end.saturating_sub(b.bytes_acknowledged()) },
        cwnd: b.congestion.cwnd,
        ssthresh: (b.congestion.ssthresh != u32::MAX).then_some(b.congestion.ssthresh),
        mss: b.segment_size(),
        rtt_us: b.rtt.srtt_us,
        rttvar_us: b.rtt.rttvar_us,
        rto_us: b.rtt.rto_us(),
        retransmits: c.retransmits,
        backoff: b.backoff,
        peer_window: b.snd_edge.saturating_sub(b.snd_una),
        timestamps: b.has(bit::TIMESTAMPS),
        sack: b.has(bit::SACK),
        ecn: b.hears_of_marks(),
        orphan: b.has(bit::ORPHAN),
    }
}
